//! The end of a capture: ends the streams, judges what is open, and turns streams into rows. It runs in parts, so
//! that the caller never holds all rows at once.

use std::cmp::Reverse;

use super::Pipeline;
use super::judging::MAX_PENDING;
use crate::probe::{self, ProbeRows};
use crate::stream::Stream;

/// Number of streams that are ended, or turned into rows, in one part.
const STREAMS_AT_ONCE: u32 = 4096;

/// Progress of the end of the capture.
#[derive(Default)]
pub(super) enum Stage {
    /// Blocks are still pushed.
    #[default]
    Reading,
    /// Ends the streams, from this id on.
    Ending(u32),
    /// Appends the rows of the streams, from this id on, merged with the probes that have no rows yet.
    Writing(u32, ProbeRows),
    Finished,
}

impl Pipeline {
    /// Appends the row of a stream that is over. Its set-up is judged only now, because the path's best RTT is known
    /// best at the end.
    pub(super) fn write_stream(&mut self, id: u32, stream: &Stream) {
        if let Some((exchange, paths)) =
            self.streams
                .setup(id, stream, self.lookups.take_for_syn(stream.first.frame))
        {
            self.judge_and_write(&exchange, &paths);
            self.streams.context.recycle(exchange);
        }
        self.tables.stream(id, stream, &self.streams.context);
    }

    /// Ends up to `STREAMS_AT_ONCE` streams, from `next` on. After the last one, judges everything that is pending.
    pub(super) fn end_some(&mut self, next: u32) -> Stage {
        let (stream_count, until) = (self.streams.len() as u32, next.saturating_add(STREAMS_AT_ONCE));
        for id in next..until.min(stream_count) {
            self.streams.end(id, self.now());
        }
        self.take_issues(0);
        if until < stream_count {
            if self.streams.context.pending.len() + self.streams.context.pending_plain.len() >= MAX_PENDING {
                self.judge_pending(false);
            }
            return Stage::Ending(until);
        }
        self.judge_pending(true);
        self.take_dns(0);
        for lookup in self.lookups.take_unanswered() {
            self.tables.lookup(lookup);
        }
        self.take_issues(0);
        self.streams.retired.sort_unstable_by_key(|(id, _)| Reverse(*id));
        Stage::Writing(0, self.probes.take_rest())
    }

    /// Appends the rows of up to `STREAMS_AT_ONCE` streams, from `next` on, and frees these streams.
    pub(super) fn write_streams(&mut self, next: u32, mut probes: ProbeRows) -> Stage {
        let (stream_count, until) = (self.streams.len() as u32, next.saturating_add(STREAMS_AT_ONCE));
        for id in next..until.min(stream_count) {
            let retired = self.streams.retired.pop_if(|(retired, _)| *retired == id);
            let Some(stream) = retired
                .map(|(_, stream)| stream)
                .or_else(|| self.streams.take(id))
            else {
                continue; // its row was appended when its ports were used again
            };
            while let Some(probe) = probes.pop(stream.first.frame) {
                self.tables.probe(probe);
            }
            probe::syn_probes(id, &stream).for_each(|probe| probes.push(probe));
            self.write_stream(id, &stream);
            self.streams.recycle(stream);
        }
        if until < stream_count {
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
