//! What the evidence on a sender shows of one wait: comparison with the control group, proof that Nagle's algorithm
//! made it, and proof that the program did.

use super::controls::Control;
use super::{NagleUse, SenderMeasures, SenderVerdict};
use crate::limits::{RARE_ONE_IN, RTO_MIN_NS};
use crate::observe::Candidate;

impl SenderMeasures {
    /// Compares this wait with the control group.
    pub(in crate::judge) fn compare(&self, candidate: &Candidate) -> Control {
        self.controls.compare(candidate.stream, candidate.total_ns())
    }

    /// Compares the wait of the last write in a segment that may hold several. The pauses between the writes lie in the
    /// same wait, so the program took up to one pause for each write.
    pub(in crate::judge) fn compare_last(&self, candidate: &Candidate) -> Control {
        let mut control = self.compare(candidate);
        let further = self.controls.gathered(candidate.freed_bytes);
        if let Control::Shorter { max_ns, .. } = &mut control {
            *max_ns *= 1 + further;
            if further > 0 && *max_ns >= candidate.total_ns() {
                return Control::Unclear;
            }
        }
        control
    }

    /// Whether Nagle's algorithm made a wait beyond doubt, given its comparison with the control group.
    pub(in crate::judge) fn proves_nagle(&self, stream: u32, control: Control) -> bool {
        !self.is_scattered
            && match control {
                Control::Shorter { .. } => {
                    let near = self.path.is_at_sender();
                    let far = || self.kernel_sends_most() && !self.controls.goes_without(stream);
                    self.controls.follow() && (near || far())
                }
                Control::Nothing => {
                    self.controls.always_follow() && self.follows_alone() && self.controls.are_kernels()
                }
                Control::Explains { .. } | Control::Unclear => false,
            }
    }

    /// Whether a kernel sent the segments that followed held ACKs, and hardly any left without its ACK.
    pub(super) fn follows_alone(&self) -> bool {
        self.refuted * RARE_ONE_IN.get() as u64 <= self.holds.count as u64 && self.kernel_sends_most()
    }

    /// Whether a wait that ended `late_ns` after the ACK is the program's beyond doubt: more than a busy host explains.
    /// Away from the sender the path may have delayed the ACK, though not by a retransmission timeout. Below that,
    /// pauses where nothing was held must not be shorter.
    pub(in crate::judge) fn keeps_its_length(&self, candidate: &Candidate, late_ns: i64) -> bool {
        let outlasts = self.path.outlasts(late_ns);
        if outlasts && (self.path.is_at_sender() || late_ns >= RTO_MIN_NS.get()) {
            return true;
        }
        outlasts
            && matches!(
                self.compare(candidate),
                Control::Explains { .. } | Control::Nothing
            )
    }
}

impl SenderVerdict {
    /// Returns after about how long the program made the first of several writes that filled a segment together. None
    /// unless the sender waits for ACKs on this connection and is known to write several times within a message.
    pub(in crate::judge) fn first_write_ns(&self, stream: u32, waited: i64) -> Option<i64> {
        let controls = &self.measures.controls;
        let writes_are_held =
            self.nagle_use == NagleUse::Acts && controls.goes_on() && controls.follows_alone(stream);
        match controls.compare(stream, waited) {
            Control::Shorter {
                likely_ns,
                exact: true,
                ..
            } if writes_are_held => Some(likely_ns),
            _ => None,
        }
    }

    /// Whether the option was off on this connection at this frame: segments around it left early, or none of this
    /// sender ever followed a held ACK.
    pub(in crate::judge) fn goes_without(&self, stream: u32, frame: u64) -> bool {
        let controls = &self.measures.controls;
        self.nagle_use == NagleUse::Off && (controls.leaves_early(stream, frame) || controls.followed() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sender::paused;
    use crate::limits::AT_HOST_NS;

    const MS: i64 = 1_000_000;

    #[test]
    fn from_afar_a_wait_that_outlasts_its_ack_is_a_pause_where_nothing_was_sooner() {
        let keeps = |sender_rtt, pauses: &[i64], late| {
            let candidate = Candidate::of_times(44 * MS, sender_rtt + late);
            paused(sender_rtt, pauses)
                .measures
                .keeps_its_length(&candidate, late)
        };
        assert!(keeps(AT_HOST_NS.get() - 1, &[MS; 3], 4 * MS), "beside it");
        assert!(!keeps(AT_HOST_NS.get(), &[MS; 3], 4 * MS), "a line may be late");
        assert!(keeps(6 * MS, &[54 * MS; 3], 4 * MS) && keeps(6 * MS, &[], 4 * MS));
        assert!(!keeps(6 * MS, &[MS, 54 * MS], 4 * MS), "now more, now less");
        // no path delays an ACK for a retransmission timeout
        assert!(keeps(6 * MS, &[MS; 3], RTO_MIN_NS.get()));
        assert!(!keeps(6 * MS, &[MS; 3], RTO_MIN_NS.get() - 1));
    }

    #[test]
    fn the_last_of_several_writes_is_held_for_what_the_pauses_before_leave() {
        let compare = |bytes, waited| {
            let mut judged = paused(6 * MS, &[12 * MS; 3]);
            judged.measures.controls.writes(150);
            let candidate = Candidate {
                freed_bytes: bytes,
                ..Candidate::of_times(waited - 20 * MS, 20 * MS)
            };
            (
                judged.measures.compare(&candidate),
                judged.measures.compare_last(&candidate),
            )
        };
        let shorter = |most| Control::Shorter {
            max_ns: most,
            likely_ns: 12 * MS,
            exact: true,
        };
        assert_eq!(compare(150, 48 * MS), (shorter(12 * MS), shorter(12 * MS)));
        assert_eq!(compare(450, 48 * MS), (shorter(12 * MS), shorter(36 * MS)));
        assert_eq!(compare(600, 48 * MS + 1).1, shorter(48 * MS));
        assert_eq!(compare(600, 48 * MS).1, Control::Unclear, "they fill the wait");
        assert_eq!(
            compare(450, 12 * MS).1,
            compare(450, 12 * MS).0,
            "it is no shorter"
        );
    }
}
