//! Any other protocol: a message is all that one side sends until the other side sends, or until it
//! closes. Reads lengths only; cannot see pipelining, nor where a message ends inside a turn.

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Close, Listener, MessageReader, Outcome, Side, Stretch};

/// Nothing to remember: the sink knows whose turn it is.
#[derive(Debug)]
pub(super) struct Turns;

impl MessageReader for Turns {
    #[inline(never)]
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, piece: Stretch<'a>) -> Outcome<'a> {
        // An empty rest, left by a reader that lost its way inside a message, still shows who speaks.
        if sink.is_open() || !piece.is_empty() {
            sink.end_other();
        }
        sink.count(piece.len());
        Outcome::All
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        match how {
            Close::Fin => sink.end(),
            Close::Rst | Close::CaptureEnd => sink.cut(how),
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {}
}

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::FtpData,
    reader: |_| AnyReader::FtpData(Box::default()),
    ..Recognition::NEVER
};

/// A data connection of FTP (RFC 959 3.2): its bytes are a file or a listing, whatever they look like, so no protocol is
/// looked for. The control connection announces it.
#[derive(Debug, Default)]
pub(super) struct DataConnection;

impl MessageReader for DataConnection {
    fn feed<'a>(&mut self, sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        Turns.feed(sink, stretch)
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        Turns.close(sink, how);
    }

    fn resume(&mut self, _side: Side, _inside: bool) {}
}
