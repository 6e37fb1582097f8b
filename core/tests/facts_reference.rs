//! The same rules written a second time, from the text and without any short cut: random segments must give
//! the same flags and numbers, wherever the sequence numbers wrap.

mod common;

use common::{Line, Wire, check_from, script, segment};
use latpcap_core::facts::{self, flag};
use latpcap_core::segment::{ACK, FIN, PSH, RST, SYN, Sack};
use proptest::prelude::*;

#[derive(Clone)]
struct Sent {
    seq: u32,
    next: u32,
    frame: u64,
    time: i64,
}

/// One direction; names follow the text.
struct Side {
    base: Option<u32>,
    scale: i32,
    window: u32,
    nextseq: u32,
    nextseqtime: i64,
    maxseqtobeacked: u32,
    lastack: u32,
    lastacktime: i64,
    dupacknum: u32,
    lastsegmentflags: u16,
    /// Newest first.
    segments: Vec<Sent>,
    valid_bif: bool,
    is_first_ack: bool,
    sacked: u32,
    push: (u32, bool),
}

impl Side {
    fn new() -> Self {
        Side {
            base: None,
            scale: -1,
            window: u32::MAX,
            nextseq: 0,
            nextseqtime: 0,
            maxseqtobeacked: 0,
            lastack: 0,
            lastacktime: 0,
            dupacknum: 0,
            lastsegmentflags: 0,
            segments: Vec::new(),
            valid_bif: true,
            is_first_ack: false,
            sacked: 0,
            push: (0, false),
        }
    }
}

#[derive(Default)]
struct Shared {
    syn_time: Option<i64>,
    initial_rtt: Option<i64>,
    completeness: Option<u8>,
}

#[derive(Debug, PartialEq, Eq)]
struct Shown {
    flags: u16,
    acks: Option<(u64, i64)>,
    flight: Option<u32>,
    push: Option<u32>,
}

fn lt(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn analyse(
    line: &Line<'_>,
    frame: u64,
    fwd: &mut Side,
    rev: &mut Side,
    shared: &mut Shared,
    reused: bool,
) -> Shown {
    let s = &line.segment;
    let (now, window) = (line.time_ns, u32::from(s.window));
    let (syn, fin, rst, ack) = (s.has(SYN), s.has(FIN), s.has(RST), s.has(ACK));
    let no_sfr = !(syn || fin || rst);
    let end = s.seq.wrapping_add(s.len);
    let nextseq = end.wrapping_add(u32::from(syn || fin));
    let occupies = s.len > 0 || syn || fin;
    let mut flags = 0;
    if let [(_, right), more @ ..] = s.options.sack.blocks() {
        let within = |(left, end): &(u32, u32)| lt(*left, *right) && !lt(*end, *right);
        if !lt(s.ack, *right) || more.first().is_some_and(within) {
            flags |= flag::DSACK;
        }
    }

    // base numbers
    match (syn, ack, fwd.base) {
        (true, true, Some(base)) if base != s.seq => {
            fwd.base = Some(s.seq);
            flags |= flag::REUSED_PORTS;
        }
        (true, false, Some(_)) => fwd.nextseq = fwd.maxseqtobeacked,
        (true, _, None) => fwd.base = Some(s.seq),
        (false, _, None) => fwd.base = Some(s.seq.wrapping_sub(1)),
        _ => {}
    }
    if ack && rev.base.is_none() {
        rev.base = Some(s.ack.wrapping_sub(1));
    }

    // 0 to 9
    if ack {
        rev.valid_bif = true;
    }
    let stands_still = s.len == 0 && s.seq == fwd.nextseq && s.ack == fwd.lastack && no_sfr;
    'steps: {
        if s.len == 1 && s.seq == fwd.nextseq && rev.window == 0 {
            flags |= flag::ZERO_WINDOW_PROBE;
            break 'steps;
        }
        if window == 0 && no_sfr {
            flags |= flag::ZERO_WINDOW;
        }
        if fwd.nextseq != 0 && lt(fwd.nextseq, s.seq) && !rst {
            flags |= flag::LOST_SEGMENT;
            fwd.valid_bif = false;
        }
        if s.len < 2 && s.seq == fwd.nextseq.wrapping_sub(1) && no_sfr {
            flags |= flag::KEEP_ALIVE;
        }
        if stands_still && window != 0 && window != fwd.window {
            flags |= flag::WINDOW_UPDATE;
        }
        let shift = if rev.is_first_ack || rev.scale == -2 {
            0
        } else {
            rev.scale.min(14)
        };
        if s.len > 0 && rev.scale != -1 && no_sfr && end == rev.lastack.wrapping_add(rev.window << shift) {
            flags |= flag::WINDOW_FULL;
        }
        let same = stands_still && window == fwd.window;
        if same && window != 0 && rev.lastsegmentflags & flag::KEEP_ALIVE != 0 {
            flags |= flag::KEEP_ALIVE_ACK;
            break 'steps;
        }
        if same && window == 0 && rev.lastsegmentflags & flag::ZERO_WINDOW_PROBE != 0 {
            flags |= flag::ZERO_WINDOW_PROBE_ACK;
            break 'steps;
        }
        if same && window != 0 {
            fwd.dupacknum = fwd.dupacknum.wrapping_add(1).max(1);
            flags |= flag::DUPLICATE_ACK;
        }
    }
    // 10, 11
    if s.ack != fwd.lastack {
        fwd.dupacknum = 0;
    }
    if rev.maxseqtobeacked != 0 && lt(rev.maxseqtobeacked, s.ack) && ack {
        if lt(rev.maxseqtobeacked, rev.nextseq) {
            rev.maxseqtobeacked = rev.nextseq;
            flags |= flag::ACK_LOST_SEGMENT;
        } else {
            if rev.dupacknum == 0 {
                flags |= flag::ACK_LOST_SEGMENT;
            }
            rev.dupacknum = u32::MAX;
        }
    }
    // 12
    if occupies && flags & flag::KEEP_ALIVE == 0 {
        let probed = s.len > 1 && s.seq == fwd.nextseq.wrapping_sub(1);
        let not_adv = fwd.nextseq != 0 && lt(s.seq, fwd.nextseq) && !probed;
        let t = shared.initial_rtt.filter(|rtt| *rtt != 0).unwrap_or(3_000_000);
        let since = |then: i64| now.wrapping_sub(then) as u64;
        if s.len > 0 && rev.lastack != 0 && !lt(rev.lastack, end) {
            flags |= flag::SPURIOUS_RETRANSMISSION | flag::RETRANSMISSION;
        } else if not_adv && rev.dupacknum >= 2 && rev.lastack == s.seq && since(rev.lastacktime) < 20_000_000
        {
            flags |= flag::FAST_RETRANSMISSION | flag::RETRANSMISSION;
        } else if not_adv && since(fwd.nextseqtime) < t as u64 && fwd.nextseq != nextseq {
            flags |= flag::OUT_OF_ORDER;
        } else if not_adv {
            flags |= flag::RETRANSMISSION;
        }
    }
    // 13 to 16
    if occupies {
        fwd.segments.insert(
            0,
            Sent {
                seq: s.seq,
                next: nextseq,
                frame,
                time: now,
            },
        );
    }
    let probe = flags & flag::ZERO_WINDOW_PROBE != 0;
    if (fwd.nextseq == 0 || lt(fwd.nextseq, nextseq)) && !probe {
        (fwd.nextseq, fwd.nextseqtime) = (nextseq, now);
    }
    if (fwd.maxseqtobeacked == 0 || s.seq == fwd.maxseqtobeacked) && !probe {
        fwd.maxseqtobeacked = fwd.nextseq;
    }
    (fwd.window, fwd.lastack, fwd.lastacktime, fwd.lastsegmentflags) = (window, s.ack, now, flags);
    // 17
    let mut acks = None;
    rev.segments.retain_mut(|u| {
        if s.ack == u.next {
            acks = Some((u.frame, now.wrapping_sub(u.time)));
            return false;
        }
        if lt(u.seq, s.ack) && lt(s.ack, u.next) {
            u.seq = s.ack;
        }
        lt(s.ack, u.next)
    });
    // 18
    let (mut flight, mut push) = (None, None);
    if s.len > 0 && !fwd.segments.is_empty() && fwd.valid_bif {
        let base = fwd.base.unwrap_or(0);
        let last = fwd
            .segments
            .iter()
            .map(|u| u.next.wrapping_sub(base))
            .max()
            .unwrap_or(0);
        let first = fwd
            .segments
            .iter()
            .map(|u| u.seq.wrapping_sub(base))
            .min()
            .unwrap_or(0);
        let out = last.wrapping_sub(first).wrapping_sub(rev.sacked);
        let out = if out < 2_000_000_000 { out } else { 0 };
        flight = Some(out.saturating_sub(u32::from(syn || fin))).filter(|out| *out != 0);
        let (sum, set) = fwd.push;
        let anew = if s.has(PSH) { set } else { set && !s.has(PSH) };
        fwd.push = (if anew { s.len } else { sum.wrapping_add(s.len) }, s.has(PSH));
        push = flight.map(|_| fwd.push.0);
    }

    // the options and the handshake, after the analysis
    fwd.scale = s.options.wscale.map_or(fwd.scale, i32::from);
    if syn {
        if fwd.scale == -1 {
            (fwd.scale, rev.scale) = (-2, -2);
        } else if ack && rev.scale == -2 {
            fwd.scale = -2;
        }
        fwd.is_first_ack = true;
        if !ack {
            shared.syn_time = Some(now);
        }
    } else if ack {
        fwd.is_first_ack = false;
        if shared.initial_rtt.is_none() {
            shared.initial_rtt = shared.syn_time.map(|then| now - then).filter(|rtt| *rtt != 0);
        }
    }
    fwd.sacked = s
        .options
        .sack
        .blocks()
        .iter()
        .take(3)
        .fold(0u32, |n, b| n.wrapping_add(b.1.wrapping_sub(b.0)));
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    let opening = bit(syn && !ack, 1) | bit(syn && !ack && s.len > 0 && !reused, 8);
    shared.completeness = Some(
        shared.completeness.unwrap_or(opening)
            | bit(syn && ack, 2)
            | bit(ack && !syn && s.len == 0, 4)
            | bit(ack && !syn && s.len > 0, 8)
            | bit(fin && ack, 16)
            | bit(rst, 32),
    );
    Shown {
        flags,
        acks,
        flight,
        push,
    }
}

/// Beyond 2^31 bytes "before" is no order any more, and the short cuts may differ from the text.
const FAR: i32 = 1 << 29;

/// Numbers lie near each other, so that segments meet, overlap and repeat.
fn any_line() -> impl Strategy<Value = Line<'static>> {
    let flags = prop_oneof![
        6 => Just(ACK), 3 => Just(ACK | PSH), 1 => Just(SYN), 1 => Just(SYN | ACK), 1 => Just(FIN | ACK),
        1 => Just(RST), 1 => Just(RST | ACK), 1 => Just(FIN), 1 => Just(0)
    ];
    let number = prop_oneof![20 => 0u32..24, 1 => (-FAR..FAR).prop_map(|far| far as u32)];
    let len = prop_oneof![4 => Just(0u32), 3 => Just(1), 3 => Just(4), 2 => Just(8), 1 => 0u32..20];
    let window = prop_oneof![2 => Just(0u16), 3 => Just(16), 2 => Just(4), 1 => 0u16..30];
    let late = prop_oneof![6 => 0i64..4_000_000, 2 => 0i64..30_000_000, 1 => -3_000_000i64..0];
    let wscale = proptest::option::of(0u8..16);
    let sack = proptest::collection::vec((0u32..24, 0u32..6), 0..4);
    (
        any::<bool>(),
        flags,
        number.clone(),
        number,
        len,
        window,
        late,
        wscale,
        sack,
    )
        .prop_map(|(client, flags, seq, ack, len, window, time_ns, wscale, edges)| {
            let mut segment = segment(client, flags, seq, ack, len, window);
            segment.options.wscale = wscale;
            let mut sack = Sack {
                count: edges.len() as u8,
                ..Sack::default()
            };
            for (slot, (left, size)) in sack.blocks.iter_mut().zip(edges) {
                *slot = (left, left + size);
            }
            segment.options.sack = sack;
            Line {
                client,
                segment,
                time_ns,
                want: "",
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn random_segments_give_the_reference_s_facts(
        mut lines in proptest::collection::vec(any_line(), 1..60),
        isn in (0u32..40, 0u32..40),
    ) {
        let (mut wire, mut client, mut server) = (Wire::default(), Side::new(), Side::new());
        let (mut shared, mut now) = (Shared::default(), 0);
        let isn = (isn.0.wrapping_sub(20), isn.1.wrapping_sub(20));
        for line in &mut lines {
            let (own, peer) = if line.client { isn } else { (isn.1, isn.0) };
            line.segment.seq = line.segment.seq.wrapping_add(own);
            if line.segment.has(ACK) {
                line.segment.ack = line.segment.ack.wrapping_add(peer);
            }
            now += line.time_ns;
            line.time_ns = now;
            let known = if line.client { &wire.client } else { &wire.server };
            let reused = facts::is_reuse(&line.segment, known.marks.base);
            if reused {
                let frame = wire.frame;
                wire = Wire { frame, ..Wire::default() };
                (client, server, shared) = (Side::new(), Side::new(), Shared::default());
            }
            let got = wire.push(line, reused);
            let (fwd, rev) = if line.client { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let mut want = analyse(line, wire.frame, fwd, rev, &mut shared, reused);
            want.flags |= if reused { flag::REUSED_PORTS } else { 0 };
            let got = Shown {
                flags: got.flags,
                acks: got.acks,
                flight: got.bytes_in_flight,
                push: got.push_bytes_sent,
            };
            prop_assert_eq!(got, want, "frame {} {:?}", wire.frame, line);
            prop_assert_eq!(wire.shared.initial_rtt_ns(), shared.initial_rtt);
            prop_assert_eq!(Some(wire.shared.completeness), shared.completeness);
        }
    }
}

/// Found by the random test: short cuts that the text does not allow.
#[test]
fn rising_lists_are_only_those_that_rise() {
    // seen from the middle, bytes below the first one seen lie "above" it in unsigned numbers
    check_from(
        [1000, 5000],
        "c A 101 1  100 64000 0  |
         c A 1   1  50  64000 9  | retransmission flight=-
         s A 1   51 0   64000 10 | acks=2 rtt=1",
    );
    // a SYN/ACK with another initial number moves the base under what is unacknowledged
    check_from(
        [1000, 5000],
        "s A 1 1 4 64000 0 |\n s SA 5 1 1 64000 1 | reused_ports flight=1",
    );
}

#[test]
fn sequence_numbers_wrap() {
    let text = "
        c S  0   0   0   64000 0 |
        s SA 0   1   0   64000 1 | acks=1
        c A  1   1   0   64000 2 |
        c PA 1   1   100 64000 3 | seq=1 flight=100
        c PA 101 1   100 64000 3 | seq=101 flight=200
        c PA 301 1   100 64000 4 | lost_segment
        s A  1   151 0   64000 5 | acks=- ack=151
        s A  1   401 0   64000 6 | ack_lost_segment acks=6
        c PA 101 1   100 64000 9 | spurious_retransmission retransmission
    ";
    for before in [0, 1, 2, 51, 100, 102, 150, 151, 152, 250, 302, 400, 402] {
        check_from(
            [0u32.wrapping_sub(before), 0u32.wrapping_sub(2 + before % 2)],
            text,
        );
    }
    // exactly 0 is Wireshark's "not set": it looks away once
    check_from(
        [0u32.wrapping_sub(101), 5],
        &text[..text.find("c PA 101").unwrap()],
    );
    check_from(
        [0u32.wrapping_sub(101), 5],
        "c PA 1 1 100 64000 3 |\n c PA 150 1 10 64000 4 |\n c PA 170 1 10 64000 5 | lost_segment",
    );
}

#[test]
fn streams_longer_than_four_gibibytes() {
    let mut wire = Wire::default();
    for turn in 0..9i64 {
        let mut line = script("c A 1 1 1000000000 64 0 |", [1000, 5000]).remove(0);
        line.segment.seq = line
            .segment
            .seq
            .wrapping_add((turn as u32).wrapping_mul(1_000_000_000));
        let facts = wire.push(&line, false);
        assert_eq!(
            (facts.seq, facts.next_seq),
            (1 + turn * 1_000_000_000, 1 + (turn + 1) * 1_000_000_000)
        );
        let flying = (turn as u32 + 1).wrapping_mul(1_000_000_000);
        let shown = facts.bytes_in_flight;
        assert!(turn != 0 || shown == Some(flying), "{shown:?}");
        assert!(turn != 1 || shown.is_none(), "2e9 and more is not shown");
    }
}
