//! Measures what held one direction of a stream back, gap by gap, once it moves more than a first window.
//!
//! Reads the segments of both directions; returns sums of time by what the sender can have waited for, and samples of
//! round trips. `judge::transfer` concludes from them.
//!
//! A sender knows only the ACKs that have reached it. At its own end that is the newest one. Elsewhere the timestamp
//! that its data echo (RFC 7323) shows which, and without timestamps the best round trip does.

use std::collections::VecDeque;

use super::spacing::Spacing;
use crate::base::{At, Side};
use crate::facts::{Facts, flag};
use crate::limits::{AT_ENDPOINT_NS, WATCHED_BYTES, WHOLE_SEGMENTS};
use crate::segment::{ACK, CWR, FIN, PSH, SYN, Segment};

/// Upper bound on ACKs that have not reached the sender yet; beyond it, neighbours are merged in pairs.
const MAX_AHEAD: usize = 64;
/// Upper bound on round trips kept; beyond it, neighbours are merged in pairs.
const MAX_ROUNDS: usize = 64;

/// Both directions of a stream, by `Side` of the sender.
#[derive(Debug, Default)]
pub struct Transfers {
    runs: [Run; 2],
    /// None for a direction that has not moved `WATCHED_BYTES` in one go.
    watched: [Option<Box<Transfer>>; 2],
}

/// Every stream has one of these, so it must stay small; watched directions are on the heap.
const _: () = assert!(size_of::<Transfers>() <= 64);

/// Data of one side since the other side last sent data: their start and bytes.
#[derive(Debug, Default)]
struct Run {
    since: i64,
    bytes: u32,
}

/// Facts of a stream besides the segment.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts<'a> {
    /// Best round trips from the capture to each side and back, by `Side`.
    pub rtts: &'a [Option<i64>; 2],
    /// The largest segment of the segment's sender.
    pub mss: u16,
    /// The window scale of the segment's sender is known.
    pub scaled: bool,
}

impl Transfers {
    /// Returns the watched directions, each with its sender.
    pub fn watched(&self) -> impl Iterator<Item = (Side, &Transfer)> {
        Side::BOTH
            .into_iter()
            .zip(&self.watched)
            .filter_map(|(side, transfer)| Some((side, transfer.as_deref()?)))
    }

    /// Takes both directions out; None if neither is watched.
    pub fn taken(&mut self) -> Option<Box<Self>> {
        let transfers = std::mem::take(self);
        transfers
            .watched
            .iter()
            .any(Option::is_some)
            .then(|| Box::new(transfers))
    }

    /// Counts data of a side, and begins to watch it at `WATCHED_BYTES`.
    #[inline(always)]
    pub fn sent(&mut self, side: Side, bytes: u32, time_ns: i64) {
        let (own, other) = side.split_mut(&mut self.runs);
        if own.bytes == 0 {
            own.since = time_ns;
        }
        own.bytes = own.bytes.saturating_add(bytes);
        other.bytes = 0;
        if own.bytes >= WATCHED_BYTES.get() {
            self.begin(side);
        }
    }

    /// Whether either direction is watched; false for most streams.
    #[inline(always)]
    pub fn is_watching(&self) -> bool {
        self.watched.iter().any(Option::is_some)
    }

    #[inline(never)]
    fn begin(&mut self, side: Side) {
        let since = side.pick(&self.runs).since;
        let watched = side.pick_mut(&mut self.watched);
        watched.get_or_insert_with(|| Box::new(Transfer::new(since)));
    }

    /// Takes a segment of a watched stream. `opened` returns the empty window of HTTP/2 that held it, if it left upon
    /// what opened that window.
    pub fn segment(
        &mut self,
        segment: &Segment<'_>,
        facts: &Facts,
        side: Side,
        at: At,
        stream: &StreamFacts<'_>,
        opened: impl FnOnce() -> Option<Shut>,
    ) {
        let (own, other) = side.split_mut(&mut self.watched);
        if segment.len > 0
            && let Some(own) = own
        {
            own.empty_window = opened();
            own.data(segment, facts, at, stream, side, side.pick(&self.runs).bytes);
        }
        if let Some(other) = other
            && segment.has(ACK)
            && !segment.has(SYN)
        {
            other.ack(segment, facts, at, stream);
        }
    }
}

/// An empty flow-control window of HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shut {
    /// The window is a stream's, else the connection's.
    pub of_stream: bool,
    /// Largest size that it ever had, in bytes.
    pub window: i64,
}

/// An ACK as the data's sender knows it, or several with one timestamp.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    tsval: u32,
    /// Capture times of the first and the last of them; `last` is 0 before the first ACK.
    first: i64,
    last: i64,
    ack: i64,
    /// Right edge of the receive window.
    edge: i64,
}

/// One round trip of the sender: from a segment to the first one after its ACK. Times in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    pub start: i64,
    /// Duration.
    pub ns: i64,
    /// Time to the receiver and back, smoothed as a kernel does, and at best; 0 where unknown.
    pub smooth: i64,
    pub best: i64,
    /// Most bytes in flight.
    pub flight: i64,
    /// The sender has reached the edge of the window.
    has_reached_edge: bool,
    /// `ns` if the sender reached the edge of the window in this round trip, else 0.
    pub edge_ns: i64,
}

/// Time between segments, in ns, by what the sender can have waited for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    /// The receive window had no room for two more segments, or was under a third of its largest.
    pub window: i64,
    /// A loss was being repaired.
    pub repair: i64,
    /// The last segment ended a write, and the next one left without an ACK.
    pub program: i64,
    /// The last segment was full, and the next one left without an ACK.
    pub timer: i64,
    /// The next segment left upon an ACK, before any loss, while each round trip carried more than the one before.
    pub growing: i64,
    /// As `growing`, when round trips carried no more.
    pub level: i64,
    /// The next segment left upon an ACK after a loss or a congestion mark.
    pub cut: i64,
    /// The sender waited for data of the other side with nothing in flight: no part of the transfer.
    pub turns: i64,
    /// A window of HTTP/2 was empty, and the next segment left upon the frame that opened it.
    pub http2: i64,
}

impl Waited {
    /// Returns the sum of all waits but `turns`.
    pub fn all(&self) -> i64 {
        self.window
            + self.repair
            + self.program
            + self.timer
            + self.growing
            + self.level
            + self.cut
            + self.http2
    }
}

/// Statistics of pauses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pauses {
    pub count: u64,
    pub sum_ms: f64,
    /// Sum of the squares of the pauses in ms.
    pub sum_of_squares: f64,
}

impl Pauses {
    fn add(&mut self, ns: i64) {
        let ms = ns as f64 / 1e6;
        self.count += 1;
        self.sum_ms += ms;
        self.sum_of_squares += ms * ms;
    }
}

/// Measurements of one direction. Times in ns since the epoch or durations, sequence numbers unwrapped.
#[derive(Debug, Default)]
pub struct Transfer {
    /// Times of the first and the last data.
    pub first: i64,
    pub last: i64,
    /// When all data were acknowledged; 0 while some are not.
    pub done: i64,
    /// Number of times that the window's edge moved by two segments and more: reads by the receiving program. The time
    /// and the edge of the last one.
    pub opens: u64,
    pub opened_at: i64,
    pub opened_to: i64,
    /// When the receiver sent data or a FIN behind all data; 0 before that.
    pub answered_at: i64,
    /// For the connection's window of HTTP/2 and for those of streams: time for which it was empty, and its largest
    /// size.
    pub http2: [(i64, i64); 2],
    /// Sequence number of the first byte.
    base: i64,
    pub segments: u64,
    /// Bytes of the largest message.
    pub longest: i64,
    pub waited: Waited,
    pub repeats: u64,
    /// Segments that came less than half a round trip after the hole that they fill: reordered.
    pub reordered: u64,
    /// Number of times that the receiver reported holes, and of those with a retransmission.
    pub holes: u64,
    pub holes_mended: u64,
    pub congestion_marks: u64,
    /// Number of times that the sender reduced its window upon congestion marks (CWR, RFC 3168 6.1.2).
    pub slowed: u64,
    /// Acknowledged bytes, and those of them with less than three quarters of the largest window open.
    pub acked: u64,
    pub acked_low: u64,
    pub zero_windows: u64,
    /// Largest window of the receiver.
    pub window_most: i64,
    pub is_window_known: bool,
    pub writes: u64,
    /// Pauses before segments that left without an ACK.
    pub pauses: Pauses,
    /// Number of those pauses behind the end of a write.
    pub pauses_after_writes: u64,
    /// Time per full segment, by arrivals of segments and by ACKs.
    pub arrivals: Spacing,
    pub acks: Spacing,
    pub rounds: Vec<RoundTrip>,
    /// The capture was taken beside the sender.
    pub is_near: bool,
    pub mss: u16,
    /// Most bytes in flight in any round trip.
    pub largest_flight: i64,
    /// The newest ACK that has reached the sender, those under way to it, and the newest seen.
    received: Received,
    acks_under_way: VecDeque<Received>,
    newest: Received,
    /// The current round trip, which ends when `round_end` is acknowledged.
    round: RoundTrip,
    round_end: i64,
    /// Sequence number behind the newest data, and their time.
    next_seq: i64,
    newest_data_at: i64,
    /// Room in the window behind the last segment, and whether that ended a write.
    room: i64,
    ends_write: bool,
    /// Sequence number whose ACK ends the repair of losses.
    repairing: Option<i64>,
    /// Something was retransmitted in this repair.
    has_mended: bool,
    /// Something was lost or marked so far.
    has_lost: bool,
    /// Time of the segment that showed a hole.
    hole_at: Option<i64>,
    /// Newest frame of late data: ACKs that cover earlier frames are no samples of the round trip.
    newest_late_frame: u64,
    /// The other side has sent data since the last segment.
    has_answered: bool,
    /// The empty window of HTTP/2 before the current segment.
    empty_window: Option<Shut>,
    /// Sequence number at which the current message began.
    message_start: i64,
    /// Round trips in a row that did not carry an eighth more than any before.
    level_rounds: u8,
    ack_time: i64,
    /// Smoothed round trips from the capture to the receiver and to the sender.
    smooth: i64,
    smooth_far: i64,
}

impl Transfer {
    /// Returns the bytes that the receiving program had not read when it last moved the window's edge.
    pub fn unread(&self) -> i64 {
        (self.next_seq - (self.opened_to - self.window_most)).clamp(0, self.next_seq - self.base)
    }

    /// Returns the number of bytes moved, without retransmissions.
    pub fn bytes(&self) -> u64 {
        (self.next_seq - self.base).max(0) as u64
    }

    fn new(first: i64) -> Self {
        Transfer {
            first,
            last: first,
            ..Transfer::default()
        }
    }

    /// Takes a data segment.
    fn data(
        &mut self,
        segment: &Segment<'_>,
        facts: &Facts,
        at: At,
        stream: &StreamFacts<'_>,
        side: Side,
        run: u32,
    ) {
        let now = at.time_ns;
        let [near, far] = [side, side.other()].map(|end| *end.pick(stream.rtts));
        self.mss = stream.mss.max(1);
        let is_first = self.segments == 0;
        let near_rtt = near.unwrap_or(0);
        self.is_near =
            near.is_some_and(|ns| ns < AT_ENDPOINT_NS.get() && far.is_some_and(|far| ns * 4 < far));
        if segment.tos & 3 == 3 {
            self.congestion_marks += 1;
        }
        if segment.has(CWR) {
            self.slowed += 1;
            self.has_lost = true;
        }
        self.learn(segment, now, near_rtt);
        if !is_first && facts.seq < self.next_seq {
            return self.late_data(facts, at, near_rtt + far.unwrap_or(0));
        }
        let end = facts.next_seq;
        if is_first {
            (self.base, self.segments) = (facts.next_seq - i64::from(run), 1);
            self.message_start = self.base;
            self.round = RoundTrip {
                start: self.first,
                ..RoundTrip::default()
            };
        } else {
            self.further_data(segment, facts, now, near_rtt);
        }
        if self.received.ack >= self.round_end {
            self.end_round(now);
            self.round_end = end;
        }
        self.measure_room(end);
        let is_short = !segment.len.is_multiple_of(u32::from(self.mss));
        self.ends_write = segment.has(PSH) && is_short || segment.has(FIN);
        self.writes += u64::from(self.ends_write);
        (self.next_seq, self.newest_data_at, self.last, self.answered_at) = (end, now, now, 0);
        self.has_answered = false;
        self.longest = self.longest.max(end - self.message_start);
    }

    /// Takes new data behind the first segment.
    fn further_data(&mut self, segment: &Segment<'_>, facts: &Facts, now: i64, near_rtt: i64) {
        self.segments += 1;
        let gap = (now - self.newest_data_at).max(0);
        if self.repairing.is_none() {
            self.arrivals.add(gap, segment.len, self.mss);
        }
        if self.attribute(now, gap, near_rtt) {
            // another message: the congestion window may have to grow again (RFC 2861)
            (self.level_rounds, self.largest_flight) = (0, 0);
            (self.round_end, self.message_start) = (facts.next_seq, facts.seq);
            self.round = RoundTrip {
                start: now,
                ..RoundTrip::default()
            };
        }
        if facts.seq > self.next_seq && self.hole_at.is_none() {
            self.hole_at = Some(now);
        }
    }

    /// Measures the bytes in flight and the room in the window behind data up to `end`.
    fn measure_room(&mut self, end: i64) {
        let has_ack = self.received.last != 0;
        if has_ack {
            self.round.flight = self.round.flight.max(end - self.received.ack);
        }
        self.room = if has_ack && self.is_window_known {
            self.received.edge - end
        } else {
            i64::MAX
        };
        if self.room < 2 * i64::from(self.mss) {
            self.round.has_reached_edge = true;
        }
    }

    /// Adds the gap before new data to what the sender can have waited for, the first that fits: the other side's turn,
    /// a window, a repair, its program or a timer, an ACK. Returns whether it was the other side's turn.
    fn attribute(&mut self, now: i64, gap: i64, near_rtt: i64) -> bool {
        let waited = &mut self.waited;
        let since = if self.is_near {
            self.ack_time
        } else {
            self.received.last
        };
        let unprompted = (now - since - near_rtt).clamp(0, gap);
        let is_idle = self.received.ack >= self.next_seq;
        let slack = (near_rtt / 16).max(AT_ENDPOINT_NS.get());
        let is_prompted = unprompted <= slack.max(gap / 4);
        let shut = self.empty_window.filter(|_| is_prompted && gap > slack);
        let is_turn = shut.is_none() && self.has_answered && is_idle && is_prompted;
        let total = if is_turn {
            &mut waited.turns
        } else if self.room < 2 * i64::from(self.mss) {
            &mut waited.window
        } else if let Some(shut) = shut {
            let [connection, stream] = &mut self.http2;
            let (ns, window) = if shut.of_stream { stream } else { connection };
            (*ns, *window) = (*ns + gap, shut.window.max(*window));
            &mut waited.http2
        } else if self.repairing.is_some() {
            &mut waited.repair
        } else if unprompted > slack && !self.ends_write && self.room < self.window_most / 3 {
            // the kernel waits until a third of the window is open (tcp_tso_should_defer)
            &mut waited.window
        } else if unprompted > slack {
            self.pauses.add(gap);
            if self.ends_write {
                self.pauses_after_writes += 1;
                &mut waited.program
            } else if self.has_lost || self.level_rounds >= 2 {
                &mut waited.timer
            } else {
                // while the congestion window grows, pacing follows it
                &mut waited.growing
            }
        } else if self.has_lost {
            &mut waited.cut
        } else if self.level_rounds >= 2 {
            &mut waited.level
        } else {
            &mut waited.growing
        };
        *total += gap;
        is_turn
    }

    /// Takes a segment below the newest data: reordered or retransmitted. `rtt` is the whole round trip.
    #[cold]
    fn late_data(&mut self, facts: &Facts, at: At, rtt: i64) {
        self.newest_late_frame = at.frame;
        let hole = self.hole_at.take();
        let is_soon = hole.is_some_and(|since| at.time_ns - since < rtt / 2);
        if !self.is_near && (is_soon || hole.is_none() && facts.flags & flag::OUT_OF_ORDER != 0) {
            self.reordered += 1;
            self.last = at.time_ns;
            return;
        }
        self.repeats += 1;
        self.last = at.time_ns;
        self.has_lost = true;
        if self.repairing.is_none() {
            self.repairing = Some(self.next_seq);
        }
        if !self.has_mended {
            self.has_mended = true;
            self.holes_mended += 1;
        }
    }

    fn end_round(&mut self, now: i64) {
        let mut round = self.round;
        round.ns = now - round.start;
        round.smooth = self.smooth + self.smooth_far;
        round.edge_ns = if round.has_reached_edge { round.ns } else { 0 };
        if round.flight * 8 >= self.largest_flight * 9 {
            self.level_rounds = 0;
        } else {
            self.level_rounds = self.level_rounds.saturating_add(1);
        }
        self.largest_flight = self.largest_flight.max(round.flight);
        if round.ns > 0 {
            self.rounds.push(round);
        }
        if self.rounds.len() >= MAX_ROUNDS {
            self.rounds = self.rounds.chunks(2).map(merged).collect();
        }
        self.round = RoundTrip {
            start: now,
            ..RoundTrip::default()
        };
    }

    /// Moves the ACKs that had reached the sender when it sent this segment from `acks_under_way` to `received`.
    fn learn(&mut self, segment: &Segment<'_>, now: i64, near_rtt: i64) {
        if self.is_near {
            self.acks_under_way.clear();
            self.received = self.newest;
            return;
        }
        let echo = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        let mut has_learned = false;
        while let Some(next) = self.acks_under_way.front() {
            let has_reached = match echo {
                Some(echo) => (echo.wrapping_sub(next.tsval) as i32) >= 0,
                None => next.first <= now - near_rtt,
            };
            if !has_reached {
                break;
            }
            self.received = *next;
            has_learned = true;
            self.acks_under_way.pop_front();
        }
        if has_learned && echo.is_some() {
            let sample = now - self.received.last;
            smooth(&mut self.smooth_far, sample);
            best(&mut self.round.best, sample);
        }
    }

    /// Takes a packet of the receiver with an ACK.
    fn ack(&mut self, segment: &Segment<'_>, facts: &Facts, at: At, stream: &StreamFacts<'_>) {
        let now = at.time_ns;
        self.has_answered |= segment.len > 0;
        if self.answered_at == 0
            && self.next_seq > 0
            && facts.ack >= self.next_seq
            && (segment.len > 0 || segment.has(FIN))
        {
            self.answered_at = now;
        }
        let window = i64::from(facts.window);
        self.is_window_known |= stream.scaled;
        self.zero_windows += u64::from(window == 0);
        if window == 0 {
            self.room = 0; // 0 needs no scale
        }
        let edge = facts.ack + window;
        let before = self.newest;
        if edge - before.edge >= 2 * i64::from(self.mss) && !segment.has(FIN) && self.answered_at == 0 {
            self.opens += 1;
            (self.opened_at, self.opened_to) = (now, edge);
        }
        let acked = (facts.ack - before.ack).max(0);
        self.window_most = self.window_most.max(window);
        if acked > 0 && self.repairing.is_none() {
            self.count_acked(acked, window, now);
        }
        if facts.ack < self.next_seq {
            self.done = 0;
        } else if before.ack < self.next_seq {
            self.done = now;
        }
        self.ack_time = now;
        self.newest = Received {
            tsval: segment.options.timestamps.map_or(0, |(tsval, _)| tsval),
            first: now,
            last: now,
            ack: facts.ack.max(before.ack),
            edge: edge.max(before.edge),
        };
        if !self.is_near {
            self.remember();
        }
        self.holes(segment, facts);
        let covered = facts
            .covered
            .filter(|acked| acked.first_frame > self.newest_late_frame);
        if let Some(covered) = covered.filter(|_| self.repairing.is_none()) {
            smooth(&mut self.smooth, now - covered.first_time);
            if self.is_near {
                best(&mut self.round.best, now - covered.last_time);
            }
        }
    }

    /// Counts bytes that an ACK newly covers, outside of repairs: behind a hole, the data after it take the room.
    fn count_acked(&mut self, acked: i64, window: i64, now: i64) {
        if self.newest.last != 0 {
            self.acked += acked as u64;
            if window < self.window_most / 4 * 3 {
                self.acked_low += acked as u64;
            }
        }
        // one ACK of a large part of the flight shows the receiving program's pace, not the line's
        let is_burst =
            acked > i64::from(WHOLE_SEGMENTS.get()) * i64::from(self.mss) && acked * 4 > self.largest_flight;
        if self.ack_time != 0 && !is_burst {
            self.acks
                .add(now - self.ack_time, acked.min(1 << 24) as u32, self.mss);
        }
    }

    /// Adds the newest ACK to those under way to the sender.
    fn remember(&mut self) {
        let newest = self.newest;
        match self.acks_under_way.back_mut() {
            Some(last) if newest.tsval != 0 && last.tsval == newest.tsval => {
                (last.last, last.ack, last.edge) = (newest.last, newest.ack, newest.edge);
            }
            _ => self.acks_under_way.push_back(newest),
        }
        if self.acks_under_way.len() >= MAX_AHEAD {
            // the earlier time with the later edge, so that the sender never appears to have less room than it had
            let mut acks = std::mem::take(&mut self.acks_under_way).into_iter();
            while let Some(first) = acks.next() {
                let next = acks.next().unwrap_or(first);
                self.acks_under_way.push_back(Received {
                    tsval: first.tsval,
                    first: first.first,
                    ..next
                });
            }
        }
    }

    /// Begins a repair when the receiver reports a hole by SACK, and ends it when all is acknowledged.
    fn holes(&mut self, segment: &Segment<'_>, facts: &Facts) {
        let sacks = segment.options.sack.count > 0 && facts.flags & flag::DSACK == 0;
        if sacks && self.repairing.is_none() {
            self.repairing = Some(self.next_seq);
            self.has_mended = false;
            self.holes += 1;
        } else if !sacks
            && self
                .repairing
                .is_some_and(|until| facts.ack >= until.min(self.next_seq))
        {
            self.repairing = None;
            self.has_mended = false;
        }
    }
}

/// Smooths a round trip (RFC 6298 2.3).
fn smooth(value: &mut i64, sample: i64) {
    *value += if *value == 0 {
        sample
    } else {
        (sample - *value) / 8
    };
}

fn best(value: &mut i64, sample: i64) {
    if *value == 0 || sample < *value {
        *value = sample;
    }
}

/// Merges neighbouring round trips into one.
fn merged(pair: &[RoundTrip]) -> RoundTrip {
    let mean = |field: fn(&RoundTrip) -> i64| {
        let values = pair.iter().map(field).filter(|value| *value > 0);
        values.clone().sum::<i64>() / (values.count() as i64).max(1)
    };
    RoundTrip {
        start: pair.first().map_or(0, |round| round.start),
        ns: pair.iter().map(|round| round.ns).sum(),
        smooth: mean(|round| round.smooth),
        best: mean(|round| round.best),
        flight: pair.iter().map(|round| round.flight).max().unwrap_or(0),
        has_reached_edge: pair.iter().any(|round| round.has_reached_edge),
        edge_ns: pair.iter().map(|round| round.edge_ns).sum(),
    }
}
