//! Connections of one sender that differ: each is judged by its own evidence, as far as that goes.

use latpcap_core::judge::NagleUse;

use crate::common::{Lcg, MS};
use crate::endpoint::{Endpoint, US, VANTAGES, confident, timer};

/// How many stalls of each stream are proven.
fn proven(e: &mut Endpoint) -> [usize; 16] {
    let rulings = e.rulings();
    let mut sure = [0; 16];
    for (candidate, ruling) in e.candidates.iter().zip(&rulings) {
        sure[candidate.stream as usize] += usize::from(confident(ruling).is_some_and(|c| c >= 0.9));
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
                judged.nagle_use == NagleUse::Mixed || pause > 43 * MS && judged.nagle_use == NagleUse::Acts;
            assert!(differ, "{case}");
            assert_eq!((judged.streams.all, judged.streams.nagle), (8, 4), "{case}");
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
            (judged.nagle_use, judged.streams.nagle),
            (NagleUse::Mixed, 8),
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
