//! Multipath TCP (RFC 8684): parts of a message may be sent on several connections (subflows). Records which streams
//! support it, and whether a subflow was added to any connection.

use ahash::AHashSet;

/// Upper bound on the streams kept.
const MAX_STREAMS: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct MultipathStreams {
    /// Streams whose two hosts support it.
    streams: AHashSet<u32>,
    /// Some stream was added to another connection.
    pub joined: bool,
}

impl MultipathStreams {
    /// The server has accepted the option on this stream; `joins`: as a further subflow.
    #[cold]
    pub fn agreed(&mut self, stream: u32, joins: bool) {
        if self.streams.len() < MAX_STREAMS {
            self.streams.insert(stream);
        }
        self.joined |= joins;
    }

    /// Whether parts of this stream's messages may be on other streams.
    pub fn is_spread(&self, stream: u32) -> bool {
        self.joined && self.streams.contains(&stream)
    }
}
