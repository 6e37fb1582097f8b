//! The set-up of every connection that began with a SYN, and which of them are worth a row.

use super::{Stream, Streams};
use crate::cause::Legs;
use crate::exchange::Exchange;
use crate::exchange::setup::Setup;
use crate::messages::{At, Side};
use crate::segment::Segment;

impl Stream {
    /// A segment of a set-up that is not over. The first one has been counted only: most streams of a flood have
    /// no other.
    pub(super) fn note_setup(&mut self, segment: &Segment<'_>, side: Side, at: At) {
        if let Some(setup) = &mut self.setup {
            if setup.pending() {
                setup.segment(segment, side, at);
            }
            return;
        }
        let packets: u64 = self.counts.iter().map(|c| c.packets).sum();
        if packets == 2 && self.completeness() & 1 != 0 {
            let mut setup = Box::new(Setup::new(self.first));
            setup.segment(segment, side, at);
            self.setup = Some(setup);
        }
    }
}

impl Streams {
    /// The set-ups that are worth a row (`Setup::matters`), numbered after the requests, with the best legs
    /// there are.
    pub fn setups(&self) -> impl Iterator<Item = (Exchange, Legs)> {
        let mut next = self.ledger.next_id;
        self.streams.iter().enumerate().filter_map(move |(id, stream)| {
            let told = stream.tracking.told();
            let setup = stream.setup.as_ref()?;
            if !setup.matters(told.busy) {
                return None;
            }
            let exchange = setup.exchange(next, id as u32, told.exchanges)?;
            next += 1;
            let pair = self.pairs.find(stream.client().0, stream.server().0);
            let min = [Side::Client, Side::Server].map(|side| {
                let pooled = pair.and_then(|pair| self.pairs.min(pair, side.index()));
                pooled.or(stream.side(side).leg)
            });
            Some((exchange, Legs { min }))
        })
    }
}
