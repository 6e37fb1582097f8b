#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use super::*;
use crate::segment::{ACK, Options, RST, SYN, Segment};
use crate::stream::{Event, Rows, Streams};

/// Nobody asks for the rows of facts.
struct Nobody;

impl Rows for Nobody {
    fn event(&mut self, _event: &Event<'_>) {}
}

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
        ttl: 64,
        tos: 0,
    }
}

fn icmp(src: u8, dst: u8, kind: u8, seq: u16) -> Icmp<'static> {
    Icmp {
        src: ip(src),
        dst: ip(dst),
        v6: false,
        kind,
        next_mtu: None,
        code: 0,
        id: 7,
        seq,
        ttl: 64,
        quoted: None,
        brief: None,
        echo: None,
    }
}

type Told = Option<(&'static str, u8, u64)>;

fn answers(rows: &[Probe]) -> Vec<Told> {
    let last = |from: IpAddr| match from {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => 0,
    };
    rows.iter()
        .map(|probe| {
            probe
                .answer
                .map(|answer| (answer.kind.word(), last(answer.from), answer.at.frame))
        })
        .collect()
}

/// The probes that these streams turn out to have been.
fn of_streams(streams: &mut Streams) -> Vec<Probe> {
    let mut found = Vec::new();
    for (id, stream) in std::mem::take(&mut streams.retired) {
        found.extend(syn_probes(id, &stream));
    }
    for id in 0..streams.len() as u32 {
        let stream = streams.take(id);
        found.extend(stream.iter().flat_map(|stream| syn_probes(id, stream)));
    }
    found
}

fn feed(streams: &mut Streams, segment: &Segment<'_>, at: At) {
    streams.segment(segment, at, 60, &mut Nobody);
}

const OUT: [(u8, u16); 2] = [(1, 4000), (2, 80)];
const BACK: [(u8, u16); 2] = [(2, 80), (1, 4000)];

#[test]
fn a_syn_is_answered_by_what_acknowledges_it() {
    for (flags, word) in [(SYN | ACK, "syn_ack"), (RST | ACK, "rst")] {
        for (frames, want) in [(3, None), (5, Some((word, 2, 4)))] {
            let mut streams = Streams::default();
            let segments = [
                segment(OUT, SYN, u32::MAX, 0),
                segment(BACK, flags, 5, 99),   // of something else
                segment(OUT, RST | ACK, 0, 0), // from the prober
                segment(BACK, flags, 5, 0),
                segment(BACK, RST | ACK, 6, 0), // the first counts
            ];
            for (frame, segment) in segments.iter().enumerate().take(frames) {
                feed(&mut streams, segment, at(frame as u64 + 1, frame as i64));
            }
            assert_eq!(answers(&of_streams(&mut streams)), [want]);
        }
    }
}

#[test]
fn repeats_are_counted_and_data_makes_it_no_probe() {
    let mut streams = Streams::default();
    for (frame, ms) in [(1, 0), (2, 1000), (3, 3000)] {
        feed(&mut streams, &segment(OUT, SYN, 9, 0), at(frame, ms));
    }
    feed(&mut streams, &segment(OUT, SYN, 10, 0), at(4, 4000));
    let mut other = segment([(1, 4001), (2, 80)], SYN, 9, 0);
    feed(&mut streams, &other, at(5, 5000));
    (other.flags, other.seq, other.len) = (ACK, 10, 1);
    feed(&mut streams, &other, at(6, 5001));
    (other.flags, other.seq, other.len) = (SYN, 9, 0);
    feed(&mut streams, &other, at(7, 5002)); // late, and of a connection that carried data
    let rows = of_streams(&mut streams);
    let summaries: Vec<_> = rows
        .iter()
        .map(|probe| (probe.sent.frame, probe.retransmissions, probe.answer))
        .collect();
    assert_eq!(summaries, [(1, 2, None), (4, 0, None)]);
}

#[test]
fn a_router_answers_what_it_quotes() {
    let (mut probes, mut streams) = (Probes::default(), Streams::default());
    let syn = segment(OUT, SYN, 9, 0);
    feed(&mut streams, &syn, at(1, 0));
    let answer = |frame| SynAnswer {
        kind: icmp_answer_kind(&icmp(3, 1, 11, 0)).unwrap(),
        from: ip(3),
        at: at(frame, 1),
    };
    streams.answered(&segment(OUT, SYN, 8, 0), answer(2));
    streams.answered(&syn, answer(3));
    streams.answered(&syn, answer(4));
    assert_eq!(
        answers(&of_streams(&mut streams)),
        [Some(("time_exceeded", 3, 3))]
    );

    probes.icmp(&icmp(1, 2, 8, 5), at(4, 3));
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
        at(5, 4),
    );
    assert_eq!(answers(&probes.rows), [Some(("unreachable", 4, 5))]);
}

#[test]
fn pings_are_told_apart_by_their_numbers() {
    let mut probes = Probes::default();
    probes.icmp(&icmp(1, 2, 8, 1), at(1, 0));
    probes.icmp(&icmp(1, 2, 8, 2), at(2, 200));
    probes.icmp(&icmp(1, 2, 8, 2), at(3, 200)); // the same, seen twice
    probes.icmp(&icmp(2, 1, 0, 2), at(4, 201));
    probes.icmp(&icmp(1, 2, 8, 1), at(5, 90_000)); // the numbers come round
    probes.icmp(&icmp(2, 1, 0, 1), at(6, 90_001));
    let want = [None, Some(("echo_reply", 2, 4)), Some(("echo_reply", 2, 6))];
    assert_eq!(answers(&probes.rows), want);
    assert_eq!(probes.rows[1].retransmissions, 1);
}

#[test]
fn too_many_unanswered_pings_are_said_and_cost_no_more_memory() {
    let mut probes = Probes::default();
    let mut issues = 0;
    for n in 0..MAX_WAITING as u64 + 3 {
        let to = 2 + (n >> 16) as u8;
        issues += usize::from(probes.icmp(&icmp(1, to, 8, n as u16), at(n + 1, 0)).is_some());
    }
    assert_eq!((issues, probes.waiting.len()), (3, MAX_WAITING));
    probes.icmp(&icmp(2, 1, 0, 2), at(80_000, 1)); // given up
    probes.icmp(&icmp(2, 1, 0, 3), at(80_001, 1));
    let found = answers(&probes.rows);
    assert_eq!(found[2..4], [None, Some(("echo_reply", 2, 80_001))]);
    let mut given: Vec<u64> = Vec::new();
    for n in 0..200_000_u64 {
        probes.icmp(&icmp(1, 9, 8, n as u16), at(90_000 + 2 * n, 2));
        probes.icmp(&icmp(9, 1, 0, n as u16), at(90_001 + 2 * n, 2));
        given.extend(probes.take_finished().iter().map(|probe| probe.sent.frame));
        assert!(probes.rows.len() < MAX_ROWS);
    }
    assert!(given.len() > 100_000 && given.is_sorted());
    assert!(probes.order.len() <= 2 * MAX_WAITING);
    let mut left = probes.take_rest();
    let left: Vec<u64> = std::iter::from_fn(|| left.pop(u64::MAX))
        .map(|probe| probe.sent.frame)
        .collect();
    assert_eq!(given.len() + left.len(), MAX_WAITING + 3 + 200_000);
    assert!(left.is_sorted());
}
