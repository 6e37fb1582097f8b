//! PostgreSQL's protocol, versions 3.0 to 3.2: statements in simple queries, and in the extended protocol one by one
//! however many are sent together. Each round of the log-in is an exchange; notices and notifications are pushes. Reads messages
//! here; what they mean stands in `dialog.rs`.

mod dialog;
mod fields;
mod names;

use super::length_prefixed::{LengthPrefixed, Progress};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{Close, Guess, Listener, MessageReader, Outcome, Side, Stretch, sql};
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
        fields::chain(side, first)
            || side == Side::Client && first.len() >= 8 && fields::sniff(first) == Guess::Yes
    },
    begins_inside_turn: |_, _| false, // what looks like it may lie inside a row
    reader: |_| AnyReader::Postgres(Box::default()),
    ..Recognition::NEVER
};
/// So much of other messages is kept: names of channels, parameters and fields.
const MAX_KEPT: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Postgres {
    client: LengthPrefixed<TYPE_AND_LENGTH>,
    server: LengthPrefixed<TYPE_AND_LENGTH>,
    /// The client's first words have no type.
    opening: LengthPrefixed<8>,
    stage: Stage,
    /// Bytes of a message that no note covers yet, by `Side`.
    unreported: [u64; 2],
    dialog: Dialog,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was read.
    #[default]
    New,
    /// The client speaks without types.
    Opening,
    /// It has requested encryption: one byte answers.
    Encrypt,
    /// It wants another connection's query to end, and sends no more.
    Cancel,
    Typed,
}

impl MessageReader for Postgres {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let side = sink.side();
        if self.stage == Stage::New {
            let opens = |bytes: &[u8]| side == Side::Client && fields::sniff(bytes) != Guess::No;
            let begins = matches!(stretch, Stretch::Bytes(bytes) if opens(bytes));
            self.stage = if begins { Stage::Opening } else { Stage::Typed };
        }
        let read = match (stretch, self.stage, side) {
            (Stretch::Bytes(bytes), Stage::Opening, Side::Client) => self.opening(&mut sink, bytes),
            (Stretch::Bytes(bytes), Stage::Encrypt, Side::Server) => self.encrypts(&mut sink, bytes),
            (_, Stage::Cancel, _) => return Outcome::All,
            (Stretch::Bytes(bytes), Stage::Typed, _) => self.messages(&mut sink, bytes),
            (Stretch::Missing(missing), Stage::Typed, _) => self.missing(&mut sink, missing),
            _ => Err(Stop::Lost("not a message of PostgreSQL", None)),
        };
        feed_outcome(read, &mut sink, stretch)
    }

    fn close(&mut self, _sink: &mut MessageSink<'_, impl Listener>, _how: Close) {}

    fn resume(&mut self, _side: Side, _inside: bool) {
        let dialog = std::mem::take(&mut self.dialog).again();
        *self = Postgres {
            dialog,
            stage: Stage::Typed,
            ..Postgres::default()
        };
    }
}

impl Postgres {
    fn unreported(&mut self, side: Side) -> &mut u64 {
        let [client, server] = &mut self.unreported;
        if side == Side::Client { client } else { server }
    }

    fn opening<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let here = bytes;
        sink.mark();
        let come = self.opening.next(&mut bytes, |header| {
            let (_, len) = fields::opening(*header)?;
            Some((u64::from(len) - 8, sql::MAX_READ))
        });
        *self.unreported(Side::Client) += (here.len() - bytes.len()) as u64;
        match come {
            Progress::Wrong => return Err(Stop::Lost("not a startup packet", Some(here))),
            Progress::Partly => return Ok(()),
            Progress::Whole => {}
        }
        self.stage = match fields::opening(*self.opening.header()) {
            Some((Opening::Encrypt, _)) => Stage::Encrypt,
            Some((Opening::Cancel, _)) => Stage::Cancel,
            _ => Stage::Typed,
        };
        if self.stage == Stage::Typed {
            let bytes = std::mem::take(self.unreported(Side::Client));
            self.dialog
                .starts(sink, fields::database(self.opening.head()), bytes)?;
        }
        if self.stage == Stage::Encrypt {
            let bytes = std::mem::take(self.unreported(Side::Client));
            self.dialog.round(sink, bytes)?;
        }
        if self.stage == Stage::Cancel {
            sink.unmark();
        }
        match (bytes.is_empty(), self.stage) {
            (true, _) | (_, Stage::Cancel) => Ok(()),
            (_, Stage::Typed) => self.messages(sink, bytes),
            _ => Err(Stop::Lost("not a message of PostgreSQL", Some(bytes))),
        }
    }

    /// The answer to a request for encryption.
    fn encrypts<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        match bytes {
            b"S" => {
                self.dialog.round_over(sink, 1);
                Err(Stop::Encrypted(&[]))
            }
            // refused: the log-in goes on in the clear
            b"N" => {
                self.dialog.round_over(sink, 1);
                self.stage = Stage::Opening;
                Ok(())
            }
            [b'E', ..] => {
                self.stage = Stage::Typed;
                self.messages(sink, bytes)
            }
            _ => Err(Stop::Lost("encrypted, but not with TLS", Some(bytes))),
        }
    }

    fn messages<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), Stop<'a>> {
        let side = sink.side();
        while !bytes.is_empty() {
            sink.mark();
            let (here, prefixed) = match side {
                Side::Client => (bytes, &mut self.client),
                Side::Server => (bytes, &mut self.server),
            };
            let come = prefixed.next(&mut bytes, |header| {
                Some((fields::body(side, header)?, kept(side, header)))
            });
            *self.unreported(side) += (here.len() - bytes.len()) as u64;
            if come == Progress::Wrong {
                return Err(Stop::Lost("not a message of PostgreSQL", Some(here)));
            }
            self.come(sink, come)?;
        }
        Ok(())
    }

    fn missing(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        missing: u64,
    ) -> Result<(), Stop<'static>> {
        let prefixed = match sink.side() {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let come = prefixed
            .skip(missing)
            .ok_or(Stop::Lost("a message's beginning is not in the capture", None))?;
        *self.unreported(sink.side()) += missing;
        self.come(sink, come)
    }

    /// A message of the side that speaks has come so far.
    fn come(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        come: Progress,
    ) -> Result<(), Stop<'static>> {
        let side = sink.side();
        let (whole, bytes) = (come == Progress::Whole, *self.unreported(side));
        let prefixed = if side == Side::Client {
            &self.client
        } else {
            &self.server
        };
        let [kind, ..] = *prefixed.header();
        match side {
            Side::Client if whole => self.dialog.asks(sink, kind, prefixed, bytes)?,
            Side::Server if whole => self.dialog.answers(sink, kind, prefixed, bytes),
            // rows: their first byte counts
            Side::Server
                if prefixed.is_inside() && matches!(kind, b'D' | b'd') && self.dialog.part(sink, bytes) => {}
            _ => return Ok(()),
        }
        *self.unreported(side) = 0;
        if whole {
            sink.unmark();
        }
        Ok(())
    }
}

/// How much of a message's body is kept.
fn kept(side: Side, header: &[u8; TYPE_AND_LENGTH]) -> usize {
    match (side, header) {
        (Side::Client, [b'Q' | b'P' | b'B', ..]) => sql::MAX_READ,
        (Side::Client, [b'E' | b'D' | b'C', ..])
        | (Side::Server, [b'C' | b'E' | b'N' | b'A' | b'S' | b'Z' | b'R', ..]) => MAX_KEPT,
        (Side::Server, [b'd', ..]) => 1,
        _ => 0,
    }
}
