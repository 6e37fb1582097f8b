//! The set-up of connections that begin with a SYN: which of them have a row, and that row's exchange.

use super::{Endpoint, Stream, Streams};
use crate::base::{At, Side};
use crate::exchange::Exchange;
use crate::exchange::setup::Setup;
use crate::facts::completeness;
use crate::judge::Paths;
use crate::lookup::Found;
use crate::segment::Segment;

impl Stream {
    /// Reads a segment of an unfinished handshake. State is created with the second packet only, as most streams of a
    /// SYN flood have no second one.
    #[inline(never)]
    pub(super) fn track_handshake(&mut self, segment: &Segment<'_>, side: Side, at: At) {
        let packets: u64 = self.counts.iter().map(|counts| counts.packets).sum();
        if packets == 2 && self.completeness() & completeness::SYN != 0 {
            self.setup = Some(Setup::new(self.first));
        }
        match &mut self.setup {
            Some(setup) if setup.pending() => {
                setup.segment(segment, side, at);
                self.setting_up = setup.pending();
            }
            _ => self.setting_up = packets < 2,
        }
    }
}

impl Streams {
    /// The client and the server of a stream that carries data.
    pub fn ends(&mut self, id: u32) -> Option<(Endpoint, Endpoint)> {
        let ends = |stream: &Stream| (stream.client(), stream.server());
        match self.store.get(id) {
            Some(stream) => Some(ends(stream)),
            None => (self.retired.iter().rev())
                .find(|(retired, _)| *retired == id)
                .map(|(_, stream)| ends(stream)),
        }
    }

    /// The exchange of a stream's set-up and the best RTTs, if it deserves a row (`Setup::deserves_row`). It gets the
    /// next id.
    pub fn setup(
        &mut self,
        id: u32,
        stream: &Stream,
        lookup: Option<Found>,
    ) -> Option<(Box<Exchange>, Paths)> {
        let read = stream.tracking.read_so_far();
        let setup = stream.setup.as_ref()?;
        if !setup.deserves_row(
            read.busy_ns,
            lookup.as_ref().map_or(0, |lookup| lookup.duration_ns),
            read.begun,
        ) {
            return None;
        }
        let mut exchange = setup.exchange(id, read.exchange_count, read.begun, &mut self.context)?;
        exchange.is_doubled = read.is_doubled;
        if let Some(opening) = &mut exchange.opening {
            opening.lookup = lookup;
        }
        let of_ends = || self.pairs.find(stream.client().0, stream.server().0);
        let pair = stream.tracking.pair().or_else(of_ends);
        let mut min = stream.rtts_ns;
        for (side, rtt) in Side::BOTH.into_iter().zip(&mut min) {
            *rtt = pair.and_then(|pair| self.pairs.min(pair, side)).or(*rtt);
        }
        let paths = Paths {
            best_rtts_ns: min,
            ..Paths::default()
        };
        Some((exchange, paths))
    }
}
