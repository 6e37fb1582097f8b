//! The commands of one MySQL connection, which the server answers in their order. This file reads the client's packets;
//! `answers.rs` finds where a response ends.

mod answers;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::super::length_prefixed::LengthPrefixed;
use super::super::pending_queue::PendingQueue;
use super::super::sink::Sink;
use super::super::sql::{self, Dialect};
use super::super::{Kind, Listener, RequestName, text};
use super::packets::{self, Capabilities, HEADER, com};
use crate::cursor;
use crate::limits::HELD_BEHIND_NS;

/// Upper bound on the bytes of a database's or table's name; MySQL allows 64 characters.
const MAX_NAME: usize = 256;
/// Statement id by which MariaDB means the statement that was prepared last.
const NEWEST: u32 = u32::MAX;

type Packet = LengthPrefixed<HEADER>;

#[derive(Debug, Default)]
pub(super) struct Dialog {
    stage: Stage,
    /// Flags that both sides have set; None if no log-in was read.
    capabilities: Option<Capabilities>,
    /// Flags of the server's greeting.
    offered: Option<Capabilities>,
    /// Whether EOF packets are left out (CLIENT_DEPRECATE_EOF); None until a log-in or a result shows it.
    without_eof: Option<bool>,
    waiting: PendingQueue<Pending>,
    /// Prepared statements, oldest first: id and masked SQL.
    statements: VecDeque<(u32, SmolStr)>,
    /// SQL of the newest prepared statement, whose id may not be known yet.
    newest_sql: SmolStr,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No packet of the client was read.
    #[default]
    New,
    LogIn,
    Commands,
    /// The server sends its binary log.
    Binlog,
}

/// A command without a complete response.
#[derive(Debug, Default)]
struct Pending {
    expects: Expects,
    /// The response has begun.
    has_begun: bool,
    /// The masked SQL of PREPARE; empty for other commands.
    sql: SmolStr,
}

/// What the server's next packet in a response is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expects {
    LogIn,
    /// OK, an error, a file's name or a number of columns.
    #[default]
    Result,
    /// This many column definitions.
    Definitions(u64),
    /// A row. With `first` it follows the definitions, so that their EOF packet may precede it.
    Rows {
        first: bool,
    },
    /// Nothing: the client sends a file (LOAD DATA LOCAL).
    File,
    Prepared,
    /// Definitions of a prepared statement's parameters and columns, and EOF packets, that are still to come.
    Statement {
        definitions: u32,
        eofs: u32,
    },
    /// Definitions up to an EOF.
    Fields,
    /// One packet of text (COM_STATISTICS).
    Text,
    Binlog,
}

/// How a client's packet was read.
pub(super) enum ClientPacket {
    Read,
    /// The server does not answer it. The client's kernel may hold the next command until this one is acknowledged.
    Unanswered,
    /// TLS follows.
    SslRequest,
    /// No packet of MySQL, and why.
    Wrong(&'static str),
}

impl Dialog {
    /// Returns the state after lost bytes: prepared statements are still known, open commands are not.
    pub(super) fn after_loss(mut self) -> Dialog {
        self.waiting.clear();
        self.stage = Stage::Commands;
        self
    }

    /// Whether no packet of the client was read.
    pub(super) fn is_new(&self) -> bool {
        self.stage == Stage::New
    }

    /// Reads a whole packet of the client.
    pub(super) fn read_client_packet(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        packet: &Packet,
        bytes: u64,
    ) -> ClientPacket {
        let [.., number] = *packet.header();
        if self.stage == Stage::New {
            self.stage = if number == 0 {
                Stage::Commands
            } else {
                Stage::LogIn
            };
            if number > 0 {
                return self.log_in(sink, packet, bytes);
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
                return ClientPacket::Read;
            }
            // another round of the authentication
            Some((_, pending)) if pending.expects == Expects::LogIn => return ClientPacket::Read,
            _ if self.stage == Stage::Binlog => return ClientPacket::Read,
            _ => {}
        }
        match packet.head().split_first() {
            Some((code, body)) if number == 0 => self.read_command(sink, *code, body, packet.is_cut(), bytes),
            _ => ClientPacket::Wrong("not a command of MySQL"),
        }
    }

    /// Counts a packet that continues a longer command.
    pub(super) fn count_continuation(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        if let Some((key, _)) = self.waiting.last() {
            sink.exchange(key).count(bytes);
        }
    }

    fn log_in(&mut self, sink: &mut Sink<'_, impl Listener>, packet: &Packet, bytes: u64) -> ClientPacket {
        let Some(flags) = cursor::le32_at(packet.head(), 0) else {
            return ClientPacket::Wrong("not a log-in of MySQL");
        };
        if packets::length(packet.header()) == 32 && flags & packets::CLIENT_SSL != 0 {
            return ClientPacket::SslRequest;
        }
        let shared = Capabilities(flags & self.offered.map_or(u32::MAX, |offered| offered.0));
        (self.capabilities, self.without_eof) = (Some(shared), Some(shared.ends_without_eof()));
        let named = RequestName::new("CONNECT", "");
        self.begin(sink, Expects::LogIn, Kind::Setup, named, bytes)
    }

    fn begin(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        expects: Expects,
        kind: Kind,
        named: RequestName<'_>,
        bytes: u64,
    ) -> ClientPacket {
        let pending = Pending {
            expects,
            ..Pending::default()
        };
        let Some(key) = self.waiting.push(pending) else {
            return ClientPacket::Wrong("too many commands wait");
        };
        let mut exchange = sink.exchange(key);
        exchange.begin_request(kind);
        exchange.name(named);
        exchange.count(bytes);
        // the file that LOAD DATA LOCAL sends belongs to the request
        if named.method != "LOAD" {
            exchange.end_request();
        }
        ClientPacket::Read
    }

    fn read_command(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        code: u8,
        body: &[u8],
        is_cut: bool,
        bytes: u64,
    ) -> ClientPacket {
        // a command that was written together with an unanswered one begins with that one, unless it is too long ago
        if sink.at().time_ns.saturating_sub(sink.marked().time_ns) > HELD_BEHIND_NS.get() {
            sink.unmark();
        }
        let Some((method, is_answered)) = packets::command(code) else {
            return ClientPacket::Wrong("not a command of MySQL");
        };
        if !is_answered {
            if let (com::CLOSE, Some(id)) = (code, cursor::le32_at(body, 0)) {
                self.statements.retain(|(listed, _)| *listed != id);
            }
            return ClientPacket::Unanswered;
        }
        let mut method = SmolStr::new_static(method);
        let target = match code {
            com::QUERY => {
                let has_attributes = self.capabilities.is_some_and(Capabilities::sends_attributes);
                let target = sql::mask(
                    packets::statement(body, has_attributes),
                    Dialect::Backslash,
                    is_cut,
                );
                method = Some(sql::verb(&target))
                    .filter(|verb| !verb.is_empty())
                    .unwrap_or(method);
                target
            }
            com::PREPARE => sql::mask(body, Dialect::Backslash, is_cut),
            com::EXECUTE | com::RESET | com::FETCH => self.statement(cursor::le32_at(body, 0).unwrap_or(0)),
            com::INIT_DB | com::FIELD_LIST | com::CREATE_DB | com::DROP_DB => {
                let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
                text::name_up_to(name, MAX_NAME, false)
            }
            _ => SmolStr::default(),
        };
        if code == com::EXECUTE && !target.is_empty() {
            method = sql::verb(&target);
        }
        let (expects, kind) = match code {
            com::FIELD_LIST => (Expects::Fields, Kind::Request),
            com::STATISTICS => (Expects::Text, Kind::Request),
            com::CHANGE_USER => (Expects::LogIn, Kind::Setup),
            com::BINLOG_DUMP | com::BINLOG_DUMP_GTID => (Expects::Binlog, Kind::Request),
            com::PREPARE => (Expects::Prepared, Kind::Request),
            com::FETCH => (Expects::Rows { first: false }, Kind::Request),
            _ => (Expects::Result, Kind::Request),
        };
        let named = RequestName::new(&method, &target);
        let read = self.begin(sink, expects, kind, named, bytes);
        if let (com::PREPARE, Some((_, pending))) = (code, self.waiting.last()) {
            pending.sql = target.clone();
            self.newest_sql = target;
        }
        read
    }

    /// Returns the masked SQL of a prepared statement; empty if it is not known.
    fn statement(&self, id: u32) -> SmolStr {
        let entry = self.statements.iter().rev().find(|(listed, _)| *listed == id);
        match entry {
            Some((_, sql)) => sql.clone(),
            None if id == NEWEST => self.newest_sql.clone(),
            None => SmolStr::default(),
        }
    }
}
