//! The server's packets: where the response to a command ends, after its definitions, rows and further results.

use super::super::super::pending_queue::push_dropping_oldest;
use super::super::super::sink::Sink;
use super::super::super::{Listener, Status, server_software, text};
use super::super::packets::{self, Capabilities, Last};
use super::{Dialog, Expects, Packet, Stage};
use crate::cursor;

/// Upper bound on the prepared statements kept; beyond it the oldest is dropped.
const MAX_STATEMENTS: usize = 256;

impl Dialog {
    /// Counts bytes of the oldest command's response. Returns false if no command waits.
    pub(in crate::messages::mysql) fn count_answer(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: u64,
    ) -> bool {
        let Some((key, oldest)) = self.waiting.first() else {
            return false;
        };
        sink.exchange(key).answer_piece(&mut oldest.has_begun, bytes);
        true
    }

    /// Reads a whole packet of the server.
    pub(in crate::messages::mysql) fn read_server_packet(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        packet: &Packet,
        bytes: u64,
    ) -> Result<(), &'static str> {
        if self.waiting.is_empty() {
            self.read_unsolicited(sink, packet, bytes);
            return Ok(());
        }
        self.count_answer(sink, bytes);
        let (body, len) = (packet.head(), u64::from(packets::length(packet.header())));
        let Some((key, oldest)) = self.waiting.first() else {
            return Ok(());
        };
        let first = body.first().copied().unwrap_or_default();
        let (rest, last) = (body.get(1..).unwrap_or_default(), packets::as_last(body, len));
        if first == 0xff && oldest.expects != Expects::Text {
            let code = cursor::le16_at(rest, 0);
            // 0xffff is a progress report of MariaDB
            if code != Some(0xffff) {
                self.end_with_error(sink, key, code, rest.get(2..).unwrap_or_default());
            }
            return Ok(());
        }
        let more = |status: u16| status & packets::MORE_RESULTS != 0;
        let next = match (oldest.expects, first) {
            (Expects::LogIn, 0) => {
                self.stage = Stage::Commands;
                None
            }
            (Expects::Result, 0) => packets::ok_status(rest)
                .is_some_and(more)
                .then_some(Expects::Result),
            (Expects::Result, 0xfb) => {
                oldest.has_begun = false;
                sink.exchange(key).interim();
                Some(Expects::File)
            }
            (Expects::Result, 0xfe) if last.is_some() => None,
            (Expects::Result, _) => Some(after_column_count(body, self.capabilities)),
            (Expects::Definitions(left @ 2..), _) => Some(Expects::Definitions(left - 1)),
            (Expects::Definitions(_), _) => Some(Expects::Rows { first: true }),
            (Expects::Rows { first: true }, _) if self.without_eof != Some(true) => match last {
                Some(Last::Eof(status)) => {
                    self.without_eof = Some(false);
                    (status & packets::CURSOR_EXISTS == 0).then_some(Expects::Rows { first: false })
                }
                _ => {
                    self.without_eof = Some(true);
                    after_row(last)
                }
            },
            (Expects::Rows { .. }, _) => after_row(last),
            (Expects::Prepared, _) => {
                let expects = self.read_prepared(rest);
                Some(expects).filter(|expects| !matches!(expects, Expects::Statement { definitions: 0, .. }))
            }
            (Expects::Statement { definitions, eofs }, _) => {
                let (definitions, eofs) = match last {
                    Some(_) => {
                        self.without_eof = Some(false);
                        (definitions, eofs.saturating_sub(1))
                    }
                    None => (definitions.saturating_sub(1), eofs),
                };
                let is_last = definitions == 0 && (eofs == 0 || self.without_eof != Some(false));
                (!is_last).then_some(Expects::Statement { definitions, eofs })
            }
            (Expects::Fields, _) => last.is_none().then_some(Expects::Fields),
            (Expects::Binlog, _) => {
                self.stage = Stage::Binlog;
                None
            }
            (expects @ (Expects::LogIn | Expects::File), _) => Some(expects),
            (Expects::Text, _) => None,
        };
        let is_log_in =
            matches!(self.waiting.first(), Some((_, pending)) if pending.expects == Expects::LogIn);
        match (next, self.waiting.first()) {
            (Some(next), Some((_, oldest))) => oldest.expects = next,
            _ => self.end(sink, key, None, "ok"),
        }
        if next.is_none() && is_log_in && self.capabilities.is_some_and(Capabilities::compresses) {
            return Err("compressed from here on");
        }
        Ok(())
    }

    /// Reads a packet that answers no command: the greeting, the binary log, or the EOF packet of a result that ended.
    fn read_unsolicited(&mut self, sink: &mut Sink<'_, impl Listener>, packet: &Packet, bytes: u64) {
        let (body, len) = (packet.head(), u64::from(packets::length(packet.header())));
        if self.stage == Stage::New {
            let greeting = [packet.header(), body].concat();
            if let Some(name) = server_software::of_greeting(&greeting) {
                sink.software(name);
            }
            self.offered = packets::greeting_capabilities(body);
        } else if self.stage == Stage::Binlog {
            sink.push("BINLOG", "", bytes);
        } else if let Some(Last::Eof(_)) = packets::as_last(body, len) {
            self.without_eof = Some(false);
        }
    }

    /// Reads the response to PREPARE: the id of the statement, and how many definitions follow.
    fn read_prepared(&mut self, body: &[u8]) -> Expects {
        let at = |offset| u32::from(cursor::le16_at(body, offset).unwrap_or(0));
        let (columns, parameters) = (at(4), at(6));
        let sql = self
            .waiting
            .first()
            .map(|(_, oldest)| std::mem::take(&mut oldest.sql))
            .unwrap_or_default();
        if let Some(id) = cursor::le32_at(body, 0) {
            self.statements.retain(|(listed, _)| *listed != id);
            push_dropping_oldest(&mut self.statements, MAX_STATEMENTS, (id, sql));
        }
        Expects::Statement {
            definitions: columns + parameters,
            eofs: u32::from(columns > 0) + u32::from(parameters > 0),
        }
    }

    /// Ends the oldest response with an error: its code, and in `rest` its SQLSTATE after a `#`.
    fn end_with_error(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        key: u64,
        code: Option<u16>,
        rest: &[u8],
    ) {
        let state = rest
            .strip_prefix(b"#")
            .and_then(|rest| rest.get(..5))
            .unwrap_or_default();
        let state = text::name(state);
        self.end(sink, key, Some(code.unwrap_or(0)), &state);
    }

    /// Ends the oldest response; `code` is the error's.
    fn end(&mut self, sink: &mut Sink<'_, impl Listener>, key: u64, code: Option<u16>, word: &str) {
        let text = Some(word).filter(|word| !word.is_empty());
        let mut exchange = sink.exchange(key);
        exchange.status(Status::new(code, text, code.is_some()));
        exchange.end_answer();
        self.waiting.pop();
    }
}

/// Returns what follows the number of columns: their definitions, unless the client has them already.
fn after_column_count(body: &[u8], capabilities: Option<Capabilities>) -> Expects {
    let is_optional = capabilities.is_some_and(Capabilities::has_optional_metadata);
    let (follow, count) = match (is_optional, body) {
        (true, [follow, count @ ..]) => (*follow != 0, count),
        _ => (true, body),
    };
    match packets::length_encoded(count) {
        // MariaDB has the byte after the number
        Some((_, [0])) => Expects::Rows { first: true },
        Some((columns @ 1.., _)) if follow => Expects::Definitions(columns),
        _ => Expects::Rows { first: true },
    }
}

/// Returns what follows a row, or the last packet of rows; None if the response ends.
fn after_row(last: Option<Last>) -> Option<Expects> {
    match last {
        None => Some(Expects::Rows { first: false }),
        Some(Last::Eof(status) | Last::Ok(status)) => {
            (status & packets::MORE_RESULTS != 0).then_some(Expects::Result)
        }
    }
}
