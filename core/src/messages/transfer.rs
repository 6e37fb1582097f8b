//! A data connection of another one's request (FTP, RFC 959 3.2): all its bytes are a
//! file's or a listing's, whatever they look like: turns, and no protocol's requests. It is known by the other connection alone.

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Close, Guess, Listener, MessageReader, Read, Side, Stretch, turns};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::FtpData,
    sniff: |_| Guess::No,
    opens: |_, _| false,
    resumes: |_, _| false,
    joins: |_, _| false,
    reader: |_| AnyReader::FtpData(Box::default()),
};

#[derive(Debug, Default)]
pub(super) struct Transfer;

impl MessageReader for Transfer {
    fn feed<'a>(&mut self, sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Read<'a> {
        turns::Turns.feed(sink, stretch)
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        turns::Turns.close(sink, how);
    }

    fn resume(&mut self, _side: Side, _inside: bool) {}
}
