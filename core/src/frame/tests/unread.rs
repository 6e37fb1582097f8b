//! What is not a whole TCP segment: headers that cannot be true, other protocols, fragments, ICMP.

use super::*;

#[test]
fn what_cannot_be_true() {
    let edit = |at: usize, value: u8| {
        let mut data = ip4(6, &tcp(&[], b"abc"));
        data[at] = value;
        data
    };
    let distrusted = Kind::Distrusted;
    for (data, layer, reason, needed, had) in [
        (edit(32, 0x40), "tcp", "data offset is below its least", 20, 16),
        (edit(32, 0xf0), "tcp", "data offset is beyond the packet", 60, 23),
        (edit(3, 39), "tcp", "data offset is beyond the packet", 20, 19),
        (edit(3, 30), "tcp", "header does not fit its packet", 16, 10),
        (edit(0, 0x44), "ipv4", "header length is below its least", 20, 16),
        (edit(0, 0x55), "ip", "version is neither four nor six", 0, 0),
        (
            edit(3, 19),
            "ipv4",
            "total length is below the header length",
            20,
            19,
        ),
    ] {
        assert_eq!(
            unread(228, &data, all(&data)),
            (distrusted, layer, reason, needed, had, 0)
        );
    }
    let four = ip4(6, &[0; 30]);
    assert_eq!(
        unread(229, &four, 50),
        (distrusted, "ipv6", "version is not six", 0, 0, 0)
    );
    assert_eq!(
        unread(1, &[0; 9], 9),
        (distrusted, "ethernet", "header does not fit its packet", 14, 9, 0)
    );
}

#[test]
fn what_is_not_read() {
    let skipped = |layer, reason, detail| (Kind::Skipped, layer, reason, 0, 0, detail);
    assert_eq!(
        unread(127, &[0; 60], 60),
        skipped("link", "link type is not read", 127)
    );
    assert_eq!(
        unread(1, &ethernet(0x88e5, &[0x2c; 60]), 74),
        skipped("macsec", "payload is encrypted", 0x88e5)
    );
    assert_eq!(
        unread(1, &ethernet(0x1234, &[0; 60]), 74),
        skipped("ethertype", "ethertype is not read", 0x1234)
    );
    for (protocol, layer, reason) in [
        (108, "ip", "tunnel is not entered"),
        (55, "ip", "tunnel is not entered"),
        (50, "esp", "payload is encrypted"),
    ] {
        let data = ip4(protocol, &[0; 60]);
        assert_eq!(unread(228, &data, 80), skipped(layer, reason, protocol.into()));
    }
    assert_eq!(
        unread(113, &[&[0, 0, 3, 35][..], &[0; 60]].concat(), 64),
        skipped("link", "link type is not read", 127)
    );
}

#[test]
fn others_and_fragments() {
    let igmp = ip4(2, &[0; 30]);
    for (link, data) in [
        (1, ethernet(0x0806, &[0; 46])),
        (1, ethernet(0x0800, &igmp)),
        (1, ethernet(38, &[0x42, 0x42, 3, 0, 0, 0, 0, 0])),
        (1, ethernet(1510, &igmp)),
        (0, vec![7, 0, 0, 0, 1, 2, 3]),
        (113, [&[0, 0, 3, 56][..], &[0; 60]].concat()),
        (229, ip6(59, &[0; 30])),
        (crate::capture::NO_LINK, vec![]),
    ] {
        assert_eq!(decode(link, &data, all(&data)), Packet::Other, "{link} {data:x?}");
    }
    for (byte, low) in [(0x20, 0), (0, 1), (0x3f, 0xff)] {
        let mut data = ip4(6, &tcp(&[], b"abc"));
        data[6..8].copy_from_slice(&[byte, low]);
        assert!(matches!(decode(228, &data, all(&data)), Packet::Fragment(_)));
    }
    let first = ip6(44, &[&[6, 0, 0, 1, 0, 0, 0, 1], &tcp(&[], b"abc")[..]].concat());
    assert!(matches!(decode(229, &first, all(&first)), Packet::Fragment(_)));
}

#[test]
fn icmp() {
    let icmp = |v6: bool, message: &[u8]| {
        let data = if v6 { ip6(58, message) } else { ip4(1, message) };
        match decode(if v6 { 229 } else { 228 }, &data, all(&data)) {
            Packet::Icmp(it) => {
                assert_eq!((it.v6, it.ttl), (v6, if v6 { 63 } else { 64 }));
                let quoted = it.quoted.map(|segment| (segment.sport, segment.seq, segment.len));
                (it.kind, it.code, it.id, it.seq, quoted)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(icmp(false, &[8, 0, 0, 0, 1, 2, 3, 4]), (8, 0, 0x102, 0x304, None));
    assert_eq!(
        icmp(true, &[129, 0, 0, 0, 1, 2, 3, 4]),
        (129, 0, 0x102, 0x304, None)
    );
    let four = ip4(6, &tcp(TIMES, &[0; 500]));
    let six = ip6(6, &tcp(TIMES, &[0; 500]));
    let error = |kind, code, quote: &[u8]| [&[kind, code, 0, 0, 9, 9, 9, 9], quote].concat();
    // the quote ends inside the options: the length is still the quoted packet's
    assert_eq!(
        icmp(false, &error(11, 0, &four[..44])),
        (11, 0, 0, 0, Some((443, 5, 500)))
    );
    assert_eq!(
        icmp(true, &error(3, 0, &six[..64])),
        (3, 0, 0, 0, Some((443, 5, 500)))
    );
    // eight bytes of TCP, a fragment, no error, an error in an error
    assert_eq!(icmp(false, &error(3, 1, &four[..28])).4, None);
    assert_eq!(icmp(false, &error(8, 0, &four)).4, None);
    let nested = ip4(1, &error(11, 0, &four));
    assert_eq!(icmp(false, &error(11, 0, &nested)).4, None);
    let mut fragment = four.clone();
    fragment[7] = 1;
    assert_eq!(icmp(false, &error(11, 0, &fragment)).4, None);
}
