//! MySQL's client/server protocol, and MariaDB's: the log-in is one exchange, each command with all its result sets
//! another. Reads packets here; what they mean stands in `dialog.rs`.

mod dialog;
mod packets;

use super::length_prefixed::{LengthPrefixed, Progress};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{BySide, Close, Guess, Listener, MessageReader, Outcome, Side, Stretch, proxy, sql};
use super::{Stop, feed_outcome};
use dialog::{Asks, Dialog};
use packets::HEADER;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::MySql,
    sniff: |first| match (first.side, first.began) {
        (Side::Server, Side::Server) if first.other.is_empty() => packets::greets(first.input),
        (Side::Client, Side::Client) => packets::logs_in(first.input),
        _ => Guess::No,
    },
    begins_message: |side, first| side == Side::Client && packets::begins_message(first),
    begins_inside_turn: |_, _| false, // what looks like it may lie inside a row
    reader: |_| AnyReader::MySql(Box::default()),
    ..Recognition::NEVER
};
/// So much of an answer's packet is kept: its kind, its flags, an error's number, the server's greeting.
const MAX_KEPT: usize = 128;

#[derive(Debug, Default)]
pub(super) struct MySql {
    sides: BySide<Half>,
    dialog: Dialog,
}

/// One side.
#[derive(Debug, Default)]
struct Half {
    prefixed: LengthPrefixed<HEADER>,
    /// Bytes of packets that no note covers yet.
    unreported: u64,
    /// The packet before was as long as one can be: this one goes on with it.
    long: bool,
}

impl MessageReader for MySql {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let read = match stretch {
            Stretch::Bytes(bytes) => self.packets(&mut sink, bytes),
            Stretch::Missing(missing) => match self.sides[sink.side()].prefixed.skip(missing) {
                Some(come) => {
                    self.sides[sink.side()].unreported += missing;
                    self.come(&mut sink, come, &[])
                }
                None => Err(Stop::Lost("a packet's beginning is not in the capture", None)),
            },
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        let dialog = std::mem::take(&mut self.dialog).again();
        *self = MySql {
            dialog,
            ..MySql::default()
        };
    }
}

impl MySql {
    fn packets<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        let kept = if side == Side::Client {
            if self.dialog.is_new() {
                // MariaDB greets as soon as it accepts, a proxy's head comes behind that
                bytes = proxy::skip_head(sink, bytes);
            }
            sql::MAX_READ
        } else {
            MAX_KEPT
        };
        while !bytes.is_empty() {
            sink.mark();
            let (here, half) = (bytes, &mut self.sides[side]);
            let come = half.prefixed.next(&mut bytes, |header| {
                Some((u64::from(packets::length(header)), kept))
            });
            half.unreported += (here.len() - bytes.len()) as u64;
            let read = self.come(sink, come, bytes);
            read.map_err(|left| match left {
                // the packets before it are counted
                Stop::Lost(reason, None) => Stop::Lost(reason, Some(here)),
                left => left,
            })?;
        }
        Ok(())
    }

    /// A packet of the side that speaks has come so far; the `rest` is behind it.
    fn come<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        come: Progress,
        rest: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        let half = match side {
            Side::Client => &mut self.sides.client,
            Side::Server => &mut self.sides.server,
        };
        let bytes = half.unreported;
        if come != Progress::Whole {
            // rows: their first byte counts
            if side == Side::Server && half.prefixed.is_inside() && self.dialog.part(sink, bytes) {
                half.unreported = 0;
            }
            return Ok(());
        }
        half.unreported = 0;
        let goes_on = std::mem::replace(&mut half.long, packets::is_long(half.prefixed.header()));
        let result = match (side, goes_on) {
            (Side::Client, true) => {
                self.dialog.more(sink, bytes);
                Ok(())
            }
            (Side::Client, false) => match self.dialog.asks(sink, &half.prefixed, bytes) {
                // the handshake begins with what asks for it
                Asks::Encryption => return Err(Stop::Encrypted(rest)),
                Asks::Fits => Ok(()),
                Asks::Alone => return Ok(()),
                Asks::Wrong(reason) => Err(Stop::Lost(reason, None)),
            },
            (Side::Server, true) => {
                self.dialog.part(sink, bytes);
                Ok(())
            }
            (Side::Server, false) => match self.dialog.answers(sink, &half.prefixed, bytes) {
                Ok(()) => Ok(()),
                Err(reason) => Err(Stop::Lost(reason, Some(rest))),
            },
        };
        sink.unmark();
        result
    }
}
