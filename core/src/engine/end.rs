//! The end of a capture, and of streams whose ports others use: what is open is judged, and streams become rows. In parts,
//! so that the caller never holds all rows at once.

use std::cmp::Reverse;

use super::Pipeline;
use super::judging::MAX_PENDING;
use crate::probe::{self, ProbeRows};
use crate::stream::Stream;

/// Streams that are finished at a time when the capture has ended.
const STREAMS_AT_ONCE: u32 = 4096;

/// How far the end has come.
#[derive(Default)]
pub(super) enum Stage {
    #[default]
    Reading,
    /// The streams from this one on have not been ended yet.
    Ending(u32),
    /// The streams from this one on have no rows yet; with the probes that wait.
    Writing(u32, ProbeRows),
    Finished,
}

impl Pipeline {
    /// The rows of a stream that is over. The time of its set-up is judged now, as the path is best
    /// known at the end.
    pub(super) fn write_stream(&mut self, id: u32, stream: &Stream) {
        if let Some((exchange, paths)) =
            self.streams
                .setup(id, stream, self.lookups.before(stream.first.frame))
        {
            self.partition(&exchange, &paths);
            self.streams.context.done(exchange);
        }
        self.tables.stream(id, stream, &self.streams.context);
    }

    /// Ends some streams.
    pub(super) fn end_some(&mut self, next: u32) -> Stage {
        let (all, until) = (self.streams.len() as u32, next.saturating_add(STREAMS_AT_ONCE));
        for id in next..until.min(all) {
            self.streams.end(id, self.now());
        }
        self.take_issues(0);
        if until < all {
            if self.streams.context.pending.len() + self.streams.context.pending_plain.len() >= MAX_PENDING {
                self.judge_pending(false);
            }
            return Stage::Ending(until);
        }
        self.judge_pending(true);
        self.take_dns(0);
        for lookup in self.lookups.rest() {
            self.tables.lookup(lookup);
        }
        self.take_issues(0);
        self.streams.retired.sort_unstable_by_key(|(id, _)| Reverse(*id));
        Stage::Writing(0, self.probes.rest())
    }

    /// Makes rows of some streams, and lets go of them.
    pub(super) fn write_streams(&mut self, next: u32, mut probes: ProbeRows) -> Stage {
        let (all, until) = (self.streams.len() as u32, next.saturating_add(STREAMS_AT_ONCE));
        for id in next..until.min(all) {
            let retired = self.streams.retired.pop_if(|(retired, _)| *retired == id);
            let Some(stream) = retired
                .map(|(_, stream)| stream)
                .or_else(|| self.streams.take(id))
            else {
                continue; // it was given before
            };
            while let Some(probe) = probes.pop(stream.first.frame) {
                self.tables.probe(probe);
            }
            probe::of_stream(id, &stream).for_each(|probe| probes.push(probe));
            self.write_stream(id, &stream);
            self.streams.done(stream);
        }
        if until < all {
            return Stage::Writing(until, probes);
        }
        while let Some(probe) = probes.pop(u64::MAX) {
            self.tables.probe(probe);
        }
        let issues = self.issues.counted();
        self.tables
            .finish(&self.streams, self.senders.all(), &self.files, issues);
        Stage::Finished
    }
}
