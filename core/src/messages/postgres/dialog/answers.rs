//! The server's messages: which request a message answers, and where a response ends.

use smol_str::SmolStr;

use super::super::super::length_prefixed::LengthPrefixed;
use super::super::super::sink::Sink;
use super::super::super::{Listener, RequestName, Status, sql, text};
use super::super::fields::{self, TYPE_AND_LENGTH};
use super::{Dialog, RequestKind};

/// Status of the statements between an error and the Sync, which the server does not execute.
const SKIPPED: &str = "skipped";
/// AuthenticationOk, and AuthenticationSASLFinal before it.
const GRANTED: [[u8; 4]; 2] = [[0; 4], [0, 0, 0, 12]];

impl Dialog {
    /// Counts bytes of the oldest request's response. Returns false if no request waits.
    pub(in crate::messages::postgres) fn count_answer(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: u64,
    ) -> bool {
        if let Some((key, oldest)) = self.waiting.first()
            && oldest.kind != RequestKind::Sync
        {
            sink.exchange(key).answer_piece(&mut oldest.is_answered, bytes);
            return true;
        }
        false
    }

    /// Reads a whole message of the server.
    pub(in crate::messages::postgres) fn read_server_message(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) {
        let body = message.head();
        match kind {
            b'A' => {
                let (channel, _) = fields::text(body.get(4..).unwrap_or_default());
                return sink.push("NotificationResponse", &text::name(channel), bytes);
            }
            b'N' => return sink.push("NoticeResponse", &text::name(fields::field(body, b'S')), bytes),
            b'd' if self.replicates => {
                if body == b"w" {
                    sink.push("XLogData", "", bytes);
                }
                return;
            }
            b'E' if self.waiting.is_empty() => {
                return sink.push("ErrorResponse", &text::name(fields::field(body, b'C')), bytes);
            }
            b'S' => read_version(sink, body),
            _ => {}
        }
        if kind == b'Z' {
            return self.read_ready(sink, bytes);
        }
        if kind == b'R'
            && body
                .get(..4)
                .is_some_and(|code| !GRANTED.iter().any(|fine| fine == code))
        {
            return self.end_round(sink, bytes); // a password is requested
        }
        self.count_answer(sink, bytes);
        let Some((key, oldest)) = self.waiting.first() else {
            return;
        };
        let ends = match kind {
            b'C' | b'I' | b's' => {
                if !std::mem::replace(&mut oldest.is_named, true) {
                    // prepared before the capture: the response's tag has the verb
                    sink.exchange(key)
                        .name(RequestName::new(&sql::verb(&text::name(body)), ""));
                }
                oldest.executes = oldest.executes.saturating_sub(1);
                oldest.kind == RequestKind::Execute && oldest.executes == 0
            }
            b'E' => {
                oldest.error = Some(text::name(fields::field(body, b'C')));
                self.is_skipping = !matches!(
                    oldest.kind,
                    RequestKind::LogIn | RequestKind::Query | RequestKind::CopyIn
                );
                oldest.kind == RequestKind::LogIn || !oldest.is_synced
            }
            b'G' => {
                // CopyInResponse requests the data, and is not an answer yet
                oldest.is_answered = false;
                sink.exchange(key).interim();
                false
            }
            b'W' => {
                self.replicates = true;
                true
            }
            b'T' | b'n' => oldest.kind == RequestKind::Prepare && oldest.describes,
            b'1' => oldest.kind == RequestKind::Prepare && !oldest.describes && !oldest.binds,
            b'2' => oldest.kind == RequestKind::Prepare && !oldest.describes,
            _ => false,
        };
        if ends && (!oldest.is_synced || matches!(kind, b'W' | b'E')) {
            self.end_response(sink);
        }
    }

    /// ReadyForQuery: ends the responses to all requests up to the Sync.
    fn read_ready(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        self.replicates = false;
        while let Some((_, oldest)) = self.waiting.first() {
            let is_last = oldest.is_synced;
            if self.is_skipping {
                oldest.error.get_or_insert(SmolStr::new_static(SKIPPED));
            }
            if is_last {
                self.count_answer(sink, bytes);
            }
            self.end_response(sink);
            if is_last {
                break;
            }
        }
        self.is_skipping = false;
    }

    /// Ends the response to the oldest request.
    pub(super) fn end_response(&mut self, sink: &mut Sink<'_, impl Listener>) {
        let Some((key, oldest)) = self.waiting.first() else {
            return;
        };
        if oldest.kind != RequestKind::Sync {
            let mut exchange = sink.exchange(key);
            exchange.status(Status::ok_unless(oldest.error.as_deref()));
            exchange.end_answer();
        }
        if self.waiting.last().is_some_and(|(newest, _)| newest == key) {
            self.is_open = false;
        }
        self.waiting.pop();
    }
}

/// Reads the server's version in a ParameterStatus.
fn read_version(sink: &mut Sink<'_, impl Listener>, body: &[u8]) {
    if let (b"server_version", rest) = fields::text(body) {
        let version = text::name(fields::text(rest).0);
        sink.software(format!("PostgreSQL {version}").into());
    }
}
