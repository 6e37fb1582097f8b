//! What a sender remembers of its segments and of its peer's answers.

use super::*;
use crate::facts::Covered;
use crate::observe::{Turn, TurnDoubt, Wait};

const MS: i64 = 1_000_000;
const MSS: i64 = 1000;
const BURST: i64 = 200_000;

fn at(frame: u64, time_ns: i64) -> At {
    At { frame, time_ns }
}

/// A full segment of this sender.
fn full(time_ns: i64, start: i64) -> Data {
    Data {
        at: at(9, time_ns),
        start_seq: start,
        end_seq: start + MSS,
        is_pushed: true,
        mss: MSS as u32,
        rtt_ns: 10 * MS,
        is_from_server: true,
        sender_id: 7,
        ..Data::default()
    }
}

fn small(time_ns: i64, start: i64) -> Data {
    Data {
        end_seq: start + 100,
        is_small: true,
        ..full(time_ns, start)
    }
}

/// A pure ACK of the peer, with a window of 100 bytes.
fn ack(time_ns: i64, ack: i64) -> PeerPacket {
    PeerPacket {
        at: at(5, time_ns),
        ack,
        window: 100,
        is_scale_known: true,
        is_echoed: true,
        ..PeerPacket::default()
    }
}

fn after(segments: &[Data]) -> Sender {
    let mut sender = Sender::default();
    for data in segments {
        sender.data(data, Some(0), None);
    }
    sender
}

#[test]
fn its_kernels_first_ack_of_what_was_asked_counts() {
    let own = |frames: &[u64], asked: u64| {
        let mut sender = Sender::default();
        sender.kernel_answered(at(1, 0), None);
        sender.peer_spoke(at(asked, 0));
        frames
            .iter()
            .for_each(|frame| sender.kernel_answered(at(*frame, 0), None));
        sender.own_ack.map(|ack| ack.frame)
    };
    assert_eq!(own(&[3, 4], 2), Some(3));
    assert_eq!(own(&[], 2), Some(1));
}

#[test]
fn all_is_acknowledged_from_its_last_byte_on() {
    let mut sender = after(&[small(0, 0)]);
    assert!(!sender.is_acknowledged());
    sender.answer(&ack(MS, 99));
    assert!(!sender.is_acknowledged());
    sender.answer(&ack(MS, 100));
    assert!(sender.is_acknowledged() && Sender::default().is_acknowledged());
    assert!(sender.has_sent() && !Sender::default().has_sent());
}

#[test]
fn a_window_opens_further_never_shuts_and_moves_once() {
    let mut sender = after(&[small(0, 0)]);
    let mut edge = |window| {
        sender.answer(&PeerPacket {
            window,
            ..ack(MS, 100)
        });
        (
            sender.peer.window.right_edge,
            sender.peer.window.last_move.map(|(_, before)| before),
        )
    };
    assert_eq!(edge(100), (Some(200), Some(200)), "the first that is known");
    assert_eq!(edge(150), (Some(250), Some(200)));
    assert_eq!(edge(150), (Some(250), Some(200)), "as it was");
    assert_eq!(edge(50), (Some(250), Some(200)));
    assert_eq!(edge(160), (Some(260), Some(250)));
    assert!(sender.peer.window.zero_frame == 0);
    sender.answer(&PeerPacket {
        window: 0,
        ..ack(MS, 100)
    });
    assert!(sender.peer.window.zero_frame > 0);
    let mut unscaled = after(&[small(0, 0)]);
    let scale_known = false;
    unscaled.answer(&PeerPacket {
        is_scale_known: scale_known,
        ..ack(MS, 100)
    });
    assert_eq!(
        (unscaled.peer.window.right_edge, unscaled.peer.window.room_end),
        (None, Some(100 + (100 << 14)))
    );
}

#[test]
fn a_sack_is_of_what_there_was_room_for() {
    let sacked = |sacked| {
        let mut sender = after(&[small(0, 0)]);
        sender.answer(&PeerPacket {
            highest_sacked: Some(sacked),
            ..ack(MS, 100)
        });
        sender.acked.highest_sacked
    };
    assert_eq!((sacked(200), sacked(201)), (200, 0));
}

#[test]
fn duplicates_count_until_something_new_is_acknowledged() {
    let mut sender = after(&[small(0, 0), small(1, 100)]);
    sender.acked.has_retransmitted = true;
    let mut counts = |number, duplicate| {
        sender.answer(&PeerPacket {
            is_duplicate: duplicate,
            ..ack(MS, number)
        });
        (sender.acked.duplicates, sender.acked.has_retransmitted)
    };
    assert_eq!(counts(0, true), (1, true));
    assert_eq!(counts(0, true), (2, true));
    assert_eq!(counts(0, false), (2, true));
    assert_eq!(counts(100, true), (0, false));
}

#[test]
fn an_ack_is_of_a_lone_segment_where_it_is_pure_and_of_all() {
    let lone = |packet: PeerPacket| {
        let mut sender = after(&[full(0, 0)]);
        let covered = Some(Covered {
            bytes: 1000,
            first_frame: 9,
            first_time_ns: 0,
            last_frame: 9,
            last_time_ns: 0,
        });
        sender.answer(&PeerPacket { covered, ..packet });
        sender.acked.newest.map(|advanced| advanced.is_lone)
    };
    assert_eq!(lone(ack(MS, 1000)), Some(true));
    assert_eq!(lone(ack(MS, 999)), Some(false), "more was in flight");
    assert_eq!(
        lone(PeerPacket {
            len: 1,
            ..ack(MS, 1000)
        }),
        Some(false)
    );
    assert_eq!(
        lone(PeerPacket {
            has_fin: true,
            ..ack(MS, 1000)
        }),
        Some(false)
    );
}

#[test]
fn the_first_ack_of_a_small_segment_is_remembered() {
    let mut sender = after(&[small(0, 0)]);
    let mut acked = |number, time_ns| {
        sender.answer(&ack(time_ns, number));
        sender.small.and_then(|small| small.ack).map(|ack| ack.at.time_ns)
    };
    assert_eq!(acked(99, MS), None);
    assert_eq!(acked(100, 2 * MS), Some(2 * MS));
    assert_eq!(acked(100, 3 * MS), Some(2 * MS), "the first");
}

#[test]
fn a_full_segment_ends_the_wait_of_a_small_one_whose_ack_had_come() {
    let left = |own_rtt_ns, after_ack| {
        let mut sender = after(&[small(0, 0)]);
        sender.answer(&ack(MS, 100));
        let data = Data {
            own_rtt_ns,
            ..full(MS + after_ack, 100)
        };
        sender.data(&data, Some(0), None);
        sender.small.is_some()
    };
    assert!(left(0, BURST) && !left(0, BURST + 1));
    assert!(left(5 * MS, 5 * MS + BURST) && !left(5 * MS, 5 * MS + BURST + 1));
    let mut unacknowledged = after(&[small(0, 0)]);
    unacknowledged.data(&full(MS, 100), Some(0), None);
    assert!(unacknowledged.small.is_some());
}

#[test]
fn gaps_are_even_that_differ_by_a_quarter() {
    let even = |first: i64, second: i64, last: Data| {
        let mut sender = after(&[full(0, 0), full(first, 1000)]);
        sender.data(
            &Data {
                at: at(9, first + second),
                ..last
            },
            Some(0),
            None,
        );
        sender.gaps.even_count
    };
    let next = full(0, 2000);
    assert_eq!(
        (even(3 * MS, 4 * MS, next), even(3 * MS - 1, 4 * MS, next)),
        (1, 0)
    );
    assert_eq!(
        (even(5 * MS, 4 * MS, next), even(5 * MS + 1, 4 * MS, next)),
        (1, 0)
    );
    assert_eq!((even(BURST, BURST, next), even(BURST, BURST + 1, next)), (0, 1));
    let mut small_before = after(&[full(0, 0), small(4 * MS, 1000)]);
    small_before.data(&full(8 * MS, 1100), Some(0), None);
    assert_eq!(small_before.gaps.even_count, 0);
    let mut pace = after(&[full(0, 0), full(3 * MS, 1000), full(4 * MS, 2000)]);
    assert_eq!((pace.gaps.pace_ns, pace.gaps.newest_ns), (3 * MS, MS));
    pace.data(&full(6 * MS, 3000), Some(0), None);
    assert_eq!((pace.gaps.pace_ns, pace.gaps.newest_ns), (2 * MS, 2 * MS));
}

#[test]
fn full_and_not_pushed_its_sender_had_more() {
    let more = |data: Data| after(&[data]).newest.had_more;
    let pushed = false;
    assert!(more(Data {
        is_pushed: pushed,
        ..full(0, 0)
    }));
    assert!(
        !more(full(0, 0))
            && !more(Data {
                is_pushed: pushed,
                ..small(0, 0)
            })
    );
}

#[test]
fn a_collapsed_window_grows_with_two_in_flight() {
    let collapsed = |una| {
        let mut sender = after(&[full(0, 0)]);
        (sender.has_collapsed, sender.acked.una) = (true, una);
        sender.data(&full(MS, 1000), Some(0), None);
        sender.has_collapsed
    };
    assert!(collapsed(1000) && !collapsed(999));
}

#[test]
fn a_hole_is_the_captures_where_it_was_acknowledged() {
    let holes = |una| {
        let mut sender = after(&[small(0, 0)]);
        sender.acked.una = una;
        sender.data(&small(MS, 150), Some(0), None);
        sender.holes.len()
    };
    assert_eq!((holes(100), holes(101)), (1, 0));
    let passed = |acked| {
        let mut sender = after(&[small(0, 0), small(MS, 150)]);
        sender.answer(&ack(2 * MS, acked));
        (sender.has_passed_hole, sender.holes.len())
    };
    assert_eq!((passed(100), passed(101)), ((false, 1), (true, 0)));
    let mut many = after(&[small(0, 0)]);
    for number in 1..80 {
        many.data(&small(number * MS, 200 * number), Some(0), None);
    }
    assert_eq!(many.holes.len(), MAX_HOLES);
}

#[test]
fn what_is_missing_of_a_first_message_shows_where_the_syn_was_seen() {
    let first = |syn_seen: bool, start| {
        let mut sender = Sender::default();
        if syn_seen {
            sender.syn_seen();
        }
        sender.peer_spoke(at(1, 0));
        let mut data = small(30 * MS, start);
        data.own_rtt_ns = 7 * MS;
        matches!(
            sender.data(&data, Some(0), None),
            Outcome::Forward(Step {
                wait: Wait::Turn(Turn {
                    doubt: Some(TurnDoubt::Retransmission),
                    ..
                }),
                ..
            })
        )
    };
    assert!(first(true, 1_000) && !first(true, 1));
    assert!(!first(false, 1_000), "what came before may be in no capture");
}

#[test]
fn behind_what_a_packet_without_data_showed_missing_there_is_a_hole() {
    // an answer whose head was lost: 100 bytes, that long after the request, or its retransmission
    let answered = |passed: i64, start: i64| {
        let mut sender = after(&[small(0, 0)]);
        sender.peer_spoke(at(10, MS));
        sender.passed(passed, at(11, 2 * MS), None);
        sender.peer_spoke(at(12, 250 * MS));
        let outcome = sender.data(&small(260 * MS, start), Some(0), None);
        match outcome {
            Outcome::Forward(Step { wait, .. }) => wait,
            Outcome::NothingNew => Wait::Hole,
        }
    };
    let (since, acked) = (at(12, 250 * MS), 0);
    let turn = |doubt| {
        Wait::Turn(Turn {
            since,
            acked_ns: acked,
            doubt,
        })
    };
    let lost = turn(Some(TurnDoubt::Queued {
        late_ns: 259_000_000,
        queued_ns: 0,
        is_clock_fine: false,
    }));
    assert_eq!(answered(200, 200), lost);
    assert_eq!(answered(100, 100), turn(None));
}

#[test]
fn a_stamp_that_came_alone_is_one_that_acks_bring() {
    let echoes = |alone: u32, with_data: Option<u32>, echo: u32| {
        let mut sender = after(&[small(0, 0)]);
        sender.peer.stamps = [Some(alone), with_data];
        let tsecr = Some(echo);
        sender.data(
            &Data {
                tsecr,
                ..full(MS, 100)
            },
            Some(0),
            None,
        );
        sender.echoes_acks
    };
    assert!(echoes(5, None, 5) && echoes(5, Some(4), 5));
    assert!(
        !echoes(5, None, 4) && !echoes(5, Some(5), 5),
        "it came with data, too"
    );
    let heard = |len| {
        let mut sender = Sender::default();
        let tsval = Some(3);
        sender.answer(&PeerPacket {
            len,
            tsval,
            ..ack(0, 0)
        });
        sender.peer.stamps
    };
    assert_eq!((heard(0), heard(1)), ([Some(3), None], [None, Some(3)]));
}

/// A small segment over an unacknowledged one, and what leaves so long after it.
fn refuted(next: i64, end: bool) -> usize {
    let mut sender = after(&[small(0, 0), small(MS, 100)]);
    if end {
        return sender.last_refutations().count();
    }
    sender.settle_refutation(MS + next);
    sender.confirmed_refutations(false).count()
}

#[test]
fn small_over_small_refutes_once_nothing_follows_it_at_once() {
    assert_eq!((refuted(200_000, false), refuted(200_001, false)), (0, 1));
    assert_eq!(refuted(0, true), 1, "the end of the stream");
    let mut early = after(&[small(MS, 0), small(3 * MS, 100)]);
    let pauses: Vec<_> = early
        .last_refutations()
        .map(|early| (early.pause_ns, early.time_ns))
        .collect();
    assert_eq!(pauses, [(2 * MS, 3 * MS)]);
    let mut missed = after(&[small(0, 0), small(MS, 100)]);
    missed.settle_refutation(2 * MS);
    assert!(missed.has_awaiting());
    assert_eq!(
        missed.confirmed_refutations(true).count(),
        0,
        "its ACK may be lost"
    );
    assert!(!missed.has_awaiting());
}

#[test]
fn so_many_refutations_wait_for_the_peer() {
    let mut sender = after(&[small(0, 0)]);
    for number in 1..80 {
        sender.data(&small(number * MS, 100 * number), Some(0), None);
    }
    assert_eq!(sender.last_refutations().count(), 64);
}

#[test]
fn a_full_segment_begins_what_may_be_paced() {
    let held = |data: Data| after(&[data]).pacer.may_have_held(1001, 5 * MS, 20, 1000);
    assert!(held(full(0, 1)) && !held(small(0, 1)));
}

#[test]
fn the_first_small_segment_of_a_message_is_known() {
    let first = |sender: &Sender| sender.small.map(|small| small.begins_message);
    let in_frame = |frame, start| Data {
        at: at(frame, 0),
        ..small(0, start)
    };
    let mut sender = after(&[in_frame(1, 0)]);
    assert_eq!(first(&sender), Some(false), "it was not asked");
    sender.data(&in_frame(2, 100), Some(0), None);
    assert_eq!(first(&sender), Some(false));
    sender.answer(&ack(2 * MS, 200));
    sender.data(&in_frame(6, 200), Some(0), None);
    assert_eq!(first(&sender), Some(false), "an ACK alone asks for nothing");
    sender.peer_spoke(at(7, 4 * MS));
    sender.data(&in_frame(8, 300), Some(0), None);
    assert_eq!(first(&sender), Some(true));
}
