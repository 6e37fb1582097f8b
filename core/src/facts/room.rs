//! What all streams together remember of segments that nobody has acknowledged: a capture of one direction has many.

use super::unacked::ALWAYS_REMEMBERED;
use super::{Flow, MAX_UNACKED};

/// All that those with more may remember.
const MAX_UNACKED_IN_ALL: usize = 1 << 18;

#[derive(Debug, Default)]
pub struct UnackedRoom {
    taken: usize,
}

impl Flow {
    /// Whether the room has to know of it.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.unacked.long
    }
}

impl UnackedRoom {
    /// Counts anew, after a segment. False where nothing can be added for the lack of room.
    #[cold]
    pub fn count(&mut self, flow: &mut Flow) -> bool {
        let len = flow.unacked.len();
        self.forget(flow);
        if len > ALWAYS_REMEMBERED {
            flow.unacked.counted = len as u32;
            self.taken += len;
        } else {
            flow.unacked.long = false;
            flow.unacked.shrink(ALWAYS_REMEMBERED);
        }
        flow.unacked.barred =
            len > ALWAYS_REMEMBERED && len < MAX_UNACKED && self.taken >= MAX_UNACKED_IN_ALL;
        !flow.unacked.barred
    }

    /// The flow's stream is over.
    pub fn forget(&mut self, flow: &mut Flow) {
        self.taken = self
            .taken
            .saturating_sub(std::mem::take(&mut flow.unacked.counted) as usize);
    }
}
