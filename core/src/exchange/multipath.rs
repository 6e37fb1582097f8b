//! Multipath TCP (RFC 8684): a message may pass in parts, each on a connection of its own. Which connections may be one,
//! and whether any path was added to another.

use ahash::AHashSet;

/// Streams that are remembered.
const MAX_STREAMS: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct MultipathStreams {
    /// Both hosts support it.
    streams: AHashSet<u32>,
    /// One of them was added to another.
    pub joined: bool,
}

impl MultipathStreams {
    /// A server has agreed to this stream; `joins`: as a further path.
    #[cold]
    pub fn agreed(&mut self, stream: u32, joins: bool) {
        if self.streams.len() < MAX_STREAMS {
            self.streams.insert(stream);
        }
        self.joined |= joins;
    }

    /// Whether the messages of this stream may pass in parts on others.
    pub fn is_spread(&self, stream: u32) -> bool {
        self.joined && self.streams.contains(&stream)
    }
}
