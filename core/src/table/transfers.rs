//! `transfers`: one row for each direction of a stream that moved more than a few windows: how fast, and what held it back.

use arrow_array::BooleanArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use std::net::IpAddr;
use std::sync::Arc;

use super::{
    Column, addresses, column, duration_options, durations, fixed_words, instants, nullable, option, plain,
};
use crate::base::Side;
use crate::judge::Limiter;
use crate::judge::transfer::{self, Judged};
use crate::messages::Protocol;
use crate::observe::transfer::{Transfer, Waited};
use crate::stream::Stream;

pub struct Row {
    stream: u32,
    sender: Side,
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    start: i64,
    end: i64,
    bytes: u64,
    segments: u64,
    mss: u16,
    repeats: u64,
    marks: u64,
    near: bool,
    window: Option<u32>,
    /// Both SYNs have the option; none where one was not seen.
    scaling: Option<bool>,
    scale: Option<u8>,
    /// HTTP/2's window that held it back most, and whether it is a stream's.
    http2: Option<(bool, i64)>,
    judged: Judged,
}

/// The rows of one stream that is over.
pub fn of_stream(id: u32, stream: &Stream, rows: &mut Vec<Row>) {
    for (sender, one) in stream.transfers.watched() {
        if !transfer::matters(one) {
            continue;
        }
        let [Some(client), Some(server)] = stream.rtts.map(Some) else {
            continue;
        };
        let idle = client.zip(server).map(|(client, server)| client + server);
        let idle = idle.or(stream.initial_rtt());
        let read = stream.tracking.read_so_far();
        let sealed = read.protocol == Some(Protocol::Tls);
        let [client, server] = [Side::Client, Side::Server].map(|side| stream.side(side));
        let syns = [client, server].iter().all(|side| side.sack.is_some());
        rows.push(Row {
            stream: id,
            sender,
            client: stream.client(),
            server: stream.server(),
            start: one.first,
            end: one.last,
            bytes: one.bytes(),
            segments: one.segments,
            mss: one.mss,
            repeats: one.repeats,
            marks: one.congestion_marks.max(one.slowed),
            near: one.near,
            window: Some(one.window_most.clamp(0, i64::from(u32::MAX)) as u32)
                .filter(|_| one.window_known && one.window_most > 0),
            scaling: syns.then_some(client.scale.is_some() && server.scale.is_some()),
            scale: stream.side(sender.other()).scale,
            http2: http2_window(one),
            judged: transfer::judge(one, idle, sealed),
        });
    }
}

fn http2_window(one: &Transfer) -> Option<(bool, i64)> {
    let [connection, stream] = one.http2;
    let of_stream = stream.0 > connection.0;
    let (ns, window) = if of_stream { stream } else { connection };
    (ns > 0).then_some((of_stream, window))
}

impl Row {
    fn rate(&self) -> Option<f64> {
        mbit(self.bytes as f64, self.judged.duration)
    }

    /// What the line carried while segments followed each other.
    fn burst(&self) -> Option<f64> {
        mbit(f64::from(self.mss), self.judged.each?)
    }

    /// As much in flight as fills the path at the rate of its bursts; at least at the transfer's own.
    fn needed(&self) -> Option<u64> {
        let rate = self.burst().or(self.rate())?.max(self.rate().unwrap_or(0.0));
        let trip = self.judged.rtt_idle? as f64;
        Some((rate * 1e6 / 8.0 * trip / 1e9) as u64)
    }

    fn share(&self, ns: i64) -> f64 {
        ns as f64 / self.judged.waited.all().max(1) as f64
    }

    fn owner(&self) -> Option<&'static str> {
        let sender = match self.sender {
            Side::Client => ("client", "server"),
            Side::Server => ("server", "client"),
        };
        match self.judged.verdict.limit {
            Limiter::ReceiverWindow | Limiter::ReceiverProgram | Limiter::Http2Window => Some(sender.1),
            Limiter::SenderProgram | Limiter::SenderBuffer | Limiter::Pacing => Some(sender.0),
            Limiter::Congestion | Limiter::Start | Limiter::Line => Some("network"),
            Limiter::None => None,
        }
    }
}

fn mbit(bytes: f64, ns: i64) -> Option<f64> {
    (ns > 0).then(|| bytes * 8e3 / ns as f64)
}

pub fn columns(rows: &[Row]) -> Vec<Column> {
    let queued = |r: &Row| {
        let queue = r.judged.queue? as f64;
        Some((r.rate()? * 1e6 / 8.0 * queue / 1e9) as u64)
    };
    let port = |of: fn(&Row) -> u16| plain::<arrow_array::types::UInt16Type, Row>(rows, of);
    let share = |of: fn(&Waited) -> i64| plain::<Float64Type, Row>(rows, |r| r.share(of(&r.judged.waited)));
    let scaling: BooleanArray = rows.iter().map(|r| r.scaling).collect();
    vec![
        column("stream", plain::<UInt32Type, Row>(rows, |r| r.stream)),
        column(
            "direction",
            fixed_words(rows, |r| {
                Some(match r.sender {
                    Side::Client => "to_server",
                    Side::Server => "to_client",
                })
            }),
        ),
        column("client", addresses(rows.iter().map(|r| Some(r.client.0)))),
        column("client_port", port(|r| r.client.1)),
        column("server", addresses(rows.iter().map(|r| Some(r.server.0)))),
        column("server_port", port(|r| r.server.1)),
        column("start", instants(rows, |r| r.start)),
        column("end", instants(rows, |r| r.end)),
        column("bytes", plain::<UInt64Type, Row>(rows, |r| r.bytes)),
        column("segments", plain::<UInt64Type, Row>(rows, |r| r.segments)),
        column("duration_ms", durations(rows, |r| r.judged.duration)),
        nullable("rate_mbit", option::<Float64Type, Row>(rows, Row::rate)),
        nullable("burst_mbit", option::<Float64Type, Row>(rows, Row::burst)),
        column(
            "limited_by",
            fixed_words(rows, |r| Some(r.judged.verdict.limit.name())),
        ),
        nullable("owner", fixed_words(rows, Row::owner)),
        column(
            "grade",
            fixed_words(rows, |r| Some(r.judged.verdict.grade.name())),
        ),
        nullable(
            "rival",
            fixed_words(rows, |r| Some(r.judged.verdict.rival?.name())),
        ),
        nullable("cut_by", fixed_words(rows, |r| r.judged.verdict.cut_by)),
        nullable("rtt_idle_ms", duration_options(rows, |r| r.judged.rtt_idle)),
        nullable("rtt_load_ms", duration_options(rows, |r| r.judged.rtt_load)),
        nullable("queue_ms", duration_options(rows, |r| r.judged.queue)),
        nullable("queue_bytes", option::<UInt64Type, Row>(rows, queued)),
        nullable("window_bytes", option::<UInt32Type, Row>(rows, |r| r.window)),
        nullable(
            "window_needed_bytes",
            option::<UInt64Type, Row>(rows, Row::needed),
        ),
        nullable("window_scaling", Arc::new(scaling)),
        nullable(
            "wscale",
            option::<arrow_array::types::UInt8Type, Row>(rows, |r| r.scale),
        ),
        column("retransmissions", plain::<UInt64Type, Row>(rows, |r| r.repeats)),
        column("ecn_marks", plain::<UInt64Type, Row>(rows, |r| r.marks)),
        column("at_sender", {
            let near: BooleanArray = rows.iter().map(|r| Some(r.near)).collect();
            Arc::new(near)
        }),
        column("window_share", share(|w| w.window)),
        column("program_share", share(|w| w.program)),
        column("timer_share", share(|w| w.timer)),
        column("congestion_share", share(|w| w.repair + w.cut)),
        column("start_share", share(|w| w.growing)),
        column("level_share", share(|w| w.level)),
        column("http2_share", share(|w| w.http2)),
        nullable(
            "http2_window_bytes",
            option::<UInt64Type, Row>(rows, |r| Some(r.http2?.1.max(0) as u64)),
        ),
        nullable(
            "http2_window_of",
            fixed_words(rows, |r| Some(if r.http2?.0 { "stream" } else { "connection" })),
        ),
    ]
}
