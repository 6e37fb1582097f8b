//! Why did this segment leave? Scripted senders, one case per answer.
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod common;

use common::MS;
use latpcap_core::base::At;
use latpcap_core::facts::Covered;
use latpcap_core::observe::{Candidate, Data, Outcome, PeerPacket, Repair, Sender, Wait, is_small};

const MSS: i64 = 1000;
const RTT: i64 = 10 * MS;

/// A sender at the capture and its peer, 10 ms away and back.
#[derive(Default)]
struct Play {
    sender: Sender,
    frame: u64,
    id: u16,
    /// The number of the newest segment.
    newest: u16,
    window: i64,
    una: i64,
    sent: Vec<(i64, At)>,
}

impl Play {
    fn new() -> Self {
        Play {
            window: 1 << 20,
            una: 1,
            ..Play::default()
        }
    }

    fn at(&mut self, us: i64) -> At {
        self.frame += 1;
        At {
            frame: self.frame,
            time_ns: us * 1000,
        }
    }

    /// The peer's request.
    fn asked(&mut self, us: i64) -> At {
        let at = self.at(us);
        self.answer_at(at, self.una, None);
        self.sender.peer_spoke(at);
        at
    }

    fn ack(&mut self, us: i64, ack: i64) -> At {
        let at = self.at(us);
        self.answer_at(at, ack, None);
        at
    }

    /// Data of the peer that acknowledge.
    fn echo(&mut self, us: i64, ack: i64) -> At {
        let at = self.at(us);
        self.answer_with(at, ack, None, 2);
        self.sender.peer_spoke(at);
        at
    }

    fn answer_at(&mut self, at: At, ack: i64, sacked: Option<i64>) {
        self.answer_with(at, ack, sacked, 0);
    }

    fn answer_with(&mut self, at: At, ack: i64, sacked: Option<i64>, len: u32) {
        let (una, mut covered) = (self.una, None);
        for (_, sent) in self.sent.iter().filter(|s| s.0 >= una && s.0 < ack) {
            let c = covered.get_or_insert(Covered {
                bytes: (ack - una) as u32,
                first_frame: sent.frame,
                first_time: sent.time_ns,
                last_frame: sent.frame,
                last_time: sent.time_ns,
            });
            (c.last_frame, c.last_time) = (sent.frame, sent.time_ns);
        }
        self.una = self.una.max(ack);
        let answer = PeerPacket {
            at,
            ack,
            window: self.window,
            scale_known: true,
            len,
            fin: false,
            duplicate: sacked.is_some(),
            sacked,
            tsval: None,
            echoed: true,
            covered,
        };
        self.sender.answer(&answer);
    }

    fn data(&mut self, us: i64, start: i64, len: i64) -> Data {
        self.id += 1;
        let at = self.at(us);
        Data {
            at,
            start,
            end: start + len,
            small: is_small(len as u32, MSS as u32),
            fin: false,
            pushed: true,
            mss: MSS as u32,
            tsval: None,
            tsecr: None,
            ip_id: Some(self.id),
            rtt_ns: RTT,
            own_rtt_ns: 0,
            server: true,
            pool: 7,
        }
    }

    fn give(&mut self, d: &Data) -> Outcome {
        let missing = (self.id - self.newest).saturating_sub(1);
        self.newest = self.id;
        let first = self.sent.iter().find(|s| s.0 == d.start).map(|s| s.1);
        self.sent.push((d.start, d.at));
        self.sender.data(d, missing, first)
    }

    /// A segment that must bring the stream forward.
    fn send(&mut self, us: i64, start: i64, len: i64) -> Wait {
        let d = self.data(us, start, len);
        wait(self.give(&d))
    }
}

fn wait(outcome: Outcome) -> Wait {
    match outcome {
        Outcome::Forward(step) => step.wait,
        Outcome::Needless => panic!("the segment was needed"),
    }
}

fn candidate(wait: Wait) -> Candidate {
    match wait {
        Wait::Small(candidate) => *candidate,
        other => panic!("no candidate but {other:?}"),
    }
}

#[test]
fn turn_is_the_first_segment_after_the_peer_spoke() {
    let mut play = Play::new();
    let asked = play.asked(0);
    assert_eq!(
        play.send(3_000, 1, 200),
        Wait::Turn {
            since: asked,
            acked: 0
        }
    );
    let asked = play.asked(60_000);
    assert_eq!(
        play.send(90_000, 201, 200),
        Wait::Turn {
            since: asked,
            acked: 0
        }
    );
}

#[test]
fn a_small_turn_as_late_as_the_kernels_timer_may_be_corked() {
    for (late, bytes, corked) in [
        (199_999, 200, false),
        (200_000, 200, true),
        (713_000, 200, true), // the path is not known here
        (713_001, 200, false),
        (204_000, MSS, false),
    ] {
        let mut play = Play::new();
        let since = play.asked(0);
        let want = if corked {
            Wait::LateTurn {
                since,
                acked: 0,
                pool: 7,
            }
        } else {
            Wait::Turn { since, acked: 0 }
        };
        assert_eq!(play.send(late, 1, bytes), want, "{late} us, {bytes} bytes");
    }
}

#[test]
fn a_turn_as_long_as_a_held_ack_may_wait_for_one_elsewhere() {
    for (us, timed) in [(37_999, false), (38_000, true), (110_000, true), (110_001, false)] {
        let mut play = Play::new();
        let since = play.asked(0);
        let want = if timed {
            let (acked, pool) = (0, 7);
            Wait::TimedTurn { since, acked, pool }
        } else {
            Wait::Turn { since, acked: 0 }
        };
        assert_eq!(play.send(us, 1, MSS), want, "{us} us");
    }
}

#[test]
fn in_a_turn_too_small_leaves_with_the_ack_of_small() {
    for (freed, held) in [
        (29_990, false), // over the unacknowledged one
        (30_020, true),
        (32_000, true),
        (32_001, false),
    ] {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, 200);
        let since = play.asked(20_000);
        if freed > 30_000 {
            play.ack(30_000, 201);
        }
        match play.send(freed, 201, 300) {
            Wait::FreedTurn {
                since: from,
                candidate,
            } => {
                assert!(held, "{freed} us");
                assert_eq!((from, candidate.ack.time_ns), (since, 30 * MS));
            }
            other => assert_eq!((other, held), (Wait::Turn { since, acked: 0 }, false)),
        }
    }
}

/// Someone who types: small segments that wait for ACKs, some of which come along with echoes.
struct Typist {
    play: Play,
    end: i64,
    us: i64,
}

impl Typist {
    fn new() -> Self {
        Typist {
            play: Play::new(),
            end: 1,
            us: 0,
        }
    }

    /// One more small segment, so long after the newest packet.
    fn key(&mut self, after_us: i64, server: bool) -> Option<Box<Candidate>> {
        self.us += after_us;
        let mut d = self.play.data(self.us, self.end, 2);
        d.server = server;
        self.end += 2;
        wait(self.play.give(&d));
        self.play.sender.take_freed()
    }

    /// An ACK of all keys, by itself or with an echo.
    fn acked(&mut self, echo: bool) {
        self.us += 10_000;
        if echo {
            self.play.echo(self.us, self.end);
        } else {
            self.play.ack(self.us, self.end);
        }
    }
}

/// Each pair: by an echo, and so long after it. Whether the last of them may have been written before.
fn typed(keys: &[(bool, i64)]) -> bool {
    let mut typist = Typist::new();
    typist.key(0, false);
    let (mut last, mut took) = (None, 0);
    for (echo, after_us) in keys {
        typist.acked(*echo);
        (last, took) = (typist.key(*after_us, false), *after_us);
    }
    let held = last.map(|c| (c.ack_pure, c.freed.time_ns - c.small.time_ns));
    assert!(held.is_none_or(|held| held == (false, 10_000_000 + 1_000 * took)));
    held.is_some()
}

#[test]
fn data_that_acknowledge_free_what_a_client_wrote_meanwhile() {
    let (by_ack, by_echo) = ((false, 20), (true, 60));
    assert!(!typed(&[by_ack, by_echo, by_echo, by_echo]));
    assert!(typed(&[by_ack, by_echo, by_echo, by_echo, by_echo]));
    // nothing shows that it writes without waiting for answers
    assert!(!typed(&[by_echo; 12]));
    // later than a kernel: one in ten may be so
    let strays = |n: usize| typed(&[[by_ack, (true, 61)].as_slice(), &[by_echo; 12][..n]].concat());
    assert_eq!([11, 12].map(strays), [false, true]);
    // a message in two parts each: as often by an ACK as by an echo
    assert!(!typed(&[by_ack, by_echo].repeat(8)));
}

#[test]
fn who_sends_small_over_small_is_freed_by_no_data() {
    let mut over = Typist::new();
    over.key(0, false);
    over.acked(false);
    over.key(20, false);
    over.key(3_000, false); // nothing held this one
    for _ in 0..8 {
        over.acked(true);
        assert!(over.key(20, false).is_none());
    }
}

#[test]
fn a_server_that_was_asked_before_waits_for_the_ack_too() {
    // its program answers in `took` us with nothing in flight; what is freed leaves `after` us after the ACK
    for (took, after, asked, held) in [
        (100, 50, true, true),
        (100, 51, true, false),  // no sooner than its program may answer
        (200, 61, true, false),  // later than a kernel
        (100, 50, false, false), // it answers what it has just been asked
    ] {
        let mut play = Play::new();
        let mut end = 1;
        let mut answer = |play: &mut Play, us: i64| {
            let mut d = play.data(us, end, 2);
            (d.server, end) = (true, end + 2);
            wait(play.give(&d))
        };
        play.asked(0);
        answer(&mut play, took);
        play.ack(5_000, 3);
        answer(&mut play, 5_020); // small after small, with an ACK: it writes without being asked
        let mut said = Wait::App;
        for n in 1..4 {
            let us = n * 20_000;
            let since = asked.then(|| play.asked(us)); // without an ACK
            play.echo(us + 10_000, 2 * n + 3);
            said = answer(&mut play, us + 10_000 + after);
            if let (Wait::FreedTurn { since: from, .. }, Some(since)) = (&said, since) {
                assert_eq!(*from, since);
            }
        }
        assert_eq!(
            matches!(said, Wait::FreedTurn { .. }),
            held,
            "{took} {after} {asked}"
        );
    }
}

#[test]
fn burst_follows_at_once_and_app_after_a_while_with_nothing_in_its_way() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    assert_eq!(play.send(1_050, 1001, MSS), Wait::FullBurst);
    assert_eq!(play.send(1_100, 2001, 300), Wait::FullBurst);
    assert_eq!(play.send(1_150, 2301, 300), Wait::Burst);
    assert_eq!(play.send(31_150, 2601, 300), Wait::App);
}

#[test]
fn small_after_the_ack_of_small_is_a_candidate() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    let ack = play.ack(43_000, 201);
    let c = candidate(play.send(43_020, 201, 600));
    assert_eq!((c.small.time_ns, c.ack, c.freed.time_ns), (MS, ack, 43_020_000));
    assert_eq!(
        (c.held_from, c.ack_pure, c.ack_fin, c.arrived),
        (c.small, true, false, None)
    );
    assert_eq!((c.small_bytes, c.freed_bytes, c.pool), (200, 600, 7));
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
            scale_known: true,
            len: 0,
            fin: false,
            duplicate: false,
            sacked: None,
            tsval: Some(92),
            echoed,
            covered: None,
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
        (499_999, false, Some(false)),
        (500_000, false, None),
        (500_000, true, Some(false)),
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
                scale_known: true,
                len: 0,
                fin: false,
                duplicate: false,
                sacked: None,
                tsval: Some(if us > 1_000 { tsval } else { 70 }),
                echoed: true,
                covered: None,
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
fn data_far_beyond_all_room_are_none() {
    const MORE: i64 = 64 << 20; // BEYOND_ROOM in bytes
    for (scale_known, most) in [(true, 9999), (false, 9999 << 14)] {
        let mut play = Play::new();
        assert!(!play.sender.is_beyond(i64::MAX), "no window was seen");
        let at = play.at(10);
        play.sender.answer(&PeerPacket {
            at,
            ack: 1,
            window: 9999,
            scale_known,
            len: 0,
            fin: false,
            duplicate: false,
            sacked: None,
            tsval: None,
            echoed: true,
            covered: None,
        });
        assert!(!play.sender.is_beyond(1 + most + MORE));
        assert!(play.sender.is_beyond(2 + most + MORE));
    }
}

#[test]
fn small_over_unacknowledged_small_refutes_nagle_unless_more_was_queued() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    assert_eq!(play.send(21_000, 201, 600), Wait::App);
    play.sender.settle_refutation(21_050_000);
    assert_eq!(
        play.sender.sure_refutations(false, 0, None).len(),
        0,
        "more may follow"
    );
    play.sender.settle_refutation(22_000_000);
    assert_eq!(play.sender.sure_refutations(false, 0, None).len(), 1);
    assert_eq!(play.sender.last_refutations().len(), 0, "it counts once");
    // cut from a longer queue
    play.send(22_000, 801, 300);
    play.send(22_033, 1101, MSS);
    play.sender.settle_refutation(30_000_000);
    assert_eq!(play.sender.sure_refutations(false, 0, None).len(), 0);
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
    assert_eq!(play.sender.sure_refutations(true, 0, None).len(), 0);
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

#[test]
fn clocked_by_the_ack_of_full_segments() {
    let mut play = Play::new();
    play.asked(0);
    for i in 0..10 {
        play.send(1_000 + i, 1 + i * MSS, MSS);
    }
    let ack = play.ack(11_000, 2001);
    match play.send(11_020, 10_001, MSS) {
        Wait::Clocked { ack: by, acked } => assert_eq!((by, acked.time_ns), (ack, 1_001_000)),
        other => panic!("{other:?}"),
    }
    assert_eq!(play.send(11_030, 11_001, MSS), Wait::FullBurst);
}

#[test]
fn spaced_at_an_even_pace() {
    let mut play = Play::new();
    play.asked(0);
    let waits: Vec<Wait> = (0..8)
        .map(|i| play.send(1_000 + i * 900, 1 + i * MSS, MSS))
        .collect();
    assert!(waits[4..].iter().all(|w| *w == Wait::Spaced), "{waits:?}");
}

#[test]
fn window_and_zero_window() {
    let mut play = Play::new();
    play.window = 2000;
    play.asked(0);
    play.ack(500, 1);
    play.send(1_000, 1, MSS);
    play.send(1_010, 1001, MSS);
    let opened = play.ack(20_000, 2001);
    assert_eq!(play.send(20_010, 2001, MSS), Wait::Window { opened });
    play.send(20_020, 3001, MSS);
    play.window = 0;
    play.ack(30_000, 4001);
    play.window = 2000;
    let opened = play.ack(900_000, 4001);
    assert_eq!(play.send(900_010, 4001, MSS), Wait::ZeroWindow { opened });
    // within the window it is the ACK clock
    play.window = 1 << 20;
    play.ack(950_000, 4001);
    play.ack(960_000, 5001);
    assert!(matches!(
        play.send(960_010, 5001, MSS),
        Wait::LoneClocked { .. } | Wait::Window { .. }
    ));
    play.ack(970_000, 6001);
    assert!(matches!(
        play.send(970_010, 6001, MSS),
        Wait::LoneClocked { collapsed: false, .. }
    ));
}

fn repaired(wait: Wait) -> (Repair, Option<i64>) {
    match wait {
        Wait::Repair { how, first, .. } => (how, first.map(|at| at.time_ns / 1000)),
        other => panic!("no repair but {other:?}"),
    }
}

#[test]
fn fast_retransmission_has_a_sack_above_or_three_duplicates() {
    for by_sack in [true, false] {
        let mut play = Play::new();
        play.asked(0);
        for i in 0..10 {
            play.send(1_000 + i, 1 + i * MSS, MSS);
        }
        for i in 0..3 {
            let at = play.at(11_000 + i);
            play.answer_at(at, 1, Some(if by_sack { 2001 + i * MSS } else { 0 }));
        }
        assert_eq!(repaired(play.send(11_100, 1, MSS)), (Repair::Fast, Some(1_000)));
    }
}

#[test]
fn tail_probe_then_timeouts() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, MSS);
    play.send(1_010, 1001, 300);
    assert_eq!(
        repaired(play.send(222_000, 1001, 300)),
        (Repair::TailProbe, Some(1_010))
    );
    assert_eq!(
        repaired(play.send(450_000, 1, MSS)),
        (Repair::Timeout, Some(1_000))
    );
    assert_eq!(
        repaired(play.send(850_000, 1, MSS)),
        (Repair::Timeout, Some(1_000))
    );
}

/// Some firewalls change sequence numbers and leave the SACK option as it was.
#[test]
fn a_sack_of_what_cannot_have_been_sent_calls_for_nothing() {
    let mut play = Play::new();
    let at = play.asked(0);
    play.answer_at(at, 1, Some(1 << 30));
    play.send(300_000, 1, MSS);
    assert_eq!(
        repaired(play.send(330_000, 1, MSS)),
        (Repair::TailProbe, Some(300_000))
    );
}

#[test]
fn a_lost_tail_that_never_came_by_shows_in_the_identifications() {
    let mut play = Play::new();
    for i in 0..12 {
        play.asked(i * 20_000);
        play.send(i * 20_000 + 1_000, 1 + i * 100, 100);
        play.ack(i * 20_000 + 2_000, 101 + i * 100);
    }
    play.asked(300_000);
    play.id += 1; // the first copy
    assert_eq!(repaired(play.send(530_000, 1201, 100)), (Repair::TailProbe, None));
    play.asked(600_000);
    play.id += 2; // the first copy and the probe
    assert_eq!(repaired(play.send(1_100_000, 1301, 100)), (Repair::Timeout, None));
}

/// A sender whose timer ran out has a window of one segment, until two are in flight again.
#[test]
fn the_ack_of_the_one_full_segment_in_flight_is_told_from_others() {
    let lone = |wait: Wait| match wait {
        Wait::LoneClocked { collapsed, .. } => Some(collapsed),
        Wait::Clocked { .. } => None,
        other => panic!("{other:?}"),
    };
    for timeout in [false, true] {
        let mut play = Play::new();
        play.asked(0);
        let mut at = 1_000;
        play.send(at, 1, MSS);
        if timeout {
            at = 700_000;
            play.send(300_000, 1, MSS); // the probe
            assert_eq!(repaired(play.send(at, 1, MSS)), (Repair::Timeout, Some(1_000)));
        }
        play.ack(at + 51_000, 1001);
        assert_eq!(lone(play.send(at + 51_020, 1001, MSS)), Some(timeout));
        play.send(at + 51_030, 2001, MSS);
        play.ack(at + 61_000, 3001);
        assert_eq!(lone(play.send(at + 61_020, 3001, MSS)), None, "of two segments");
        play.ack(at + 99_000, 4001);
        assert_eq!(
            lone(play.send(at + 99_020, 4001, 300)),
            Some(false),
            "the window had grown"
        );
    }
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

/// A full segment that was not pushed had more behind it; what follows it while it is unacknowledged was there, too.
#[test]
fn behind_full_segments_the_line_was_busy() {
    let mut play = Play::new();
    play.asked(0);
    let first = play.data(1_000, 1, MSS);
    play.give(&Data {
        pushed: false,
        ..first
    });
    play.ack(1_010, 1001);
    assert_eq!(play.send(25_000, 1001, MSS), Wait::Spaced);
    play.ack(25_010, 2001);
    assert!(
        matches!(play.send(55_000, 2001, MSS), Wait::LoneClocked { .. }),
        "a program may pause here"
    );
    assert_eq!(play.send(59_000, 3001, MSS), Wait::Spaced);
}

/// By the clock of its sender, which counts milliseconds, the second left right behind the first.
#[test]
fn what_left_together_was_held_by_the_path() {
    for (tick, queued) in [(3, true), (80, false)] {
        let mut play = Play::new();
        let at = |us: i64, ticks: i64, d: Data| Data {
            tsval: Some((us / 1000 + ticks) as u32),
            ..d
        };
        for i in 0..3 {
            play.asked(i * 1_000_000);
            let us = i * 1_000_000 + 1_000;
            let d = play.data(us, 1 + i * 1200, MSS);
            play.give(&at(us, 0, d));
        }
        let d = play.data(2_091_000, 3401, 200);
        let outcome = play.give(&at(2_001_000, tick, d));
        let wait = match outcome {
            Outcome::Forward(step) => step.wait,
            Outcome::Needless => panic!(),
        };
        assert_eq!(wait == Wait::Queued, queued, "{wait:?}");
    }
}

/// A probe sends what is next where there is something (tcp_send_loss_probe). It was none if the first had arrived.
#[test]
fn a_probe_with_new_data_refutes_nothing() {
    for (acked, refuted) in [(1, 0), (501, 1)] {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, 200);
        let probe = play.send(1_000 + 2 * RTT / 1000 + 203_000, 201, 300);
        assert!(matches!(probe, Wait::Probe { small, .. } if small.time_ns == 1_000_000));
        assert_eq!(play.sender.sure_refutations(false, acked, None).len(), refuted);
    }
}

#[test]
fn a_segment_after_a_gap_in_the_identifications_was_sent_before() {
    let mut play = Play::new();
    for i in 0..12 {
        play.asked(i * 20_000);
        play.send(i * 20_000 + 1_000, 1 + i * MSS, MSS);
        play.ack(i * 20_000 + 2_000, 1 + (i + 1) * MSS);
    }
    play.asked(300_000);
    play.send(301_000, 12_001, MSS);
    play.id += 1; // the first copy of what follows
    play.ack(342_000, 13_001);
    assert_eq!(repaired(play.send(352_000, 13_001, 700)), (Repair::Fast, None));
}

#[test]
fn holes_that_close_were_overtaken_or_repaired() {
    for (us, earlier, how) in [
        (1_300, true, Repair::Reordered),
        (12_000, false, Repair::Fast),
        (400_000, false, Repair::Timeout),
    ] {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, MSS);
        play.id += 1;
        let overtaken = play.id;
        play.send(1_010, 2001, MSS);
        let mut d = play.data(us, 1001, MSS);
        if earlier {
            d.ip_id = Some(overtaken);
        }
        assert_eq!(repaired(wait(play.give(&d))), (how, None));
    }
}

#[test]
fn a_hole_that_is_acknowledged_is_the_captures() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.send(1_010, 401, 200);
    play.ack(41_000, 601);
    assert_eq!(play.send(41_020, 601, 200), Wait::Hole);
}

#[test]
fn a_hole_that_was_acknowledged_before_it_shows_is_the_captures() {
    let mut play = Play::new();
    play.asked(0);
    play.send(1_000, 1, 200);
    play.ack(41_000, 401);
    assert_eq!(play.send(41_020, 401, 200), Wait::Hole);
    assert_ne!(
        play.send(81_020, 601, 200),
        Wait::Hole,
        "that gap has an end of its own"
    );
}

#[test]
fn cork_leaves_without_any_trigger_after_the_kernels_timer() {
    let cork = |ack: Option<i64>, us: i64, len: i64| {
        let mut play = Play::new();
        play.asked(0);
        play.send(1_000, 1, MSS);
        if let Some(ack) = ack {
            play.ack(ack, 1001);
        }
        play.send(1_000 + us, 1001, len)
    };
    // the cork timer: nothing in flight, 200 ms and a few ticks, small, after a full segment
    assert_eq!(cork(Some(2_000), 204_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 150_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 260_000, 300), Wait::Cork);
    assert_ne!(cork(Some(2_000), 204_000, MSS), Wait::Cork);
    assert_ne!(
        cork(Some(204_990), 204_000, 300),
        Wait::Cork,
        "an ACK set it free"
    );
}

#[test]
fn duplicates_by_the_network_and_bytes_that_arrived_are_needless() {
    let mut play = Play::new();
    play.asked(0);
    let first = play.data(1_000, 1, 300);
    play.give(&first);
    let copy = Data {
        at: play.at(1_020),
        ..first
    };
    assert_eq!(play.give(&copy), Outcome::Needless);
    assert_eq!(
        play.send(1_100, 301, 300),
        Wait::Burst,
        "a duplicate is nobody's wait"
    );
    play.ack(11_000, 601);
    let again = play.data(240_000, 301, 300);
    assert_eq!(
        play.give(&again),
        Outcome::Needless,
        "acknowledged before it left"
    );
}
