//! The reading of a stream's data: nothing before its first byte, then a `Tracker`, and a summary once both sides or
//! an RST have ended the stream.

use super::{Endpoint, Stream};
use crate::base::{At, Side};
use crate::evidence::Key;
use crate::evidence::rtt::Pairs;
use crate::exchange::{Context, ReadSoFar, SeenSegment, StreamIds, Tracker};
use crate::facts::{Facts, flag};
use crate::messages::Close;
use crate::observe::Release;
use crate::observe::transfer::ShutWindow;
use crate::segment::Segment;

/// Progress of reading a stream's data.
#[derive(Default)]
pub enum Tracking {
    /// No data so far.
    #[default]
    Before,
    Live(Box<Tracker>),
    /// Both sides sent a FIN and every exchange ended, so that only retransmissions can follow. Or an RST ended it
    /// (`is_cut`).
    Over(ReadSoFar),
}

impl Tracking {
    pub(super) fn is_before(&self) -> bool {
        matches!(self, Tracking::Before)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Tracking::Over(_))
    }

    /// Id of the two addresses in `Pairs`.
    pub(super) fn pair(&self) -> Option<u32> {
        match self {
            Tracking::Before => None,
            Tracking::Live(tracker) => Some(tracker.pair()),
            Tracking::Over(read) => Some(read.pair),
        }
    }

    /// The HTTP/2 window that was empty after the last data of this side, if what the side acknowledges opens it.
    pub fn opened(&self, side: Side, acked: i64) -> Option<ShutWindow> {
        match self {
            Tracking::Live(tracker) => tracker.opened(side, acked),
            _ => None,
        }
    }

    pub fn read_so_far(&self) -> ReadSoFar {
        match self {
            Tracking::Before => ReadSoFar::default(),
            Tracking::Live(tracker) => tracker.read_so_far(),
            Tracking::Over(read) => *read,
        }
    }

    /// Whether the next data begins a new tracker.
    fn begins(&self) -> bool {
        match self {
            Tracking::Before => true,
            Tracking::Live(_) => false,
            Tracking::Over(read) => read.is_cut,
        }
    }

    /// Drops the tracker of a stream that an RST ended, if no exchange is open. Further data are read like those of a
    /// stream captured from its middle. Returns whether the tracker was dropped.
    pub(super) fn cut(&mut self, at: At, context: &mut Context) -> bool {
        let is_done = matches!(self, Tracking::Live(tracker) if tracker.is_done());
        if is_done {
            self.end(at, context);
        }
        if let Tracking::Over(read) = self {
            read.is_cut |= is_done;
        }
        is_done
    }

    /// Ends the tracking.
    #[inline(never)]
    pub(super) fn end(&mut self, at: At, context: &mut Context) {
        if let Tracking::Live(tracker) = self {
            tracker.end(at, Close::CaptureEnd, context);
            tracker.keep_last_retransmission(context);
            tracker.forget_steps(context);
            let software = tracker.software().and_then(|name| context.name(name, at));
            let read = ReadSoFar {
                software,
                ..self.read_so_far()
            };
            if let Tracking::Live(tracker) = std::mem::replace(self, Tracking::Over(read)) {
                tracker.recycle(context);
            }
        }
    }
}

/// A segment with its facts, and what the stream's counters return for it.
pub(super) struct Counted<'a, 'b> {
    pub segment: &'a Segment<'b>,
    pub facts: &'a Facts,
    pub side: Side,
    pub at: At,
    pub scale_known: bool,
    pub small: bool,
    pub missing: Option<u16>,
    pub sack: Option<&'a [(i64, i64)]>,
}

/// Passes a segment to the stream's tracker, and begins or ends the tracking.
#[inline(always)]
pub(super) fn track(
    stream: &mut Stream,
    id: u32,
    pairs: &mut Pairs,
    context: &mut Context,
    counted: Counted<'_, '_>,
    release: &mut Release,
) {
    let Counted {
        segment,
        facts,
        side,
        at,
        ..
    } = counted;
    if !matches!(stream.tracking, Tracking::Live(_)) {
        if facts.flags & flag::DUPLICATE_ACK != 0 && stream.tracking.is_over() {
            context.ack_after_end(id, side, at);
        }
        if segment.len == 0 || !stream.tracking.begins() {
            return;
        }
        begin(stream, id, pairs, context, side, at);
    }
    let [client, server] = &stream.counts;
    let own = side.pick(&stream.counts);
    let seen = SeenSegment {
        segment,
        facts,
        side,
        at,
        mss: own.full.mss(),
        small: counted.small,
        syn_seen: own.has_syn(),
        sacks: client.sack == Some(true) && server.sack == Some(true),
        rtts: &stream.rtts_ns,
        trips: &own.trips,
        sack: counted.sack,
        scale_known: counted.scale_known,
        missing: counted.missing,
        own_ids: own.ip_ids.own,
    };
    let Tracking::Live(tracker) = &mut stream.tracking else {
        return;
    };
    tracker.segment(&seen, context, release);
    if stream.counts.iter().all(|counts| counts.fin) && tracker.is_done() {
        stream.tracking.end(at, context);
    }
}

/// Begins a tracker with the first data of a stream, or the first after the RST that ended it.
#[inline(never)]
fn begin(stream: &mut Stream, id: u32, pairs: &mut Pairs, context: &mut Context, side: Side, at: At) {
    stream.syns.clear(); // with data it is no probe
    let (client, server) = (stream.client(), stream.server());
    let pair = pairs.id(client.0, server.0);
    let read = stream.tracking.read_so_far();
    for (side, rtt) in Side::BOTH.into_iter().zip(stream.rtts_ns) {
        if let Some(rtt) = rtt.filter(|_| !read.is_cut) {
            pairs.add_handshake_rtt(pair, side, rtt);
        }
    }
    let ids = StreamIds {
        stream: id,
        pair,
        ports: [client.1, server.1],
        sender_ids: sender_keys(client, server).map(|key| context.sender_store.id(key, pair)),
    };
    let mut tracker = Tracker::boxed(ids, context);
    tracker.begin(at.time_ns);
    if read.is_cut {
        tracker.resume(&read);
    } else {
        for (side, counts) in Side::BOTH.into_iter().zip(&stream.counts) {
            if counts.has_syn() {
                tracker.syn_seen(side);
            }
        }
    }
    if stream.side(side.other()).packets == 0 {
        tracker.one_way(side);
    }
    if context.data_connections.expects() {
        // in active mode (RFC 959 3.2) the server connects to a port of the client
        let pairs = [Some(pair), pairs.find(server.0, client.0)];
        if let Some(carried) = context.carries(pairs, server.1, at) {
            tracker.carry(carried);
        }
    }
    if let Some(setup) = &mut stream.setup {
        for (side, time_ns, tsval) in setup.take_stamps().into_iter().flatten() {
            tracker.handshake_stamp(side, time_ns, tsval);
        }
    } else {
        tracker.set_mid_stream();
    }
    stream.tracking = Tracking::Live(tracker);
}

/// Keys of the evidence on the two senders of a stream, by `Side`.
fn sender_keys(client: Endpoint, server: Endpoint) -> [Key; 2] {
    Side::BOTH.map(|sender| Key {
        server: server.0,
        server_port: server.1,
        client: client.0,
        sender,
    })
}
