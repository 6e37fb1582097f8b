#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use super::*;
use crate::segment::Options;

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn at(frame: u64, ms: i64) -> At {
    At {
        frame,
        time_ns: ms * 1_000_000,
    }
}

fn segment(ends: [(u8, u16); 2], flags: u16, seq: u32, ack: u32) -> Segment<'static> {
    let [(src, sport), (dst, dport)] = ends;
    Segment {
        src: ip(src),
        dst: ip(dst),
        sport,
        dport,
        seq,
        ack,
        flags,
        window: 512,
        len: 0,
        payload: &[],
        options: Options::default(),
        ip_id: None,
    }
}

fn icmp(src: u8, dst: u8, kind: u8, seq: u16) -> Icmp<'static> {
    Icmp {
        src: ip(src),
        dst: ip(dst),
        v6: false,
        kind,
        code: 0,
        id: 7,
        seq,
        ttl: 64,
        quoted: None,
        brief: None,
        echo: None,
    }
}

fn answers(probes: &Probes) -> Vec<Option<(&'static str, u8, u64)>> {
    let rows = probes.rows(|_| false);
    let last = |from: IpAddr| match from {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => 0,
    };
    rows.iter()
        .map(|row| row.answer.map(|a| (a.word, last(a.from), a.at.frame)))
        .collect()
}

const OUT: [(u8, u16); 2] = [(1, 4000), (2, 80)];
const BACK: [(u8, u16); 2] = [(2, 80), (1, 4000)];

#[test]
fn a_syn_is_answered_by_what_acknowledges_it() {
    for (flags, word) in [(SYN | ACK, "syn_ack"), (RST | ACK, "rst")] {
        let mut probes = Probes::default();
        probes.segment(&segment(OUT, SYN, u32::MAX, 0), 0, at(1, 0));
        probes.segment(&segment(BACK, flags, 5, 99), 0, at(2, 1)); // of something else
        probes.segment(&segment(OUT, RST | ACK, 0, 0), 0, at(3, 1)); // from the prober
        assert_eq!(answers(&probes), [None]);
        probes.segment(&segment(BACK, flags, 5, 0), 0, at(4, 2));
        probes.segment(&segment(BACK, RST | ACK, 6, 0), 0, at(5, 3)); // the first counts
        assert_eq!(answers(&probes), [Some((word, 2, 4))]);
    }
}

#[test]
fn repeats_are_counted_and_data_makes_it_no_probe() {
    let mut probes = Probes::default();
    for (frame, ms) in [(1, 0), (2, 1000), (3, 3000)] {
        probes.segment(&segment(OUT, SYN, 9, 0), 4, at(frame, ms));
    }
    probes.segment(&segment(OUT, SYN, 10, 0), 5, at(4, 4000));
    let rows = probes.rows(|_| false);
    let seen: Vec<_> = rows.iter().map(|r| (r.sent.frame, r.repeats, r.answer)).collect();
    assert_eq!(seen, [(1, 2, None), (4, 0, None)]);
    assert_eq!(probes.rows(|stream| stream == 4).len(), 1);
}

#[test]
fn a_router_answers_what_it_quotes() {
    let mut probes = Probes::default();
    let syn = segment(OUT, SYN, 9, 0);
    probes.segment(&syn, 0, at(1, 0));
    let other = Icmp {
        quoted: Some(segment(OUT, SYN, 8, 0)),
        ..icmp(3, 1, 11, 0)
    };
    probes.icmp(&other, Some(0), at(2, 1));
    assert_eq!(answers(&probes), [None]);
    let expired = Icmp {
        quoted: Some(syn),
        ..other
    };
    probes.icmp(&expired, Some(0), at(3, 2));
    probes.icmp(&icmp(1, 2, 8, 5), None, at(4, 3));
    let (src, dst) = (ip(1), ip(2));
    let echo = Some(Echo {
        src,
        dst,
        id: 7,
        seq: 5,
    });
    probes.icmp(
        &Icmp {
            echo,
            ..icmp(4, 1, 3, 0)
        },
        None,
        at(5, 4),
    );
    let want = [Some(("time_exceeded", 3, 3)), Some(("unreachable", 4, 5))];
    assert_eq!(answers(&probes), want);
}

#[test]
fn pings_are_told_apart_by_their_numbers() {
    let mut probes = Probes::default();
    probes.icmp(&icmp(1, 2, 8, 1), None, at(1, 0));
    probes.icmp(&icmp(1, 2, 8, 2), None, at(2, 200));
    probes.icmp(&icmp(1, 2, 8, 2), None, at(3, 200)); // the same, seen twice
    probes.icmp(&icmp(2, 1, 0, 2), None, at(4, 201));
    probes.icmp(&icmp(1, 2, 8, 1), None, at(5, 90_000)); // the numbers come round
    probes.icmp(&icmp(2, 1, 0, 1), None, at(6, 90_001));
    let want = [None, Some(("echo_reply", 2, 4)), Some(("echo_reply", 2, 6))];
    assert_eq!(answers(&probes), want);
    assert_eq!(probes.rows(|_| false)[1].repeats, 1);
}

#[test]
fn too_many_unanswered_pings_are_said_and_cost_no_more_memory() {
    let mut probes = Probes::default();
    let mut issues = 0;
    for n in 0..MAX_WAITING as u64 + 3 {
        let to = 2 + (n >> 16) as u8;
        issues += usize::from(
            probes
                .icmp(&icmp(1, to, 8, n as u16), None, at(n + 1, 0))
                .is_some(),
        );
    }
    assert_eq!((issues, probes.waiting.len()), (3, MAX_WAITING));
    probes.icmp(&icmp(2, 1, 0, 2), None, at(80_000, 1)); // given up
    probes.icmp(&icmp(2, 1, 0, 3), None, at(80_001, 1));
    let found = answers(&probes);
    assert_eq!(found[2..4], [None, Some(("echo_reply", 2, 80_001))]);
    for n in 0..200_000_u64 {
        probes.icmp(&icmp(1, 9, 8, n as u16), None, at(n, 2));
        probes.icmp(&icmp(9, 1, 0, n as u16), None, at(n, 2));
    }
    assert!(probes.order.len() <= 2 * MAX_WAITING);
}
