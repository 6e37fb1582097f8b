//! A protocol inside the messages of a WebSocket: MQTT (3.1.1 6.0; its packets are independent of the frames) or STOMP.
//! Recognised by the client's first message. The payloads of each side are read as one stream.

use crate::messages::framed::Framed;
use crate::messages::mqtt::{self, Mqtt};
use crate::messages::readers::Protocol;
use crate::messages::sink::Sink;
use crate::messages::stomp::{self, Stomp};
use crate::messages::{Listener, MessageReader, Outcome, Side, Stretch};

#[derive(Debug)]
pub(super) enum Inner {
    /// Not decided yet; the bytes may be the beginning of a command of STOMP.
    Unknown(Vec<u8>),
    /// No known protocol.
    Other,
    Mqtt(Box<Framed<Mqtt>>),
    Stomp(Box<Stomp>),
}

impl Default for Inner {
    fn default() -> Self {
        Inner::Unknown(Vec::new())
    }
}

impl Inner {
    pub(super) fn is_known(&self) -> bool {
        self.protocol().is_some()
    }

    /// Whether the payload has to be passed to `read`.
    pub(super) fn needs_payload(&self) -> bool {
        !matches!(self, Inner::Other)
    }

    pub(super) fn protocol(&self) -> Option<Protocol> {
        match self {
            Inner::Unknown(_) | Inner::Other => None,
            Inner::Mqtt(_) => Some(Protocol::Mqtt),
            Inner::Stomp(_) => Some(Protocol::Stomp),
        }
    }

    /// Reads the next bytes of a message. `is_plain`: they are not compressed.
    pub(super) fn read(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &[u8], is_plain: bool) {
        if let Inner::Unknown(undecided) = self {
            let mut first = std::mem::take(undecided);
            first.extend_from_slice(bytes);
            *self = match (is_plain && sink.side() == Side::Client, stomp::is_connect(&first)) {
                (true, _) if mqtt::may_connect(&first) => Inner::Mqtt(Box::default()),
                (true, Some(true)) => Inner::Stomp(Box::default()),
                (true, None) => return *self = Inner::Unknown(first),
                _ => Inner::Other,
            };
            if let Some(protocol) = self.protocol() {
                sink.protocol(protocol);
            }
            return self.feed(sink, Stretch::Bytes(&first));
        }
        self.feed(sink, Stretch::Bytes(bytes));
    }

    /// Passes over a hole in the messages of this side.
    pub(super) fn skip_hole(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) {
        self.feed(sink, Stretch::Missing(missing));
    }

    fn feed(&mut self, sink: &mut Sink<'_, impl Listener>, stretch: Stretch<'_>) {
        let read = match self {
            Inner::Unknown(_) | Inner::Other => return,
            Inner::Mqtt(reader) => reader.feed(sink.lend(), stretch),
            Inner::Stomp(reader) => reader.feed(sink.lend(), stretch),
        };
        if !matches!(read, Outcome::All) {
            sink.unmark();
            sink.protocol(Protocol::WebSocket);
            *self = Inner::Other;
        }
    }
}
