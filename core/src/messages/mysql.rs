//! MySQL's client/server protocol (dev.mysql.com, "Client/Server Protocol"), and MariaDB's. Each packet begins with a
//! 3-byte length and a sequence number. The log-in is one exchange, and so is each command with all its result sets.
//! This file finds the packets; `dialog.rs` reads them.

mod dialog;
mod packets;

use super::length_prefixed::{LengthPrefixed, Progress};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, Guess, Listener, MessageReader, Outcome, Side, Stretch, proxy, sql};
use super::{Stop, feed_outcome};
use dialog::{ClientPacket, Dialog};
use packets::HEADER;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::MySql,
    sniff: |first| match (first.side, first.began) {
        (Side::Server, Side::Server) if first.other.is_empty() => packets::greets(first.input),
        (Side::Client, Side::Client) => packets::logs_in(first.input),
        _ => Guess::No,
    },
    begins_message: |side, first| side == Side::Client && packets::begins_message(first),
    begins_inside_turn: |_, _| false, // the same bytes may stand inside a row
    reader: |_| AnyReader::MySql(Box::default()),
    ..Recognition::NEVER
};
/// Upper bound on the bytes kept of a server's packet: enough for status flags, an error's code, the greeting.
const MAX_KEPT: usize = 128;

#[derive(Debug, Default)]
pub(super) struct MySql {
    sides: BySide<Half>,
    dialog: Dialog,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    packet: LengthPrefixed<HEADER>,
    /// Bytes of the packet that were not given to the sink yet.
    unreported: u64,
    /// The packet before had the maximum length, so this one continues it.
    continues: bool,
}

impl MessageReader for MySql {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let read = match stretch {
            Stretch::Bytes(bytes) => self.read_packets(&mut sink, bytes),
            Stretch::Missing(missing) => match self.sides[sink.side()].packet.skip(missing) {
                Some(progress) => {
                    self.sides[sink.side()].unreported += missing;
                    self.read_packet(&mut sink, progress, &[])
                }
                None => Err(Stop::Lost("a packet's beginning is not in the capture", None)),
            },
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut Sink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        let dialog = std::mem::take(&mut self.dialog).after_loss();
        *self = MySql {
            dialog,
            ..MySql::default()
        };
    }
}

impl MySql {
    fn read_packets<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        let kept = if side == Side::Client {
            if self.dialog.is_new() {
                // MariaDB greets as soon as it accepts, so a PROXY header arrives after the greeting
                bytes = proxy::skip_head(sink, bytes);
            }
            sql::MAX_READ
        } else {
            MAX_KEPT
        };
        while !bytes.is_empty() {
            sink.mark();
            let (before, half) = (bytes, &mut self.sides[side]);
            let progress = half.packet.next(&mut bytes, |header| {
                Some((u64::from(packets::length(header)), kept))
            });
            half.unreported += (before.len() - bytes.len()) as u64;
            self.read_packet(sink, progress, bytes)
                .map_err(|stop| match stop {
                    // only the packets before this one were read
                    Stop::Lost(reason, None) => Stop::Lost(reason, Some(before)),
                    stop => stop,
                })?;
        }
        Ok(())
    }

    /// Handles the sender's packet after each read: reports rows as they arrive, and a whole packet to the dialog.
    /// `rest` is what follows the packet.
    fn read_packet<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        progress: Progress,
        rest: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        let half = &mut self.sides[side];
        let bytes = half.unreported;
        if progress != Progress::Whole {
            // the answer begins with the first byte of a row, not with its last
            if side == Side::Server && half.packet.is_inside() && self.dialog.count_answer(sink, bytes) {
                half.unreported = 0;
            }
            return Ok(());
        }
        half.unreported = 0;
        let continues = std::mem::replace(&mut half.continues, packets::is_continued(half.packet.header()));
        let result = match (side, continues) {
            (Side::Client, true) => {
                self.dialog.count_continuation(sink, bytes);
                Ok(())
            }
            (Side::Client, false) => match self.dialog.read_client_packet(sink, &half.packet, bytes) {
                // the TLS handshake's exchange begins with the packet that requests it: the mark stays
                ClientPacket::SslRequest => return Err(Stop::Encrypted(rest)),
                ClientPacket::Read => Ok(()),
                ClientPacket::Unanswered => return Ok(()),
                ClientPacket::Wrong(reason) => Err(Stop::Lost(reason, None)),
            },
            (Side::Server, true) => {
                self.dialog.count_answer(sink, bytes);
                Ok(())
            }
            (Side::Server, false) => match self.dialog.read_server_packet(sink, &half.packet, bytes) {
                Ok(()) => Ok(()),
                Err(reason) => Err(Stop::Lost(reason, Some(rest))),
            },
        };
        sink.unmark();
        result
    }
}
