//! What every layer speaks of: the two sides of a connection, and instants.

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    pub fn index(self) -> usize {
        self as usize
    }
}

/// A packet: its frame, numbered from 1 as Wireshark does, and its time in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    pub frame: u64,
    pub time_ns: i64,
}
