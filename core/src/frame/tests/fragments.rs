//! IP fragments: in any order, doubled, overlapping, missing, too many.

use super::*;
use crate::frame::{Datagram, Fragments, SeenFrame};

const SECOND: i64 = 1_000_000_000;

/// The fragments of an IPv4 packet with these payload ranges.
fn pieces(payload: &[u8], ranges: &[(usize, usize)]) -> Vec<Vec<u8>> {
    let piece = |&(from, to): &(usize, usize)| {
        let mut data = ip4(6, &payload[from..to]);
        let word = (from / 8) as u16 | if to < payload.len() { 0x2000 } else { 0 };
        data[6..8].copy_from_slice(&word.to_be_bytes());
        data
    };
    ranges.iter().map(piece).collect()
}

fn place(time_ns: i64, frame: u64) -> SeenFrame {
    SeenFrame {
        time_ns,
        file: 0,
        frame,
        offset: frame * 100,
    }
}

fn add(fragments: &mut Fragments, link: u32, data: &[u8], time_ns: i64, frame: u64) -> Option<Datagram> {
    match decode(link, data, all(data)) {
        Packet::Fragment(fragment) => fragments.add(&fragment, place(time_ns, frame)),
        other => panic!("{other:?}"),
    }
}

/// Reasons and frames of what could not be put together.
fn issues(fragments: &mut Fragments) -> Vec<(&'static str, Option<u64>)> {
    fragments
        .issues
        .drain(..)
        .map(|issue| (issue.reason, issue.frame))
        .collect()
}

#[test]
fn in_any_order_and_doubled() {
    let payload = tcp(TIMES, &[7; 100]);
    for ranges in [
        &[(0, 32), (32, 80), (80, 132)][..],
        &[(80, 132), (32, 80), (0, 32)],
        &[(32, 80), (32, 80), (80, 132), (80, 132), (0, 32)],
        &[(0, 48), (32, 80), (40, 132)],
    ] {
        let mut fragments = Fragments::default();
        let frames = pieces(&payload, ranges);
        let (last, others) = frames.split_last().unwrap();
        for (n, data) in others.iter().enumerate() {
            assert!(add(&mut fragments, 228, data, 0, n as u64 + 1).is_none());
        }
        let whole = add(&mut fragments, 228, last, 0, 9).unwrap();
        let Packet::Tcp(segment) = whole.decode() else {
            panic!()
        };
        assert_eq!(
            (segment.sport, segment.len, segment.payload),
            (443, 100, &[7; 100][..])
        );
        assert_eq!((segment.src, segment.ip_id), ([10, 0, 0, 1].into(), Some(0x1234)));
        fragments.finish();
        assert_eq!(issues(&mut fragments), []);
    }
}

#[test]
fn ipv6() {
    let payload = tcp(TIMES, b"abc");
    let mut fragments = Fragments::default();
    let head = |word: u16| [&[6, 0][..], &word.to_be_bytes(), &[0, 0, 0, 5]].concat();
    let first = ip6(44, &[&head(1)[..], &payload[..24]].concat());
    let second = ip6(44, &[&head(24)[..], &payload[24..]].concat());
    assert!(add(&mut fragments, 229, &second, 0, 1).is_none());
    let whole = add(&mut fragments, 229, &first, 0, 2).unwrap();
    assert!(matches!(whole.decode(), Packet::Tcp(segment) if segment.payload == b"abc"));
}

#[test]
fn what_came_first_counts() {
    let mut fragments = Fragments::default();
    let (one, two) = (tcp(TIMES, &[1; 48]), tcp(TIMES, &[2; 48]));
    assert!(add(&mut fragments, 228, &pieces(&one, &[(0, 56)])[0], 0, 1).is_none());
    let whole = add(&mut fragments, 228, &pieces(&two, &[(32, 80)])[0], 0, 2).unwrap();
    let Packet::Tcp(segment) = whole.decode() else {
        panic!()
    };
    assert_eq!(segment.payload, [&[1; 24][..], &[2; 24]].concat());
}

#[test]
fn what_is_missing_is_said() {
    let payload = tcp(TIMES, &[7; 100]);
    let frames = pieces(&payload, &[(0, 32), (32, 132)]);
    let mut fragments = Fragments::default();
    assert!(add(&mut fragments, 228, &frames[0], 0, 1).is_none());
    // a minute later it is another packet with the same number
    assert!(add(&mut fragments, 228, &frames[1], 61 * SECOND, 2).is_none());
    assert_eq!(
        issues(&mut fragments),
        [("fragments of a packet are missing", Some(1))]
    );
    assert!(add(&mut fragments, 228, &frames[0], 62 * SECOND, 3).is_some());
    assert!(add(&mut fragments, 228, &frames[0], 62 * SECOND, 4).is_none());
    fragments.finish();
    assert_eq!(
        issues(&mut fragments),
        [("fragments of a packet are missing", Some(4))]
    );
    // cut by the snap length; beyond the longest packet; no multiple of eight
    let Packet::Fragment(cut) = decode(228, &frames[0][..40], all(&frames[0])) else {
        panic!()
    };
    assert!(fragments.add(&cut, place(0, 5)).is_none());
    let mut far = frames[0].clone();
    far[6..8].copy_from_slice(&[0x3f, 0xff]);
    assert!(add(&mut fragments, 228, &far, 0, 6).is_none());
    let odd = ip4(6, &payload[..31]);
    let odd = [&odd[..6], &[0x20, 0], &odd[8..]].concat();
    assert!(add(&mut fragments, 228, &odd, 0, 7).is_none());
    assert_eq!(
        issues(&mut fragments),
        [
            ("fragment is cut by the snap length", Some(5)),
            ("fragment does not fit any packet", Some(6)),
            ("fragment does not fit any packet", Some(7)),
        ]
    );
}

#[test]
fn floods_are_bounded() {
    let mut fragments = Fragments::default();
    let mut data = pieces(&[0; 1400], &[(0, 1392)]).remove(0);
    for n in 0..20_000u32 {
        data[12..16].copy_from_slice(&n.to_be_bytes());
        assert!(add(&mut fragments, 228, &data, 0, u64::from(n) + 1).is_none());
    }
    let dropped = issues(&mut fragments);
    assert_eq!(
        dropped[0],
        ("too many fragments wait for the rest of their packets", Some(1))
    );
    assert!(dropped.len() > 15_000, "{}", dropped.len());
    // one packet in ever more pieces
    let mut fragments = Fragments::default();
    let payload = vec![0; 60_000];
    for n in 0..2_000 {
        let piece = pieces(&payload, &[(n * 16, n * 16 + 8)]).remove(0);
        assert!(add(&mut fragments, 228, &piece, 0, n as u64 + 1).is_none());
    }
    assert_eq!(
        issues(&mut fragments),
        [("packet has too many fragments", Some(1))]
    );
}

#[test]
fn copies_of_a_fragment_take_no_room() {
    let frames = pieces(&tcp(TIMES, &[7; 1400]), &[(0, 32), (32, 1432)]);
    let mut fragments = Fragments::default();
    for n in 0..5_000 {
        assert!(add(&mut fragments, 228, &frames[1], 0, n + 1).is_none());
    }
    assert!(add(&mut fragments, 228, &frames[0], 0, 5_001).is_some());
    assert_eq!(issues(&mut fragments), []);
}

#[test]
fn fragments_in_tunnels() {
    let payload = tcp(TIMES, b"abc");
    let mut inner = Fragments::default();
    let frames = pieces(&payload, &[(0, 16), (16, 35)]);
    assert!(add(&mut inner, 228, &ip4(4, &frames[0]), 0, 1).is_none());
    assert!(matches!(
        add(&mut inner, 228, &ip4(4, &frames[1]), 0, 2).unwrap().decode(),
        Packet::Tcp(segment) if segment.payload == b"abc"
    ));
}
