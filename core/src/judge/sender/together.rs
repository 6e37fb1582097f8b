//! Batches of segments that one tick freed. Where timers of many connections end on one tick, the receiver's kernel
//! sends the held ACKs in a burst. The sender's kernel then sends the freed segments in a burst, later than it would
//! send one.
//!
//! Predicts: the segments leave in the order of their ACKs, and as closely after each other as those.
//! Rivals: a program that writes on many connections when it wakes up. Each write takes longer than an ACK, and its
//! order is another: timers of one tick end in reverse order (the kernel's timer lists grow at their heads).

use super::SenderPath;
use super::spread::{at_share, sorted};
use crate::limits::{AT_HOST_NS, CLEAR_RATIO, MIN_SAMPLES, SOON_NS};
use crate::observe::Candidate;

/// Returns the frames that were freed in batches, rising; none away from the sender.
pub(super) fn freed_in_batches(candidates: &[Candidate], path: &SenderPath) -> Vec<u64> {
    if path.sender_rtt_ns >= AT_HOST_NS.get() {
        return Vec::new();
    }
    let held = candidates
        .iter()
        .filter(|candidate| path.is_held(candidate) && candidate.release_ns() >= 0);
    let mut held: Vec<&Candidate> = held.collect();
    held.sort_unstable_by_key(|candidate| candidate.ack.time_ns);
    let mut frames: Vec<u64> = held
        .chunk_by(|wait, next| next.ack.time_ns - wait.ack.time_ns <= AT_HOST_NS.get())
        .filter(|batch| is_batch(batch))
        .flatten()
        .map(|candidate| candidate.freed.frame)
        .collect();
    frames.sort_unstable();
    frames
}

/// Whether these waits, in the order of their ACKs, were freed in that order, soon, and most as closely after each
/// other.
fn is_batch(batch: &[&Candidate]) -> bool {
    let steps = || batch.iter().zip(batch.iter().skip(1));
    let in_order = steps()
        .all(|(wait, next)| wait.freed.time_ns < next.freed.time_ns && wait.freed.frame < next.freed.frame);
    let are_soon = batch
        .iter()
        .all(|candidate| candidate.release_ns() <= SOON_NS.get());
    let between_acks = middle(steps().map(|(wait, next)| next.ack.time_ns - wait.ack.time_ns));
    // the receiver may acknowledge each segment before the next one passes: two frames
    let frames = |wait: &Candidate, next: &Candidate| {
        next.freed.frame.saturating_sub(wait.freed.frame).clamp(1, 2) as i64
    };
    let per_frame =
        middle(steps().map(|(wait, next)| (next.freed.time_ns - wait.freed.time_ns) / frames(wait, next)));
    batch.len() >= MIN_SAMPLES.get() && in_order && are_soon && per_frame <= CLEAR_RATIO.get() * between_acks
}

fn middle(values: impl Iterator<Item = i64>) -> i64 {
    at_share(&sorted(values), 0.5).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::At;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    /// `count` held ACKs, 2 us apart, and what they free `release` after the first, `apart` and `frames` from each
    /// other.
    fn batch(count: i64, release: i64, apart: i64, frames: u64) -> Vec<Candidate> {
        let held = |number: i64| {
            let at = |time_ns| At {
                frame: 100 + number as u64 * frames,
                time_ns,
            };
            let acked_at = number * 2 * US;
            let (small, freed_at) = (
                at(acked_at - 41 * MS),
                acked_at + release + number * (apart - 2 * US),
            );
            Candidate {
                small,
                held_from: small,
                ack: at(acked_at),
                ack_lacks_data: true,
                freed: at(freed_at),
                freed_bytes: 1,
                stream: number as u32,
                begins_message: true,
                ..Candidate::default()
            }
        };
        (0..count).map(held).collect()
    }

    fn went(candidates: &[Candidate]) -> bool {
        is_batch(&candidates.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_kernel_sends_what_it_freed_as_closely_as_the_acks_came() {
        assert!(went(&batch(8, 300 * US, 2 * US, 1)));
        assert!(went(&batch(8, 300 * US, 4 * US, 1)));
        assert!(!went(&batch(8, 300 * US, 4 * US + 1, 1)));
        // with the receiver's own ACK after each, and never more than that
        assert!(went(&batch(8, 300 * US, 8 * US, 2)));
        assert!(!went(&batch(8, 300 * US, 8 * US + 2, 2)));
        assert!(!went(&batch(8, 300 * US, 9 * US, 9)));
    }

    #[test]
    fn few_late_or_disordered_ones_are_nobodys() {
        assert!(!went(&batch(7, 300 * US, 2 * US, 1)));
        assert!(went(&batch(8, SOON_NS.get(), 2 * US, 1)));
        assert!(!went(&batch(8, SOON_NS.get() + 1, 2 * US, 1)));
        let mut swapped = batch(8, 300 * US, 2 * US, 1);
        swapped[3].freed.time_ns += 3 * US;
        assert!(!went(&swapped));
        assert!(!went(&[]));
    }

    #[test]
    fn those_of_one_tick_are_judged_together_beside_their_hosts_only() {
        let frames = |sender_rtt, later: i64| {
            let mut candidates = batch(8, 300 * US, 2 * US, 1);
            let moved = |at: At| At {
                frame: at.frame + 100,
                time_ns: at.time_ns + 14 * US + later,
            };
            candidates.extend(
                batch(8, 300 * US, 9 * US, 1)
                    .into_iter()
                    .map(|candidate| Candidate {
                        small: moved(candidate.small),
                        held_from: moved(candidate.held_from),
                        ack: moved(candidate.ack),
                        freed: moved(candidate.freed),
                        ..candidate
                    }),
            );
            let path = SenderPath {
                sender_rtt_ns: sender_rtt,
                ..SenderPath::default()
            };
            freed_in_batches(&candidates, &path)
        };
        let first: Vec<u64> = (100..108).collect();
        assert_eq!(frames(20 * US, AT_HOST_NS.get() + 1), first);
        assert!(frames(20 * US, AT_HOST_NS.get()).is_empty());
        assert_eq!(frames(AT_HOST_NS.get() - 1, 20 * MS), first);
        assert!(frames(AT_HOST_NS.get(), 20 * MS).is_empty());
    }
}
