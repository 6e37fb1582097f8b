//! All streams by their numbers. Those that spoke lately lie open; the others rest, packed into as few bytes as their
//! state needs: the SYN of a flood takes 110 bytes, a connection that was closed some 240.

use std::collections::VecDeque;

use super::counts::say_mss;
use super::{Endpoint, Stream, Tracking};
use crate::exchange::Ledger;
use crate::messages::At;
use crate::pack::{Base, Pack, Packer, Unpacker, Words, packed};

/// Streams that lie open; beyond it the one that was quiet for longest goes to rest.
pub const MOST_AWAKE: usize = 4096;
/// Of them so many that are over, for what comes a round trip late; the next ones to open lie where they lay, in the
/// processor's cache.
const MOST_OVER: usize = 128;

pub enum Slot {
    Awake(Box<Stream>),
    Resting(Box<[u8]>),
    /// With somebody who follows its data, and has to be told when the capture ends.
    Following(Box<[u8]>),
    /// Its row was handed on.
    Given,
}

pub(super) struct Store {
    slots: Vec<Slot>,
    /// The streams that lie open, and the newest packet of each when it was put here.
    awake: VecDeque<(u32, u64)>,
    over: VecDeque<u32>,
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
            awake: VecDeque::new(),
            over: VecDeque::new(),
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

    pub(super) fn open(&mut self, stream: Stream) -> u32 {
        if self.slots.is_empty() {
            self.base = (stream.last.frame, stream.last.time_ns);
        }
        let id = self.slots.len() as u32;
        self.make_room();
        self.awake.push_back((id, stream.last.frame));
        self.slots.push(Slot::Awake(Box::new(stream)));
        id
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
        self.unpack(slot)
    }

    /// The same, as it lies here.
    fn leave(&mut self, id: u32) -> Slot {
        let slot = self.slots.get_mut(id as usize);
        slot.map_or(Slot::Given, |slot| std::mem::replace(slot, Slot::Given))
    }

    pub(super) fn unpack(&self, slot: Slot) -> Option<Box<Stream>> {
        match slot {
            Slot::Awake(stream) => Some(stream),
            Slot::Resting(packed) | Slot::Following(packed) => {
                let mut from = Unpacker::new(&packed, &self.words, self.base);
                Some(Box::new(Stream::unpack(&mut from)))
            }
            Slot::Given => None,
        }
    }

    /// What does not change, and tells streams apart.
    pub(super) fn head(&self, id: u32) -> Option<Head> {
        match self.slots.get(id as usize)? {
            Slot::Awake(stream) => Some(stream.head()),
            Slot::Resting(packed) | Slot::Following(packed) => {
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
                    self.rest(id, stream);
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
            self.rest(id, stream);
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
                self.rest(id, stream);
            }
        }
    }

    fn put(&mut self, id: u32, slot: Slot) {
        if let Some(place) = self.slots.get_mut(id as usize) {
            *place = slot;
        }
    }

    fn rest(&mut self, id: u32, stream: Box<Stream>) {
        let mut packer = Packer::new(&mut self.scratch, &mut self.words, self.base);
        stream.pack(&mut packer);
        let packed = Box::from(packer.finish());
        let slot = match stream.tracking {
            Tracking::Live(_) => Slot::Following(packed),
            _ => Slot::Resting(packed),
        };
        self.put(id, slot);
    }
}

/// The smaller and the larger endpoint, and the first sequence number of each.
pub(super) struct Head {
    pub(super) low: Endpoint,
    pub(super) high: Endpoint,
    pub(super) bases: [Option<u32>; 2],
}

packed!(struct Head { low, high, bases });

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

impl Pack for Stream {
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
        self.head().pack(to); // first: `Store::head` reads no further
        last.pack(to);
        to.base = (last.frame, last.time_ns);
        first.pack(to);
        flows.pack(to);
        shared.pack(to);
        client_is_low.pack(to);
        roles_by.pack(to);
        counts.pack(to);
        legs.pack(to);
        timestamps.pack(to);
        closed_by.pack(to);
        reused.pack(to);
        setup.pack(to);
        asked.pack(to);
        tracking.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let Head { low, high, .. } = Pack::unpack(from);
        let last = At::unpack(from);
        from.base = (last.frame, last.time_ns);
        // in the order of `pack`
        let mut stream = Stream {
            low,
            high,
            last,
            first: Pack::unpack(from),
            flows: Pack::unpack(from),
            shared: Pack::unpack(from),
            client_is_low: Pack::unpack(from),
            roles_by: Pack::unpack(from),
            counts: Pack::unpack(from),
            legs: Pack::unpack(from),
            timestamps: Pack::unpack(from),
            closed_by: Pack::unpack(from),
            reused: Pack::unpack(from),
            setup: Pack::unpack(from),
            setting_up: true, // the next segment tells
            asked: Pack::unpack(from),
            tracking: Pack::unpack(from),
        };
        say_mss(&mut stream.counts, stream.timestamps);
        stream
    }
}
