//! All streams by their numbers. Those that spoke lately lie open; the others rest, packed into as few bytes as their
//! state needs: the SYN of a flood takes 120 bytes, a connection that was closed some 330.

use std::collections::VecDeque;

use super::counts::mss_of;
use super::{Endpoint, Stream, Tracking};
use crate::exchange::Ledger;
use crate::messages::At;
use crate::pack::{Base, Pack, Packer, Unpacker, Words};

/// Streams that lie open; beyond it the one that was quiet for longest goes to rest.
pub const MOST_AWAKE: usize = 4096;

enum Slot {
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
    most_awake: usize,
    words: Words,
    packed: Vec<u8>,
    /// The first packet: ends and newest packet of a stream at rest are told from it.
    base: Base,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            slots: Vec::new(),
            awake: VecDeque::new(),
            most_awake: MOST_AWAKE,
            words: Words::default(),
            packed: Vec::new(),
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
        let slot = self.slots.get_mut(id as usize)?;
        match std::mem::replace(slot, Slot::Given) {
            Slot::Awake(stream) => Some(stream),
            Slot::Resting(packed) | Slot::Following(packed) => {
                let mut from = Unpacker::new(&packed, &self.words, self.base);
                Some(Box::new(Stream::unpack(&mut from)))
            }
            Slot::Given => None,
        }
    }

    /// The smaller and the larger endpoint.
    pub(super) fn ends(&self, id: u32) -> Option<(Endpoint, Endpoint)> {
        let packed = match self.slots.get(id as usize)? {
            Slot::Awake(stream) => return Some((stream.low, stream.high)),
            Slot::Resting(packed) | Slot::Following(packed) => packed,
            Slot::Given => return None,
        };
        Some(Pack::unpack(&mut Unpacker::new(packed, &self.words, self.base)))
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
        self.packed.clear();
        let mut packer = Packer::new(&mut self.packed, &mut self.words, self.base);
        stream.pack(&mut packer);
        packer.finish();
        let packed = Box::from(self.packed.as_slice());
        let slot = match stream.tracking {
            Tracking::Live(_) => Slot::Following(packed),
            _ => Slot::Resting(packed),
        };
        self.put(id, slot);
    }
}

impl Pack for Stream {
    fn pack(&self, to: &mut Packer<'_>) {
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
            timestamps,
            mss: _,
            closed_by,
            reused,
            setup,
            asked,
            tracking,
        } = self;
        (*low, *high).pack(to); // first: `Store::ends` reads no further
        last.pack(to);
        to.base = (last.frame, last.time_ns);
        first.pack(to);
        flows.pack(to);
        shared.pack(to);
        client_is_low.pack(to);
        roles_by.pack(to);
        counts.pack(to);
        timestamps.pack(to);
        closed_by.pack(to);
        reused.pack(to);
        setup.pack(to);
        asked.pack(to);
        tracking.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let (low, high) = Pack::unpack(from);
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
            timestamps: Pack::unpack(from),
            mss: 0,
            closed_by: Pack::unpack(from),
            reused: Pack::unpack(from),
            setup: Pack::unpack(from),
            asked: Pack::unpack(from),
            tracking: Pack::unpack(from),
        };
        stream.mss = mss_of(&stream.counts, stream.timestamps);
        stream
    }
}
