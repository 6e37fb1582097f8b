//! Which command is open. Commands are answered in their order; `answers.rs` finds where an answer ends.

mod answers;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::super::length_prefixed::LengthPrefixed;
use super::super::pending_queue::PendingQueue;
use super::super::sink::MessageSink;
use super::super::sql::{self, Dialect};
use super::super::{Kind, Listener, RequestName, text};
use super::packets::{self, Able, HEADER};
use crate::limits::HELD_BEHIND_NS;

/// The longest name of a database or a table (MySQL: 64 characters).
const MAX_NAME: usize = 256;
/// Of the statement that was prepared last, in MariaDB.
const NEWEST: u32 = u32::MAX;

type Packet = LengthPrefixed<HEADER>;

#[derive(Debug, Default)]
pub(super) struct Dialog {
    stage: Stage,
    able: Option<Able>,
    greeted: Option<Able>,
    /// Whether EOF packets are left out, once that is known.
    without_eof: Option<bool>,
    waiting: PendingQueue<Pending>,
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
struct Pending {
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
        self.waiting.clear();
        self.stage = Stage::Commands;
        self
    }

    /// Nothing of the client was read.
    pub(super) fn is_new(&self) -> bool {
        self.stage == Stage::New
    }

    /// The client has sent a whole packet.
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
            Some((key, pending)) if pending.expects == Expects::File => {
                let mut exchange = sink.exchange(key);
                exchange.count(bytes);
                if packets::length(packet.header()) == 0 {
                    exchange.end_request();
                    pending.expects = Expects::Result;
                }
                return Asks::Fits;
            }
            Some((_, pending)) if pending.expects == Expects::LogIn => return Asks::Fits, // another round
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
            sink.exchange(key).count(bytes);
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
        let named = RequestName {
            method: "CONNECT",
            ..RequestName::default()
        };
        self.begin(sink, Expects::LogIn, Kind::Setup, named, bytes)
    }

    fn begin(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        expects: Expects,
        kind: Kind,
        named: RequestName<'_>,
        bytes: u64,
    ) -> Asks {
        let pending = Pending {
            expects,
            ..Pending::default()
        };
        let Some(key) = self.waiting.push(pending) else {
            return Asks::Wrong("too many commands wait");
        };
        let mut exchange = sink.exchange(key);
        exchange.begin_request(kind);
        exchange.name(named);
        exchange.count(bytes);
        // of a file that is loaded, the data belong to the request
        if named.method != "LOAD" {
            exchange.end_request();
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
                let attributes = self.able.is_some_and(Able::sends_attributes);
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
        let named = RequestName {
            method: &method,
            target: &target,
            host: "",
        };
        let fits = self.begin(sink, expects, kind, named, bytes);
        if let (0x16, Some((_, pending))) = (code, self.waiting.last()) {
            pending.sql = target.clone();
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
}
