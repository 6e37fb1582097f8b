//! How late what an ACK freed may pass, away from its sender: as late as the path is now and then.
//!
//! Rival: a program that wakes up after a time of its own, behind the ACK. What answers take at such a host, a busy one above
//! all, is no shorter than that. But the program's time keeps its length wherever the ACK falls, and the path's does not.

use super::Judged;
use super::spread::deviation;
use crate::evidence::Gap;
use crate::evidence::rtt::{Rtt, now_and_then};
use crate::judge::limits::{
    AT_HOST_NS, CONTROL_STRAYS, ENOUGH, NOISE_NS, PATH_LATE, PROMPT_NS, SOON_NS, STEADIER, TICK_NS,
};

/// Twice as late as now and then, for the ACK and the segment, and no less than a busy host makes it.
pub(super) fn limit(path: Option<&Rtt>, jitter: i64) -> i64 {
    let late = path.map_or(0, Rtt::latest);
    PROMPT_NS
        .get()
        .max(jitter)
        .max((late as f64 * PATH_LATE.get()) as i64)
}

/// The same by the sender's clock, which tells the way to the capture from what the program took before: the way of the ACK
/// wavers as much. No later than its ticks explain where its program's pauses are seen: more was sent later than such a way makes
/// late, and it keeps its length. None where the clock does not tell, beside the sender, and where all that is prompt is sooner.
pub(super) fn by_its_clock(gaps: &[Gap], j: &Judged) -> Option<i64> {
    if j.sender_rtt < AT_HOST_NS.get() || j.tight_limit <= NOISE_NS.get() {
        return None;
    }
    let late = gaps.iter().filter_map(|gap| gap.lateness);
    let late: Vec<i64> = late.map(i64::from).collect();
    if late.len() < ENOUGH.get() {
        return None;
    }
    let held: Vec<&Gap> = gaps
        .iter()
        .filter(|gap| j.is_held(gap) && gap.lateness.is_some())
        .collect();
    let sent_late = held
        .iter()
        .copied()
        .filter(|gap| j.sent_after(gap, NOISE_NS.get()));
    let sent_late: Vec<&Gap> = sent_late.collect();
    let passed_late = late.iter().filter(|late| **late > NOISE_NS.get()).count();
    let by_path = PATH_LATE.get() * (passed_late * held.len()) as f64 / late.len() as f64;
    let pauses =
        sent_late.len() >= ENOUGH.get() && sent_late.len() as f64 > by_path && keep_their_length(&sent_late);
    let wavers = if pauses { 0 } else { now_and_then(late) };
    Some(NOISE_NS.get() + (wavers as f64 * PATH_LATE.get()) as i64)
}

/// The same where a program's pauses are seen among what the path would explain: no later than on any path. What follows
/// at once does not keep its length there; it does where a line hands over its frames together, whatever sent them.
pub(super) fn beside_pauses(gaps: &[Gap], j: &Judged) -> i64 {
    if let Some(batches) = j.batches {
        return batches.limit(j.tight_limit);
    }
    // what came this way was later now and then, and a quarter of all was later than it wavers
    let now_and_then = (j.tight_limit as f64 / PATH_LATE.get()) as i64;
    let usual = PROMPT_NS.get().max(j.sender_jitter).max(now_and_then);
    if j.sender_rtt < AT_HOST_NS.get() || j.tight_limit <= usual {
        return j.tight_limit;
    }
    let late = |gap: &Gap| gap.release - j.sender_rtt;
    let held = gaps
        .iter()
        .filter(|gap| j.is_held(gap) && late(gap) <= j.tight_limit);
    let (late, prompt): (Vec<&Gap>, Vec<&Gap>) = held.partition(|gap| late(gap) > usual);
    let enough = late.len().min(prompt.len()) >= ENOUGH.get();
    if enough && keep_their_length(&late) && !keep_their_length(&prompt) {
        usual
    } else {
        j.tight_limit
    }
}

/// Whether the sender's clock tells what the path took: it counts every millisecond, and the path took no more than all by which
/// the segments passed late, but for a tick.
pub(super) fn clock_tells(gaps: &[Gap], j: &Judged) -> bool {
    let told = gaps.iter().filter(|gap| j.is_held(gap));
    let told = told.filter_map(|gap| {
        gap.lateness
            .map(|way| (gap.release - j.sender_rtt, i64::from(way)))
    });
    let (mut all, mut beyond) = (0, 0);
    for (late, way) in told {
        all += 1;
        beyond += usize::from(way > late.max(0) + 2 * TICK_NS);
    }
    gaps.iter().any(|gap| gap.fine) && all >= ENOUGH.get() && CONTROL_STRAYS.get() * beyond <= all
}

impl Judged {
    /// What the path took of a release beyond its best, for sure: its sender's clock tells that to a tick.
    pub(super) fn took(&self, gap: &Gap) -> i64 {
        let way = gap.lateness.filter(|_| self.clock_tells);
        way.map_or(0, |way| (i64::from(way) - TICK_NS).max(0))
    }

    /// How late its sender sent this: by its clock, to half a tick on average, where that tells what the path took.
    pub(super) fn sent(&self, gap: &Gap) -> i64 {
        let tick = if self.took(gap) > 0 { TICK_NS } else { 0 };
        self.late(gap) - tick
    }

    /// Whether this left as what a kernel sends: no later than the path may have made it.
    pub(in crate::judge) fn is_prompt(&self, gap: &Gap) -> bool {
        self.late(gap) <= self.tight_limit && !self.paused(gap) || self.is_together(gap)
    }

    /// Whether this left as promptly as its sender's kernel sends, and as a slow one.
    pub(super) fn is_by_kernel(&self, gap: &Gap) -> [bool; 2] {
        let late = self.late(gap);
        self.kernel_limits
            .map(|limit| late <= limit.min(self.tight_limit) || self.is_together(gap))
    }

    fn is_together(&self, gap: &Gap) -> bool {
        self.together.binary_search(&gap.frame).is_ok()
    }

    /// Whether its program wrote this later than the path may have made it, by its own clock.
    fn paused(&self, gap: &Gap) -> bool {
        self.pause_limit.is_some_and(|limit| self.sent_after(gap, limit))
    }

    /// Whether its sender's clock says that this was sent by so much later than its ACK let it.
    fn sent_after(&self, gap: &Gap, limit: i64) -> bool {
        let late = gap.release - self.sender_rtt;
        gap.lateness.is_some_and(|way| late - i64::from(way) > limit)
    }

    /// Whether this came later than a kernel sends, after as long as its program's pauses take beyond held ACKs.
    pub(in crate::judge) fn may_be_pause(&self, gap: &Gap) -> bool {
        self.sender_rtt >= AT_HOST_NS.get()
            && self.late(gap) > SOON_NS.get() + self.sender_wavering
            && self.controls.pauses_for(gap.wait + gap.release)
    }
}

/// Whether segments left after one time, wherever the ACKs before them fell.
fn keep_their_length(gaps: &[&Gap]) -> bool {
    let spread = |of: fn(&Gap) -> i64| deviation(gaps.iter().map(|gap| of(gap)).collect());
    STEADIER.get() * spread(|gap| gap.wait + gap.release) <= spread(|gap| gap.wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sender::batches::Batches;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    fn judged() -> Judged {
        Judged {
            sender_rtt: 2 * MS,
            hold_least: 25 * MS,
            tight_limit: 20 * MS,
            ..Judged::default()
        }
    }

    /// So many ACKs that come after 40 to 44 ms, and what follows each takes so long from the small segment on.
    fn gaps(count: i64, total: impl Fn(i64, i64) -> i64) -> Vec<Gap> {
        let gap = |n: i64| {
            let wait = 40 * MS + n * 7 % 5 * MS;
            Gap {
                wait,
                release: total(n, wait) - wait,
                covered: wait,
                timer: true,
                ..Gap::default()
            }
        };
        (0..count).map(gap).collect()
    }

    /// The limit where so many take so long, and so many others so long.
    fn limit_of(count: i64, total: impl Fn(i64, i64) -> i64, others: (i64, fn(i64) -> i64)) -> i64 {
        let others = gaps(others.0, |_, wait| others.1(wait));
        beside_pauses(&[gaps(count, total), others].concat(), &judged())
    }

    #[test]
    fn what_keeps_its_length_wherever_the_ack_falls_is_not_the_paths() {
        let at_once: (i64, fn(i64) -> i64) = (8, |wait| wait + 2 * MS + 100 * US);
        let limit = |count, total: &dyn Fn(i64, i64) -> i64| limit_of(count, total, at_once);
        assert_eq!(limit(8, &|_, _| 60 * MS), 10 * MS);
        assert_eq!(limit(7, &|_, _| 60 * MS), 20 * MS, "ENOUGH");
        assert_eq!(limit(20, &|_, wait| wait + 8 * MS), 20 * MS, "it follows");
        assert_eq!(
            limit(20, &|n, wait| wait + 5 * MS + n * 3 % 11 * MS),
            20 * MS,
            "the path"
        );
        // a host that is busy now and then is later
        assert_eq!(
            limit(20, &|n, _| if n % 3 == 0 { 61 * MS } else { 60 * MS }),
            10 * MS
        );
        // ACKs stray by 1 ms, so what keeps its length strays by half of that
        let strays = |by: i64| limit(20, &|n, _| 60 * MS + (n % 3 - 1) * by);
        assert_eq!(
            (strays(500 * US), strays(501 * US)),
            (10 * MS, 20 * MS),
            "STEADIER"
        );
    }

    #[test]
    fn where_batches_are_known_lengths_tell_nothing() {
        let among = [
            gaps(8, |_, _| 60 * MS),
            gaps(8, |_, wait| wait + 2 * MS + 100 * US),
        ]
        .concat();
        let mut j = judged();
        assert_eq!(beside_pauses(&among, &j), 10 * MS);
        j.batches = Some(Batches::every(6 * MS));
        assert_eq!(beside_pauses(&among, &j), 14 * MS);
    }

    #[test]
    fn a_senders_clock_tells_how_the_path_wavers() {
        // so many came with the best, and so many 4 ms later
        let limit_of = |sender_rtt, tight_limit, soon: usize, late: usize| {
            let gap = |ns| Gap {
                lateness: ns,
                ..Gap::default()
            };
            let mut seen = vec![gap(Some(0)); soon];
            seen.extend(vec![gap(Some(4_000_000)); late]);
            seen.push(gap(None));
            by_its_clock(
                &seen,
                &Judged {
                    sender_rtt,
                    tight_limit,
                    ..judged()
                },
            )
        };
        let limit = |sender_rtt, soon, late| limit_of(sender_rtt, 20 * MS, soon, late);
        assert_eq!((limit(MS, 8, 0), limit(MS, 7, 0)), (Some(3 * MS), None), "ENOUGH");
        assert_eq!(limit(MS, 20, 1), Some(3 * MS), "LATE_PERCENT");
        assert_eq!(limit(MS, 19, 1), Some(11 * MS), "PATH_LATE, NOISE_NS");
        let near = AT_HOST_NS.get();
        assert_eq!((limit(near, 8, 0), limit(near - 1, 8, 0)), (Some(3 * MS), None));
        // what leaves within 3 ms no clock tells from the path
        let tight = |ns| limit_of(MS, ns, 8, 0);
        assert_eq!(
            (tight(3 * MS + 1), tight(3 * MS)),
            (Some(3 * MS), None),
            "NOISE_NS"
        );
    }

    /// So many that are sent long after their ACKs, so many that pass so late, and others at once.
    fn paused_beside(
        paused: i64,
        total: &dyn Fn(i64, i64) -> i64,
        passed: i64,
        passed_late: u32,
    ) -> Vec<Gap> {
        let passes = |gaps: Vec<Gap>, late| {
            gaps.into_iter().map(move |gap| Gap {
                lateness: Some(late),
                ..gap
            })
        };
        let sent_late = passes(gaps(paused, total), 0);
        let late = passes(
            gaps(passed, |_, wait| wait + 2 * MS + i64::from(passed_late)),
            passed_late,
        );
        let others = passes(gaps(20, |_, wait| wait + 2 * MS), 0);
        sent_late.chain(late).chain(others).collect()
    }

    #[test]
    fn no_path_makes_pauses_that_keep_their_length_late() {
        let limit = |paused, total: &dyn Fn(i64, i64) -> i64, passed| {
            by_its_clock(&paused_beside(paused, total, passed, 4_000_000), &judged())
        };
        let pause = |_, _| 60 * MS;
        assert_eq!(limit(8, &pause, 3), Some(3 * MS), "NOISE_NS");
        assert_eq!(
            limit(8, &pause, 4),
            Some(11 * MS),
            "PATH_LATE: as many would be late"
        );
        assert_eq!(limit(7, &pause, 3), Some(11 * MS), "ENOUGH");
        assert_eq!(
            limit(8, &|_, wait| wait + 15 * MS, 3),
            Some(11 * MS),
            "they follow"
        );
        // 3 ms later than the ACK lets them is not late, nor by 3 ms on the way
        let sent = |late: i64| limit(8, &|n, _| 49 * MS + late + n % 2, 3);
        assert_eq!((sent(2), sent(0)), (Some(3 * MS), Some(11 * MS)));
        let passed = |late| by_its_clock(&paused_beside(8, &pause, 4, late), &judged());
        assert_eq!(
            (passed(3_000_000), passed(3_000_001)),
            (Some(3 * MS), Some(9 * MS + 2))
        );
    }

    #[test]
    fn only_held_acks_and_told_ways_are_compared() {
        let limit = |other: Gap| {
            let mut seen = paused_beside(8, &|_, _| 60 * MS, 3, 4_000_000);
            seen.extend(vec![other; 40]);
            by_its_clock(&seen, &judged())
        };
        let follows = gaps(1, |_, wait| wait + 2 * MS);
        assert_eq!(limit(follows[0]), Some(3 * MS), "no clock tells");
        // the three are fewer of all, and no more late than now and then
        let unheld = Gap {
            timer: false,
            lateness: Some(0),
            ..follows[0]
        };
        assert_eq!(limit(unheld), Some(3 * MS));
    }

    #[test]
    fn what_a_quarter_of_all_takes_is_the_paths() {
        let jitter = |sender_jitter| {
            let mut j = judged();
            j.sender_jitter = sender_jitter;
            let late = gaps(8, |_, _| 60 * MS);
            let at_once = gaps(8, |_, wait| wait + 10 * MS);
            beside_pauses(&[late, at_once].concat(), &j)
        };
        // the eight pass 14 to 18 ms behind the round trip
        assert_eq!((jitter(13 * MS), jitter(14 * MS)), (13 * MS, 20 * MS));
    }

    #[test]
    fn a_line_that_hands_over_frames_together_keeps_all_lengths() {
        // frames come every 6 ms: what an ACK frees is at hand up to so much later, and then all of it
        let both = |others| limit_of(20, |_, _| 60 * MS, others);
        assert_eq!(both((40, |_| 50 * MS)), 20 * MS);
        assert_eq!(both((8, |wait| wait + 3 * MS)), 10 * MS);
        assert_eq!(both((7, |wait| wait + 3 * MS)), 20 * MS, "ENOUGH");
    }

    /// Held ACKs behind which segments passed so late, and by their sender's clock the path took so much of that.
    fn clocked(each: &[(usize, i64, u32)], fine: bool) -> Vec<Gap> {
        let gap = |late: i64, way| Gap {
            wait: 40 * MS,
            release: 2 * MS + late,
            covered: 40 * MS,
            timer: true,
            lateness: Some(way),
            fine,
            ..Gap::default()
        };
        let each = each
            .iter()
            .map(|(count, late, way)| vec![gap(*late, *way); *count]);
        each.collect::<Vec<_>>().concat()
    }

    #[test]
    fn a_clock_tells_what_the_path_took_where_that_was_possible() {
        let tells = |each: &[(usize, i64, u32)]| clock_tells(&clocked(each, true), &judged());
        assert!(
            tells(&[(8, 9 * MS, 9_000_000)]) && !tells(&[(7, 9 * MS, 9_000_000)]),
            "ENOUGH"
        );
        assert!(
            tells(&[(8, 9 * MS, 11_000_000)]) && !tells(&[(8, 9 * MS, 11_000_001)]),
            "two ticks"
        );
        assert!(tells(&[(8, -MS, 2_000_000)]) && !tells(&[(8, -MS, 2_000_001)]));
        // one in ten may be a stray
        let strays = |right| tells(&[(1, 0, 9_000_000), (right, 9 * MS, 9_000_000)]);
        assert!(strays(9) && !strays(8), "CONTROL_STRAYS");
        assert!(
            !clock_tells(&clocked(&[(20, 9 * MS, 9_000_000)], false), &judged()),
            "a coarse clock"
        );
        let mut one_fine = clocked(&[(20, 9 * MS, 9_000_000)], false);
        one_fine.extend(clocked(&[(1, 9 * MS, 9_000_000)], true));
        assert!(clock_tells(&one_fine, &judged()), "of another connection");
        let untold: Vec<Gap> = one_fine
            .iter()
            .map(|gap| Gap {
                lateness: None,
                ..*gap
            })
            .collect();
        assert!(!clock_tells(&untold, &judged()));
        let unheld: Vec<Gap> = one_fine.iter().map(|gap| Gap { timer: false, ..*gap }).collect();
        assert!(!clock_tells(&unheld, &judged()));
    }

    #[test]
    fn what_the_path_took_was_not_late() {
        let late = |late, way, clock_tells| {
            let gaps = clocked(&[(1, late, way)], true);
            Judged {
                clock_tells,
                ..judged()
            }
            .late(&gaps[0])
        };
        assert_eq!(late(9 * MS, 6_000_000, true), 4 * MS, "but for a tick");
        assert_eq!(late(9 * MS, 6_000_000, false), 9 * MS);
        assert_eq!(late(9 * MS, 900_000, true), 9 * MS);
        assert_eq!(late(9 * MS, 11_000_000, true), 0);
        assert_eq!(late(-MS, 11_000_000, true), -MS, "sooner than the best");
        let gaps = clocked(&[(1, 9 * MS, 6_000_000)], true);
        let batches = Some(Batches::every(6 * MS));
        let mut j = Judged {
            clock_tells: true,
            batches,
            ..judged()
        };
        assert_eq!(j.late(&gaps[0]), 4 * MS);
        j.clock_tells = false;
        assert_eq!(j.late(&gaps[0]), 9 * MS);
    }

    #[test]
    fn a_clock_that_tells_of_the_path_tells_when_a_segment_was_sent() {
        let sent = |late, way, clock_tells| {
            let gaps = clocked(&[(1, late, way)], true);
            let judged = Judged {
                clock_tells,
                ..judged()
            };
            (judged.late(&gaps[0]), judged.sent(&gaps[0]))
        };
        assert_eq!(
            sent(7 * MS, 6_000_000, true),
            (2 * MS, MS),
            "half a tick, on average"
        );
        assert_eq!(
            sent(7 * MS, 1_000_000, true),
            (7 * MS, 7 * MS),
            "a tick tells nothing"
        );
        assert_eq!(sent(7 * MS, 6_000_000, false), (7 * MS, 7 * MS));
    }

    #[test]
    fn what_its_program_wrote_later_is_not_prompt() {
        let prompt = |pause_limit, together: Vec<u64>| {
            let gaps = clocked(&[(1, 9 * MS, 2_000_000)], true);
            Judged {
                pause_limit,
                together,
                ..judged()
            }
            .is_prompt(&gaps[0])
        };
        assert!(prompt(None, vec![]) && prompt(Some(7 * MS), vec![]));
        assert!(
            !prompt(Some(7 * MS - 1), vec![]) && prompt(Some(0), vec![0]),
            "it left with others"
        );
    }
}
