//! PostgreSQL's protocol, versions 3.0 to 3.2 (its documentation, "Frontend/Backend Protocol"). Each message begins
//! with a type byte and a 4-byte length; the client's first ones have no type. One exchange is a simple query, or one
//! statement of the extended protocol, however many are sent together, or a round of the log-in. Notices and
//! notifications are pushes. This file finds the messages; `dialog.rs` reads them.

mod dialog;
mod fields;

use super::length_prefixed::{LengthPrefixed, Progress};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, Guess, Listener, MessageReader, Outcome, Side, Stretch, sql};
use super::{Stop, feed_outcome};
use dialog::Dialog;
use fields::{Opening, TYPE_AND_LENGTH};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Postgres,
    sniff: |first| match first.side {
        Side::Client => fields::sniff(first.input),
        Side::Server => Guess::No,
    },
    begins_message: |side, first| {
        fields::are_messages(side, first)
            || side == Side::Client && first.len() >= 8 && fields::sniff(first) == Guess::Yes
    },
    begins_inside_turn: |_, _| false, // the same bytes may stand inside a row
    reader: |_| AnyReader::Postgres(Box::default()),
    ..Recognition::NEVER
};
/// Upper bound on the bytes kept of messages without a statement: names of channels, parameters, fields of errors.
const MAX_KEPT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Postgres {
    sides: BySide<Half>,
    /// The client's message without a type: length and version.
    opening: LengthPrefixed<8>,
    stage: Stage,
    dialog: Dialog,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    message: LengthPrefixed<TYPE_AND_LENGTH>,
    /// Bytes of the present message that were not given to the sink yet.
    unreported: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was read.
    #[default]
    New,
    /// The client sends messages without a type.
    Opening,
    /// The client has requested encryption: one byte answers.
    Encrypt,
    /// The client has cancelled another connection's query, and sends no more.
    Cancel,
    /// Both sides send messages with a type.
    Typed,
}

impl MessageReader for Postgres {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let side = sink.side();
        if self.stage == Stage::New {
            let opens = |bytes: &[u8]| side == Side::Client && fields::sniff(bytes) != Guess::No;
            let begins = matches!(stretch, Stretch::Bytes(bytes) if opens(bytes));
            self.stage = if begins { Stage::Opening } else { Stage::Typed };
        }
        let read = match (stretch, self.stage, side) {
            (Stretch::Bytes(bytes), Stage::Opening, Side::Client) => self.read_opening(&mut sink, bytes),
            (Stretch::Bytes(bytes), Stage::Encrypt, Side::Server) => {
                self.encryption_response(&mut sink, bytes)
            }
            (_, Stage::Cancel, _) => return Outcome::All,
            (Stretch::Bytes(bytes), Stage::Typed, _) => self.read_messages(&mut sink, bytes),
            (Stretch::Missing(missing), Stage::Typed, _) => self.skip_hole(&mut sink, missing),
            _ => Err(Stop::Lost("not a message of PostgreSQL", None)),
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut Sink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        let dialog = std::mem::take(&mut self.dialog).after_loss();
        *self = Postgres {
            dialog,
            stage: Stage::Typed,
            ..Postgres::default()
        };
    }
}

impl Postgres {
    /// Reads the client's messages without a type.
    fn read_opening<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let before = bytes;
        sink.mark();
        let progress = self.opening.next(&mut bytes, |header| {
            let (_, len) = fields::opening(*header)?;
            Some((u64::from(len) - 8, sql::MAX_READ))
        });
        self.sides.client.unreported += (before.len() - bytes.len()) as u64;
        match progress {
            Progress::Wrong => return Err(Stop::Lost("not a startup packet", Some(before))),
            Progress::Partly => return Ok(()),
            Progress::Whole => {}
        }
        self.stage = match fields::opening(*self.opening.header()) {
            Some((Opening::Encrypt, _)) => Stage::Encrypt,
            Some((Opening::Cancel, _)) => Stage::Cancel,
            _ => Stage::Typed,
        };
        if self.stage == Stage::Cancel {
            sink.unmark();
        } else {
            let bytes = std::mem::take(&mut self.sides.client.unreported);
            let database = fields::database(self.opening.head());
            match self.stage {
                Stage::Typed => self.dialog.connect(sink, database, bytes)?,
                _ => self.dialog.handshake(sink, bytes)?,
            }
        }
        match (bytes.is_empty(), self.stage) {
            (true, _) | (_, Stage::Cancel) => Ok(()),
            (_, Stage::Typed) => self.read_messages(sink, bytes),
            _ => Err(Stop::Lost("not a message of PostgreSQL", Some(bytes))),
        }
    }

    /// Reads the server's response to a request for encryption.
    fn encryption_response<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        match bytes {
            b"S" => {
                self.dialog.end_round(sink, 1);
                Err(Stop::Encrypted(&[]))
            }
            // refused: the log-in continues unencrypted
            b"N" => {
                self.dialog.end_round(sink, 1);
                self.stage = Stage::Opening;
                Ok(())
            }
            [b'E', ..] => {
                self.stage = Stage::Typed;
                self.read_messages(sink, bytes)
            }
            _ => Err(Stop::Lost("encrypted, but not with TLS", Some(bytes))),
        }
    }

    fn read_messages<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        while !bytes.is_empty() {
            sink.mark();
            let (before, half) = (bytes, &mut self.sides[side]);
            let progress = half.message.next(&mut bytes, |header| {
                Some((fields::body_length(side, header)?, kept_bytes(side, header)))
            });
            half.unreported += (before.len() - bytes.len()) as u64;
            if progress == Progress::Wrong {
                return Err(Stop::Lost("not a message of PostgreSQL", Some(before)));
            }
            self.read_message(sink, progress)?;
        }
        Ok(())
    }

    fn skip_hole(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) -> Result<(), Stop<'static>> {
        let half = &mut self.sides[sink.side()];
        let progress = half
            .message
            .skip(missing)
            .ok_or(Stop::Lost("a message's beginning is not in the capture", None))?;
        half.unreported += missing;
        self.read_message(sink, progress)
    }

    /// Handles the sender's message after each read: reports rows as they arrive, and a whole message to the dialog.
    fn read_message(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        progress: Progress,
    ) -> Result<(), Stop<'static>> {
        let side = sink.side();
        let Half { message, unreported } = &self.sides[side];
        let (is_whole, bytes) = (progress == Progress::Whole, *unreported);
        let [kind, ..] = *message.header();
        match side {
            Side::Client if is_whole => self.dialog.read_client_message(sink, kind, message, bytes)?,
            Side::Server if is_whole => self.dialog.read_server_message(sink, kind, message, bytes),
            // the answer begins with the first byte of a row, not with its last
            Side::Server
                if message.is_inside()
                    && matches!(kind, b'D' | b'd')
                    && self.dialog.count_answer(sink, bytes) => {}
            _ => return Ok(()),
        }
        self.sides[side].unreported = 0;
        if is_whole {
            sink.unmark();
        }
        Ok(())
    }
}

/// Returns how many bytes of a message's body are kept.
fn kept_bytes(side: Side, header: &[u8; TYPE_AND_LENGTH]) -> usize {
    match (side, header) {
        (Side::Client, [b'Q' | b'P' | b'B', ..]) => sql::MAX_READ,
        (Side::Client, [b'E' | b'D' | b'C', ..])
        | (Side::Server, [b'C' | b'E' | b'N' | b'A' | b'S' | b'Z' | b'R', ..]) => MAX_KEPT,
        (Side::Server, [b'd', ..]) => 1,
        _ => 0,
    }
}
