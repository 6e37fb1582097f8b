//! `connects`, `pushes` and `gaps`: times of a connection that no request accounts for.

use smol_str::SmolStr;

use super::Column;
use super::cells::{Ms, Time, optional, required};
use crate::exchange::{CutBy, Exchange, Opening, RowKind};
use crate::judge::{Cause, Grade, Row};
use crate::lookup::Found;
use crate::messages::TlsSetup;

/// Fields of every row in the three tables.
struct Common {
    number: u64,
    stream: u32,
    start_ns: i64,
    end_ns: i64,
    first_frame: u64,
    last_frame: u64,
    /// Time of each cause in ns, by its place in `Cause`.
    cause_ns: [i64; Cause::COUNT],
}

impl Common {
    fn new(exchange: &Exchange, causes: &[Row]) -> Self {
        let end = exchange.end();
        let mut cause_ns = [0; Cause::COUNT];
        for row in causes {
            if let Some(sum) = cause_ns.get_mut(row.cause as usize) {
                *sum += row.end_ns - row.start_ns;
            }
        }
        Common {
            number: exchange.id,
            stream: exchange.stream,
            start_ns: exchange.start(),
            end_ns: end.time_ns.max(exchange.start()),
            first_frame: exchange.request.first.frame,
            last_frame: end.frame,
            cause_ns,
        }
    }

    /// The cause that took the most time; of equals the first in `Cause`. `None` if no cause took any.
    fn top_cause(&self) -> Option<&'static str> {
        let longest = self.cause_ns.iter().max().filter(|ns| **ns > 0)?;
        let top = self.cause_ns.iter().position(|ns| ns == longest)?;
        Cause::WORDS.get(top).copied()
    }
}

/// The set-up of a connection: DNS lookup, TCP handshake, TLS handshake, greeting.
pub struct ConnectRow {
    common: Common,
    answer_frame: Option<u64>,
    cut_by: Option<CutBy>,
    opening: Opening,
}

impl AsRef<Common> for ConnectRow {
    fn as_ref(&self) -> &Common {
        &self.common
    }
}

impl ConnectRow {
    pub fn new(exchange: &Exchange, causes: &[Row]) -> Self {
        ConnectRow {
            common: Common::new(exchange, causes),
            answer_frame: exchange.response.as_ref().map(|answer| answer.first.frame),
            cut_by: exchange.cut_by,
            opening: exchange.opening.as_deref().cloned().unwrap_or_default(),
        }
    }
}

/// A message that the server sent without a request.
pub struct PushRow {
    common: Common,
    protocol: &'static str,
    method: Option<SmolStr>,
    target: Option<SmolStr>,
    bytes: u64,
}

impl AsRef<Common> for PushRow {
    fn as_ref(&self) -> &Common {
        &self.common
    }
}

impl PushRow {
    pub fn new(exchange: &Exchange, causes: &[Row]) -> Self {
        PushRow {
            common: Common::new(exchange, causes),
            protocol: exchange.protocol.unwrap_or_default().word(),
            method: exchange.method.clone(),
            target: exchange.target.clone(),
            bytes: exchange.response.as_ref().map_or(0, |answer| answer.bytes),
        }
    }
}

/// A pause between requests, data that a kernel held back, or a wait inferred from a one-way capture.
pub struct GapRow {
    common: Common,
    index: u32,
    kind: &'static str,
}

impl AsRef<Common> for GapRow {
    fn as_ref(&self) -> &Common {
        &self.common
    }
}

impl GapRow {
    pub fn new(exchange: &Exchange, causes: &[Row]) -> Self {
        GapRow {
            common: Common::new(exchange, causes),
            index: exchange.index,
            kind: match exchange.row {
                RowKind::OneWay => "one_way",
                RowKind::Held if is_held(causes) => "held",
                _ => "pause",
            },
        }
    }
}

/// Whether a kernel held back written data for most of this time.
///
/// Nagle's algorithm and delayed ACKs count if they are at least probable, and a delayed ACK must be among them.
/// Nagle's algorithm alone waits one round trip, which a timer of the program may equal by chance.
fn is_held(causes: &[Row]) -> bool {
    let duration = |row: &Row| row.end_ns - row.start_ns;
    let held = |row: &&Row| {
        matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.grounds.grade <= Grade::Probable
    };
    let held_ns: i64 = causes.iter().filter(held).map(duration).sum();
    let has_delayed_ack = causes
        .iter()
        .filter(held)
        .any(|row| row.cause == Cause::DelayedAck);
    has_delayed_ack && 2 * held_ns > causes.iter().map(duration).sum::<i64>()
}

pub fn connects(rows: &[ConnectRow]) -> Vec<Column> {
    let mut columns = common_head("connect", rows);
    columns.insert(6, optional("answer_frame", rows, |row| row.answer_frame));
    columns.extend([
        optional("dns_ms", rows, |row| Some(Ms(lookup(row)?.duration_ns))),
        optional("dns_name", rows, |row| Some(lookup(row)?.name.as_str())),
        optional("lookup", rows, |row| Some(lookup(row)?.number)),
        optional("handshake_ms", rows, |row| row.opening.handshake_ns.map(Ms)),
        optional("tls_ms", rows, |row| row.opening.tls_ns.map(Ms)),
        optional("tls_version", rows, |row| tls(row)?.version.map(tls_version)),
        optional("tls_round_trips", rows, |row| tls(row)?.round_trips),
        optional("tls_resumed", rows, |row| tls(row)?.resumed),
        optional("tls_server_name", rows, |row| tls(row)?.server_name.as_deref()),
        optional("tls_alpn", rows, |row| tls(row)?.alpn.as_deref()),
        optional("tls_alpn_offered", rows, |row| tls(row)?.offered.as_deref()),
        optional("greeting_ms", rows, |row| row.opening.greeting_ns.map(Ms)),
        optional("cut_by", rows, |row| row.cut_by.map(CutBy::word)),
    ]);
    columns.extend(common_tail(rows));
    columns
}

fn lookup(row: &ConnectRow) -> Option<&Found> {
    row.opening.lookup.as_ref()
}

fn tls(row: &ConnectRow) -> Option<&TlsSetup> {
    row.opening.secured.as_ref()
}

/// Returns Wireshark's name of a TLS version.
fn tls_version(number: u16) -> &'static str {
    match number {
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        _ => "other",
    }
}

pub fn pushes(rows: &[PushRow]) -> Vec<Column> {
    let mut columns = common_head("push", rows);
    let message = [
        required("protocol", rows, |row| row.protocol),
        optional("method", rows, |row| row.method.as_deref()),
        optional("target", rows, |row| row.target.as_deref()),
    ];
    columns.splice(2..2, message);
    columns.push(required("bytes", rows, |row| row.bytes));
    columns.extend(common_tail(rows));
    columns
}

pub fn gaps(rows: &[GapRow]) -> Vec<Column> {
    let mut columns = common_head("gap", rows);
    let kind = [
        required("index", rows, |row| row.index),
        required("kind", rows, |row| row.kind),
    ];
    columns.splice(2..2, kind);
    columns.extend(common_tail(rows));
    columns
}

/// The columns that begin all three tables; `number` is the name of the row's number.
fn common_head<R: AsRef<Common>>(number: &'static str, rows: &[R]) -> Vec<Column> {
    vec![
        required(number, rows, |row| row.as_ref().number),
        required("stream", rows, |row| row.as_ref().stream),
        required("start", rows, |row| Time(row.as_ref().start_ns)),
        required("end", rows, |row| Time(row.as_ref().end_ns)),
        required("duration_ms", rows, |row| {
            Ms(row.as_ref().end_ns - row.as_ref().start_ns)
        }),
        required("first_frame", rows, |row| row.as_ref().first_frame),
        required("last_frame", rows, |row| row.as_ref().last_frame),
    ]
}

/// The columns that end all three tables: the time of each cause, and the cause that took the most.
fn common_tail<R: AsRef<Common>>(rows: &[R]) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, cause) in Cause::WORDS.into_iter().enumerate() {
        let ns = |row: &R| row.as_ref().cause_ns.get(index).copied().unwrap_or(0);
        columns.push(required([cause, "_ms"].concat(), rows, |row| Ms(ns(row))));
    }
    columns.push(optional("top_cause", rows, |row| row.as_ref().top_cause()));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Because, Grounds, Owner, Rule};

    #[test]
    fn held_is_what_waited_mostly_for_a_delayed_ack() {
        let probable = Grounds::probable(Because::FewWaits, Cause::ClientThink);
        let suspected = Grounds::suspected(Because::FewWaits, Cause::ClientThink);
        let row = |cause, ns, grounds| Row {
            start_ns: 0,
            end_ns: ns,
            cause,
            parent: None,
            owner: Owner::Client,
            from_frame: 1,
            to_frame: 3,
            evidence: [1, 2, 3],
            rule: Rule::NagleDelayedAck,
            grounds,
        };
        let (nagle, ack, think) = (Cause::Nagle, Cause::DelayedAck, Cause::ClientThink);
        let held = |rows: &[(Cause, i64, Grounds)]| {
            let causes = rows.iter().map(|(cause, ns, grounds)| row(*cause, *ns, *grounds));
            is_held(&causes.collect::<Vec<_>>())
        };
        assert!(held(&[(nagle, 5, probable), (ack, 40, probable)]));
        assert!(held(&[(ack, 21, probable), (think, 20, probable)]));
        assert!(!held(&[(ack, 20, probable), (think, 20, probable)]));
        assert!(
            !held(&[(nagle, 40, probable)]),
            "a round trip, or a timer as long"
        );
        assert!(!held(&[(ack, 40, suspected)]));
        assert!(!held(&[]));
    }
}
