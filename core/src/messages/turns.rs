//! Any other protocol: a message is all that one side says until the other side speaks, or until it
//! closes. Reads lengths only; cannot see pipelining, nor where a message ends inside a turn.

use super::pen::Pen;
use super::{Close, Listener, Piece, Read, Reader, Side};

/// Nothing to remember: the pen knows whose turn it is.
#[derive(Debug)]
pub(super) struct Turns;

impl Reader for Turns {
    fn name(&self) -> &'static str {
        "turns"
    }

    #[inline(never)]
    fn feed<'a>(&mut self, mut pen: Pen<'_, impl Listener>, piece: Piece<'a>) -> Read<'a> {
        // An empty rest, left by a reader that lost its way inside a message, still shows who speaks.
        if pen.is_open() || !piece.is_empty() {
            pen.end_other();
        }
        pen.count(piece.len());
        Read::All
    }

    fn close(&mut self, pen: &mut Pen<'_, impl Listener>, how: Close) {
        match how {
            Close::Fin => pen.end(),
            Close::Rst | Close::CaptureEnd => pen.cut(how),
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {}
}
