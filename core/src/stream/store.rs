//! All streams by their numbers.

use super::{Endpoint, Flow, FourTuple, Stream, Tracking};
use crate::base::At;
use crate::exchange::Ledger;

/// Boxes of streams that are gone, kept for the next ones.
const MAX_SPARE: usize = 32;

#[derive(Default)]
pub(super) struct Store {
    /// None once the stream was handed on for its row.
    slots: Vec<Option<Box<Stream>>>,
    #[allow(clippy::vec_box)] // a kilobyte each, and they go where they came from
    spare: Vec<Box<Stream>>,
}

/// The smaller and the larger endpoint, and the first sequence number of each.
pub(super) struct Head {
    pub(super) low: Endpoint,
    pub(super) high: Endpoint,
    pub(super) bases: [Option<u32>; 2],
}

impl Head {
    pub(super) fn key(&self) -> FourTuple {
        FourTuple::between(self.low, self.high)
    }
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// A new stream.
    pub(super) fn open(&mut self, begin: impl FnOnce(&mut Stream)) -> u32 {
        let id = self.slots.len() as u32;
        let mut stream = self.spare.pop().unwrap_or_else(|| Box::new(Stream::blank()));
        begin(&mut stream);
        self.slots.push(Some(stream));
        id
    }

    /// Takes the box of a stream that has its row, for the next one.
    pub(super) fn done(&mut self, mut stream: Box<Stream>) {
        if self.spare.len() < MAX_SPARE {
            stream.tracking = Tracking::Before;
            if !stream.flows.iter().all(Flow::is_small) {
                stream.flows = Default::default();
            }
            self.spare.push(stream);
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// The stream for good: its number stays without one.
    pub(super) fn take(&mut self, id: u32) -> Option<Box<Stream>> {
        self.slots.get_mut(id as usize)?.take()
    }

    /// What does not change, and tells streams apart.
    pub(super) fn head(&self, id: u32) -> Option<Head> {
        let stream = self.slots.get(id as usize)?.as_deref()?;
        let [low, high] = &stream.flows;
        Some(Head {
            low: stream.low,
            high: stream.high,
            bases: [low.marks.base, high.marks.base],
        })
    }

    /// Nothing more will come on this stream.
    pub(super) fn end(&mut self, id: u32, at: At, ledger: &mut Ledger) {
        if let Some(stream) = self.get(id) {
            stream.tracking.end(at, ledger);
        }
    }
}
