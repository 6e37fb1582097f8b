//! All streams by id. Those that carry data are whole; a stream with SYNs only, or an ended one, has a compact form
//! (`compact.rs`).

use std::collections::VecDeque;

use super::compact::{Closed, SynsOnly};
use super::{Endpoint, FourTuple, Stream, Tracking};
use crate::base::At;
use crate::exchange::Context;

/// Upper bound on the boxes of written streams kept for reuse.
const MAX_SPARE: usize = 32;

/// The form in which a stream is stored.
enum State {
    SynsOnly(Box<SynsOnly>),
    Live(Box<Stream>),
    Closed(Box<Closed>),
    /// Its row has been written.
    Gone,
}

/// Upper bound on the whole streams that could be compact: most of them get their next packet soon (of a handshake,
/// or a FIN).
const MAX_COMPACTABLE: usize = 16;

/// Upper bound on the streams still tracked after an RST, for packets that were in flight.
const MAX_CUT: usize = 1024;

pub(super) struct Store {
    states: Vec<State>,
    #[allow(clippy::vec_box)] // a kilobyte each, and they go where they came from
    spare: Vec<Box<Stream>>,
    /// Whole streams that could be compact, oldest first.
    compactable: VecDeque<u32>,
    pub(super) max_compactable: usize,
    /// Streams that an RST ended, oldest first.
    cut: VecDeque<u32>,
    pub(super) max_cut: usize,
    /// The capture contains DNS lookups, so that any set-up may have a row for the lookup before it.
    pub(super) has_lookups: bool,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            states: Vec::new(),
            spare: Vec::new(),
            compactable: VecDeque::new(),
            max_compactable: MAX_COMPACTABLE,
            cut: VecDeque::new(),
            max_cut: MAX_CUT,
            has_lookups: false,
        }
    }
}

/// The smaller and the larger endpoint, and the initial sequence number of each.
pub(super) struct Ends {
    pub(super) low: Endpoint,
    pub(super) high: Endpoint,
    pub(super) bases: [Option<u32>; 2],
}

impl Ends {
    pub(super) fn key(&self) -> FourTuple {
        FourTuple::between(self.low, self.high)
    }
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Adds a stream and returns its id.
    pub(super) fn open(&mut self, begin: impl FnOnce(&mut Stream)) -> u32 {
        let id = self.states.len() as u32;
        let mut stream = self.spare_stream();
        begin(&mut stream);
        self.states.push(State::Live(stream));
        id
    }

    fn spare_stream(&mut self) -> Box<Stream> {
        self.spare.pop().unwrap_or_else(|| Box::new(Stream::unused()))
    }

    /// Keeps a box for reuse.
    pub(super) fn recycle(&mut self, mut stream: Box<Stream>) {
        if self.spare.len() < MAX_SPARE {
            (stream.tracking, stream.compactable) = (Tracking::Before, false);
            self.spare.push(stream);
        }
    }

    /// The whole stream. Inlined, as it is called for each packet: a call costs 11 instructions more (measured).
    #[inline(always)]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        if !matches!(self.states.get(id as usize)?, State::Live(_)) {
            self.expand(id)?;
        }
        match self.states.get_mut(id as usize)? {
            State::Live(stream) => Some(stream),
            _ => None,
        }
    }

    #[inline(never)]
    fn expand(&mut self, id: u32) -> Option<()> {
        let stream = self.take(id)?;
        *self.states.get_mut(id as usize)? = State::Live(stream);
        Some(())
    }

    /// The whole stream. Drops its kept SYN packets, as the caller reads a packet that they do not contain.
    pub(super) fn whole(&mut self, id: u32) -> Option<&mut Stream> {
        let stream = self.get(id)?;
        stream.drop_syn_packets();
        Some(stream)
    }

    /// Removes and returns the stream.
    pub(super) fn take(&mut self, id: u32) -> Option<Box<Stream>> {
        let state = std::mem::replace(self.states.get_mut(id as usize)?, State::Gone);
        match state {
            State::Live(stream) => Some(stream),
            State::SynsOnly(syns_only) => {
                let mut stream = self.spare_stream();
                stream.restore_syns(*syns_only);
                Some(stream)
            }
            State::Closed(closed) => {
                let mut stream = self.spare_stream();
                stream.reopen(*closed);
                Some(stream)
            }
            State::Gone => None,
        }
    }

    /// Queues a stream to become compact, which happens when enough others are queued.
    #[cold]
    pub(super) fn mark_compactable(&mut self, id: u32) {
        if let Some(State::Live(stream)) = self.states.get_mut(id as usize)
            && !std::mem::replace(&mut stream.compactable, true)
        {
            self.compactable.push_back(id);
        }
        if self.compactable.len() > self.max_compactable
            && let Some(oldest) = self.compactable.pop_front()
        {
            self.compact(oldest);
        }
    }

    /// Queues a stream that an RST ended. Its tracker is dropped when enough others are queued.
    #[cold]
    pub(super) fn cut(&mut self, id: u32, at: At, context: &mut Context) {
        if self.cut.back() != Some(&id) {
            self.cut.push_back(id);
        }
        if self.cut.len() > self.max_cut
            && let Some(oldest) = self.cut.pop_front()
            && let Some(State::Live(stream)) = self.states.get_mut(oldest as usize)
            && stream.tracking.cut(at, context)
        {
            self.mark_compactable(oldest);
        }
    }

    /// Makes the stream compact if possible.
    fn compact(&mut self, id: u32) {
        let Some(state) = self.states.get_mut(id as usize) else {
            return;
        };
        let State::Live(stream) = state else { return };
        stream.compactable = false;
        let less = if stream.tracking.is_over() {
            State::Closed(Box::new(stream.take_closed(self.has_lookups)))
        } else if stream.only_syns {
            State::SynsOnly(Box::new(stream.take_syns()))
        } else {
            return;
        };
        if let State::Live(stream) = std::mem::replace(state, less) {
            self.recycle(stream);
        }
    }

    #[cfg(test)]
    pub(super) fn is_followed(&self, id: u32) -> bool {
        matches!(self.states.get(id as usize), Some(State::Live(stream)) if matches!(stream.tracking, Tracking::Live(_)))
    }

    /// Fields that identify the stream and do not change.
    pub(super) fn head(&self, id: u32) -> Option<Ends> {
        let ((low, high), bases) = match self.states.get(id as usize)? {
            State::SynsOnly(syns_only) => (syns_only.ends.both(), syns_only.bases),
            State::Live(stream) => ((stream.low, stream.high), stream.bases()),
            State::Closed(closed) => (closed.ends.both(), closed.bases()),
            State::Gone => return None,
        };
        Some(Ends { low, high, bases })
    }

    /// Ends the stream's tracking.
    pub(super) fn end(&mut self, id: u32, at: At, context: &mut Context) {
        if let Some(State::Live(stream)) = self.states.get_mut(id as usize) {
            stream.tracking.end(at, context);
        }
    }
}
