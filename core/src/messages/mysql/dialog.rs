//! Which command is asked for, and where its answer ends: definitions, rows, further results. Commands are answered in
//! their order.

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::super::parcel::Parcel;
use super::super::sink::MessageSink;
use super::super::sql::{self, Dialect};
use super::super::waiting::Waiting;
use super::super::{Kind, Listener, Named, Status, banner, text};
use super::packets::{self, Able, HEADER, Last};
use crate::judge::limits::HELD_BEHIND_NS;

/// Prepared statements that are remembered. The oldest is forgotten beyond it.
const MAX_STATEMENTS: usize = 256;
/// The longest name of a database or a table (MySQL: 64 characters).
const MAX_NAME: usize = 256;
/// Of the statement that was prepared last, in MariaDB.
const NEWEST: u32 = u32::MAX;

type Packet = Parcel<HEADER>;

#[derive(Debug, Default)]
pub(super) struct Dialog {
    stage: Stage,
    able: Option<Able>,
    greeted: Option<Able>,
    /// Whether EOF packets are left out, once that is known.
    without_eof: Option<bool>,
    waiting: Waiting<Asked>,
    statements: VecDeque<(u32, SmolStr)>,
    newest: SmolStr,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing of the client was read.
    #[default]
    New,
    LogIn,
    Commands,
    /// The server sends its log.
    Log,
}

#[derive(Debug, Default)]
struct Asked {
    expects: Expects,
    answered: bool,
    /// Of PREPARE.
    sql: SmolStr,
}

/// What the server's next packet is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expects {
    LogIn,
    /// OK, an error, a file's name or a number of columns.
    #[default]
    Result,
    /// So many definitions, and how many groups of them.
    Definitions(u64),
    /// `first` behind the definitions: their EOF may come.
    Rows {
        first: bool,
    },
    /// The client sends a file.
    File,
    Prepared,
    /// Definitions of a statement, and EOF packets.
    Statement {
        left: u32,
        ends: u32,
    },
    /// Definitions up to an EOF.
    Fields,
    /// One packet, whatever it is.
    Text,
    Log,
}

/// What a client's packet is.
pub(super) enum Asks {
    Fits,
    /// Nothing answers it; what comes next may wait for it in the client's kernel.
    Alone,
    /// TLS follows.
    Encryption,
    Wrong(&'static str),
}

impl Dialog {
    /// After lost bytes: what was prepared is still known.
    pub(super) fn again(mut self) -> Dialog {
        self.waiting.forget();
        self.stage = Stage::Commands;
        self
    }

    /// The client has said a whole packet.
    pub(super) fn asks(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        packet: &Packet,
        bytes: u64,
    ) -> Asks {
        let [.., number] = *packet.header();
        if self.stage == Stage::New {
            self.stage = if number == 0 {
                Stage::Commands
            } else {
                Stage::LogIn
            };
            if number > 0 {
                return self.logs_in(sink, packet, bytes);
            }
        }
        match self.waiting.last() {
            Some((key, asked)) if asked.expects == Expects::File => {
                let mut exchange = sink.of(key);
                exchange.count(bytes);
                if packets::length(packet.header()) == 0 {
                    exchange.asked();
                    asked.expects = Expects::Result;
                }
                return Asks::Fits;
            }
            Some((_, asked)) if asked.expects == Expects::LogIn => return Asks::Fits, // another round
            _ if self.stage == Stage::Log => return Asks::Fits,
            _ => {}
        }
        let Some((code, body)) = packet.head().split_first().filter(|_| number == 0) else {
            return Asks::Wrong("not a command of MySQL");
        };
        self.commands(sink, *code, body, packet.is_cut(), bytes)
    }

    /// A packet that carries on a longer command.
    pub(super) fn more(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        if let Some((key, _)) = self.waiting.last() {
            sink.of(key).count(bytes);
        }
    }

    fn logs_in(&mut self, sink: &mut MessageSink<'_, impl Listener>, packet: &Packet, bytes: u64) -> Asks {
        let Some(own) = packets::u32_at(packet.head(), 0) else {
            return Asks::Wrong("not a log-in of MySQL");
        };
        if packets::length(packet.header()) == 32 && own & packets::CLIENT_SSL != 0 {
            return Asks::Encryption;
        }
        let both = Able(own & self.greeted.map_or(u32::MAX, |able| able.0));
        (self.able, self.without_eof) = (Some(both), Some(both.ends_without_eof()));
        let named = Named {
            method: "CONNECT",
            ..Named::default()
        };
        self.begin(sink, Expects::LogIn, Kind::Setup, named, bytes)
    }

    fn begin(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        expects: Expects,
        kind: Kind,
        named: Named<'_>,
        bytes: u64,
    ) -> Asks {
        let asked = Asked {
            expects,
            ..Asked::default()
        };
        let Some(key) = self.waiting.push(asked) else {
            return Asks::Wrong("too many commands wait");
        };
        let mut exchange = sink.of(key);
        exchange.ask(kind);
        exchange.name(named);
        exchange.count(bytes);
        // of a file that is loaded, the data belong to the request
        if named.method != "LOAD" {
            exchange.asked();
        }
        Asks::Fits
    }

    fn commands(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        code: u8,
        body: &[u8],
        cut: bool,
        bytes: u64,
    ) -> Asks {
        // what was written together with a message that nothing answers began with that, unless it is long ago
        if sink.at().time_ns.saturating_sub(sink.marked().time_ns) > HELD_BEHIND_NS.get() {
            sink.unmark();
        }
        let Some((method, answered)) = packets::command(code) else {
            return Asks::Wrong("not a command of MySQL");
        };
        if !answered {
            if let (0x19, Some(id)) = (code, packets::u32_at(body, 0)) {
                self.statements.retain(|(known, _)| *known != id);
            }
            return Asks::Alone;
        }
        let mut method = SmolStr::new_static(method);
        let target = match code {
            0x03 => {
                let attributes = self.able.is_some_and(Able::says_attributes);
                let target = sql::mask(packets::statement(body, attributes), Dialect::Backslash, cut);
                method = Some(sql::verb(&target))
                    .filter(|verb| !verb.is_empty())
                    .unwrap_or(method);
                target
            }
            0x16 => sql::mask(body, Dialect::Backslash, cut),
            0x17 | 0x1a | 0x1c => self.statement(packets::u32_at(body, 0).unwrap_or(0)),
            0x02 | 0x04..=0x06 => {
                let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
                text::name_up_to(name, MAX_NAME, false)
            }
            _ => SmolStr::default(),
        };
        if code == 0x17 && !target.is_empty() {
            method = sql::verb(&target);
        }
        let (expects, kind) = match code {
            0x04 => (Expects::Fields, Kind::Request),
            0x09 => (Expects::Text, Kind::Request),
            0x11 => (Expects::LogIn, Kind::Setup),
            0x12 | 0x1e => (Expects::Log, Kind::Request),
            0x16 => (Expects::Prepared, Kind::Request),
            0x1c => (Expects::Rows { first: false }, Kind::Request),
            _ => (Expects::Result, Kind::Request),
        };
        let named = Named {
            method: &method,
            target: &target,
            host: "",
        };
        let fits = self.begin(sink, expects, kind, named, bytes);
        if let (0x16, Some((_, asked))) = (code, self.waiting.last()) {
            asked.sql = target.clone();
            self.newest = target;
        }
        fits
    }

    fn statement(&self, id: u32) -> SmolStr {
        let known = self.statements.iter().rev().find(|(known, _)| *known == id);
        match known {
            Some((_, sql)) => sql.clone(),
            None if id == NEWEST => self.newest.clone(),
            None => SmolStr::default(),
        }
    }

    /// Bytes of the oldest command's answer; false where nobody has asked.
    pub(super) fn part(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) -> bool {
        let Some((key, oldest)) = self.waiting.first() else {
            return false;
        };
        let mut exchange = sink.of(key);
        if !std::mem::replace(&mut oldest.answered, true) {
            exchange.answer();
        }
        exchange.piece(bytes);
        true
    }

    /// The server has said a whole packet.
    pub(super) fn answers(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        packet: &Packet,
        bytes: u64,
    ) -> Result<(), &'static str> {
        if self.waiting.is_empty() {
            self.unasked(sink, packet, bytes);
            return Ok(());
        }
        self.part(sink, bytes);
        let (body, len) = (packet.head(), u64::from(packets::length(packet.header())));
        let Some((key, oldest)) = self.waiting.first() else {
            return Ok(());
        };
        let first = body.first().copied().unwrap_or_default();
        let (rest, last) = (body.get(1..).unwrap_or_default(), packets::last(body, len));
        if first == 0xff && oldest.expects != Expects::Text {
            return match packets::u16_at(rest, 0) {
                // MariaDB: how far it has come
                Some(0xffff) => Ok(()),
                code => {
                    self.fails(sink, code, rest.get(2..).unwrap_or_default());
                    Ok(())
                }
            };
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
                oldest.answered = false;
                sink.of(key).interim();
                Some(Expects::File)
            }
            (Expects::Result, 0xfe) if last.is_some() => None,
            (Expects::Result, _) => Some(definitions(body, self.able)),
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
                let expects = self.prepared(rest);
                Some(expects).filter(|expects| !matches!(expects, Expects::Statement { left: 0, .. }))
            }
            (Expects::Statement { left, ends }, _) => {
                let (left, ends) = match last {
                    Some(_) => {
                        self.without_eof = Some(false);
                        (left, ends.saturating_sub(1))
                    }
                    None => (left.saturating_sub(1), ends),
                };
                let over = left == 0 && (ends == 0 || self.without_eof != Some(false));
                (!over).then_some(Expects::Statement { left, ends })
            }
            (Expects::Fields, _) => last.is_none().then_some(Expects::Fields),
            (Expects::Log, _) => {
                self.stage = Stage::Log;
                None
            }
            (expects @ (Expects::LogIn | Expects::File), _) => Some(expects),
            (Expects::Text, _) => None,
        };
        let logs_in = matches!(self.waiting.first(), Some((_, asked)) if asked.expects == Expects::LogIn);
        match (next, self.waiting.first()) {
            (Some(next), Some((_, oldest))) => oldest.expects = next,
            _ => self.over(sink, key, None, "ok"),
        }
        if next.is_none() && logs_in && self.able.is_some_and(Able::compresses) {
            return Err("compressed from here on");
        }
        Ok(())
    }

    /// Nobody has asked: a greeting, the server's log, or its last word.
    fn unasked(&mut self, sink: &mut MessageSink<'_, impl Listener>, packet: &Packet, bytes: u64) {
        let (body, len) = (packet.head(), u64::from(packets::length(packet.header())));
        if self.stage == Stage::New {
            let greeting = [packet.header(), body].concat();
            if let Some(name) = banner::of_greeting(&greeting) {
                sink.software(name);
            }
            self.greeted = packets::greeting_able(body);
        } else if self.stage == Stage::Log {
            sink.push("BINLOG", "", bytes);
        } else if let Some(Last::Eof(_)) = packets::last(body, len) {
            self.without_eof = Some(false);
        }
    }

    /// The answer to PREPARE: which statement it is, how many definitions follow.
    fn prepared(&mut self, body: &[u8]) -> Expects {
        let at = |place| u32::from(packets::u16_at(body, place).unwrap_or(0));
        let (columns, parameters) = (at(4), at(6));
        let sql = self
            .waiting
            .first()
            .map(|(_, oldest)| std::mem::take(&mut oldest.sql))
            .unwrap_or_default();
        if let Some(id) = packets::u32_at(body, 0) {
            self.statements.retain(|(known, _)| *known != id);
            if self.statements.len() >= MAX_STATEMENTS {
                self.statements.pop_front();
            }
            self.statements.push_back((id, sql));
        }
        Expects::Statement {
            left: columns + parameters,
            ends: u32::from(columns > 0) + u32::from(parameters > 0),
        }
    }

    /// An error ends the answer: its number, and its SQLSTATE behind a `#`.
    fn fails(&mut self, sink: &mut MessageSink<'_, impl Listener>, code: Option<u16>, rest: &[u8]) {
        let Some((key, _)) = self.waiting.first() else {
            return;
        };
        let state = rest
            .strip_prefix(b"#")
            .and_then(|rest| rest.get(..5))
            .unwrap_or_default();
        let state = text::name(state);
        self.over(sink, key, Some(code.unwrap_or(0)), &state);
    }

    fn over(&mut self, sink: &mut MessageSink<'_, impl Listener>, key: u64, code: Option<u16>, word: &str) {
        let mut exchange = sink.of(key);
        exchange.status(Status {
            code,
            text: Some(word).filter(|word| !word.is_empty()),
            error: code.is_some(),
        });
        exchange.answered();
        self.waiting.pop();
    }
}

/// The number of columns: their definitions follow, unless the client has them already.
fn definitions(body: &[u8], able: Option<Able>) -> Expects {
    let optional = able.is_some_and(Able::may_leave_out);
    let (follow, count) = match (optional, body) {
        (true, [follow, count @ ..]) => (*follow != 0, count),
        _ => (true, body),
    };
    match packets::number(count) {
        // MariaDB says it behind the number
        Some((_, [0])) => Expects::Rows { first: true },
        Some((columns @ 1.., _)) if follow => Expects::Definitions(columns),
        _ => Expects::Rows { first: true },
    }
}

/// What follows a row, or the last packet of rows.
fn after_row(last: Option<Last>) -> Option<Expects> {
    match last {
        None => Some(Expects::Rows { first: false }),
        Some(Last::Eof(status) | Last::Ok(status)) => {
            (status & packets::MORE_RESULTS != 0).then_some(Expects::Result)
        }
    }
}
