//! One stream's segments with their payload, for whoever wants to read what was said. Takes events as the stream gives
//! them, keeps those of one stream until they are taken; knows nothing of order, repeats and holes.

use std::net::IpAddr;

use crate::stream::Event;

/// One segment, with the bytes that the capture holds of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub frame: u64,
    /// Sent by whoever sent the stream's first segment.
    pub from_first: bool,
    /// Relative and unwrapped, as in `events`.
    pub seq: i64,
    pub ack: i64,
    pub flags: u16,
    /// By the IP header, payload beyond the snap length included.
    pub len: u32,
    pub payload: Vec<u8>,
}

/// Collects one stream. What is in it is taken after each block, so it holds at most a block's payload.
#[derive(Debug)]
pub struct Watch {
    stream: u32,
    first: Option<(IpAddr, u16)>,
    seen: Vec<Seen>,
}

impl Watch {
    pub fn new(stream: u32) -> Self {
        Watch {
            stream,
            first: None,
            seen: Vec::new(),
        }
    }

    pub fn event(&mut self, event: &Event<'_>) {
        if event.stream != self.stream {
            return;
        }
        let segment = event.segment;
        let sender = (segment.src, segment.sport);
        self.seen.push(Seen {
            frame: event.at.frame,
            from_first: *self.first.get_or_insert(sender) == sender,
            seq: event.facts.seq,
            ack: event.facts.ack,
            flags: segment.flags,
            len: segment.len,
            payload: segment.payload.to_vec(),
        });
    }

    pub fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }
}
