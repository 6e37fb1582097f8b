//! The same segment in every tunnel, and what looks like a tunnel and is none.

use super::*;

/// Frames that hold `tcp(TIMES, b"abc")` in IPv4 or IPv6, in something else.
pub(super) fn tunnels() -> Vec<(&'static str, u32, Vec<u8>)> {
    let tcp = &tcp(TIMES, b"abc");
    let four = &ip4(6, tcp)[..];
    let six = &ip6(6, tcp)[..];
    let frame = &ethernet(0x800, four)[..];
    let gre = |head: &[u8], inner: &[u8]| ip4(47, &[head, inner].concat());
    let udp = |from: u16, to: u16, head: &[u8], inner: &[u8]| {
        let length = (8 + head.len() + inner.len()) as u16;
        let ports = [from.to_be_bytes(), to.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
        ip4(17, &[&ports[..], head, inner].concat())
    };
    let pppoe = |inner: &[u8]| {
        let length = (inner.len() as u16).to_be_bytes();
        [&[0x11, 0, 0, 1][..], &length, inner].concat()
    };
    let ppp = &[&[0, 0x21][..], four].concat()[..];
    let of_length = |head: &[u8], inner: &[u8]| {
        let mut head = head.to_vec();
        head[4..6].copy_from_slice(&(inner.len() as u16).to_be_bytes());
        gre(&head, inner)
    };
    vec![
        (
            "mpls",
            1,
            ethernet(0x8847, &[&[0, 1, 0, 9, 0, 2, 1, 9], four].concat()),
        ),
        ("mpls, ipv6", 1, ethernet(0x8848, &[&[0, 1, 1, 9], six].concat())),
        (
            "mpls, control word",
            1,
            ethernet(0x8847, &[&[0, 1, 1, 9, 0, 0, 0, 0], frame].concat()),
        ),
        (
            "mpls, ethernet",
            1,
            ethernet(0x8847, &[&[0, 1, 1, 9], frame].concat()),
        ),
        ("pppoe", 1, ethernet(0x8864, &pppoe(ppp))),
        ("pppoe alone", 51, pppoe(ppp)),
        ("ppp", 9, [&[0xff, 3], ppp].concat()),
        ("ppp, one byte", 9, [&[0x57], six].concat()),
        ("ppp, mpls", 50, [&[0xff, 3, 2, 0x81, 0, 1, 1, 9], four].concat()),
        ("ppp, direction", 204, [&[1, 0xff, 3], ppp].concat()),
        ("pppd", 166, [&[0, 3], ppp].concat()),
        ("cisco hdlc", 104, [&[0x0f, 0, 8, 0], four].concat()),
        ("ppp or cisco hdlc", 9, [&[0x8f, 0, 0x86, 0xdd], six].concat()),
        ("enc", 109, [&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], four].concat()),
        ("bridged", 1, ethernet(0x6558, frame)),
        (
            "fabricpath",
            1,
            ethernet(0x8903, &[&[0, 1], frame, &[9; 4]].concat()),
        ),
        ("pbb", 1, ethernet(0x88e7, &[&[0, 0, 0, 1], frame].concat())),
        (
            "trill",
            1,
            ethernet(0x22f3, &[&[0, 0x45, 0, 1, 0, 2, 9, 9, 9, 9], frame].concat()),
        ),
        (
            "vntag",
            1,
            ethernet(0x8926, &[&[0, 0, 0, 1, 8, 0], four].concat()),
        ),
        ("hsr", 1, ethernet(0x892f, &[&[0, 9, 0, 1, 8, 0], four].concat())),
        (
            "macsec in the clear",
            1,
            ethernet(
                0x88e5,
                &[&[0x20, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 0], four].concat(),
            ),
        ),
        (
            "nsh",
            1,
            ethernet(0x894f, &[&[0, 2, 2, 3, 0, 0, 0, 0], frame].concat()),
        ),
        ("ip in ip", 228, ip4(4, four)),
        ("6in4", 228, ip4(41, six)),
        ("4in6", 229, ip6(4, four)),
        (
            "4in6, options",
            229,
            ip6(60, &[&[4, 0, 1, 4, 0, 0, 0, 0], four].concat()),
        ),
        ("etherip", 228, ip4(97, &[&[0x30, 0], frame].concat())),
        ("ethernet in ip", 228, ip4(143, frame)),
        ("capwap", 228, udp(9, 5247, &[0, 0x10, 2, 0, 0, 0, 0, 0], frame)),
        (
            "multilink ppp",
            9,
            [&[0xff, 3, 0, 0x3d, 0xc0, 0, 0, 1], ppp].concat(),
        ),
        ("mpls in ip", 228, ip4(137, &[&[0, 1, 1, 9], four].concat())),
        ("gre", 228, gre(&[0, 0, 8, 0], four)),
        (
            "gre, checksum, key, number",
            228,
            gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], four),
        ),
        (
            "gre, routed",
            228,
            gre(
                &[0x40, 0, 8, 0, 0, 0, 0, 0, 8, 0, 0, 4, 9, 9, 9, 9, 0, 0, 0, 0],
                four,
            ),
        ),
        ("gre, bridged", 228, gre(&[0, 0, 0x65, 0x58], frame)),
        ("gre, mpls", 228, gre(&[0, 0, 0x88, 0x47, 0, 1, 1, 9], four)),
        (
            "pptp",
            228,
            of_length(
                &[0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2],
                &[&[0xff, 3], ppp].concat(),
            ),
        ),
        ("erspan I", 228, gre(&[0, 0, 0x88, 0xbe], frame)),
        (
            "erspan II",
            228,
            gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 7, 0x10, 1, 2, 3, 4, 5, 6, 7],
                frame,
            ),
        ),
        (
            "erspan III",
            228,
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ],
                frame,
            ),
        ),
        (
            "erspan III, more",
            228,
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0,
                    0, 0,
                ],
                four,
            ),
        ),
        ("wccp", 228, gre(&[0, 0, 0x88, 0x3e], four)),
        ("wccp 2", 228, gre(&[0, 0, 0x88, 0x3e, 0, 1, 2, 3], four)),
        ("vxlan", 228, udp(50000, 4789, &[8, 0, 0, 0, 0, 0, 1, 0], frame)),
        (
            "vxlan, linux",
            228,
            udp(50000, 8472, &[8, 0, 0, 0, 0, 0, 1, 0], frame),
        ),
        (
            "vxlan-gpe",
            228,
            udp(50000, 4790, &[0x0c, 0, 0, 2, 0, 0, 1, 0], six),
        ),
        (
            "vxlan-gpe, nsh",
            228,
            udp(
                50000,
                4790,
                &[0x0c, 0, 0, 4, 0, 0, 1, 0, 0, 2, 2, 1, 0, 0, 0, 0],
                four,
            ),
        ),
        (
            "geneve",
            228,
            udp(50000, 6081, &[1, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 1, 1, 1], frame),
        ),
        (
            "geneve, ip",
            228,
            udp(50000, 6081, &[0, 0, 8, 0, 0, 0, 1, 0], four),
        ),
        ("gtp", 228, udp(2152, 2152, &[0x30, 255, 0, 90, 0, 0, 0, 1], four)),
        (
            "gtp, number",
            228,
            udp(2152, 50000, &[0x32, 255, 0, 90, 0, 0, 0, 1, 0, 9, 0, 0], six),
        ),
        (
            "gtp, extension",
            228,
            udp(
                2152,
                2152,
                &[0x34, 255, 0, 90, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 9, 9, 0],
                four,
            ),
        ),
        (
            "gtp version 0",
            228,
            udp(3386, 3386, &[&[0x1e, 255][..], &[0; 18]].concat(), four),
        ),
        ("teredo", 228, udp(3544, 50000, &[], six)),
        (
            "teredo, origin",
            228,
            udp(
                50000,
                3544,
                &[0, 1, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 1, 1, 2, 2, 2, 2],
                six,
            ),
        ),
        (
            "l2tp",
            228,
            udp(
                1701,
                1701,
                &[0x4a, 2, 0, 90, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 9, 9, 0xff, 3],
                ppp,
            ),
        ),
        ("lisp", 228, udp(4341, 4341, &[0x80; 8], four)),
        (
            "ayiya",
            228,
            udp(5072, 5072, &[&[0x41, 0x52, 0x11, 41][..], &[0; 40]].concat(), six),
        ),
        ("gre in udp", 228, udp(50000, 4754, &[0, 0, 8, 0], four)),
        ("mpls in udp", 228, udp(50000, 6635, &[0, 1, 1, 9], four)),
        (
            "tzsp",
            228,
            udp(50000, 37008, &[1, 0, 0, 1, 0, 10, 1, 5, 1], frame),
        ),
        (
            "sll, radio aside",
            113,
            [&[0, 0, 3, 10][..], &[0; 10], &[8, 0], four].concat(),
        ),
        (
            "gre in geneve",
            228,
            udp(1, 6081, &[0, 0, 8, 0, 0, 0, 1, 0], &gre(&[0, 0, 8, 0], four)),
        ),
    ]
}

#[test]
fn every_tunnel_gives_the_same_segment() {
    for (name, link, data) in tunnels() {
        let Packet::Tcp(segment) = decode(link, &data, all(&data)) else {
            panic!("{name}: {:?}", decode(link, &data, all(&data)))
        };
        assert_eq!((segment.sport, segment.seq, segment.len), (443, 5, 3), "{name}");
        assert_eq!(
            (segment.payload, segment.options.timestamps),
            (&b"abc"[..], Some((7, 9))),
            "{name}"
        );
        for held in 0..data.len() {
            match decode(link, &data[..held], all(&data)) {
                Packet::Tcp(cut) => assert_eq!((cut.sport, cut.len), (443, 3), "{name} {held}"),
                Packet::Unread(_) | Packet::Other => {}
                other => panic!("{name} {held} {other:?}"),
            }
            assert!(
                !matches!(decode(link, &data[..held], held as u32), Packet::Tcp(s) if s.len > 3),
                "{name} {held}"
            );
        }
    }
}

#[test]
fn tunnels_in_tunnels_have_an_end() {
    let mut data = ip4(6, &tcp(TIMES, b"abc"));
    for _ in 0..15 {
        data = ip4(4, &data);
    }
    assert_eq!(segment(228, &data).len, 3);
    data = ip4(4, &ip4(4, &data));
    assert_eq!(
        unread(228, &data, all(&data)),
        (Kind::Distrusted, "ip", "tunnels are nested too deep", 0, 0, 0)
    );
    // as deep as a frame allows: no stack overflows
    let label = |n: usize| {
        [[0, 0, 0x65, 0x58].as_slice(), &[0; 12], &[0x65, 0x58]]
            .concat()
            .repeat(n)
    };
    let deep = ethernet(0x6558, &label(10_000));
    assert!(!matches!(decode(1, &deep, all(&deep)), Packet::Tcp(_)));
    let labels = ethernet(0x8847, &[0; 200_000]);
    assert!(!matches!(decode(1, &labels, all(&labels)), Packet::Tcp(_)));
}

#[test]
fn a_port_alone_is_no_tunnel() {
    for port in [1701u16, 2152, 3386, 3544, 4789, 5072, 6081, 37008] {
        let ports = [port.to_be_bytes(), 53u16.to_be_bytes(), [0, 68], [0, 0]].concat();
        for fill in [0u8, 0xff] {
            let data = ip4(17, &[&ports[..], &[fill; 60]].concat());
            let decoded = decode(228, &data, all(&data));
            assert!(
                matches!(decoded, Packet::Other | Packet::Foreign(_) | Packet::Unread(_)),
                "{port} {fill} {decoded:?}"
            );
        }
    }
}

/// L2TP version 3 does not say what it carries, so the packet must be sound.
#[test]
fn sessions_carry_what_ends_with_them() {
    let mut four = ip4(6, &tcp(TIMES, b"abc"));
    let sum: u32 = (four.chunks_exact(2).take(10))
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    four[10..12].copy_from_slice(&sum.to_be_bytes());
    let six = ip6(6, &tcp(TIMES, b"abc"));
    let tagged = ethernet(0x8100, &[&[0, 5, 8, 0], &four[..]].concat());
    let filled = [ethernet(0x800, &four), vec![0; 6]].concat();
    let inners = [
        ethernet(0x800, &four),
        ethernet(0x86dd, &six),
        tagged,
        filled,
        [&[0x0f, 0, 8, 0], &four[..]].concat(),
        [&[0xff, 3, 0, 0x57], &six[..]].concat(),
        four.clone(),
        six,
    ];
    for inner in &inners {
        for agreed in [0, 4, 8, 12] {
            let session = [&[0, 0, 0, 7][..], &vec![0x99; agreed], inner].concat();
            let data = ip4(115, &session);
            assert_eq!(segment(228, &data).len, 3, "{inner:x?} {agreed}");
            let length = (12 + session.len() as u16).to_be_bytes();
            let head = [6, 0xa5, 6, 0xa5, length[0], length[1], 0, 0, 0, 3, 0, 0];
            let data = ip4(17, &[&head[..], &session].concat());
            assert_eq!(segment(228, &data).len, 3, "{inner:x?} {agreed}");
        }
    }
    // another checksum, another length, control
    for (at, inner) in [(24, &inners[0]), (17, &inners[0]), (19, &inners[1])] {
        let mut session = [&[0, 0, 0, 7][..], inner].concat();
        session[at + 4] ^= 0x50;
        let data = ip4(115, &session);
        let unread = decode(228, &data, all(&data));
        assert!(matches!(unread, Packet::Unread(it) if it.reason == "tunnel is not entered"));
    }
    let control = [&[0; 4][..], &inners[0]].concat();
    let data = ip4(115, &control);
    assert_eq!(decode(228, &data, all(&data)), Packet::Other);
}

#[test]
fn access_points_send_what_the_radio_heard() {
    let capwap = |head: &[u8]| {
        let inner = ethernet(0x800, &ip4(6, &tcp(TIMES, b"abc")));
        let length = (16 + inner.len() as u16).to_be_bytes();
        let ports = [20, 127, 20, 127, length[0], length[1], 0, 0];
        ip4(17, &[&ports[..], head, &[0; 4], &inner].concat())
    };
    let radio = capwap(&[0, 0x10, 3, 0]);
    assert!(
        matches!(decode(228, &radio, all(&radio)), Packet::Foreign(it) if (it.layer, it.number) == ("capwap", 1))
    );
    let fragment = capwap(&[0, 0x10, 2, 0x80]);
    assert!(matches!(
        decode(228, &fragment, all(&fragment)),
        Packet::Unread(_)
    ));
    let closed = capwap(&[1, 0x10, 2, 0]);
    assert!(matches!(decode(228, &closed, all(&closed)), Packet::Unread(_)));
    for none in [[0, 0x10, 2, 8], [0, 8, 2, 0], [0, 0x10, 5, 0], [0x10, 0x10, 2, 0]] {
        let none = capwap(&none);
        assert_eq!(decode(228, &none, all(&none)), Packet::Other);
    }
}

#[test]
fn a_reader_outside_gives_an_ip_packet() {
    let inner = ip4(6, &tcp(TIMES, b"abc"));
    let frame = [&[9; 30][..], &inner].concat();
    let Packet::Foreign(foreign) = decode(127, &frame, 500) else {
        panic!()
    };
    assert_eq!(
        (foreign.layer, foreign.number, foreign.data),
        ("link", 127, &frame[..])
    );
    assert!(matches!(foreign.decode(&inner), Packet::Tcp(segment) if segment.len == 3));
    assert!(matches!(foreign.decode(&[]), Packet::Unread(_)));
    let ether = [&[9; 12][..], &[8, 0], &inner].concat();
    assert!(matches!(foreign.layer("link", 1, &ether), Packet::Tcp(segment) if segment.len == 3));
    let tagged = [&[0, 5, 8, 0][..], &inner].concat();
    assert!(matches!(foreign.layer("ethertype", 0x8100, &tagged), Packet::Tcp(segment) if segment.len == 3));
    assert_eq!(foreign.layer("ethertype", 0x18100, &tagged), Packet::Other);
    assert_eq!(foreign.layer("ip", 6, &tagged), Packet::Other);
}

#[test]
fn layers_that_hold_themselves_end() {
    let frame = [0; 40];
    let mut packet = decode(127, &frame, 40);
    let mut layers = 0;
    while let Packet::Foreign(foreign) = packet {
        packet = foreign.layer("link", 127, foreign.data);
        layers += 1;
    }
    assert!(layers < 20 && matches!(packet, Packet::Unread(_)), "{layers}");
}

#[test]
fn labels_and_sniffers_as_link_types() {
    let inner = ip4(6, &tcp(TIMES, b"abc"));
    let label = [&[0, 1, 1, 64][..], &inner].concat();
    assert!(matches!(decode(219, &label, all(&label)), Packet::Tcp(segment) if segment.len == 3));
    let sniffed = [&[1, 0, 0, 1, 1][..], &[9; 12], &[8, 0], &inner].concat();
    assert!(matches!(decode(128, &sniffed, all(&sniffed)), Packet::Tcp(segment) if segment.len == 3));
    let hdlc = [&[0x0f, 0, 8, 0][..], &inner].concat();
    assert!(matches!(decode(112, &hdlc, all(&hdlc)), Packet::Tcp(segment) if segment.len == 3));
}
