//! The statements of one PostgreSQL connection, which the server answers in their order. The messages of the extended
//! protocol up to a Sync (or a Flush) are a group, and an error skips the rest of its group. This file reads the
//! client's messages; `answers.rs` finds where a response ends.

mod answers;

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::super::length_prefixed::LengthPrefixed;
use super::super::pending_queue::{PendingQueue, push_dropping_oldest};
use super::super::sink::Sink;
use super::super::sql::{self, Dialect};
use super::super::{Kind, Listener, RequestName, text};
use super::Stop;
use super::fields::{self, TYPE_AND_LENGTH};

/// Upper bound on the names kept; beyond it the oldest is dropped.
const MAX_NAMES: usize = 256;
/// Upper bound on the bytes of a name; a longer one is not kept.
const MAX_NAME: usize = 64;
/// Name of the rounds of a log-in but its startup packet: encryption, a password.
const HANDSHAKE: &str = "handshake";

#[derive(Debug, Default)]
pub(super) struct Dialog {
    waiting: PendingQueue<Pending>,
    /// The client's next message may belong to the newest request.
    is_open: bool,
    statements: Names,
    portals: Names,
    /// After an error: the server skips the client's messages up to its Sync.
    is_skipping: bool,
    /// The server sends its log, and both sides send without a request.
    replicates: bool,
}

/// A request, from its first message to the end of its response.
#[derive(Debug, Default)]
struct Pending {
    kind: RequestKind,
    /// Name of the prepared statement.
    statement: Box<[u8]>,
    /// Executions whose responses have not ended.
    executes: u32,
    /// Values were bound that are not executed yet.
    binds: bool,
    describes: bool,
    parses: bool,
    /// The request has its name.
    is_named: bool,
    /// ReadyForQuery ends the response.
    is_synced: bool,
    /// The response has begun.
    is_answered: bool,
    /// SQLSTATE of the error in the response.
    error: Option<SmolStr>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    LogIn,
    Query,
    /// Parse, Bind, Describe, until the client shows whether Execute follows.
    #[default]
    Group,
    /// A group without Execute.
    Prepare,
    Execute,
    /// COPY FROM STDIN whose data are still to come.
    CopyIn,
    /// A Sync without a statement, which is not an exchange.
    Sync,
}

impl Dialog {
    /// Returns the state after lost bytes: prepared statements are still known, open requests are not.
    pub(super) fn after_loss(self) -> Dialog {
        let mut waiting = self.waiting;
        waiting.clear();
        Dialog {
            waiting,
            statements: self.statements,
            portals: self.portals,
            ..Dialog::default()
        }
    }

    /// Begins the exchange of a startup packet.
    pub(super) fn connect(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        database: &[u8],
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let database = text::name_up_to(database, fields::MAX_DATABASE, false);
        self.log_in(sink, RequestName::new("CONNECT", &database), bytes)
    }

    /// Begins the exchange of another round of the log-in: a request for encryption, or a password.
    pub(super) fn handshake(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        self.log_in(sink, RequestName::new(HANDSHAKE, ""), bytes)
    }

    fn log_in(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        named: RequestName<'_>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let pending = Pending {
            kind: RequestKind::LogIn,
            is_synced: true,
            is_named: true,
            ..Pending::default()
        };
        let key = self.begin(sink, pending, Kind::Setup)?;
        sink.exchange(key).name(named);
        sink.exchange(key).count(bytes);
        sink.exchange(key).end_request();
        Ok(())
    }

    /// Ends a round of the log-in: the server has answered it with these bytes.
    pub(super) fn end_round(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        self.count_answer(sink, bytes);
        self.end_response(sink);
    }

    fn begin(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        pending: Pending,
        kind: Kind,
    ) -> Result<u64, Stop<'static>> {
        let is_exchange = pending.kind != RequestKind::Sync;
        let key = self.waiting.push(pending);
        let key = key.ok_or(Stop::Lost("too many statements wait", None))?;
        if is_exchange {
            sink.exchange(key).begin_request(kind);
        }
        Ok(key)
    }

    /// Reads a whole message of the client.
    pub(super) fn read_client_message(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let body = message.head();
        match kind {
            b'Q' | b'F' => {
                self.end_request(sink);
                self.begin_query(sink, kind, message, bytes)?;
            }
            b'P' | b'B' | b'D' | b'E' => self.add_to_group(sink, kind, message, bytes)?,
            b'S' | b'H' => self.end_group(sink, kind == b'S', bytes)?,
            b'C' => {
                let names = if body.first() == Some(&b'P') {
                    &mut self.portals
                } else {
                    &mut self.statements
                };
                names.forget(fields::text(body.get(1..).unwrap_or_default()).0);
                self.count(sink, bytes);
            }
            b'p' => self.handshake(sink, bytes)?,
            // no COPY is open: the capture begins while the server sends its log
            b'd' if self.waiting.is_empty() => self.replicates = true,
            b'd' | b'c' | b'f' => self.count_copied(sink, kind, bytes),
            _ => {}
        }
        Ok(())
    }

    /// Query, or FunctionCall (`F`).
    fn begin_query(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let (statement, cut) = (fields::text(message.head()).0, message.is_cut());
        let copies = kind == b'Q' && fields::copies_in(statement);
        let pending = Pending {
            kind: if copies {
                RequestKind::CopyIn
            } else {
                RequestKind::Query
            },
            is_named: true,
            is_synced: true,
            ..Pending::default()
        };
        let key = self.begin(sink, pending, Kind::Request)?;
        let (method, target) = if kind == b'Q' {
            let target = sql::mask(statement, Dialect::Standard, cut);
            (sql::verb(&target), target)
        } else {
            (SmolStr::new_static("FUNCTION"), SmolStr::default())
        };
        let mut exchange = sink.exchange(key);
        exchange.name(RequestName::new(&method, &target));
        exchange.count(bytes);
        if !copies {
            exchange.end_request();
        }
        Ok(())
    }

    /// Parse, Bind, Describe, Execute.
    fn add_to_group(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let (_, rest) = fields::text(message.head());
        let (statement, _) = fields::text(rest); // of Bind
        // an executed request continues only with the same statement and other values
        let continues = |newest: &Pending| match kind {
            b'B' => !newest.describes && *newest.statement == *statement,
            b'E' => newest.binds,
            _ => false,
        };
        if self.is_open
            && let Some((_, newest)) = self.waiting.last()
            && newest.executes > 0
            && !continues(newest)
        {
            self.end_request(sink);
        }
        let sql = self.sql_of(kind, message);
        let key = match self.waiting.last() {
            Some((key, _)) if self.is_open => key,
            _ => self.begin(sink, Pending::default(), Kind::Request)?,
        };
        self.is_open = true;
        let Some((_, newest)) = self.waiting.last() else {
            return Ok(());
        };
        match kind {
            b'B' => (newest.statement, newest.binds) = (statement.into(), true),
            b'P' => newest.parses = true,
            b'D' => newest.describes = true,
            b'E' => {
                newest.kind = RequestKind::Execute;
                newest.executes += 1;
                newest.binds = false;
            }
            _ => {}
        }
        let mut exchange = sink.exchange(key);
        if !sql.is_empty() && !std::mem::replace(&mut newest.is_named, true) {
            exchange.name(RequestName::new(&sql::verb(&sql), &sql));
        }
        exchange.count(bytes);
        Ok(())
    }

    /// Returns the masked SQL that a message of a group refers to, and keeps what Parse and Bind give a name.
    fn sql_of(&mut self, kind: u8, message: &LengthPrefixed<TYPE_AND_LENGTH>) -> SmolStr {
        let (first, rest) = fields::text(message.head());
        let (second, _) = fields::text(rest);
        match kind {
            b'P' => {
                let is_cut = message.is_cut() && second.len() + first.len() + 2 > message.head().len();
                let masked = sql::mask(second, Dialect::Standard, is_cut);
                self.statements.put(first, masked.clone());
                masked
            }
            b'B' => {
                let sql = self.statements.get(second);
                self.portals.put(first, sql.clone());
                sql
            }
            b'E' => self.portals.get(first),
            _ => match first.split_first() {
                Some((b'P', portal)) => self.portals.get(portal),
                Some((_, statement)) => self.statements.get(statement),
                None => SmolStr::default(),
            },
        }
    }

    /// Ends the newest request, if it is open. One without Execute has its name only now.
    fn end_request(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if std::mem::take(&mut self.is_open)
            && let Some((key, newest)) = self.waiting.last()
        {
            if newest.kind == RequestKind::Group {
                newest.kind = RequestKind::Prepare;
                let method = if newest.parses { "PREPARE" } else { "DESCRIBE" };
                sink.exchange(key).name(RequestName::new(method, ""));
            }
            sink.exchange(key).end_request();
        }
    }

    /// Counts bytes of the open request.
    fn count(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        if self.is_open
            && let Some((key, _)) = self.waiting.last()
        {
            sink.exchange(key).count(bytes);
        }
    }

    /// Sync, or Flush: the server answers what came before.
    fn end_group(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        is_sync: bool,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        self.count(sink, bytes);
        let was_open = self.is_open;
        self.end_request(sink);
        match self.waiting.last() {
            Some((_, newest)) if is_sync && was_open => newest.is_synced = true,
            _ if is_sync => {
                let sync = Pending {
                    kind: RequestKind::Sync,
                    is_synced: true,
                    ..Pending::default()
                };
                self.begin(sink, sync, Kind::Request)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts the data of a COPY, and ends its request with CopyDone (`c`) or CopyFail (`f`).
    fn count_copied(&mut self, sink: &mut Sink<'_, impl Listener>, kind: u8, bytes: u64) {
        let Some((key, newest)) = self.waiting.last() else {
            return;
        };
        if newest.kind != RequestKind::CopyIn {
            return;
        }
        sink.exchange(key).count(bytes);
        if matches!(kind, b'c' | b'f') {
            newest.kind = RequestKind::Query;
            sink.exchange(key).end_request();
        }
    }
}

/// Names of prepared statements, or of portals, with the SQL that each stands for.
#[derive(Debug, Default)]
struct Names(VecDeque<(Box<[u8]>, SmolStr)>);

impl Names {
    fn put(&mut self, name: &[u8], sql: SmolStr) {
        self.forget(name);
        if name.len() > MAX_NAME {
            return;
        }
        push_dropping_oldest(&mut self.0, MAX_NAMES, (name.into(), sql));
    }

    /// Returns the SQL of a name; empty if it is not known.
    fn get(&self, name: &[u8]) -> SmolStr {
        // the newest statements are used most
        let entry = self.0.iter().rev().find(|(listed, _)| **listed == *name);
        entry.map_or_else(SmolStr::default, |(_, sql)| sql.clone())
    }

    fn forget(&mut self, name: &[u8]) {
        self.0.retain(|(listed, _)| **listed != *name);
    }
}
