//! All streams by their numbers. Those that spoke lately lie open; the others rest, packed into as few bytes as their
//! state needs: the SYN of a flood takes 120 bytes, a connection that was closed some 280.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::cells::{Cell, Cells};
use super::counts::say_mss;
use super::{Endpoint, Flow, FourTuple, Stream, Tracking};
use crate::exchange::Ledger;
use crate::messages::At;
use crate::pack::{Base, Flags, LongSpans, Pack, Packer, Spans, U16s, U32s, Unpacker, Value, Words};

/// Streams that lie open; beyond it the one that was quiet for longest goes to rest.
pub const MOST_AWAKE: usize = 4096;
/// Of them so many that are over, for what comes a round trip late; the next ones to open lie where they lay, in the
/// processor's cache.
const MOST_OVER: usize = 32;

pub enum Slot {
    Awake(Box<Stream>),
    Resting(Cell),
    /// With somebody who follows its data, and has to be told when the capture ends.
    Following(Cell),
    /// Its row was handed on.
    Given,
}

pub(super) struct Store {
    slots: Vec<Slot>,
    /// Of those that rest.
    cells: Cells,
    /// The streams that lie open, and the newest packet of each when it was put here.
    awake: VecDeque<(u32, u64)>,
    over: VecDeque<u32>,
    /// Where streams lay that are gone, for others.
    #[allow(clippy::vec_box)] // a kilobyte each, and they go where they came from
    spare: Vec<Box<Stream>>,
    most_awake: usize,
    words: Words,
    scratch: Vec<u8>,
    /// The first packet: ends and newest packet of a stream at rest are told from it.
    base: Base,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            slots: Vec::new(),
            cells: Cells::default(),
            awake: VecDeque::new(),
            over: VecDeque::new(),
            spare: Vec::new(),
            most_awake: MOST_AWAKE,
            words: Words::default(),
            scratch: Vec::new(),
            base: (0, 0),
        }
    }
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// At least one: the stream whose packet is being read.
    pub(super) fn keep_awake(&mut self, streams: usize) {
        self.most_awake = streams.max(1);
    }

    /// A new stream.
    pub(super) fn open(&mut self, begin: impl FnOnce(&mut Stream), at: At) -> u32 {
        if self.slots.is_empty() {
            self.base = (at.frame, at.time_ns);
        }
        let id = self.slots.len() as u32;
        self.make_room();
        self.awake.push_back((id, at.frame));
        let mut stream = self.room();
        begin(&mut stream);
        self.slots.push(Slot::Awake(stream));
        id
    }

    /// Nobody needs it any more.
    pub(super) fn done(&mut self, mut stream: Box<Stream>) {
        if self.spare.len() < MOST_OVER {
            stream.tracking = Tracking::Before;
            if !stream.flows.iter().all(Flow::is_small) {
                stream.flows = Default::default();
            }
            self.spare.push(stream);
        }
    }

    /// Where a stream may lie; what lay there before has to be written over.
    fn room(&mut self) -> Box<Stream> {
        self.spare.pop().unwrap_or_else(|| Box::new(Stream::blank()))
    }

    /// The stream, as it is.
    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        if !matches!(self.slots.get(id as usize)?, Slot::Awake(_)) {
            self.wake(id);
        }
        match self.slots.get_mut(id as usize)? {
            Slot::Awake(stream) => Some(stream),
            _ => None,
        }
    }

    #[cold]
    fn wake(&mut self, id: u32) {
        if let Some(stream) = self.take(id) {
            self.make_room();
            self.awake.push_back((id, stream.last.frame));
            self.put(id, Slot::Awake(stream));
        }
    }

    /// The stream for good: its number stays without one.
    pub(super) fn take(&mut self, id: u32) -> Option<Box<Stream>> {
        let slot = self.leave(id);
        self.unpack(slot, false)
    }

    /// The same where only its row is still to be made.
    pub(super) fn take_for_row(&mut self, id: u32) -> Option<Box<Stream>> {
        let slot = self.leave(id);
        self.unpack(slot, true)
    }

    /// The same, as it lies here.
    fn leave(&mut self, id: u32) -> Slot {
        let slot = self.slots.get_mut(id as usize);
        slot.map_or(Slot::Given, |slot| std::mem::replace(slot, Slot::Given))
    }

    pub(super) fn unpack(&mut self, slot: Slot, for_row: bool) -> Option<Box<Stream>> {
        match slot {
            Slot::Awake(stream) => Some(stream),
            Slot::Resting(cell) | Slot::Following(cell) => {
                let mut stream = self.room();
                let packed = self.cells.get(&cell);
                stream.unpack(&mut Unpacker::new(packed, &self.words, self.base), for_row);
                self.cells.free(cell);
                Some(stream)
            }
            Slot::Given => None,
        }
    }

    /// What does not change, and tells streams apart.
    pub(super) fn head(&self, id: u32) -> Option<Head> {
        match self.slots.get(id as usize)? {
            Slot::Awake(stream) => Some(stream.head()),
            Slot::Resting(cell) | Slot::Following(cell) => {
                let packed = self.cells.get(cell);
                Some(Pack::unpack(&mut Unpacker::new(packed, &self.words, self.base)))
            }
            Slot::Given => None,
        }
    }

    /// Nothing more will come on this stream, whose ports others use now: what is left for its row.
    pub(super) fn retire(&mut self, id: u32, at: At, ledger: &mut Ledger) -> Slot {
        self.end(id, at, ledger);
        self.leave(id)
    }

    /// Nothing more will come on this stream.
    pub(super) fn end(&mut self, id: u32, at: At, ledger: &mut Ledger) {
        match self.slots.get_mut(id as usize) {
            Some(Slot::Awake(stream)) => stream.tracking.end(at, ledger),
            Some(Slot::Following(_)) => {
                if let Some(mut stream) = self.take(id) {
                    stream.tracking.end(at, ledger);
                    self.rest(id, stream, true);
                }
            }
            _ => {}
        }
    }

    /// This stream is over: it goes to rest before others do.
    pub(super) fn over(&mut self, id: u32) {
        self.over.push_back(id);
        if self.over.len() > MOST_OVER
            && let Some(id) = self.over.pop_front()
            && matches!(self.slots.get(id as usize), Some(Slot::Awake(_)))
            && let Some(stream) = self.take(id)
        {
            self.rest(id, stream, false);
        }
    }

    /// Puts to rest who has been quiet since it was looked at last, the others being asked again later.
    fn make_room(&mut self) {
        while self.awake.len() >= self.most_awake {
            let Some((id, frame)) = self.awake.pop_front() else {
                return;
            };
            let newest = match self.slots.get(id as usize) {
                Some(Slot::Awake(stream)) => stream.last.frame,
                _ => continue,
            };
            if newest > frame {
                self.awake.push_back((id, newest));
            } else if let Some(stream) = self.take(id) {
                let apart = stream.tracking.is_live();
                self.rest(id, stream, apart);
            }
        }
    }

    fn put(&mut self, id: u32, slot: Slot) {
        if let Some(place) = self.slots.get_mut(id as usize) {
            *place = slot;
        }
    }

    /// `apart` where hardly another one will take over its memory.
    fn rest(&mut self, id: u32, stream: Box<Stream>, apart: bool) {
        let mut packer = Packer::new(&mut self.scratch, &mut self.words, self.base);
        stream.pack(&mut packer);
        let packed = packer.finish();
        let cell = if apart {
            self.cells.keep_apart(packed)
        } else {
            self.cells.keep(packed)
        };
        let slot = match stream.tracking {
            Tracking::Live(_) => Slot::Following(cell),
            _ => Slot::Resting(cell),
        };
        self.put(id, slot);
        self.done(stream);
    }
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

impl Pack for Head {
    #[inline]
    fn pack(&self, to: &mut Packer<'_>) {
        let Head { low, high, bases } = self;
        let ports = U16s {
            0: [low.1, high.1].map(Value::told),
        };
        let bases = U32s {
            0: bases.map(Value::told),
        };
        match (low.0, high.0) {
            (IpAddr::V4(low), IpAddr::V4(high)) => {
                let ends = [low, high].map(|address| u64::from(address.to_bits()));
                to.groups((Flags([true]), ports, bases, U32s { 0: ends }));
            }
            ends => {
                to.groups((Flags([false]), ports, bases, U32s { 0: [0; 2] }));
                ends.pack(to);
            }
        }
    }

    #[inline]
    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let (
            Flags([v4]),
            U16s {
                0: [low_port, high_port],
            },
            U32s { 0: bases },
            U32s { 0: ends },
        ) = from.groups();
        let [low, high] = if v4 {
            ends.map(|address| IpAddr::from((address as u32).to_be_bytes()))
        } else {
            Pack::unpack(from)
        };
        Head {
            low: (low, Value::of(low_port)),
            high: (high, Value::of(high_port)),
            bases: bases.map(Value::of),
        }
    }
}

impl Stream {
    fn head(&self) -> Head {
        let [low, high] = &self.flows;
        Head {
            low: self.low,
            high: self.high,
            bases: [low.base, high.base],
        }
    }
}

impl Stream {
    fn pack(&self, to: &mut Packer<'_>) {
        let Stream {
            low: _,
            high: _,
            last,
            first,
            flows,
            shared,
            client_is_low,
            roles_by,
            counts,
            legs,
            timestamps,
            closed_by,
            reused,
            setup,
            setting_up: _,
            asked,
            tracking,
        } = self;
        to.sparse = tracking.is_before();
        self.head().pack(to); // first: `Store::head` reads no further
        let base = to.base;
        let [newest, oldest] = [last, first].map(|at| (at.frame, at.time_ns));
        to.groups((
            Flags([*client_is_low, *timestamps, *reused]),
            Flags([closed_by.is_some(), setup.is_some(), asked.is_empty()]),
            Flags(flows.each_ref().map(Flow::is_scaled)),
            Flags([flows.iter().any(Flow::is_long)]),
            U32s {
                0: [last.frame.wrapping_sub(base.0)],
            },
            U16s {
                0: [last.frame.wrapping_sub(first.frame)],
            },
            LongSpans {
                0: [
                    last.time_ns.wrapping_sub(base.1),
                    last.time_ns.wrapping_sub(first.time_ns),
                ],
            },
            Spans {
                0: legs.map(Value::told),
            },
        ));
        to.base = newest;
        to.know([newest, oldest]);
        roles_by.pack(to);
        if let Some(word) = closed_by {
            word.pack(to);
        }
        shared.pack(to);
        counts.pack(to);
        if !asked.is_empty() {
            asked.pack(to);
        }
        tracking.pack(to);
        if let Some(setup) = setup {
            to.base = oldest;
            setup.pack(to);
        }
        to.base = newest;
        flows.pack(to); // last: a row needs little of them
    }

    /// In place, in the order of `pack`: a whole one would be made elsewhere and moved. What only further segments ask of a
    /// flow is left out where `for_row` says so.
    fn unpack(&mut self, from: &mut Unpacker<'_>, for_row: bool) {
        let Stream {
            low,
            high,
            last,
            first,
            flows,
            shared,
            client_is_low,
            roles_by,
            counts,
            legs,
            timestamps,
            closed_by,
            reused,
            setup,
            setting_up,
            asked,
            tracking,
        } = self;
        let head = Head::unpack(from);
        (*low, *high) = (head.low, head.high);
        let (
            Flags(known),
            Flags([closed, set_up, unasked]),
            Flags([low_scaled, high_scaled]),
            Flags([long]),
            U32s { 0: [frame] },
            U16s { 0: [frames] },
            LongSpans { 0: [time, span] },
            Spans { 0: best },
        ) = from.groups();
        let newest = (from.base.0.wrapping_add(frame), from.base.1.wrapping_add(time));
        let oldest = (newest.0.wrapping_sub(frames), newest.1.wrapping_sub(span));
        from.base = newest;
        from.know([newest, oldest]);
        [*client_is_low, *timestamps, *reused] = known;
        *legs = best.map(Value::of);
        (*last, *first) = (At::of(Some(newest)), At::of(Some(oldest)));
        *roles_by = Pack::unpack(from);
        *closed_by = closed.then(|| Pack::unpack(from));
        *shared = Pack::unpack(from);
        counts.iter_mut().for_each(|side| *side = Pack::unpack(from));
        if unasked {
            asked.clear();
        } else {
            *asked = Pack::unpack(from);
        }
        *tracking = Pack::unpack(from);
        from.base = oldest;
        *setup = set_up.then(|| Pack::unpack(from));
        from.base = newest;
        for (flow, scaled) in flows.iter_mut().zip([low_scaled, high_scaled]) {
            *flow = if for_row && !long {
                Flow::for_row(scaled)
            } else {
                Pack::unpack(from)
            };
        }
        *setting_up = true; // the next segment tells
        if !for_row {
            say_mss(counts, *timestamps);
        }
    }
}
