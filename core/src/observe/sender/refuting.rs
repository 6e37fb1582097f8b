//! Small sent over unacknowledged small: a socket without Nagle's algorithm, as soon as that is sure.

use std::vec::Drain;

use super::{Data, Refutation, Sender, Small};
use crate::limits::BURST_NS;
use crate::observe::Early;

/// Refutations that wait for the peer's next packet.
const MAX_AWAITING: usize = 64;

impl Sender {
    /// Time goes on: what left small over small is a refutation if its sender sent nothing right behind it.
    pub fn settle_refutation(&mut self, now_ns: i64) {
        if let Some(refuting) = self.refuting
            && now_ns - refuting.freed.time_ns > BURST_NS.get()
        {
            self.refuting = None;
            self.await_peer(refuting.early());
        }
    }

    /// Whether the peer's next packet can make a refutation sure: seldom.
    #[inline(always)]
    pub fn is_refuting(&self) -> bool {
        !self.awaiting.is_empty()
    }

    /// The peer spoke: which refutations are sure now. None are where the capture lacks (`missed`) what the peer
    /// sent before: that may have been the ACK.
    pub fn sure_refutations(&mut self, missed: bool) -> Drain<'_, Early> {
        if missed {
            self.awaiting.clear();
        }
        self.awaiting.drain(..)
    }

    /// Beyond `MAX_AWAITING` of them the rest say the same.
    fn await_peer(&mut self, early: Early) {
        if self.awaiting.len() < MAX_AWAITING {
            self.awaiting.push(early);
        }
    }

    /// The end of the stream makes all pending refutations sure.
    pub fn last_refutations(&mut self) -> Drain<'_, Early> {
        if let Some(refuting) = self.refuting.take() {
            self.await_peer(refuting.early());
        }
        self.awaiting.drain(..)
    }

    pub(super) fn refute(&mut self, p: &Small, d: &Data) {
        self.refuting = Some(Refutation {
            sender_id: d.sender_id,
            small: p.at,
            freed: d.at,
        });
    }
}

impl Sender {
    /// An ACK that the capture lacks shows in the time stamp that it brought to the sender (RFC 7323 4.3): this segment echoes a
    /// newer one than any that the peer was seen to send.
    pub(super) fn received_unseen(&self, p: &Small, d: &Data) -> bool {
        let is_newer = |than: u32, echo: u32| echo.wrapping_sub(than).cast_signed() > 0;
        match (p.tsecr, d.tsecr) {
            (Some(before), Some(echo)) => {
                let seen = self.peer_stamps.iter().flatten();
                is_newer(before, echo) && seen.into_iter().all(|seen| is_newer(*seen, echo))
            }
            _ => false,
        }
    }
}
