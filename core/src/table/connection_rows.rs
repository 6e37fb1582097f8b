//! `connects`, `pushes` and `gaps`: what took time on a connection and is no request. Rows are few, and kept as they
//! come until a batch is built.

use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use smol_str::SmolStr;

use super::spent::CAUSES;
use super::{
    Column, column, duration_options, durations, fixed_words, instants, interned_words, nullable, option,
    plain,
};
use crate::exchange::{CutBy, Exchange, Opening, RowKind};
use crate::judge::{Cause, Grade, Row};
use crate::messages::TlsSetup;

/// Rows of one of these tables until a batch is built.
pub const ROWS: usize = 512;

/// What all of them have.
struct Common {
    number: u64,
    stream: u32,
    start: i64,
    end: i64,
    first_frame: u64,
    last_frame: u64,
    /// By cause, in ns.
    spent: [i64; CAUSES],
}

impl Common {
    fn new(e: &Exchange, causes: &[Row]) -> Self {
        let end = e.end();
        let mut spent = [0; CAUSES];
        for row in causes {
            if let Some(sum) = spent.get_mut(row.cause as usize) {
                *sum += row.end - row.start;
            }
        }
        Common {
            number: e.id,
            stream: e.stream,
            start: e.start(),
            end: end.time_ns.max(e.start()),
            first_frame: e.request.first.frame,
            last_frame: end.frame,
            spent,
        }
    }

    /// The first of those that took the most.
    fn top_cause(&self) -> Option<&'static str> {
        let longest = self.spent.iter().max().filter(|ns| **ns > 0)?;
        let top = self.spent.iter().position(|ns| ns == longest)?;
        Cause::WORDS.get(top).copied()
    }
}

/// A connection's set-up.
pub struct ConnectRow {
    common: Common,
    answer_frame: Option<u64>,
    cut_by: Option<CutBy>,
    opening: Opening,
}

impl ConnectRow {
    pub fn new(e: &Exchange, causes: &[Row]) -> Self {
        ConnectRow {
            common: Common::new(e, causes),
            answer_frame: e.response.as_ref().map(|answer| answer.first.frame),
            cut_by: e.cut_by,
            opening: e.opening.as_deref().cloned().unwrap_or_default(),
        }
    }
}

/// What a server sent without a request.
pub struct PushRow {
    common: Common,
    protocol: &'static str,
    method: Option<SmolStr>,
    target: Option<SmolStr>,
    bytes: u64,
}

impl PushRow {
    pub fn new(e: &Exchange, causes: &[Row]) -> Self {
        PushRow {
            common: Common::new(e, causes),
            protocol: e.protocol.unwrap_or_default().word(),
            method: e.method.clone(),
            target: e.target.clone(),
            bytes: e.response.as_ref().map_or(0, |answer| answer.bytes),
        }
    }
}

/// A client's pause, what its kernel held, or what one direction lets us suspect.
pub struct GapRow {
    common: Common,
    index: u32,
    kind: &'static str,
}

impl GapRow {
    pub fn new(e: &Exchange, causes: &[Row]) -> Self {
        GapRow {
            common: Common::new(e, causes),
            index: e.index,
            kind: match e.row {
                RowKind::OneWay => "one_way",
                RowKind::Held if is_held(causes) => "held",
                _ => "pause",
            },
        }
    }
}

/// Most of this time a kernel held what was written, at least probably, and not for a round trip alone: a timer may be as
/// long.
fn is_held(causes: &[Row]) -> bool {
    let took = |row: &Row| row.end - row.start;
    let held = |row: &&Row| {
        matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.grounds.grade <= Grade::Probable
    };
    let stall: i64 = causes.iter().filter(held).map(took).sum();
    let delayed = causes
        .iter()
        .filter(held)
        .any(|row| row.cause == Cause::DelayedAck);
    delayed && 2 * stall > causes.iter().map(took).sum::<i64>()
}

pub fn connects(rows: &[ConnectRow]) -> Vec<Column> {
    let lookup = |r: &ConnectRow| r.opening.lookup.clone();
    let dns_ns = |r: &ConnectRow| Some(lookup(r)?.ns);
    let mut columns = first("connect", rows, |r| &r.common);
    let answers = option::<UInt64Type, ConnectRow>(rows, |r| r.answer_frame);
    columns.insert(6, nullable("answer_frame", answers));
    columns.extend([
        nullable("dns_ms", duration_options(rows, dns_ns)),
        nullable(
            "dns_name",
            interned_words(rows, |r| Some(r.opening.lookup.as_ref()?.name.as_str())),
        ),
        nullable(
            "lookup",
            option::<UInt64Type, ConnectRow>(rows, |r| Some(lookup(r)?.number)),
        ),
        nullable("handshake_ms", duration_options(rows, |r| r.opening.handshake_ns)),
        nullable("tls_ms", duration_options(rows, |r| r.opening.tls_ns)),
        nullable(
            "tls_version",
            fixed_words(rows, |r| secured(r)?.version.map(version)),
        ),
        nullable(
            "tls_round_trips",
            option::<UInt8Type, ConnectRow>(rows, |r| secured(r)?.round_trips),
        ),
        nullable(
            "tls_resumed",
            Arc::new(rows.iter().map(|r| secured(r)?.resumed).collect::<BooleanArray>()),
        ),
        nullable(
            "tls_server_name",
            interned_words(rows, |r| secured(r)?.server_name.as_deref()),
        ),
        nullable("tls_alpn", interned_words(rows, |r| secured(r)?.alpn.as_deref())),
        nullable(
            "tls_alpn_offered",
            interned_words(rows, |r| secured(r)?.offered.as_deref()),
        ),
        nullable("greeting_ms", duration_options(rows, |r| r.opening.greeting_ns)),
        nullable("cut_by", fixed_words(rows, |r| r.cut_by.map(CutBy::word))),
    ]);
    last(columns, rows, |r| &r.common)
}

fn secured(row: &ConnectRow) -> Option<&TlsSetup> {
    row.opening.secured.as_ref()
}

/// Wireshark's word for a version of TLS.
fn version(number: u16) -> &'static str {
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
    let mut columns = first("push", rows, |r| &r.common);
    columns.splice(
        2..2,
        [
            column("protocol", fixed_words(rows, |r| Some(r.protocol))),
            nullable("method", interned_words(rows, |r| r.method.as_deref())),
            nullable("target", interned_words(rows, |r| r.target.as_deref())),
        ],
    );
    columns.push(column("bytes", plain::<UInt64Type, PushRow>(rows, |r| r.bytes)));
    last(columns, rows, |r| &r.common)
}

pub fn gaps(rows: &[GapRow]) -> Vec<Column> {
    let mut columns = first("gap", rows, |r| &r.common);
    columns.splice(
        2..2,
        [
            column("index", plain::<UInt32Type, GapRow>(rows, |r| r.index)),
            column("kind", fixed_words(rows, |r| Some(r.kind))),
        ],
    );
    last(columns, rows, |r| &r.common)
}

/// The columns that all begin with.
fn first<R>(number: &'static str, rows: &[R], of: impl Fn(&R) -> &Common) -> Vec<Column> {
    vec![
        column(number, plain::<UInt64Type, R>(rows, |r| of(r).number)),
        column("stream", plain::<UInt32Type, R>(rows, |r| of(r).stream)),
        column("start", instants(rows, |r| of(r).start)),
        column("end", instants(rows, |r| of(r).end)),
        column("duration_ms", durations(rows, |r| of(r).end - of(r).start)),
        column("first_frame", plain::<UInt64Type, R>(rows, |r| of(r).first_frame)),
        column("last_frame", plain::<UInt64Type, R>(rows, |r| of(r).last_frame)),
    ]
}

/// The columns that all end with.
fn last<R>(mut columns: Vec<Column>, rows: &[R], of: impl Fn(&R) -> &Common) -> Vec<Column> {
    for (place, name) in Cause::WORDS.into_iter().enumerate() {
        let spent = durations(rows, |r| of(r).spent.get(place).copied().unwrap_or(0));
        columns.push(column(format!("{name}_ms"), spent));
    }
    columns.push(nullable("top_cause", fixed_words(rows, |r| of(r).top_cause())));
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
            start: 0,
            end: ns,
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
            is_held(&rows.iter().map(|r| row(r.0, r.1, r.2)).collect::<Vec<_>>())
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
