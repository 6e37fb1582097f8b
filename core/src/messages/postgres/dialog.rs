//! Which statement is open. Answers come in the order of the requests (`answers.rs`); what the client sends up to
//! a Sync (or a Flush) is a group, and an error skips the rest of its group.

mod answers;

use smol_str::SmolStr;

use super::super::length_prefixed::LengthPrefixed;
use super::super::pending_queue::PendingQueue;
use super::super::sink::MessageSink;
use super::super::sql::{self, Dialect};
use super::super::{Kind, Listener, RequestName, text};
use super::Stop;
use super::fields::{self, TYPE_AND_LENGTH};
use super::names::Names;

/// What the rounds of a log-in beside its first are called.
const ROUND: &str = "handshake";

#[derive(Debug, Default)]
pub(super) struct Dialog {
    waiting: PendingQueue<Pending>,
    /// The newest request goes on with the client's next message.
    goes_on: bool,
    statements: Names,
    portals: Names,
    /// An error came: the server skips the client's messages up to its Sync.
    skipping: bool,
    /// The server sends its log: both sides talk for themselves.
    replicates: bool,
}

/// A request, from its first message to its answer's last.
#[derive(Debug, Default)]
struct Pending {
    what: What,
    /// No note covers it: a Sync alone.
    silent: bool,
    /// The statement that it executes, and how often it has, and that many answers are to come.
    statement: Box<[u8]>,
    executes: u32,
    /// Values were bound that are not executed yet.
    binds: bool,
    describes: bool,
    parses: bool,
    /// Its SQL is known.
    named: bool,
    /// ReadyForQuery ends it.
    synced: bool,
    answered: bool,
    error: Option<SmolStr>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum What {
    LogIn,
    Query,
    /// Parse, Bind, Describe, until it is known whether Execute follows.
    #[default]
    Group,
    /// Without Execute.
    Prepare,
    Execute,
    /// Its data are still to come.
    CopyIn,
}

impl Dialog {
    /// After lost bytes: what was prepared is still known.
    pub(super) fn again(self) -> Dialog {
        let mut waiting = self.waiting;
        waiting.clear();
        Dialog {
            waiting,
            statements: self.statements,
            portals: self.portals,
            ..Dialog::default()
        }
    }

    /// The client logs in.
    pub(super) fn starts(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        database: &[u8],
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let named = RequestName {
            method: "CONNECT",
            target: &text::name_up_to(database, fields::MAX_DATABASE, false),
            host: "",
        };
        self.logs_in(sink, named, bytes)
    }

    /// A round of the log-in before or behind that: encryption, a password.
    pub(super) fn round(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let named = RequestName {
            method: ROUND,
            ..RequestName::default()
        };
        self.logs_in(sink, named, bytes)
    }

    fn logs_in(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        named: RequestName<'_>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let pending = Pending {
            what: What::LogIn,
            synced: true,
            named: true,
            ..Pending::default()
        };
        let key = self.begin(sink, pending, Kind::Setup)?;
        sink.exchange(key).name(named);
        sink.exchange(key).count(bytes);
        sink.exchange(key).end_request();
        Ok(())
    }

    /// It is answered: the client goes on.
    pub(super) fn round_over(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        self.part(sink, bytes);
        self.over(sink);
    }

    fn begin(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        pending: Pending,
        kind: Kind,
    ) -> Result<u64, Stop<'static>> {
        let silent = pending.silent;
        let key = self
            .waiting
            .push(pending)
            .ok_or(Stop::Lost("too many statements wait", None))?;
        if !silent {
            sink.exchange(key).begin_request(kind);
        }
        Ok(key)
    }

    /// The client has sent a whole message.
    pub(super) fn asks(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let body = message.head();
        match kind {
            b'Q' | b'F' => {
                self.ends(sink);
                self.queries(sink, kind, message, bytes)?;
            }
            b'P' | b'B' | b'D' | b'E' => self.group(sink, kind, message, bytes)?,
            b'S' | b'H' => self.syncs(sink, kind == b'S', bytes)?,
            b'C' => {
                let names = if body.first() == Some(&b'P') {
                    &mut self.portals
                } else {
                    &mut self.statements
                };
                names.forget(fields::text(body.get(1..).unwrap_or_default()).0);
                self.counts(sink, bytes);
            }
            b'p' => self.round(sink, bytes)?,
            // nothing is copied in: the stream was joined while the server sends its log
            b'd' if self.waiting.is_empty() => self.replicates = true,
            b'd' | b'c' | b'f' => self.data(sink, kind, bytes),
            _ => {}
        }
        Ok(())
    }

    fn queries(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let (statement, cut) = (fields::text(message.head()).0, message.is_cut());
        let copies = kind == b'Q' && fields::copies_in(statement);
        let pending = Pending {
            what: if copies { What::CopyIn } else { What::Query },
            named: true,
            synced: true,
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
        exchange.name(RequestName {
            method: &method,
            target: &target,
            host: "",
        });
        exchange.count(bytes);
        if !copies {
            exchange.end_request();
        }
        Ok(())
    }

    /// Parse, Bind, Describe, Execute.
    fn group(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        kind: u8,
        message: &LengthPrefixed<TYPE_AND_LENGTH>,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        let (first, rest) = fields::text(message.head());
        let (second, _) = fields::text(rest);
        // what was executed is over with anything but the same once more, with other values
        let again = |newest: &Pending| match kind {
            b'B' => !newest.describes && *newest.statement == *second,
            b'E' => newest.binds,
            _ => false,
        };
        if self.goes_on
            && let Some((_, newest)) = self.waiting.last()
            && newest.executes > 0
            && !again(newest)
        {
            self.ends(sink);
        }
        let sql = match kind {
            b'P' => {
                let cut = message.is_cut() && second.len() + first.len() + 2 > message.head().len();
                let masked = sql::mask(second, Dialect::Standard, cut);
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
        };
        let key = match self.waiting.last().filter(|_| self.goes_on) {
            Some((key, _)) => key,
            None => self.begin(sink, Pending::default(), Kind::Request)?,
        };
        self.goes_on = true;
        let Some((_, newest)) = self.waiting.last() else {
            return Ok(());
        };
        match kind {
            b'B' => (newest.statement, newest.binds) = (second.into(), true),
            b'P' => newest.parses = true,
            b'D' => newest.describes = true,
            b'E' => {
                newest.what = What::Execute;
                newest.executes += 1;
                newest.binds = false;
            }
            _ => {}
        }
        let mut exchange = sink.exchange(key);
        if !sql.is_empty() && !std::mem::replace(&mut newest.named, true) {
            exchange.name(RequestName {
                method: &sql::verb(&sql),
                target: &sql,
                host: "",
            });
        }
        exchange.count(bytes);
        Ok(())
    }

    /// The newest request is whole.
    fn ends(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        if std::mem::take(&mut self.goes_on)
            && let Some((key, newest)) = self.waiting.last()
        {
            if newest.what == What::Group {
                newest.what = What::Prepare;
                let method = if newest.parses { "PREPARE" } else { "DESCRIBE" };
                sink.exchange(key).name(RequestName {
                    method,
                    ..RequestName::default()
                });
            }
            sink.exchange(key).end_request();
        }
    }
}

impl Dialog {
    /// Bytes of the request that goes on.
    fn counts(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        if let Some((key, _)) = self.waiting.last().filter(|_| self.goes_on) {
            sink.exchange(key).count(bytes);
        }
    }

    /// Sync, or Flush: the server answers what came before.
    fn syncs(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        sync: bool,
        bytes: u64,
    ) -> Result<(), Stop<'static>> {
        self.counts(sink, bytes);
        let goes_on = self.goes_on;
        self.ends(sink);
        match self.waiting.last() {
            Some((_, newest)) if sync && goes_on => newest.synced = true,
            _ if sync => {
                let alone = Pending {
                    silent: true,
                    synced: true,
                    ..Pending::default()
                };
                self.begin(sink, alone, Kind::Request)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Data of a COPY.
    fn data(&mut self, sink: &mut MessageSink<'_, impl Listener>, kind: u8, bytes: u64) {
        let Some((key, newest)) = self.waiting.last() else {
            return;
        };
        if newest.what != What::CopyIn {
            return;
        }
        sink.exchange(key).count(bytes);
        if matches!(kind, b'c' | b'f') {
            newest.what = What::Query;
            sink.exchange(key).end_request();
        }
    }
}
