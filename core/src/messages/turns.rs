//! The fallback for unknown protocols. A message is a turn: all that one side sends until the other side sends or the
//! side closes. Reads lengths only, so pipelined requests in one turn count as one message.

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Close, Listener, MessageReader, Outcome, Side, Stretch};

/// Has no state: the sink knows which side's message is open.
#[derive(Debug)]
pub(super) struct Turns;

impl MessageReader for Turns {
    #[inline(never)]
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        // a reader that is lost inside a message may leave an empty rest; it shows which side sends all the same
        if sink.is_open() || !stretch.is_empty() {
            sink.end_other();
        }
        sink.count(stretch.len());
        Outcome::All
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
        match how {
            Close::Fin => sink.end(),
            Close::Rst | Close::CaptureEnd => sink.cut(how),
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {}
}

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::FtpData,
    reader: |_| AnyReader::FtpData(Box::default()),
    ..Recognition::NEVER
};

/// A data connection of FTP (RFC 959 3.2), announced on the control connection. Its bytes are a file or a listing, so
/// no protocol is searched in them.
#[derive(Debug, Default)]
pub(super) struct DataConnection;

impl MessageReader for DataConnection {
    fn feed<'a>(&mut self, sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        Turns.feed(sink, stretch)
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
        Turns.close(sink, how);
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {}
}
