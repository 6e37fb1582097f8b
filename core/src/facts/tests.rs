//! An ordinary segment's facts are found in fewer steps, and are the same.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::segment::{Options, PSH, RST, Sack};

/// Small numbers, so that segments meet: seq, ack and length in tens of bytes, flags, window, an option.
type Drawn = (bool, (u32, u32, u32), u16, u16, u8);

fn drawn() -> impl Strategy<Value = Drawn> {
    let flags = prop_oneof![20 => Just(ACK), 10 => Just(ACK | PSH), 1 => Just(SYN), 1 => Just(SYN | ACK), 1 => Just(ACK | FIN), 1 => Just(RST), 1 => Just(0)];
    let window = prop_oneof![8 => Just(100u16), 1 => Just(0), 1 => Just(3), 2 => 90u16..110];
    (any::<bool>(), (0u32..4, 0u32..3, 0u32..4), flags, window, 0u8..12)
}

/// Mostly what goes on where the flows are, by so many tens.
fn segment(drawn: &Drawn, fwd: &Flow, rev: &Flow, start: u32) -> Segment<'static> {
    let (_, (seq, ack, len), flags, window, option) = *drawn;
    let host = |last| IpAddr::from([10, 0, 0, last]);
    let from = |next: u32| if next == 0 { start } else { next };
    let mut options = Options::default();
    match option {
        0 => options.wscale = Some(2),
        1 => {
            let left = rev.marks.next_seq.wrapping_add(10);
            options.sack = Sack {
                count: 1,
                blocks: [(left, left.wrapping_add(10)), (0, 0), (0, 0), (0, 0)],
            };
        }
        _ => {}
    }
    let seq_off = match seq {
        0 | 1 => 0,
        2 => 10u32.wrapping_neg(),
        _ => [10, 1u32.wrapping_neg()][usize::from(option % 2 == 0)],
    };
    Segment {
        src: host(1),
        dst: host(2),
        sport: 1,
        dport: 2,
        seq: from(fwd.marks.next_seq).wrapping_add(seq_off),
        ack: from(rev.marks.next_seq).wrapping_sub(10 * ack),
        flags,
        window,
        len: 10 * len + u32::from(option == 2),
        payload: &[],
        options,
        ip_id: None,
        ttl: 64,
        tos: 0,
    }
}

proptest! {
    #[test]
    fn both_roads_tell_the_same(all in prop::collection::vec(drawn(), 1..80), start in prop_oneof![Just(u32::MAX - 200), any::<u32>()]) {
        let (mut flows, mut shared) = ([Flow::default(), Flow::default()], Shared::default());
        let mut ordinary = 0;
        for (number, drawn) in all.iter().enumerate() {
            let at = At { frame: number as u64 + 1, time_ns: number as i64 * 1_000_000 };
            let [a, b] = &mut flows;
            let (fwd, rev) = if drawn.0 { (a, b) } else { (b, a) };
            let segment = segment(drawn, fwd, rev, start);
            let (mut slow_fwd, mut slow_rev, mut slow_shared) = (fwd.clone(), rev.clone(), shared);
            let (mut facts, mut slow) = (Facts::default(), Facts::default());
            let mut either = Analysis { fwd, rev, shared: &mut shared, is_reuse: false };
            let unusual =
                Analysis { fwd: &mut slow_fwd, rev: &mut slow_rev, shared: &mut slow_shared, is_reuse: false };
            ordinary += usize::from(either.is_ordinary(&segment));
            either.segment(&segment, at, &mut facts);
            unusual.unusual(&segment, at, &mut slow);
            slow.is_ordinary = facts.is_ordinary;
            let (fast, slow) = ((facts, fwd, rev, shared), (slow, &slow_fwd, &slow_rev, slow_shared));
            prop_assert_eq!(format!("{fast:?}"), format!("{slow:?}"));
        }
        prop_assume!(all.len() < 40 || ordinary > 0);
    }
}
