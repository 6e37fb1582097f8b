//! Every case whole and cut at every length; any change of its bytes; any bytes at all. `tunnels.rs` has the
//! frames in frames, `fragments.rs` what is put together, `unread.rs` what is not a whole segment.

mod fragments;
mod tunnels;
mod unread;

use std::net::IpAddr;

use proptest::prelude::*;

use super::{Packet, Unwrapped, decode};
use crate::issue::Kind;
use crate::segment::{Multipath, Options, Sack, Segment};

const ETHERNET: u32 = 1;
const TIMES: &[u8] = b"\x01\x01\x08\x0a\0\0\0\x07\0\0\0\x09";

fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = ((20 + options.len()) as u8 / 4) << 4;
    let fixed = [
        1,
        187,
        156,
        64,
        0,
        0,
        0,
        5,
        0,
        0,
        0,
        6,
        offset | 0xf,
        0x18,
        1,
        2,
        0,
        0,
        0,
        0,
    ];
    [&fixed[..], options, payload].concat()
}

fn ip4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let head = [
        0x45, 0, total[0], total[1], 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    [&head[..], payload].concat()
}

fn ip6(next: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let head = [0x60, 0, 0, 0, len[0], len[1], next, 63];
    [&head[..], &[0x20; 16], &[0x30; 16], payload].concat()
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[0; 12][..], &kind.to_be_bytes(), payload].concat()
}

fn all(data: &[u8]) -> u32 {
    data.len() as u32
}

#[track_caller]
fn segment(link: u32, data: &[u8]) -> Segment<'_> {
    match decode(link, data, all(data)) {
        Packet::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn unread(link: u32, data: &[u8], original: u32) -> (Kind, &'static str, &'static str, u64, u64, u32) {
    let unread = match decode(link, data, original) {
        Packet::Unread(unread) | Packet::Malformed(_, unread) | Packet::BadDataOffset(_, unread) => unread,
        Packet::Foreign(foreign) => foreign.unread(&Unwrapped::Unknown),
        other => panic!("{other:?}"),
    };
    (
        unread.kind,
        unread.layer,
        unread.reason,
        unread.needed,
        unread.had,
        unread.detail,
    )
}

/// Frames that hold the segment `tcp(TIMES, b"abc")`, with their link types.
fn carriers() -> Vec<(&'static str, u32, Vec<u8>)> {
    let tcp = &tcp(TIMES, b"abc");
    let four = &ip4(6, tcp);
    let six = &ip6(6, tcp);
    let padded = &ip6(60, &[&[6, 0, 1, 4, 0, 0, 0, 0], &tcp[..]].concat());
    let atomic = &ip6(44, &[&[6, 0, 0, 0, 0, 0, 0, 1], &tcp[..]].concat());
    let ah6 = &ip6(51, &[&[6, 4][..], &[0; 22], tcp].concat());
    let ah4 = &ip4(51, &[&[6, 4][..], &[0; 22], tcp].concat());
    let jumbo_len = (8 + tcp.len() as u32).to_be_bytes();
    let mut jumbo = ip6(0, &[&[6, 0, 0xc2, 4][..], &jumbo_len, tcp, b"padding"].concat());
    jumbo[4..6].fill(0);
    let mut offloaded4 = four.clone();
    offloaded4[2..4].fill(0);
    let mut offloaded6 = six.clone();
    offloaded6[4..6].fill(0);
    let mut options = ip4(6, &[&[1; 4], &tcp[..]].concat());
    options[0] = 0x46;
    let llc = |head: &[u8]| ethernet(((head.len() + four.len()) % 1500) as u16, &[head, four].concat());
    let cooked = |kind: u16, rest: &[u8]| [&[0; 14][..], &kind.to_be_bytes(), rest].concat();
    let cooked2 = |kind: u16, rest: &[u8]| [&kind.to_be_bytes()[..], &[0; 18], rest].concat();
    vec![
        ("ethernet", 1, ethernet(0x800, four)),
        (
            "ethernet, padded",
            1,
            ethernet(0x800, &[&four[..], &[0x55; 9]].concat()),
        ),
        ("ethernet, ipv6", 1, ethernet(0x86dd, six)),
        ("ipv6 under 0x0800", 1, ethernet(0x800, six)),
        ("vlan", 1, ethernet(0x8100, &[&[0, 9, 8, 0], &four[..]].concat())),
        (
            "qinq",
            1,
            ethernet(0x88a8, &[&[0, 9, 0x81, 0, 0, 8, 0x86, 0xdd], &six[..]].concat()),
        ),
        (
            "old qinq",
            1,
            ethernet(0x9100, &[&[0, 9, 0x91, 0, 0, 8, 8, 0], &four[..]].concat()),
        ),
        (
            "metadata",
            1,
            ethernet(0x8909, &[&[1, 1, 0, 1, 0, 5, 8, 0], &four[..]].concat()),
        ),
        ("snap", 1, llc(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0])),
        ("cisco snap", 1, llc(&[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0])),
        ("llc", 1, llc(&[6, 6, 3])),
        ("sll", 113, cooked(0x800, four)),
        (
            "sll, vlan",
            113,
            cooked(0x8100, &[&[0, 9, 0x86, 0xdd], &six[..]].concat()),
        ),
        ("sll2", 276, cooked2(0x86dd, six)),
        ("raw", 101, four.clone()),
        ("raw 12", 12, six.clone()),
        ("raw 14", 14, four.clone()),
        ("ipv4", 228, four.clone()),
        ("ipv6", 229, six.clone()),
        ("null, little", 0, [&[2, 0, 0, 0], &four[..]].concat()),
        ("null, big", 0, [&[0, 0, 0, 2], &four[..]].concat()),
        ("null, darwin", 0, [&[30, 0, 0, 0], &six[..]].concat()),
        ("null, bsd", 0, [&[0, 0, 0, 24], &six[..]].concat()),
        ("null, ethertype", 0, [&[0, 8, 0, 0], &four[..]].concat()),
        ("loop", 108, [&[0, 0, 0, 28], &six[..]].concat()),
        ("ipv4 options", 228, options),
        ("authentication", 228, ah4.clone()),
        ("authentication, ipv6", 229, ah6.clone()),
        ("destination options", 229, padded.clone()),
        ("atomic fragment", 229, atomic.clone()),
        ("jumbogram", 229, jumbo),
        ("offloaded", 228, offloaded4),
        ("offloaded, ipv6", 229, offloaded6),
    ]
}

#[test]
fn every_carrier_gives_the_same_segment() {
    for (name, link, data) in carriers() {
        let segment = segment(link, &data);
        assert_eq!(
            (segment.sport, segment.dport, segment.seq, segment.ack),
            (443, 40000, 5, 6),
            "{name}"
        );
        assert_eq!(
            (segment.flags, segment.window, segment.len),
            (0x118, 0x102, 3),
            "{name}"
        );
        assert_eq!(segment.payload, b"abc", "{name}");
        let options = Options {
            timestamps: Some((7, 9)),
            ..Options::default()
        };
        assert_eq!(segment.options, options, "{name}");
        let (src, dst, ip_id): (IpAddr, IpAddr, _) = match segment.src {
            IpAddr::V4(_) => ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Some(0x1234)),
            IpAddr::V6(_) => ([0x20; 16].into(), [0x30; 16].into(), None),
        };
        assert_eq!(
            (segment.src, segment.dst, segment.ip_id),
            (src, dst, ip_id),
            "{name}"
        );
    }
}

#[test]
fn cut_by_the_snap_length() {
    for (name, link, data) in carriers() {
        let uncut = segment(link, &data);
        for held in 0..data.len() {
            match decode(link, &data[..held], all(&data)) {
                Packet::Tcp(cut) => {
                    assert!(uncut.payload.starts_with(cut.payload));
                    let options = if cut.options.timestamps.is_some() {
                        uncut.options
                    } else {
                        Options {
                            cut: true,
                            ..Options::default()
                        }
                    };
                    assert_eq!(
                        cut,
                        Segment {
                            payload: cut.payload,
                            options,
                            ..uncut
                        },
                        "{name} {held}"
                    );
                }
                Packet::Unread(unread) => assert_eq!(
                    (unread.kind, unread.reason, unread.had < unread.needed),
                    (Kind::Skipped, "header is cut by the snap length", true),
                    "{name} {held}"
                ),
                // the three bytes of LLC that tell IP from spanning tree are gone
                Packet::Other => assert!(name.contains("snap") || name.contains("llc"), "{name} {held}"),
                other => panic!("{name} {held} {other:?}"),
            }
            // a frame that was never longer: no panic, and never more bytes than there are
            if let Packet::Tcp(short) = decode(link, &data[..held], held as u32) {
                assert!(short.payload.len() <= short.len as usize, "{name} {held}");
            }
        }
    }
}

#[test]
fn lengths_come_from_the_wire() {
    let data = ethernet(0x800, &ip4(6, &tcp(&[], &[7; 100])));
    let Packet::Tcp(cut) = decode(ETHERNET, &data[..64], all(&data)) else {
        panic!()
    };
    assert_eq!((cut.len, cut.payload.len()), (100, 10));
    // segmentation offload: total length 0, so the frame's own length counts
    let mut offloaded = data.clone();
    offloaded[16..18].fill(0);
    let Packet::Tcp(cut) = decode(ETHERNET, &offloaded, 5000 + 54) else {
        panic!()
    };
    assert_eq!((cut.len, cut.payload.len()), (5000, 100));
    // a frame said to be shorter than what was captured of it (tshark believes the bytes too)
    let Packet::Tcp(whole) = decode(ETHERNET, &data, 60) else {
        panic!()
    };
    assert_eq!((whole.len, whole.payload.len()), (100, 100));
    // a total length beyond the frame: the frame's counts, as in Wireshark, and it is said
    let mut lying = data.clone();
    lying[16] = 0xff;
    let Packet::LengthBeyondFrame(short, None) = decode(ETHERNET, &lying, all(&data)) else {
        panic!()
    };
    assert_eq!((short.len, short.payload.len()), (100, 100));
    // nineteen captured bytes of the header: all that is used is there
    let Packet::Tcp(most) = decode(ETHERNET, &data[..14 + 20 + 19], all(&data)) else {
        panic!()
    };
    assert_eq!((most.window, most.len, most.payload), (0x102, 100, &[][..]));
}

#[test]
fn options() {
    let read = |options: &[u8]| segment(228, &ip4(6, &tcp(options, b"x"))).options;
    let none = Options::default();
    let syn = read(b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\x07\0\0\0\0\x01\x03\x03\x0f");
    let (mss, wscale) = (Some(1460), Some(15));
    let expected = Options {
        mss,
        wscale,
        sack_permitted: true,
        timestamps: Some((7, 0)),
        ..none
    };
    assert_eq!(syn, expected);
    let sack = read(b"\x01\x01\x05\x12\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04");
    assert_eq!(sack.sack.blocks(), [(1, 2), (3, 4)]);
    assert_eq!(read(b"\x05\x0b\0\0\0\x01\0\0\0\x02\0\0").sack.blocks(), [(1, 2)]);
    assert_eq!(
        read(&[&b"\x05\x22"[..], &[1; 32], &[0; 2]].concat())
            .sack
            .blocks(),
        [(0x0101_0101, 0x0101_0101); 4]
    );
    // timestamps in another place, after the end of the list, cut, of a wrong length, of length 0 or 1
    assert_eq!(
        read(b"\x08\x0a\0\0\0\x07\0\0\0\x09\x01\x01").timestamps,
        Some((7, 9))
    );
    for bytes in [
        &b"\0\x01\x08\x0a\0\0\0\x07\0\0\0\x09"[..],
        b"\x01\x01\x01\x01\x08\x0a\0\0\0\x07\0\0",
        b"\x08\x08\0\0\0\x07\0\0\x01\x01\x01\x01",
        b"\x03\0\x08\x0a\0\0\0\x07\0\0\0\x09",
        b"\x03\x01\x08\x0a\0\0\0\x07\0\0\0\x09",
        b"\x02\x03\x05\x03\x02\x04\x03\0\x01\x01\x01\x01",
        b"\xfd\x0c\x08\x0a\0\0\0\x07\0\0\0\x09",
    ] {
        let sack_permitted = false;
        assert_eq!(
            read(bytes),
            Options {
                sack_permitted,
                sack: Sack::default(),
                ..none
            },
            "{bytes:x?}"
        );
    }
    let capable = read(b"\x1e\x04\x01\x81").multipath;
    let joins = read(b"\x1e\x0c\x11\x02\0\0\0\x01\0\0\0\x02").multipath;
    let signal = read(b"\x1e\x08\x20\0\0\0\0\x02\x1e\x02").multipath;
    let expected = [Multipath::Capable, Multipath::Joins, Multipath::Nothing];
    assert_eq!([capable, joins, signal], expected);
    // an option of an odd length is passed over; of two of a kind the later counts
    assert_eq!(
        read(b"\x03\x02\x01\x01\x02\x04\x05\x06\x02\x04\x05\x07").mss,
        Some(0x0507)
    );
}

#[test]
fn source_routes_lead_to_the_connections_end() {
    let mut data = ip4(6, &[&[131, 7, 4, 9, 9, 9, 9, 1], &tcp(&[], b"abc")[..]].concat());
    data[0] = 0x47;
    assert_eq!(segment(228, &data).dst, IpAddr::from([9, 9, 9, 9]));
    data[22] = 8; // the pointer is past the route: the packet is at its end
    assert_eq!(segment(228, &data).dst, IpAddr::from([10, 0, 0, 2]));
    for (kind, left, end) in [
        (0, 1, 0x44),
        (2, 1, 0x44),
        (4, 1, 0x33),
        (0, 0, 0x30),
        (9, 1, 0x30),
    ] {
        let routing = [
            &[6, 4, kind, left, 1, 0, 0, 0][..],
            &[0x33; 16],
            &[0x44; 16],
            &tcp(&[], b"abc"),
        ]
        .concat();
        let data = ip6(43, &routing);
        assert_eq!(
            segment(229, &data).dst,
            IpAddr::from([end; 16]),
            "type {kind}, {left} left"
        );
    }
}

fn any_link() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![
        0u32, 1, 9, 12, 51, 101, 104, 108, 109, 113, 204, 228, 229, 276, 127,
    ])
}

/// What must hold of whatever comes out.
fn sound(link: u32, data: &[u8], original: u32) {
    let inside = |part: &[u8]| part.is_empty() || data.as_ptr_range().contains(&part.as_ptr());
    match decode(link, data, original) {
        Packet::Tcp(segment) | Packet::LengthBeyondFrame(segment, _) => {
            assert!(inside(segment.payload) && segment.payload.len() <= segment.len as usize);
            assert!(segment.len <= original.max(all(data)));
        }
        Packet::Icmp(icmp) => assert!(icmp.quoted.is_none_or(|segment| inside(segment.payload))),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_bytes_panic(
        link in any_link(),
        data in prop::collection::vec(any::<u8>(), 0..200),
        original in any::<u32>(),
    ) {
        sound(link, &data, original);
    }

    #[test]
    fn no_change_panics(
        (_, link, data) in prop::sample::select([carriers(), tunnels::tunnels()].concat()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        original in 0u32..300,
        held in any::<prop::sample::Index>(),
    ) {
        let mut data = data;
        for (at, byte) in edits {
            let at = at.index(data.len());
            data[at] = byte;
        }
        sound(link, &data, original);
        sound(link, &data[..held.index(data.len())], original);
    }
}
