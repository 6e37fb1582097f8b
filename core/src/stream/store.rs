//! All streams by number. Those that carry data are kept whole; a stream with SYNs only, or one that is over, in a compact
//! form (`compact.rs`) from which it can be made whole again.

use std::collections::VecDeque;

use super::compact::{Closed, SynsOnly};
use super::{Endpoint, FourTuple, Stream, Tracking};
use crate::base::At;
use crate::exchange::Context;

/// Boxes of streams that are gone: the free list.
const MAX_SPARE: usize = 32;

/// In which form a stream is kept.
enum State {
    SynsOnly(Box<SynsOnly>),
    Live(Box<Stream>),
    Closed(Box<Closed>),
    /// Its row has been given.
    Gone,
}

/// Streams that are kept whole though they could be compact: most get their next packet soon (a handshake's, a FIN).
const MAX_COMPACTABLE: usize = 16;

/// Streams that a RST ended and that are still followed: what was on its way then comes soon.
const MAX_CUT: usize = 1024;

pub(super) struct Store {
    states: Vec<State>,
    #[allow(clippy::vec_box)] // a kilobyte each, and they go where they came from
    spare: Vec<Box<Stream>>,
    /// Whole streams that could be compact, the oldest first.
    compactable: VecDeque<u32>,
    pub(super) max_compactable: usize,
    /// Streams that a RST ended, the oldest first.
    cut: VecDeque<u32>,
    pub(super) max_cut: usize,
    /// Names are looked up in this capture: any set-up may be worth a row for the lookup before it.
    pub(super) lookups: bool,
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
            lookups: false,
        }
    }
}

/// The smaller and the larger endpoint, and the first sequence number of each.
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

    /// A new stream.
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

    /// Returns a box to the free list.
    pub(super) fn done(&mut self, mut stream: Box<Stream>) {
        if self.spare.len() < MAX_SPARE {
            (stream.tracking, stream.compactable) = (Tracking::Before, false);
            self.spare.push(stream);
        }
    }

    /// The whole stream. Asked for each packet; measured: a call of its own costs 11 instructions.
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
        let whole = self.take(id)?;
        *self.states.get_mut(id as usize)? = State::Live(whole);
        Some(())
    }

    /// The whole stream; its kept SYN packets are dropped, as they no longer describe all of it.
    pub(super) fn whole(&mut self, id: u32) -> Option<&mut Stream> {
        let stream = self.get(id)?;
        stream.drop_syn_packets();
        Some(stream)
    }

    /// Takes the stream out: its number has none any more.
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

    /// After a packet of a stream that could be compact: it becomes so when enough others could.
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

    /// After a RST: what followed the stream's data goes when enough others were ended so.
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

    /// Makes the stream compact where it can be.
    fn compact(&mut self, id: u32) {
        let Some(state) = self.states.get_mut(id as usize) else {
            return;
        };
        let State::Live(stream) = state else { return };
        stream.compactable = false;
        let less = if stream.tracking.is_over() {
            State::Closed(Box::new(stream.take_closed(self.lookups)))
        } else if stream.only_syns {
            State::SynsOnly(Box::new(stream.take_syns()))
        } else {
            return;
        };
        if let State::Live(stream) = std::mem::replace(state, less) {
            self.done(stream);
        }
    }

    #[cfg(test)]
    pub(super) fn is_followed(&self, id: u32) -> bool {
        matches!(self.states.get(id as usize), Some(State::Live(stream)) if matches!(stream.tracking, Tracking::Live(_)))
    }

    /// Fields that do not change, and identify the stream.
    pub(super) fn head(&self, id: u32) -> Option<Ends> {
        let ((low, high), bases) = match self.states.get(id as usize)? {
            State::SynsOnly(syns_only) => (syns_only.ends.both(), syns_only.bases),
            State::Live(stream) => ((stream.low, stream.high), stream.bases()),
            State::Closed(closed) => (closed.ends.both(), closed.bases()),
            State::Gone => return None,
        };
        Some(Ends { low, high, bases })
    }

    /// Nothing more will come on this stream.
    pub(super) fn end(&mut self, id: u32, at: At, context: &mut Context) {
        if let Some(State::Live(stream)) = self.states.get_mut(id as usize) {
            stream.tracking.end(at, context);
        }
    }
}
