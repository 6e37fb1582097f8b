//! The words between packets and messages: who speaks, which packet brought a byte, what a reader says of them.

use smol_str::SmolStr;

use crate::base::{At, Side};

/// The next stretch of one side's stream, in order and without overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Bytes(&'a [u8]),
    /// So many bytes were on the wire but are not in the capture (snap length, or the capture dropped a frame).
    Missing(u64),
}

impl Piece<'_> {
    /// Bytes on the wire.
    pub fn len(self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Missing(len) => len,
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Why a side's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    Fin,
    Rst,
    CaptureEnd,
}

/// What a reader says, in the order of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// The first byte of a message of this side, and how far the other side's open message has come: its newest
    /// packet, and its bytes until then.
    Begin {
        side: Side,
        at: At,
        other: Option<(At, u64)>,
    },
    /// The request line of the client's newest message.
    Request {
        method: &'a SmolStr,
        target: &'a SmolStr,
    },
    /// The client's newest message begins a dialogue (a handshake): the answer ends when it is over, and
    /// either side may have said the last word (`End` is of the server's message all the same).
    Dialogue,
    /// The status line of the server's newest message; `interim` for 1xx, which does not answer the request
    /// (but 101 does: it is the last word of HTTP on its connection, and `Lost` follows its `End`).
    Response { status: u16, interim: bool },
    /// The message's last byte. `bytes` counts heads and bodies as on the wire.
    End { side: Side, at: At, bytes: u64 },
    /// The message stopped before its end (`at` is its last byte that was seen).
    Cut {
        side: Side,
        at: At,
        bytes: u64,
        by: Close,
    },
    /// From here on the reader cannot follow the messages of this stream, and why (lower-case phrase).
    Lost {
        side: Side,
        at: At,
        reason: &'static str,
    },
    /// What this stream speaks from here on, as far as it is known.
    Protocol(&'static str),
}
