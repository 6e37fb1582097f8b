//! An option that was set on the way: a deploy, a reload, a log-in that ends.
//!
//! Claims: from a frame on, a sender's small segments wait for ACKs, or do so no more.
//! Predicts: what waited for a held ACK lies on one side of that frame, what left over unacknowledged small ones on the other.
//! Rivals: sockets that differ (`Mixed`), options that are toggled: both take turns all the time.

use super::limits::{ENOUGH, STRAY_PART};
use super::sender::{Judged, Verdict};
use crate::evidence::Pool;

/// From which frame on, whether Nagle's algorithm acts from there, and how many segments showed what before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub frame: u64,
    pub nagle: bool,
    pub before: u64,
    pub after: u64,
    /// None showed the opposite on either side.
    pub clean: bool,
}

/// The change of a sender, where there is just one.
pub(super) fn of(pool: &Pool, judged: &Judged) -> Option<Change> {
    let waits = matches!(judged.verdict, Verdict::Proven | Verdict::Mixed);
    if !waits || judged.refuted < ENOUGH.get() as u64 {
        return None; // the usual case; and pauses that drift past the ACKs change nothing
    }
    let mut shown: Vec<(i64, u64, bool)> = Vec::new();
    for (_, early) in &pool.early {
        shown.push((early.at, early.frame, false));
    }
    for gap in pool.gaps.iter().filter(|gap| !gap.unseen) {
        let early = judged.before_ack(gap.release, gap.arrived);
        let prompt = gap.release - judged.sender_rtt <= judged.tight_limit;
        if early || judged.is_held(gap) && prompt {
            shown.push((gap.acked_at + gap.release, gap.frame, !early));
        }
    }
    shown.sort_unstable();
    split(&shown)
}

/// The place that leaves the fewest of either kind on the wrong side, of (time, frame, Nagle acted) in order.
fn split(shown: &[(i64, u64, bool)]) -> Option<Change> {
    let count = |part: &[(i64, u64, bool)], kind: bool| part.iter().filter(|one| one.2 == kind).count();
    let (mut nagle, mut best) = (0, (usize::MAX, 0, false));
    let waited = count(shown, true);
    for (at, one) in shown.iter().enumerate() {
        // strays where it acts from here on, and where it does no more
        for (strays, acts) in [
            (nagle + (shown.len() - at) - (waited - nagle), true),
            ((at - nagle) + (waited - nagle), false),
        ] {
            if strays < best.0 && one.2 == acts {
                best = (strays, at, acts);
            }
        }
        nagle += usize::from(one.2);
    }
    let (strays, at, acts) = best;
    let (before, after) = shown.split_at_checked(at)?;
    let (was, is) = (count(before, !acts), count(after, acts));
    let few = |part: &[(i64, u64, bool)], right: usize| STRAY_PART.get() * (part.len() - right) <= part.len();
    let sure = was >= ENOUGH.get() && is >= ENOUGH.get() && few(before, was) && few(after, is);
    Some(Change {
        frame: after.first()?.1,
        nagle: acts,
        before: was as u64,
        after: is as u64,
        clean: strays == 0,
    })
    .filter(|_| sure)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many that waited (`true`) or did not, in order.
    fn found(runs: &[(usize, bool)]) -> Option<(u64, bool, bool)> {
        let kinds = runs.iter().flat_map(|(count, kind)| vec![*kind; *count]);
        let shown: Vec<_> = kinds
            .enumerate()
            .map(|(n, kind)| (n as i64, n as u64, kind))
            .collect();
        split(&shown).map(|change| (change.frame, change.nagle, change.clean))
    }

    #[test]
    fn one_change_has_eight_on_either_side() {
        assert_eq!(found(&[(8, true), (8, false)]), Some((8, false, true)));
        assert_eq!(found(&[(8, false), (8, true)]), Some((8, true, true)));
        assert_eq!(found(&[(7, true), (8, false)]), None);
        assert_eq!(found(&[(8, true), (7, false)]), None);
    }

    #[test]
    fn one_in_ten_may_stray() {
        let strays = |n| found(&[(20, true), (n, false), (7, true), (30, false)]);
        assert_eq!(strays(2), Some((29, false, false)));
        assert_eq!(strays(3), Some((30, false, false)));
        assert_eq!(strays(4), None);
    }

    #[test]
    fn the_change_is_where_the_fewest_stray_and_the_first_of_such_places() {
        assert_eq!(
            found(&[(8, true), (1, false), (1, true), (8, false)]),
            Some((8, false, false))
        );
        let strays_before = [(10, false), (1, true), (10, false), (20, true)];
        assert_eq!(found(&strays_before), Some((21, true, false)));
        let strays_after = [(20, true), (20, false), (1, true), (9, false)];
        assert_eq!(found(&strays_after), Some((20, false, false)));
    }

    #[test]
    fn sockets_that_differ_and_options_that_are_toggled_change_nothing() {
        let turns: Vec<_> = (0..40).map(|n| (1, n % 2 == 0)).collect();
        assert_eq!(found(&turns), None);
        assert_eq!(found(&[(20, true), (20, false), (20, true)]), None);
        assert_eq!(found(&[(40, true)]), None);
        assert_eq!(found(&[]), None);
    }
}
