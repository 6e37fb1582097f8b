//! The partition of an exchange's time: rows that follow each other without gap or overlap.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

#[path = "../common/mod.rs"]
mod common;
mod step;

mod repairs;
mod stalls;
mod turns;

use latpcap_core::base::At;
use latpcap_core::judge::Paths;
use latpcap_core::observe::{Candidate, Repair, Turn, TurnDoubt, Wait};

use crate::common::{Lcg, MS};
use crate::step::{cut, proven, stall};

#[test]
fn every_wait_fills_its_time_exactly() {
    let (c, judged, mut random) = (stall(), [proven()], Lcg(19));
    for _ in 0..2000 {
        let mut at = |frame| At {
            frame,
            time_ns: random.below(100 * MS) - 20 * MS,
        };
        let (a, b, small) = (at(5), at(6), at(7));
        let [first, second, third] = [at(1).time_ns, at(2).time_ns, at(3).time_ns];
        let how = Repair::Fast;
        let late = third.unsigned_abs() as u32;
        let odd = Candidate {
            small,
            ack: a,
            held_from: b,
            freed: small,
            ..c
        };
        let waits = [
            Wait::Turn(Turn {
                since: a,
                acked_ns: 0,
                doubt: None,
            }),
            Wait::Close,
            Wait::Turn(Turn {
                since: b,
                acked_ns: 0,
                doubt: Some(TurnDoubt::CorkLength {
                    late_ns: late,
                    sender_id: 0,
                    may_be_retransmission: third > 0,
                }),
            }),
            Wait::Turn(Turn {
                since: b,
                acked_ns: late,
                doubt: Some(TurnDoubt::Retransmission),
            }),
            Wait::Turn(Turn {
                since: b,
                acked_ns: late,
                doubt: Some(TurnDoubt::HoldLength { sender_id: 0 }),
            }),
            Wait::FreedTurn {
                since: b,
                candidate: Box::new(odd),
            },
            Wait::Turn(Turn {
                since: b,
                acked_ns: 0,
                doubt: Some(TurnDoubt::Queued {
                    late_ns: late,
                    queued_ns: third.unsigned_abs() as u32,
                    is_clock_fine: second % 2 == 0,
                }),
            }),
            Wait::Suspected { held_ack: None },
            Wait::Suspected { held_ack: Some(a) },
            Wait::App,
            Wait::Small(Box::new(odd)),
            Wait::Small(Box::new(Candidate {
                sender_id: u32::MAX,
                ..odd
            })),
            Wait::Clocked { ack: a, acked: b },
            Wait::LoneClocked {
                ack: a,
                acked: b,
                single: third > 0,
            },
            Wait::Window {
                opened: a,
                was_zero: false,
            },
            Wait::repair(how, None, None, third > 0),
            Wait::Hole,
        ];
        let (from, to) = (first.min(second), first.max(second));
        let paths = Paths {
            best_rtts_ns: [Some(third.abs()), None],
            ..Paths::default()
        };
        for wait in waits {
            let rows = cut(wait.clone(), from, to, &judged, &paths);
            let mut reached = from;
            for row in &rows {
                assert!(
                    row.start_ns == reached && row.end_ns > row.start_ns,
                    "{wait:?} {rows:?}"
                );
                reached = row.end_ns;
            }
            assert_eq!(reached, to, "{wait:?}");
        }
    }
}
