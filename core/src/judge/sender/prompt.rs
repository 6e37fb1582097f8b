//! How late what an ACK freed may pass, away from its sender: as late as the path is now and then.
//!
//! Rival: a program that wakes up after a time of its own, behind the ACK. What answers take at such a host, a busy one above
//! all, is no shorter than that. But the program's time keeps its length wherever the ACK falls, and the path's does not.

use super::Judged;
use super::spread::deviation;
use crate::evidence::Gap;
use crate::evidence::rtt::{Rtt, now_and_then};
use crate::judge::limits::{AT_HOST_NS, ENOUGH, NOISE_NS, PATH_LATE, PROMPT_NS, STEADIER};

/// Twice as late as now and then, for the ACK and the segment, and no less than a busy host makes it.
pub(super) fn limit(path: Option<&Rtt>, jitter: i64) -> i64 {
    let late = path.map_or(0, Rtt::latest);
    PROMPT_NS
        .get()
        .max(jitter)
        .max((late as f64 * PATH_LATE.get()) as i64)
}

/// The same by the sender's clock, which tells the way to the capture from what the program took before: the way of the ACK
/// wavers as much. None where the clock does not tell, beside the sender, and where all that is prompt is sooner.
pub(super) fn by_its_clock(gaps: &[Gap], j: &Judged) -> Option<i64> {
    if j.sender_rtt < AT_HOST_NS.get() || j.tight_limit <= NOISE_NS.get() {
        return None;
    }
    let late = gaps.iter().filter_map(|gap| gap.lateness);
    let late: Vec<i64> = late.map(i64::from).collect();
    let limit = |late| NOISE_NS.get() + (now_and_then(late) as f64 * PATH_LATE.get()) as i64;
    (late.len() >= ENOUGH.get()).then(|| limit(late))
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

impl Judged {
    /// Whether its program wrote later than the path may have made it, by its own clock: what passed late by that did not.
    pub(super) fn paused(&self, gap: &Gap) -> bool {
        let late = gap.release - self.sender_rtt;
        let before = |limit| gap.lateness.is_some_and(|way| late - i64::from(way) > limit);
        self.pause_limit.is_some_and(before)
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
}
