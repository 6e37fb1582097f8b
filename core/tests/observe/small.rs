//! Small behind small: what may have waited for an ACK, and what shows that nothing waits for it.

use latpcap_core::observe::{Data, PeerPacket, Wait};

use crate::common::MS;
use crate::play::{MSS, Play, candidate, wait};

#[test]
fn small_after_the_ack_of_small_is_a_candidate() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    let ack = play.ack(43_000, 201);
    let c = candidate(play.send(43_020, 201, 600));
    assert_eq!((c.small.time_ns, c.ack, c.freed.time_ns), (MS, ack, 43_020_000));
    assert_eq!(
        (c.held_from, c.ack_lacks_data, c.ack_has_fin, c.arrived),
        (c.small, true, false, None)
    );
    assert_eq!((c.freed_bytes, c.sender_id), (600, 7));
}

#[test]
fn the_receivers_timer_starts_at_the_first_byte_that_the_ack_covers() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    play.send(5_000, 1001, 200);
    play.ack(43_000, 1201);
    let c = candidate(play.send(43_020, 1201, 600));
    assert_eq!((c.held_from.time_ns, c.small.time_ns), (MS, 5 * MS));
}

#[test]
fn timestamps_tell_whether_the_ack_had_arrived() {
    // a stamp that will not be echoed shows what is there, and nothing by its absence
    let cases = [
        (50, true, Some(false)),
        (50, false, None),
        (92, true, Some(true)),
        (99, false, Some(true)),
    ];
    for (freed, echoed, arrived) in cases {
        let mut play = Play::new();
        play.asked(0);
        let mut d = play.data(1_000, 1, 200);
        d.tsecr = Some(50);
        play.give(&d);
        let at = play.at(43_000);
        let answer = PeerPacket {
            at,
            ack: 201,
            window: 9999,
            is_scale_known: true,
            tsval: Some(92),
            is_echoed: echoed,
            ..PeerPacket::default()
        };
        play.sender.answer(&answer);
        let mut d = play.data(43_020, 201, 600);
        d.tsecr = Some(freed);
        assert_eq!(candidate(wait(play.give(&d))).arrived, arrived);
    }
}

/// A stack that echoes no ACK without data leaves an old stamp though the ACK had come; away from it the path tells.
#[test]
fn an_old_stamp_tells_nothing_of_who_never_echoed_an_ack() {
    for (rtt_ns, shown, arrived) in [
        (749_999, false, Some(false)),
        (750_000, false, None),
        (750_000, true, Some(false)),
    ] {
        let mut play = Play::new();
        play.asked(0);
        let mut next = 1;
        for (us, tsval) in [(1_000, 50), (100_000, 92)] {
            let stamp = if us > 1_000 && shown { 70 } else { 50 };
            let mut d = play.data(us, next, 200);
            d.tsecr = Some(stamp);
            play.give(&d);
            next += 200;
            let at = play.at(us + 42_000);
            play.sender.answer(&PeerPacket {
                at,
                ack: next,
                window: 9999,
                is_scale_known: true,
                tsval: Some(if us > 1_000 { tsval } else { 70 }),
                is_echoed: true,
                ..PeerPacket::default()
            });
        }
        let mut d = play.data(142_400, next, 600);
        (d.tsecr, d.own_rtt_ns) = (Some(70), rtt_ns);
        assert_eq!(
            candidate(wait(play.give(&d))).arrived,
            arrived,
            "{rtt_ns} {shown}"
        );
    }
}

#[test]
fn small_over_unacknowledged_small_refutes_nagle_unless_more_was_queued() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    assert_eq!(
        play.send(21_000, 201, 600),
        Wait::Early {
            sender_id: 7,
            bytes: 600
        }
    );
    play.sender.settle_refutation(21_050_000);
    assert_eq!(
        play.sender.confirmed_refutations(false).len(),
        0,
        "more may follow"
    );
    play.sender.settle_refutation(22_000_000);
    assert_eq!(play.sender.confirmed_refutations(false).len(), 1);
    assert_eq!(play.sender.last_refutations().len(), 0, "it counts once");
    // cut from a longer queue
    play.send(22_000, 801, 300);
    play.send(22_033, 1101, MSS);
    play.sender.settle_refutation(30_000_000);
    assert_eq!(play.sender.confirmed_refutations(false).len(), 0);
    // full over small is allowed
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.send(21_000, 201, MSS);
    assert_eq!(play.sender.last_refutations().len(), 0);
    // a packet of the peer that the capture lacks may have been the ACK
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.send(21_000, 201, 600);
    play.sender.settle_refutation(22_000_000);
    assert_eq!(play.sender.confirmed_refutations(true).len(), 0);
    assert_eq!(play.sender.last_refutations().len(), 0);
    // an ACK that the capture lacks shows in the timestamps
    let mut play = Play::new();
    for (us, start, tsecr) in [(0, 1, 100), (43_000, 201, 143)] {
        let d = Data {
            tsecr: Some(tsecr),
            ..play.data(us, start, 200)
        };
        play.give(&d);
    }
    assert_eq!(play.sender.last_refutations().len(), 0);
}

/// Minshall: behind a full unacknowledged segment a small one goes, behind a small one it waits.
#[test]
fn only_small_behind_small_is_nagles() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    assert_eq!(play.send(5_000, 1001, 200), Wait::Unsure);
    play.ack(12_000, 1001);
    play.ack(45_000, 1201);
    candidate(play.send(45_020, 1201, 200));
}
