//! `transfers`: one row per direction of a stream that moved more than a few windows of data: its rate, and what
//! limited it.

use std::net::IpAddr;

use super::Column;
use super::cells::{Ms, Time, optional, required};
use crate::base::Side;
use crate::judge::Limiter;
use crate::judge::transfer::{self, TransferVerdict};
use crate::messages::Protocol;
use crate::observe::transfer::{Transfer, Waited};
use crate::stream::Stream;

/// One direction of a stream that carried a bulk transfer.
pub struct Row {
    stream: u32,
    sender: Side,
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    start_ns: i64,
    end_ns: i64,
    bytes: u64,
    segments: u64,
    mss: u16,
    retransmissions: u64,
    ecn_marks: u64,
    /// Whether the capture was taken at the sender.
    is_at_sender: bool,
    /// The largest receive window, in bytes. `None` if its scale is unknown.
    max_window: Option<u32>,
    /// Whether both SYNs have the window scale option. `None` if a SYN was not captured.
    window_scaling: Option<bool>,
    receiver_scale: Option<u8>,
    /// The HTTP/2 flow-control window that stopped the sender longest: whether it is a stream's, and its size in bytes.
    http2_window: Option<(bool, i64)>,
    judged: TransferVerdict,
}

/// Appends the transfers of a stream that has ended.
pub fn push_transfers(id: u32, stream: &Stream, rows: &mut Vec<Row>) {
    for (sender, transfer) in stream.transfers.watched() {
        if !transfer::matters(transfer) {
            continue;
        }
        let [client_rtt, server_rtt] = stream.rtts_ns;
        let path_rtt = client_rtt.zip(server_rtt).map(|(client, server)| client + server);
        let idle_rtt = path_rtt.or(stream.initial_rtt());
        let read = stream.tracking.read_so_far();
        let is_encrypted = read.protocol == Some(Protocol::Tls);
        let [client, server] = Side::BOTH.map(|side| stream.side(side));
        let has_both_syns = [client, server].iter().all(|side| side.sack.is_some());
        rows.push(Row {
            stream: id,
            sender,
            client: stream.client(),
            server: stream.server(),
            start_ns: transfer.first_ns,
            end_ns: transfer.last_ns,
            bytes: transfer.bytes(),
            segments: transfer.segments,
            mss: transfer.mss,
            retransmissions: transfer.losses.retransmissions,
            ecn_marks: transfer
                .losses
                .congestion_marks
                .max(transfer.losses.window_reductions),
            is_at_sender: transfer.is_near,
            max_window: (transfer.window.is_known && transfer.window.largest_bytes > 0)
                .then_some(transfer.window.largest_bytes.min(i64::from(u32::MAX)) as u32),
            window_scaling: has_both_syns.then_some(client.scale.is_some() && server.scale.is_some()),
            receiver_scale: stream.side(sender.other()).scale,
            http2_window: http2_window(transfer),
            judged: transfer::judge(transfer, idle_rtt, is_encrypted),
        });
    }
}

/// Returns whether the HTTP/2 window that stopped the sender longest is a stream's, and its bytes.
fn http2_window(transfer: &Transfer) -> Option<(bool, i64)> {
    let (connection, streams) = (transfer.shut_connection, transfer.shut_streams);
    let is_of_stream = streams.ns > connection.ns;
    let longer = if is_of_stream { streams } else { connection };
    (longer.ns > 0).then_some((is_of_stream, longer.largest_bytes))
}

impl Row {
    fn rate_mbit(&self) -> Option<f64> {
        mbit(self.bytes as f64, self.judged.duration_ns)
    }

    /// The rate while segments followed each other without a pause: an estimate of the slowest link on the path.
    fn burst_mbit(&self) -> Option<f64> {
        mbit(f64::from(self.mss), self.judged.segment_ns?)
    }

    /// The window in bytes that would keep the path full: the higher of burst rate and mean rate, times the idle
    /// round trip.
    fn needed_window(&self) -> Option<u64> {
        let (burst, mean) = (self.burst_mbit(), self.rate_mbit());
        let rate = burst.or(mean)?.max(mean.unwrap_or(0.0));
        Some(bytes_in(self.judged.idle_rtt_ns?, rate))
    }

    /// The part of the observed time that `ns` makes up, from 0 to 1.
    fn share(&self, ns: i64) -> f64 {
        ns as f64 / self.judged.waited.all().max(1) as f64
    }

    /// The party that can lift the limit.
    fn owner(&self) -> Option<&'static str> {
        let (sender, receiver) = match self.sender {
            Side::Client => ("client", "server"),
            Side::Server => ("server", "client"),
        };
        match self.judged.verdict.limit {
            Limiter::ReceiverWindow | Limiter::ReceiverProgram | Limiter::Http2Window => Some(receiver),
            Limiter::SenderProgram | Limiter::SenderBuffer | Limiter::Pacing => Some(sender),
            Limiter::Congestion | Limiter::Start | Limiter::Line => Some("network"),
            Limiter::None => None,
        }
    }
}

/// Returns the rate in Mbit/s, or `None` for no time.
fn mbit(bytes: f64, ns: i64) -> Option<f64> {
    (ns > 0).then(|| bytes * 8e3 / ns as f64)
}

/// Returns the bytes that `rate_mbit` carries in `ns`.
fn bytes_in(ns: i64, rate_mbit: f64) -> u64 {
    (rate_mbit * 1e6 / 8.0 * ns as f64 / 1e9) as u64
}

pub fn columns(rows: &[Row]) -> Vec<Column> {
    let queue_bytes = |row: &Row| Some(bytes_in(row.judged.queue_ns?, row.rate_mbit()?));
    let share_column =
        |name, ns: fn(&Waited) -> i64| required(name, rows, move |row| row.share(ns(&row.judged.waited)));
    vec![
        required("stream", rows, |row| row.stream),
        required("direction", rows, |row| match row.sender {
            Side::Client => "to_server",
            Side::Server => "to_client",
        }),
        required("client", rows, |row| row.client.0),
        required("client_port", rows, |row| row.client.1),
        required("server", rows, |row| row.server.0),
        required("server_port", rows, |row| row.server.1),
        required("start", rows, |row| Time(row.start_ns)),
        required("end", rows, |row| Time(row.end_ns)),
        required("bytes", rows, |row| row.bytes),
        required("segments", rows, |row| row.segments),
        required("duration_ms", rows, |row| Ms(row.judged.duration_ns)),
        optional("rate_mbit", rows, Row::rate_mbit),
        optional("burst_mbit", rows, Row::burst_mbit),
        required("limited_by", rows, |row| row.judged.verdict.limit.word()),
        optional("owner", rows, Row::owner),
        required("grade", rows, |row| row.judged.verdict.grade.word()),
        optional("rival", rows, |row| Some(row.judged.verdict.rival?.word())),
        optional("cut_by", rows, |row| Some(row.judged.verdict.reduced_by?.word())),
        optional("rtt_idle_ms", rows, |row| row.judged.idle_rtt_ns.map(Ms)),
        optional("rtt_load_ms", rows, |row| row.judged.loaded_rtt_ns.map(Ms)),
        optional("queue_ms", rows, |row| row.judged.queue_ns.map(Ms)),
        optional("queue_bytes", rows, queue_bytes),
        optional("window_bytes", rows, |row| row.max_window),
        optional("window_needed_bytes", rows, Row::needed_window),
        optional("window_scaling", rows, |row| row.window_scaling),
        optional("wscale", rows, |row| row.receiver_scale),
        required("retransmissions", rows, |row| row.retransmissions),
        required("ecn_marks", rows, |row| row.ecn_marks),
        required("at_sender", rows, |row| row.is_at_sender),
        share_column("window_share", |waited| waited.window_ns),
        share_column("program_share", |waited| waited.program_ns),
        share_column("timer_share", |waited| waited.timer_ns),
        share_column("congestion_share", |waited| waited.repair_ns + waited.cut_ns),
        share_column("start_share", |waited| waited.growing_ns),
        share_column("level_share", |waited| waited.level_ns),
        share_column("http2_share", |waited| waited.http2_ns),
        optional("http2_window_bytes", rows, |row| {
            Some(row.http2_window?.1.max(0) as u64)
        }),
        optional("http2_window_of", rows, |row| {
            Some(if row.http2_window?.0 {
                "stream"
            } else {
                "connection"
            })
        }),
    ]
}
