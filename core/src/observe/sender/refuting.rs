//! Refutations of Nagle's algorithm: small segments sent over unacknowledged small ones, as soon as they are confirmed.

use std::vec::Drain;

use super::{Data, Sender, Small};
use crate::limits::BURST_NS;
use crate::observe::Early;

/// Upper bound on refutations that wait for the peer's next packet; further ones are not counted.
const MAX_AWAITING: usize = 64;

impl Sender {
    /// Turns a small segment over a small one into a refutation if nothing followed it within `BURST_NS`: else it may
    /// be part of a larger write.
    pub fn settle_refutation(&mut self, now_ns: i64) {
        if let Some(refuting) = self.refutations.newest
            && now_ns - refuting.time_ns > BURST_NS.get()
        {
            self.refutations.newest = None;
            self.await_peer(refuting);
        }
    }

    /// Whether refutations wait for the peer's next packet.
    #[inline(always)]
    pub fn has_awaiting(&self) -> bool {
        !self.refutations.awaiting.is_empty()
    }

    /// Takes the refutations that the peer's packet confirms: none where the capture lacks (`missed`) earlier packets
    /// of the peer, one of which may have been the ACK.
    pub fn confirmed_refutations(&mut self, missed: bool) -> Drain<'_, Early> {
        if missed {
            self.refutations.awaiting.clear();
        }
        self.refutations.awaiting.drain(..)
    }

    fn await_peer(&mut self, early: Early) {
        if self.refutations.awaiting.len() < MAX_AWAITING {
            self.refutations.awaiting.push(early);
        }
    }

    /// Takes all pending refutations, which the end of the stream confirms.
    pub fn last_refutations(&mut self) -> Drain<'_, Early> {
        if let Some(refuting) = self.refutations.newest.take() {
            self.await_peer(refuting);
        }
        self.refutations.awaiting.drain(..)
    }

    pub(super) fn refute(&mut self, small: &Small, data: &Data) {
        self.refutations.newest = Some(Early {
            pause_ns: data.at.time_ns - small.at.time_ns,
            time_ns: data.at.time_ns,
            frame: data.at.frame,
        });
    }

    /// Whether the sender received an ACK that the capture lacks: this segment echoes a newer timestamp than any that
    /// the peer was seen to send (RFC 7323 4.3).
    pub(super) fn received_unseen(&self, small: &Small, data: &Data) -> bool {
        let is_newer = |than: u32, echo: u32| echo.wrapping_sub(than).cast_signed() > 0;
        match (small.tsecr, data.tsecr) {
            (Some(before), Some(echo)) => {
                let stamps = self.peer.stamps.iter().flatten();
                is_newer(before, echo) && stamps.into_iter().all(|stamp| is_newer(*stamp, echo))
            }
            _ => false,
        }
    }
}
