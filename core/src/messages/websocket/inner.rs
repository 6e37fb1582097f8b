//! A protocol that the messages of a WebSocket carry (MQTT 3.1.1 6.0: in any frames, also one packet in several). Knows it
//! by the client's first message; reads the payloads of each side as one stream.

use crate::messages::framed::Framed;
use crate::messages::mqtt::{self, Mqtt};
use crate::messages::readers::Protocol;
use crate::messages::sink::MessageSink;
use crate::messages::{Listener, MessageReader, Read, Side, Stretch};

#[derive(Debug, Default)]
pub(super) enum Inner {
    /// no note was given yet.
    #[default]
    Unknown,
    /// None that is known.
    Other,
    Mqtt(Box<Framed<Mqtt>>),
}

impl Inner {
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Inner::Mqtt(_))
    }

    /// Whether it wants to see what the messages say.
    pub(super) fn reads(&self) -> bool {
        !matches!(self, Inner::Other)
    }

    pub(super) fn protocol(&self) -> Option<Protocol> {
        matches!(self, Inner::Mqtt(_)).then_some(Protocol::Mqtt)
    }

    /// The next bytes of a message of this side, `plain` where they are not compressed.
    pub(super) fn read(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: &[u8], plain: bool) {
        if matches!(self, Inner::Unknown) {
            *self = Inner::Other;
            if plain && sink.side() == Side::Client && mqtt::may_connect(bytes) {
                sink.protocol(Protocol::Mqtt);
                *self = Inner::Mqtt(Box::default());
            }
        }
        self.feed(sink, Stretch::Bytes(bytes));
    }

    /// So many bytes of a message of this side are not in the capture.
    pub(super) fn missing(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        self.feed(sink, Stretch::Missing(missing));
    }

    fn feed(&mut self, sink: &mut MessageSink<'_, impl Listener>, stretch: Stretch<'_>) {
        let Inner::Mqtt(reader) = self else { return };
        if !matches!(reader.feed(sink.lend(), stretch), Read::All) {
            sink.unmark();
            sink.protocol(Protocol::WebSocket);
            *self = Inner::Other;
        }
    }
}
