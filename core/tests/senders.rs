//! Nagle or a program's pause? Synthetic endpoints at three vantages, judged by `judge::sender`
//! (docs/verdicts.md).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod common;

use std::net::IpAddr;

use common::{CLIENT, Lcg, MS, SERVER};
use latpcap_core::base::{At, Side};
use latpcap_core::evidence::rtt::Pairs;
use latpcap_core::evidence::{Key, Pools};
use latpcap_core::judge::{Because, Cause, Freed, Grade, Grounds, Judged, Ruling, Senders, Verdict};
use latpcap_core::observe::{Candidate, Early};

const US: i64 = 1000;
/// Round trips from the capture to the sender and to the receiver: at the sender, at the receiver, between.
const VANTAGES: [(i64, i64); 3] = [(20 * US, 4 * MS), (4 * MS, 20 * US), (2 * MS, 2 * MS)];

/// One sender (the server) and the small segments that it sent after others.
struct Endpoint {
    pairs: Pairs,
    pools: Pools,
    judged: Senders,
    id: u32,
    /// Round trips to the sender and to the receiver.
    rtts: (i64, i64),
    frame: u64,
    /// Whose gaps come now.
    stream: u32,
    candidates: Vec<Candidate>,
    streams: Vec<u32>,
}

impl Endpoint {
    fn new(rtts: (i64, i64)) -> Self {
        let mut pairs = Pairs::default();
        let (client, server) = (IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server.index(), rtts.0, false);
        pairs.add(pair, Side::Client.index(), rtts.1, false);
        let mut pools = Pools::default();
        let id = pools.id(
            Key {
                server,
                server_port: 80,
                client,
                sender: Side::Server,
            },
            pair,
        );
        Endpoint {
            pairs,
            pools,
            judged: Senders::default(),
            id,
            rtts,
            frame: 0,
            stream: 0,
            candidates: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// A small segment passes at `small`, its ACK at `ack`, the next small one at `freed`. Where no ACK
    /// passed before the second, `observe` makes a refutation of it.
    fn gap(&mut self, small: i64, ack: i64, freed: i64) -> Option<Candidate> {
        self.frame += 3;
        let at = |n: u64, time_ns: i64| At {
            frame: self.frame + n,
            time_ns,
        };
        let candidate = Candidate {
            small: at(0, small),
            held_from: at(0, small),
            ack: at(1, ack),
            ack_pure: true,
            ack_fin: false,
            arrived: None,
            unseen: false,
            after_end: false,
            freed: at(2, freed),
            small_bytes: 238,
            freed_bytes: 612,
            held_back: false,
            pool: self.id,
        };
        self.add(candidate)
    }

    fn add(&mut self, candidate: Candidate) -> Option<Candidate> {
        if candidate.freed.time_ns < candidate.ack.time_ns {
            self.refute(candidate.freed.time_ns - candidate.small.time_ns);
            return None;
        }
        self.pools.add(self.stream, &candidate);
        self.candidates.push(candidate);
        self.streams.push(self.stream);
        Some(candidate)
    }

    /// A small segment leaves over an unacknowledged small one, so long after it.
    fn refute(&mut self, pause: i64) {
        self.pools.refute(
            self.id,
            self.stream,
            [Early {
                pause,
                at: 0,
                frame: 0,
            }]
            .into_iter(),
        );
    }

    /// Under Nagle: the ACK leaves after `hold`, the next segment `slack` after it has arrived.
    fn nagle(&mut self, small: i64, hold: i64, slack: i64) -> Option<Candidate> {
        let ack = small + self.rtts.1 + hold;
        self.gap(small, ack, ack + self.rtts.0 + slack)
    }

    /// Without: the next segment leaves the program `pause` after the first, whatever was acknowledged.
    fn pause(&mut self, small: i64, hold: i64, pause: i64) -> Option<Candidate> {
        self.gap(small, small + self.rtts.1 + hold, small + pause)
    }

    /// True ones.
    fn stalls(&mut self, n: i64, random: &mut Lcg) {
        for i in 0..n {
            self.nagle(i * 47 * MS, 40 * MS + random.below(4 * MS), 10 * US);
        }
    }

    fn judged(&mut self) -> Judged {
        self.judged.judge(&self.pools, &self.pairs, true)[0].clone()
    }

    fn rulings(&mut self) -> Vec<Ruling> {
        let judged = self.judged();
        let of = self.streams.iter().zip(&self.candidates);
        of.map(|(stream, c)| judged.rule(Side::Server, *stream, c))
            .collect()
    }
}

/// Linux' timer of 40 ms fires on the next tick of 4 ms, sometimes one later.
fn timer(start: i64, random: &mut Lcg) -> i64 {
    let late = if random.below(20) == 0 { 4 * MS } else { 0 };
    let tick = 4 * MS;
    (start + 40 * MS + tick - 1) / tick * tick + late + random.below(100 * US) - start
}

/// What a stall is worth.
fn confident(ruling: &Ruling) -> Option<f64> {
    match ruling {
        Ruling::Held { grounds, .. } if grounds.grade == Grade::Proven => Some(0.99),
        Ruling::Held { .. } => Some(0.8),
        _ => None,
    }
}

#[test]
fn true_nagle_is_proven_and_held() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(1));
        for i in 0..42 {
            let (hold, slack) = (40 * MS + random.below(4 * MS), random.below(60 * US));
            e.nagle(i * 47 * MS, hold, slack);
        }
        let judged = e.judged();
        assert_eq!(
            (judged.verdict, judged.held, judged.refuted),
            (Verdict::Proven, 42, 0),
            "{rtts:?}"
        );
        assert!(judged.slope.is_some_and(|slope| slope > 0.9), "{judged:?}");
        let rulings = e.rulings();
        for (c, ruling) in e.candidates.iter().zip(rulings) {
            let Ruling::Held { hold, grounds, .. } = ruling else {
                panic!("{ruling:?} at {rtts:?}")
            };
            assert!(
                grounds == Grounds::proven(Because::FollowsAcks)
                    && hold == c.ack.time_ns - c.small.time_ns - rtts.1
            );
        }
    }
}

#[test]
fn pauses_near_the_timer_are_never_proven_stalls() {
    for (vantage, rtts) in VANTAGES.into_iter().enumerate() {
        for step in 0..=15 {
            for seed in 0..20 {
                let pause = 40_500 * US + step * 500 * US;
                let mut random = Lcg(1 + seed * 1000 + step as u64 * 7 + vantage as u64);
                let mut e = Endpoint::new(rtts);
                for _stream in 0..3 {
                    let mut now = random.below(1000 * MS);
                    for _exchange in 0..14 {
                        let passing = rtts.1 / 2; // to the receiver, and the same back
                        let hold = timer(now + passing, &mut random);
                        let pause = pause + 50 * US + random.below(250 * US);
                        e.pause(now, hold, pause);
                        now += pause + rtts.0 + rtts.1 + 100 * US + random.below(300 * US);
                    }
                }
                let judged = e.judged();
                let sure = e
                    .rulings()
                    .iter()
                    .filter_map(confident)
                    .filter(|c| *c >= 0.9)
                    .count();
                let case = format!("pause {pause} rtts {rtts:?} seed {seed}: {judged:?}");
                assert!(
                    judged.verdict != Verdict::Proven && sure == 0,
                    "{sure} stalls, {case}"
                );
            }
        }
    }
}

/// A socket's timeout (SO_RCVTIMEO) ends on the kernel's tick, as the delayed-ACK timer does. Where both hosts are one
/// kernel such a program follows the ACKs, but it has to be woken up, or passes the path's time beside them.
#[test]
fn a_program_that_sleeps_on_the_receivers_tick_is_no_proven_stall() {
    for (rtts, beside) in [
        ((10 * US, 12 * US), 100 * US),
        ((6500 * US, 15 * US), 800 * US),
        ((15 * US, 6500 * US), 800 * US),
        ((2 * MS, 2 * MS), 1500 * US),
    ] {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(17));
        for i in 0..40 {
            let hold = timer(i * 47 * MS + random.below(9 * MS), &mut random);
            e.nagle(i * 60 * MS, hold, beside + random.below(150 * US));
        }
        let judged = e.judged();
        assert_eq!(judged.verdict, Verdict::Open, "{judged:?}");
        assert!(e.rulings().iter().filter_map(confident).all(|c| c < 0.9));
    }
}

/// Nagle acts, and the program works before its second write, now for less than the hold and now for more: where it had
/// written nobody can tell, and what left later than a kernel would is the program's.
#[test]
fn a_program_that_works_before_its_second_write_is_no_proven_stall() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(19));
        for i in 0..40 {
            let (hold, pause) = (40 * MS + random.below(4 * MS), 20 * MS + random.below(40 * MS));
            let waited = (rtts.0 + rtts.1 + hold).max(pause);
            e.gap(
                i * 90 * MS,
                i * 90 * MS + rtts.1 + hold,
                i * 90 * MS + waited + 20 * US,
            );
        }
        assert!(e.judged().verdict != Verdict::Proven);
        let rulings = e.rulings();
        assert!(rulings.iter().filter_map(confident).all(|c| c < 0.9));
        for (c, ruling) in e.candidates.iter().zip(&rulings) {
            let late = c.freed.time_ns - c.ack.time_ns - rtts.0 > 3 * MS;
            assert!(
                !late || matches!(ruling, Ruling::Pause { .. }),
                "{rtts:?} {ruling:?}"
            );
        }
    }
}

/// The control group: the first exchange, whose ACK is not held, takes what the program takes.
#[test]
fn what_the_program_takes_where_nothing_is_held_is_no_stall() {
    for rtts in VANTAGES {
        for (program, stall) in [(0, true), (20 * MS, true), (39 * MS, false)] {
            let (mut e, mut random) = (Endpoint::new(rtts), Lcg(29));
            e.gap(0, rtts.1 + 20 * US, (rtts.0 + rtts.1 + 20 * US).max(program));
            for i in 1..20 {
                e.nagle(i * 90 * MS, 40 * MS + random.below(4 * MS), 20 * US);
            }
            let rulings = e.rulings();
            let explains = Grounds::probable(Because::ControlExplains, Cause::ServerThink);
            for ruling in rulings.iter().skip(1) {
                let Ruling::Held {
                    grounds,
                    program: most,
                    likely,
                    ..
                } = ruling
                else {
                    // from afar nobody can tell a kernel's release from a write just then
                    assert!(!stall && rtts != VANTAGES[0], "{ruling:?} {program} {rtts:?}");
                    continue;
                };
                if *grounds == explains {
                    assert_eq!((stall, *likely), (false, program), "{rtts:?}");
                    continue;
                }
                assert_eq!(
                    *grounds,
                    Grounds::proven(Because::ControlShorter),
                    "{program} {rtts:?}"
                );
                // a pause that no ACK ended, and the only one, may be half as long again the next time
                let exact = program > rtts.0 + rtts.1 + MS;
                let (seen, known) = if exact {
                    (most * 2 / 3, most * 2 / 3)
                } else {
                    (*most, 0)
                };
                assert!(
                    (0..=MS).contains(&(seen - program.max(rtts.0 + rtts.1))),
                    "{ruling:?}"
                );
                assert_eq!(*likely, known);
            }
        }
    }
}

/// One control more or less than a tenth that is as long as the wait decides between a stall and a doubt.
#[test]
fn a_tenth_of_the_control_group_may_stray() {
    for (strays, sure) in [(1, true), (2, false)] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(31));
        for i in 0..15 {
            let took = if i < strays { 43 * MS } else { 5 * MS };
            e.gap(i * 90 * MS, i * 90 * MS + 4 * MS + 20 * US, i * 90 * MS + took);
        }
        for i in 15..40 {
            e.nagle(i * 90 * MS, 40 * MS + random.below(MS), 20 * US);
        }
        let held: Vec<f64> = e.rulings().iter().filter_map(confident).collect();
        assert!(held.iter().all(|c| (*c >= 0.9) == sure), "{strays} {held:?}");
    }
}

/// Beside its sender a kernel sends at once; a program that waits for the ACK (SIOCOUTQ, TCP_INFO) has to be woken up.
#[test]
fn a_program_that_waits_for_the_ack_is_no_kernel() {
    for (slack, kernel) in [(50 * US, true), (95 * US, true), (130 * US, false)] {
        let mut e = Endpoint::new(VANTAGES[0]);
        e.gap(0, 4 * MS + 20 * US, 4 * MS + 40 * US);
        for i in 1..20 {
            // the clock of one in four is finer: its program polls just then
            let late = if i % 4 == 0 { 40 * US } else { slack };
            e.nagle(i * 90 * MS, 41 * MS, late);
        }
        let sure = e
            .rulings()
            .iter()
            .filter_map(confident)
            .filter(|c| *c >= 0.9)
            .count();
        assert_eq!(sure > 0, kernel, "{slack}");
    }
}

#[test]
fn a_pause_of_43_ms_is_named_a_pause() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(3));
        for i in 0..42 {
            let hold = 40 * MS + random.below(4 * MS);
            e.pause(i * 50 * MS, hold, 43 * MS + random.below(200 * US));
        }
        let judged = e.judged();
        assert!(
            matches!(judged.verdict, Verdict::AppPause | Verdict::Refuted),
            "{judged:?}"
        );
        assert!(e.rulings().iter().all(|r| matches!(r, Ruling::Pause { .. })));
    }
}

/// An option that is switched: what left early at one time left at once, so what waits at another waits for the ACK.
#[test]
fn what_left_early_on_a_connection_is_a_control_of_what_was_held() {
    for (refuted, verdict) in [(0, Verdict::Proven), (3, Verdict::Mixed), (5, Verdict::Mixed)] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[2]), Lcg(5));
        e.stalls(40, &mut random);
        for _ in 0..refuted {
            e.refute(50 * US);
        }
        assert_eq!(e.judged().verdict, verdict, "{refuted}");
        assert!(e.rulings().iter().all(|r| confident(r).is_some_and(|c| c >= 0.9)));
    }
}

/// Small writes that queue up leave one over the other, and only the queue's tail waits for the ACK. At the sender
/// itself that shows: all of the held ones leave within microseconds of their ACK, which no program's pause does.
#[test]
fn instant_releases_at_the_sender_outweigh_refutations_but_prove_nothing() {
    for (slack, verdict) in [(10 * US, Verdict::Open), (90 * US, Verdict::Refuted)] {
        let mut e = Endpoint::new(VANTAGES[0]);
        for i in 0..2 {
            e.nagle(i * 47 * MS, 41 * MS + i * MS, slack);
        }
        for _ in 0..14 {
            e.refute(50 * US);
        }
        assert_eq!(e.judged().verdict, verdict);
        let sure: Vec<f64> = e.rulings().iter().filter_map(confident).collect();
        assert_eq!(sure.len(), if verdict == Verdict::Open { 2 } else { 0 });
        assert!(sure.iter().all(|c| *c < 0.9));
    }
}

#[test]
fn few_candidates_are_at_most_probable() {
    for n in 1..8 {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(7));
        e.stalls(n, &mut random);
        for ruling in e.rulings() {
            assert!(
                confident(&ruling).is_some_and(|c| (0.5..0.9).contains(&c)),
                "{n}: {ruling:?}"
            );
        }
    }
}

#[test]
fn a_path_of_40_ms_is_no_hold() {
    for rtts in [(20 * US, 40 * MS), (40 * MS, 20 * US), (20 * MS, 20 * MS)] {
        let mut e = Endpoint::new(rtts);
        for i in 0..20 {
            e.nagle(i * 90 * MS, 30 * US, 20 * US);
        }
        assert_eq!(e.judged().held, 0);
        for ruling in e.rulings() {
            assert!(
                matches!(
                    ruling,
                    Ruling::Waited {
                        freed: Freed::ByAck,
                        ..
                    }
                ),
                "{ruling:?} {rtts:?}"
            );
        }
    }
}

#[test]
fn a_fin_and_data_release_too_but_are_no_delayed_acks() {
    for (ack_pure, ack_fin, by) in [(true, true, Freed::ByFin), (false, false, Freed::ByData)] {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(11));
        e.stalls(10, &mut random);
        let c = e.nagle(900 * MS, 34 * MS, 10 * US).unwrap();
        let judged = e.judged();
        let ruling = judged.rule(
            Side::Server,
            0,
            &Candidate {
                ack_pure,
                ack_fin,
                ..c
            },
        );
        assert!(
            matches!(ruling, Ruling::Waited { freed, .. } if freed == by),
            "{ruling:?}"
        );
    }
}

#[test]
fn timestamps_overrule_the_round_trips() {
    let (mut e, mut random) = (Endpoint::new(VANTAGES[1]), Lcg(13));
    for i in 0..20 {
        let mut c = e
            .nagle(i * 47 * MS, 40 * MS + random.below(4 * MS), 10 * US)
            .unwrap();
        c.arrived = Some(false);
        let ruling = e.judged().rule(Side::Server, 0, &c);
        assert!(matches!(ruling, Ruling::Pause { .. }), "{ruling:?}");
        c.arrived = Some(true);
        c.freed.time_ns = c.ack.time_ns; // too early for the round trip, yet it echoes the ACK
        assert!(i < 10 || matches!(e.judged().rule(Side::Server, 0, &c), Ruling::Held { .. }));
    }
    let mut e = Endpoint::new(VANTAGES[1]);
    for i in 0..20 {
        let candidate = e.nagle(i * 47 * MS, 41 * MS, 10 * US).unwrap();
        e.add(Candidate {
            arrived: Some(false),
            ..candidate
        });
    }
    assert_eq!(e.judged().verdict, Verdict::Refuted);
}

#[test]
fn jittered_releases_are_proven_by_the_slope() {
    for rtts in [VANTAGES[1], VANTAGES[2]] {
        for seed in 0..20 {
            let (mut e, mut random) = (Endpoint::new(rtts), Lcg(100 + seed));
            for i in 0..42 {
                let burst = if random.below(10) == 0 {
                    random.below(12 * MS)
                } else {
                    0
                };
                let slack = random.below(1200 * US) + burst;
                e.nagle(i * 60 * MS, 40 * MS + random.below(4 * MS), slack);
                // what else comes over that path wavers as much
                let other = random.below(1200 * US) + if i % 10 == 0 { random.below(12 * MS) } else { 0 };
                let pair = e.pairs.id(IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
                e.pairs.add(pair, Side::Server.index(), rtts.0 + other, false);
            }
            let judged = e.judged();
            assert_eq!(judged.verdict, Verdict::Proven, "{rtts:?} {seed}: {judged:?}");
            let sure = e.rulings().iter().filter(|r| confident(r) == Some(0.99)).count();
            assert!(judged.slope.is_some() && sure >= 36, "{sure} of 42"); // beyond what the path does they are not sure
        }
    }
}

#[test]
fn the_tick_shows_in_the_ends_of_the_holds() {
    let ends = |period: i64, seed: u64| {
        let (mut e, mut random) = (Endpoint::new(VANTAGES[0]), Lcg(seed));
        for i in 0..60 {
            let small = i * 50 * MS + random.below(10 * MS);
            let free = small + 40 * MS + random.below(8 * MS);
            let end = if period == 0 {
                free
            } else {
                (free * 3 / period + 1) * period / 3
            };
            e.gap(small, end + random.below(30 * US), end + 50 * US);
        }
        let judged = e.judged();
        (judged.tick_ns, judged.tick_p)
    };
    for seed in 1..20 {
        assert_eq!(ends(0, seed), (None, None), "spread evenly, seed {seed}");
        // thirds of nanoseconds: HZ 100, 250, 300, 1000
        for (period, tick) in [
            (30 * MS, 10 * MS),
            (12 * MS, 4 * MS),
            (10 * MS, 3_333_333),
            (3 * MS, MS),
        ] {
            let (found, p) = ends(period, seed);
            assert_eq!(found, Some(tick), "seed {seed}");
            assert!(p.is_some_and(|p| p < 1e-6), "{p:?}");
        }
    }
}

#[test]
fn answers_that_end_on_a_tick_wait_for_a_held_ack_elsewhere() {
    let waits = |n: i64, took: i64, tick: i64| {
        let mut e = Endpoint::new(VANTAGES[0]);
        for i in 0..n {
            e.pools.answered_late(e.id, took, i * 47 * tick + i % 3 * 50 * US);
        }
        e.judged().waits_elsewhere.is_some()
    };
    assert!(waits(12, 44 * MS, 4 * MS));
    assert!(!waits(7, 44 * MS, 4 * MS)); // too few to show a tick
    assert!(!waits(12, 44 * MS, 4_370 * US)); // on none
    assert!(!waits(12, 36 * MS, 4 * MS)); // shorter than any held ACK
    assert!(!waits(12, 53 * MS, 4 * MS));
}

#[test]
fn judging_early_does_not_change_the_last_word() {
    let (mut early, mut late) = (Endpoint::new(VANTAGES[0]), Endpoint::new(VANTAGES[0]));
    let (mut random, mut same) = (Lcg(23), Lcg(23));
    for _ in 0..30 {
        early.stalls(1, &mut random);
        early.judged.judge(&early.pools, &early.pairs, false);
        late.stalls(1, &mut same);
    }
    assert_eq!(format!("{:?}", early.judged()), format!("{:?}", late.judged()));
}

/// How many stalls of each stream are proven.
fn proven(e: &mut Endpoint) -> [usize; 16] {
    let rulings = e.rulings();
    let mut sure = [0; 16];
    for (stream, ruling) in e.streams.iter().zip(&rulings) {
        sure[*stream as usize] += usize::from(confident(ruling).is_some_and(|c| c >= 0.9));
    }
    sure
}

/// One exchange after the other on each of some streams: `length` is what the program pauses on those with an odd number,
/// which have TCP_NODELAY.
fn mixture(
    e: &mut Endpoint,
    streams: u32,
    exchanges: i64,
    length: impl Fn(&mut Lcg) -> i64,
    random: &mut Lcg,
) {
    for stream in 0..streams {
        e.stream = stream;
        let mut now = random.below(1000 * MS);
        for exchange in 0..=exchanges {
            let first = exchange == 0;
            let hold = timer(now + e.rtts.1 / 2, random);
            let hold = if first { 20 * US } else { hold }; // the first ACK of a connection is quick
            if stream % 2 == 1 {
                let pause = length(random);
                e.pause(now, hold, pause);
            } else {
                e.nagle(now, hold, 3 * US + random.below(40 * US));
            }
            now += 44 * MS + e.rtts.0 + e.rtts.1 + random.below(4 * MS);
        }
    }
}

#[test]
fn where_connections_differ_each_is_judged_by_its_own_evidence() {
    for rtts in VANTAGES {
        for (seed, pause) in [
            (1, 50 * US),
            (2, 43 * MS),
            (3, 44_100 * US),
            (4, 48 * MS + 500 * US),
            (5, 57 * MS),
        ] {
            let (mut e, mut random) = (Endpoint::new(rtts), Lcg(seed));
            let length = |random: &mut Lcg| pause + rtts.0 + random.below(200 * US);
            mixture(&mut e, 8, 14, length, &mut random);
            let judged = e.judged();
            let case = format!("pause {pause} rtts {rtts:?}: {judged:?}");
            // pauses that outlast every hold refute nothing: those connections stay open
            let differ =
                judged.verdict == Verdict::Mixed || pause > 43 * MS && judged.verdict == Verdict::Proven;
            assert!(differ, "{case}");
            assert_eq!((judged.streams, judged.nagle_streams), (8, 4), "{case}");
            let sure = proven(&mut e);
            for (stream, sure) in sure.iter().take(8).enumerate() {
                assert_eq!(
                    *sure,
                    if stream % 2 == 0 { 14 } else { 0 },
                    "stream {stream}, {case}"
                );
            }
        }
    }
}

#[test]
fn pauses_on_some_connections_are_no_stalls_of_theirs() {
    // the others have TCP_NODELAY too, and no pause
    for rtts in VANTAGES {
        for step in 0..=20 {
            for seed in 0..10 {
                let pause = 40 * MS + step * 500 * US;
                let spread = if seed % 2 == 0 { 250 * US } else { 4 * MS };
                let mut random = Lcg(1 + seed * 77 + step as u64);
                let mut e = Endpoint::new(rtts);
                for stream in 0..12 {
                    e.stream = stream;
                    let mut now = random.below(1000 * MS);
                    for _ in 0..14 {
                        let hold = timer(now + rtts.1 / 2, &mut random);
                        let length = if stream % 2 == 1 {
                            pause + random.below(spread)
                        } else {
                            50 * US
                        };
                        e.pause(now, hold, length + rtts.0);
                        now += length + rtts.0 + rtts.1 + random.below(4 * MS);
                    }
                }
                let judged = e.judged();
                assert_eq!(proven(&mut e), [0; 16], "pause {pause} rtts {rtts:?} {judged:?}");
            }
        }
    }
}

#[test]
fn a_few_exchanges_of_a_connection_say_little_and_many_connections_together_enough() {
    for rtts in VANTAGES {
        let (mut e, mut random) = (Endpoint::new(rtts), Lcg(9));
        mixture(&mut e, 16, 4, |_| 50 * US, &mut random);
        let judged = e.judged();
        assert_eq!(
            (judged.verdict, judged.nagle_streams),
            (Verdict::Mixed, 8),
            "{judged:?}"
        );
        assert!(
            proven(&mut e)
                .iter()
                .enumerate()
                .all(|(s, n)| *n == if s % 2 == 0 { 4 } else { 0 })
        );
        // one such connection alone
        let mut e = Endpoint::new(rtts);
        mixture(&mut e, 1, 4, |_| 0, &mut random);
        for stream in 1..16 {
            e.stream = stream;
            (0..6).for_each(|i| {
                e.pause(i * 50 * MS, 41 * MS, 50 * US);
            });
        }
        // beside the sender its releases show a kernel; elsewhere four are luck
        let sure = if rtts.0 < 100 * US { 4 } else { 0 };
        let mut want = [0; 16];
        want[0] = sure;
        assert_eq!(proven(&mut e), want);
    }
}

#[test]
fn what_programs_alone_have_answered_is_no_best_round_trip() {
    for (by_program, grounds) in [
        (false, Grounds::proven(Because::LeftBeforeAck)),
        (true, Grounds::probable(Because::RoundTripByProgram, Cause::Nagle)),
    ] {
        let mut endpoint = Endpoint::new((3 * MS, MS));
        endpoint.pairs = Pairs::default();
        let pair = endpoint.pairs.id(IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
        endpoint.pairs.add(pair, Side::Server.index(), 3 * MS, by_program);
        // sooner behind the ACK than anything came back
        endpoint.gap(0, 170 * MS, 170 * MS + 250 * US);
        assert_eq!(endpoint.rulings(), [Ruling::Pause { grounds }]);
    }
}

/// Holds of a shorter timer, so many of each length, in turns with what the receiver's program answers after `soon`, and with
/// so many samples between the two: the least time that counts as a hold.
fn hold_least(holds: &[(usize, i64)], soon: i64, between: usize, vantage: usize) -> i64 {
    let mut e = Endpoint::new(VANTAGES[vantage]);
    let (client, mut at) = (Side::Client.index(), 0);
    for (count, hold) in holds {
        for _ in 0..*count {
            at += 47 * MS;
            e.nagle(at, *hold, 10 * US);
            e.pairs.add(0, client, e.rtts.1 + hold, false);
            e.pairs.add(0, client, e.rtts.1 + soon, true);
        }
    }
    for _ in 0..between {
        e.pairs.add(0, client, e.rtts.1 + 8 * MS, true);
    }
    e.judged().hold_least
}

#[test]
fn a_receivers_own_timer_says_what_a_hold_is() {
    const USUAL: i64 = 25 * MS;
    for vantage in 0..3 {
        let least = |holds: &[(usize, i64)], soon, between| hold_least(holds, soon, between, vantage);
        assert_eq!(least(&[(20, 16 * MS)], MS, 0), 12 * MS);
        assert_eq!(least(&[(8, 16 * MS)], MS, 0), 12 * MS);
        assert_eq!(least(&[(7, 16 * MS)], MS, 0), USUAL, "too few");
        assert_eq!(least(&[(10, 14 * MS), (10, 19 * MS)], MS, 0), 14 * MS / 4 * 3);
        assert_eq!(
            least(&[(10, 14 * MS), (10, 19 * MS + 1)], MS, 0),
            USUAL,
            "they differ"
        );
        assert_eq!(least(&[(20, 16 * MS)], 8 * MS - 1, 0), 12 * MS);
        assert_eq!(
            least(&[(20, 16 * MS)], 8 * MS, 0),
            USUAL,
            "its program is as late"
        );
        assert_eq!(least(&[(20, 16 * MS)], MS, 2), 12 * MS);
        assert_eq!(
            least(&[(20, 16 * MS)], MS, 3),
            USUAL,
            "times between: a path that wavers"
        );
        assert_eq!(least(&[(20, 16 * MS), (2, 44 * MS)], MS, 0), 12 * MS);
        assert_eq!(
            least(&[(20, 16 * MS), (3, 44 * MS)], MS, 0),
            USUAL,
            "its timer is the usual one"
        );
        assert_eq!(least(&[(20, 40 * MS)], MS, 0), USUAL);
    }
    assert_eq!(hold_least(&[(20, 7 * MS)], MS, 0, 0), 7 * MS / 4 * 3);
    assert_eq!(hold_least(&[(20, 7 * MS - 1)], MS, 0, 0), USUAL);
    // away from the sender a release may be 2 ms late: three times that tells
    assert_eq!(hold_least(&[(20, 7 * MS)], MS, 0, 1), 7 * MS / 4 * 3);
}

#[test]
fn lone_segments_that_are_acknowledged_at_once_are_counted_past_the_quick_acks() {
    let prompt = |streams: &[(i64, i64)], late: i64| {
        let mut e = Endpoint::new(VANTAGES[0]);
        for (stream, (count, took)) in streams.iter().enumerate() {
            e.stream = stream as u32;
            for i in 0..*count {
                e.nagle(i * 47 * MS, *took, 10 * US);
            }
        }
        for i in 0..late {
            e.nagle((100 + i) * 47 * MS, 12 * MS, 10 * US);
        }
        e.judged().prompt
    };
    assert_eq!(prompt(&[(16, 0)], 0), 0);
    assert_eq!(prompt(&[(17, 0)], 0), 1);
    assert_eq!(prompt(&[(17, 0), (20, 0)], 0), 5);
    assert_eq!(prompt(&[(36, 7 * MS - 1)], 0), 20);
    assert_eq!(prompt(&[(36, 7 * MS)], 0), 0, "that was no answer at once");
    assert_eq!(prompt(&[(36, 0)], 2), 20);
    assert_eq!(prompt(&[(36, 0)], 3), 0, "some came late: nobody knows");
    // what is acknowledged together with a full segment says nothing
    let mut e = Endpoint::new(VANTAGES[0]);
    for i in 0..40 {
        let mut alone = Endpoint::new(VANTAGES[0]);
        let mut c = alone.nagle(i * 47 * MS, 0, 10 * US).unwrap();
        c.held_from.time_ns -= 5 * US;
        e.add(c);
    }
    assert_eq!(e.judged().prompt, 0);
}
