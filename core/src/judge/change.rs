//! A change of TCP_NODELAY during the capture: a deploy, a reload, the end of a log-in.
//!
//! Claims: from a frame on, a sender's small segments wait for ACKs, or no longer do.
//! Predicts: segments that waited for held ACKs lie on one side of that frame, segments sent over unacknowledged small
//! ones on the other; connections that last beyond it change there.
//! Rivals: an option that is toggled all the time, and sockets that differ (`Mixed`), each of which stays as it began.

use ahash::AHashMap;

use super::sender::{NagleUse, SenderMeasures};
use crate::evidence::SenderEvidence;
use crate::limits::{MIN_SAMPLES, OUTLIER_ONE_IN};

/// A change of the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// First frame after the change.
    pub frame: u64,
    /// Nagle's algorithm acts after the change.
    pub nagle: bool,
    /// Number of segments that agree, before and after the change.
    pub before: u64,
    pub after: u64,
    /// No segment disagrees.
    pub clean: bool,
}

/// A segment that waited for its ACK (`nagle`), or did not; ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    time_ns: i64,
    frame: u64,
    nagle: bool,
    stream: u32,
}

/// Returns the change of a sender if there is exactly one.
pub(super) fn find(
    evidence: &SenderEvidence,
    measures: &SenderMeasures,
    nagle_use: NagleUse,
) -> Option<Change> {
    let waits_for_acks = matches!(nagle_use, NagleUse::Acts | NagleUse::Mixed);
    if !waits_for_acks || measures.refuted < MIN_SAMPLES.get() as u64 {
        return None; // the usual case; pauses that drift past the ACKs look like changes otherwise
    }
    let mut shown: Vec<Shown> = Vec::new();
    for (stream, early) in &evidence.early {
        shown.push(Shown {
            time_ns: early.time_ns,
            frame: early.frame,
            nagle: false,
            stream: *stream,
        });
    }
    let candidates = evidence.candidates.iter();
    for candidate in candidates.filter(|candidate| !candidate.is_ack_unseen) {
        let is_early = measures.path.left_before_ack(candidate);
        let is_prompt = measures.path.late_ns(candidate) <= measures.path.prompt_limit_ns;
        if is_early || measures.path.is_held(candidate) && is_prompt {
            shown.push(Shown {
                time_ns: candidate.freed.time_ns,
                frame: candidate.freed.frame,
                nagle: !is_early,
                stream: candidate.stream,
            });
        }
    }
    shown.sort_unstable();
    split(&shown)
}

/// Returns the split that leaves the fewest segments on the wrong side, if those are outliers.
fn split(shown: &[Shown]) -> Option<Change> {
    let count =
        |segments: &[Shown], nagle: bool| segments.iter().filter(|segment| segment.nagle == nagle).count();
    let (mut nagle, mut best) = (0, (usize::MAX, 0, false));
    let waited = count(shown, true);
    for (index, segment) in shown.iter().enumerate() {
        // segments on the wrong side if the algorithm acts from here on, and if it acts until here
        for (strays, acts) in [
            (nagle + (shown.len() - index) - (waited - nagle), true),
            ((index - nagle) + (waited - nagle), false),
        ] {
            if strays < best.0 && segment.nagle == acts {
                best = (strays, index, acts);
            }
        }
        nagle += usize::from(segment.nagle);
    }
    let (strays, index, acts) = best;
    let (before, after) = shown.split_at_checked(index)?;
    let (agree_before, agree_after) = (count(before, !acts), count(after, acts));
    let has_few_strays =
        |segments: &[Shown], right: usize| OUTLIER_ONE_IN.get() * (segments.len() - right) <= segments.len();
    let is_clear = agree_before >= MIN_SAMPLES.get()
        && agree_after >= MIN_SAMPLES.get()
        && has_few_strays(before, agree_before)
        && has_few_strays(after, agree_after);
    if !is_clear || !most_changed(before, after) {
        return None;
    }
    Some(Change {
        frame: after.first()?.frame,
        nagle: acts,
        before: agree_before as u64,
        after: agree_after as u64,
        clean: strays == 0,
    })
}

/// Whether nearly all connections that were seen on both sides changed there.
fn most_changed(before: &[Shown], after: &[Shown]) -> bool {
    let balances = |segments: &[Shown]| {
        let mut streams: AHashMap<u32, i64> = AHashMap::new();
        for segment in segments {
            *streams.entry(segment.stream).or_default() += if segment.nagle { 1 } else { -1 };
        }
        streams
    };
    let (balances_before, balances_after) = (balances(before), balances(after));
    let signs_on_both = balances_before
        .iter()
        .filter_map(|(stream, balance)| Some([balance.signum(), balances_after.get(stream)?.signum()]));
    let (mut count, mut stayed) = (0, 0);
    for [sign_before, sign_after] in signs_on_both {
        count += 1;
        stayed += usize::from(sign_before == sign_after);
    }
    OUTLIER_ONE_IN.get() * stayed <= count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The change in runs of segments of one connection: the length of each, and whether they waited.
    fn change_in(runs: &[(usize, bool)]) -> Option<(u64, bool, bool)> {
        let runs: Vec<_> = runs.iter().map(|(count, kind)| (*count, *kind, 0)).collect();
        change_on(&runs)
    }

    /// The change as these connections show it.
    fn change_on(runs: &[(usize, bool, u32)]) -> Option<(u64, bool, bool)> {
        let segments = runs
            .iter()
            .flat_map(|(count, nagle, stream)| vec![(*nagle, *stream); *count]);
        let shown: Vec<_> = (0..)
            .zip(segments)
            .map(|(n, (nagle, stream))| Shown {
                time_ns: n,
                frame: n as u64,
                nagle,
                stream,
            })
            .collect();
        split(&shown).map(|change| (change.frame, change.nagle, change.clean))
    }

    #[test]
    fn one_change_has_eight_on_either_side() {
        assert_eq!(change_in(&[(8, true), (8, false)]), Some((8, false, true)));
        assert_eq!(change_in(&[(8, false), (8, true)]), Some((8, true, true)));
        assert_eq!(change_in(&[(7, true), (8, false)]), None);
        assert_eq!(change_in(&[(8, true), (7, false)]), None);
    }

    #[test]
    fn one_in_ten_may_stray() {
        let strays = |n| change_in(&[(20, true), (n, false), (7, true), (30, false)]);
        assert_eq!(strays(2), Some((29, false, false)));
        assert_eq!(strays(3), Some((30, false, false)));
        assert_eq!(strays(4), None);
    }

    #[test]
    fn the_change_is_where_the_fewest_stray_and_the_first_of_such_places() {
        assert_eq!(
            change_in(&[(8, true), (1, false), (1, true), (8, false)]),
            Some((8, false, false))
        );
        let strays_before = [(10, false), (1, true), (10, false), (20, true)];
        assert_eq!(change_in(&strays_before), Some((21, true, false)));
        let strays_after = [(20, true), (20, false), (1, true), (9, false)];
        assert_eq!(change_in(&strays_after), Some((20, false, false)));
    }

    #[test]
    fn a_connection_that_goes_on_as_it_began_shows_no_change() {
        // all that is new is another connection's
        assert_eq!(change_on(&[(8, false, 0), (8, true, 1)]), Some((8, true, true)));
        // one without Nagle's algorithm ends, and the one with it goes on
        assert_eq!(change_on(&[(2, true, 1), (40, false, 0), (20, true, 1)]), None);
        assert_eq!(
            change_on(&[(2, true, 0), (40, false, 0), (20, true, 0)]),
            Some((42, true, false))
        );
        // one in ten of those that were seen on both sides
        let is_change = |changed: u32| {
            let before = (1..=changed).map(|stream| (4, false, stream));
            let after = (1..=changed).map(|stream| (4, true, stream));
            let stayed = [(1, true, 0)];
            let runs: Vec<_> = stayed
                .into_iter()
                .chain(before)
                .chain(after)
                .chain(stayed)
                .collect();
            change_on(&runs).is_some()
        };
        assert!(is_change(9) && !is_change(8));
    }

    #[test]
    fn sockets_that_differ_and_options_that_are_toggled_change_nothing() {
        let turns: Vec<_> = (0..40).map(|n| (1, n % 2 == 0)).collect();
        assert_eq!(change_in(&turns), None);
        assert_eq!(change_in(&[(20, true), (20, false), (20, true)]), None);
        assert_eq!(change_in(&[(40, true)]), None);
        assert_eq!(change_in(&[]), None);
    }
}
