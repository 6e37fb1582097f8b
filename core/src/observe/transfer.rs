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
use crate::limits::{AT_ENDPOINT_NS, NEAR_IDS, WATCHED_BYTES, WHOLE_SEGMENTS};
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
    start_ns: i64,
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
            own.start_ns = time_ns;
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
        let since = side.pick(&self.runs).start_ns;
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
        opened: impl FnOnce() -> Option<ShutWindow>,
    ) {
        let (own, other) = side.split_mut(&mut self.watched);
        if segment.len > 0
            && let Some(own) = own
        {
            own.shut_window = opened();
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
pub struct ShutWindow {
    /// The window is a stream's, else the connection's.
    pub is_of_stream: bool,
    /// Largest size that it ever had.
    pub largest_bytes: i64,
}

/// An ACK as the data's sender knows it, or several with one timestamp.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    tsval: u32,
    /// Capture time of the first of them.
    first_ns: i64,
    /// Capture time of the last of them; 0 before the first ACK.
    last_ns: i64,
    ack: i64,
    /// Right edge of the receive window.
    edge: i64,
}

/// One round trip of the sender: from a segment to the first one after its ACK. Times in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    pub start_ns: i64,
    pub duration_ns: i64,
    /// Time to the receiver and back, smoothed as a kernel does; 0 where unknown.
    pub smoothed_rtt_ns: i64,
    /// Best time to the receiver and back; 0 where unknown.
    pub best_rtt_ns: i64,
    /// Most bytes in flight.
    pub flight_bytes: i64,
    /// The sender has reached the edge of the window.
    has_reached_edge: bool,
    /// `duration_ns` if the sender reached the edge of the window in this round trip, else 0.
    pub edge_ns: i64,
}

/// Time between segments, in ns, by what the sender can have waited for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    /// The receive window had no room for two more segments, or was under a third of its largest.
    pub window_ns: i64,
    /// A loss was being repaired.
    pub repair_ns: i64,
    /// The last segment ended a write, and the next one left without an ACK.
    pub program_ns: i64,
    /// The last segment was full, and the next one left without an ACK.
    pub timer_ns: i64,
    /// The next segment left upon an ACK, before any loss, while each round trip carried more than the one before.
    pub growing_ns: i64,
    /// As `growing_ns`, when round trips carried no more.
    pub level_ns: i64,
    /// The next segment left upon an ACK after a loss or a congestion mark.
    pub cut_ns: i64,
    /// The sender waited for data of the other side with nothing in flight: no part of the transfer.
    pub turns_ns: i64,
    /// A window of HTTP/2 was empty, and the next segment left upon the frame that opened it.
    pub http2_ns: i64,
}

impl Waited {
    /// Returns the sum of all waits but `turns_ns`.
    pub fn all(&self) -> i64 {
        self.window_ns
            + self.repair_ns
            + self.program_ns
            + self.timer_ns
            + self.growing_ns
            + self.level_ns
            + self.cut_ns
            + self.http2_ns
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

/// Time for which a flow-control window of HTTP/2 was empty, and its largest size.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShutTime {
    pub ns: i64,
    pub largest_bytes: i64,
}

/// Reads by the receiving program: the window's edge moved by two segments or more.
#[derive(Debug, Default)]
pub struct Reads {
    pub count: u64,
    /// Time of the newest read.
    pub newest_ns: i64,
    /// The window's right edge after it.
    pub newest_edge: i64,
}

/// The receiver's window.
#[derive(Debug, Default)]
pub struct ReceiveWindow {
    pub largest_bytes: i64,
    /// The window scale is known.
    pub is_known: bool,
    pub zero_count: u64,
    /// Bytes acknowledged outside of repairs.
    pub acked_bytes: u64,
    /// Those of `acked_bytes` with less than three quarters of the largest window open.
    pub acked_bytes_below: u64,
    /// Room after the newest segment.
    room_bytes: i64,
}

/// Losses, and the repair under way.
#[derive(Debug, Default)]
pub struct Losses {
    pub retransmissions: u64,
    /// Segments that came less than half a round trip after the hole that they fill.
    pub reordered: u64,
    /// Number of times that the receiver reported holes.
    pub holes: u64,
    /// Those of `holes` with a retransmission.
    pub holes_retransmitted: u64,
    pub congestion_marks: u64,
    /// Number of times that the sender reduced its window upon congestion marks (CWR, RFC 3168 6.1.2).
    pub window_reductions: u64,
    /// Sequence number whose ACK ends the repair; None outside of one.
    repair_end: Option<i64>,
    /// Something was retransmitted in this repair.
    has_retransmitted: bool,
    /// Something was lost or marked so far.
    has_any: bool,
    /// Time of the segment that showed a hole.
    hole_ns: Option<i64>,
    /// Newest frame of late data: ACKs that cover earlier frames are no samples of the round trip.
    newest_late_frame: u64,
}

/// ACKs by when they reach the data's sender.
#[derive(Debug, Default)]
struct Acks {
    /// The newest that has reached it.
    received: Received,
    under_way: VecDeque<Received>,
    /// The newest in the capture.
    newest: Received,
    /// Capture time of the newest; 0 before the first.
    newest_ns: i64,
}

/// Round trips of the sender.
#[derive(Debug, Default)]
pub struct Rounds {
    pub finished: Vec<RoundTrip>,
    /// Most bytes in flight in any of them.
    pub largest_flight_bytes: i64,
    current: RoundTrip,
    /// Sequence number whose ACK ends the current one.
    current_end: i64,
    /// Round trips in a row that did not carry an eighth more than any before.
    level_count: u8,
    /// Smoothed time from the capture to the receiver and back.
    to_receiver_ns: i64,
    /// Smoothed time from the capture to the sender and back.
    to_sender_ns: i64,
}

impl Losses {
    fn are_being_repaired(&self) -> bool {
        self.repair_end.is_some()
    }
}

impl Acks {
    /// Adds the newest ACK to those under way to the sender.
    fn remember_newest(&mut self) {
        let newest = self.newest;
        match self.under_way.back_mut() {
            Some(last) if newest.tsval != 0 && last.tsval == newest.tsval => {
                (last.last_ns, last.ack, last.edge) = (newest.last_ns, newest.ack, newest.edge);
            }
            _ => self.under_way.push_back(newest),
        }
        if self.under_way.len() >= MAX_AHEAD {
            // the earlier time with the later edge, so that the sender never appears to have less room than it had
            let mut acks = std::mem::take(&mut self.under_way).into_iter();
            while let Some(first) = acks.next() {
                let next = acks.next().unwrap_or(first);
                self.under_way.push_back(Received {
                    tsval: first.tsval,
                    first_ns: first.first_ns,
                    ..next
                });
            }
        }
    }
}

impl Rounds {
    fn begin(&mut self, now: i64) {
        self.current = RoundTrip {
            start_ns: now,
            ..RoundTrip::default()
        };
    }

    /// Ends the current round trip and begins the next one.
    fn end(&mut self, now: i64) {
        let mut round = self.current;
        round.duration_ns = now - round.start_ns;
        round.smoothed_rtt_ns = self.to_receiver_ns + self.to_sender_ns;
        if round.has_reached_edge {
            round.edge_ns = round.duration_ns;
        }
        if round.flight_bytes * 8 >= self.largest_flight_bytes * 9 {
            self.level_count = 0;
        } else {
            self.level_count = self.level_count.saturating_add(1);
        }
        self.largest_flight_bytes = self.largest_flight_bytes.max(round.flight_bytes);
        if round.duration_ns > 0 {
            self.finished.push(round);
        }
        if self.finished.len() >= MAX_ROUNDS {
            self.finished = self.finished.chunks(2).map(merged).collect();
        }
        self.begin(now);
    }
}

/// Measurements of one direction. Times in ns since the epoch or durations, sequence numbers unwrapped.
#[derive(Debug, Default)]
pub struct Transfer {
    /// Time of the first data.
    pub first_ns: i64,
    /// Time of the last data.
    pub last_ns: i64,
    /// When all data were acknowledged; 0 while some are not.
    pub acked_all_ns: i64,
    /// When the receiver sent data or a FIN after all data; 0 before that.
    pub answered_ns: i64,
    pub mss: u16,
    /// The capture was taken beside the sender.
    pub is_near: bool,
    pub segments: u64,
    /// Number of segments that ended a write.
    pub writes: u64,
    pub largest_message_bytes: i64,
    pub waited: Waited,
    /// Pauses before segments that left without an ACK.
    pub pauses: Pauses,
    /// Number of those pauses after the end of a write.
    pub pauses_after_writes: u64,
    pub reads: Reads,
    pub window: ReceiveWindow,
    pub losses: Losses,
    pub rounds: Rounds,
    /// Time per full segment, by arrivals of segments.
    pub arrival_spacing: Spacing,
    /// Time per full segment, by ACKs.
    pub ack_spacing: Spacing,
    /// The connection's window of HTTP/2.
    pub shut_connection: ShutTime,
    /// The windows of its streams.
    pub shut_streams: ShutTime,
    acks: Acks,
    /// Sequence number of the first byte.
    first_seq: i64,
    /// Sequence number after the newest data.
    next_seq: i64,
    /// Time of the newest data that were no late ones.
    newest_data_ns: i64,
    /// Their IPv4 identification.
    newest_ip_id: Option<u16>,
    /// The newest segment ended a write.
    ends_write: bool,
    /// The other side has sent data since the last segment.
    has_answered: bool,
    /// The empty window of HTTP/2 before the current segment.
    shut_window: Option<ShutWindow>,
    /// Sequence number at which the current message began.
    message_start: i64,
}

impl Transfer {
    /// Returns the bytes that the receiving program had not read when it last moved the window's edge.
    pub fn unread(&self) -> i64 {
        (self.next_seq - (self.reads.newest_edge - self.window.largest_bytes))
            .clamp(0, self.next_seq - self.first_seq)
    }

    /// Returns the number of bytes moved, without retransmissions.
    pub fn bytes(&self) -> u64 {
        (self.next_seq - self.first_seq).max(0) as u64
    }

    fn new(first: i64) -> Self {
        Transfer {
            first_ns: first,
            last_ns: first,
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
            self.losses.congestion_marks += 1;
        }
        if segment.has(CWR) {
            self.losses.window_reductions += 1;
            self.losses.has_any = true;
        }
        self.receive_acks(segment, now, near_rtt);
        if !is_first && facts.seq < self.next_seq {
            return self.late_data(segment.ip_id, facts, at, near_rtt + far.unwrap_or(0));
        }
        self.newest_ip_id = segment.ip_id;
        let end = facts.next_seq;
        if is_first {
            (self.first_seq, self.segments) = (facts.next_seq - i64::from(run), 1);
            self.message_start = self.first_seq;
            self.rounds.begin(self.first_ns);
        } else {
            self.further_data(segment, facts, now, near_rtt);
        }
        if self.acks.received.ack >= self.rounds.current_end {
            self.rounds.end(now);
            self.rounds.current_end = end;
        }
        self.measure_room(end);
        let is_short = !segment.len.is_multiple_of(u32::from(self.mss));
        self.ends_write = segment.has(PSH) && is_short || segment.has(FIN);
        self.writes += u64::from(self.ends_write);
        (self.next_seq, self.newest_data_ns, self.last_ns, self.answered_ns) = (end, now, now, 0);
        self.has_answered = false;
        self.largest_message_bytes = self.largest_message_bytes.max(end - self.message_start);
    }

    /// Takes new data after the first segment.
    fn further_data(&mut self, segment: &Segment<'_>, facts: &Facts, now: i64, near_rtt: i64) {
        self.segments += 1;
        let gap = (now - self.newest_data_ns).max(0);
        if !self.losses.are_being_repaired() {
            self.arrival_spacing.add(gap, segment.len, self.mss);
        }
        if self.attribute(now, gap, near_rtt) {
            // another message: the congestion window may have to grow again (RFC 2861)
            (self.rounds.level_count, self.rounds.largest_flight_bytes) = (0, 0);
            (self.rounds.current_end, self.message_start) = (facts.next_seq, facts.seq);
            self.rounds.begin(now);
        }
        if facts.seq > self.next_seq && self.losses.hole_ns.is_none() {
            self.losses.hole_ns = Some(now);
        }
    }

    /// Measures the bytes in flight and the room in the window after data up to `end`.
    fn measure_room(&mut self, end: i64) {
        let has_ack = self.acks.received.last_ns != 0;
        if has_ack {
            self.rounds.current.flight_bytes =
                self.rounds.current.flight_bytes.max(end - self.acks.received.ack);
        }
        self.window.room_bytes = if has_ack && self.window.is_known {
            self.acks.received.edge - end
        } else {
            i64::MAX
        };
        if self.window.room_bytes < 2 * i64::from(self.mss) {
            self.rounds.current.has_reached_edge = true;
        }
    }

    /// Adds the gap before new data to what the sender can have waited for, the first that fits: the other side's turn,
    /// a window, a repair, its program or a timer, an ACK. Returns whether it was the other side's turn.
    fn attribute(&mut self, now: i64, gap: i64, near_rtt: i64) -> bool {
        let waited = &mut self.waited;
        let since = if self.is_near {
            self.acks.newest_ns
        } else {
            self.acks.received.last_ns
        };
        let unprompted = (now - since - near_rtt).clamp(0, gap);
        let is_idle = self.acks.received.ack >= self.next_seq;
        let slack = (near_rtt / 16).max(AT_ENDPOINT_NS.get());
        let is_prompted = unprompted <= slack.max(gap / 4);
        let shut = self.shut_window.filter(|_| is_prompted && gap > slack);
        let is_turn = shut.is_none() && self.has_answered && is_idle && is_prompted;
        let total = if is_turn {
            &mut waited.turns_ns
        } else if self.window.room_bytes < 2 * i64::from(self.mss) {
            &mut waited.window_ns
        } else if let Some(shut) = shut {
            let time = if shut.is_of_stream {
                &mut self.shut_streams
            } else {
                &mut self.shut_connection
            };
            time.ns += gap;
            time.largest_bytes = time.largest_bytes.max(shut.largest_bytes);
            &mut waited.http2_ns
        } else if self.losses.are_being_repaired() {
            &mut waited.repair_ns
        } else if unprompted > slack
            && !self.ends_write
            && self.window.room_bytes < self.window.largest_bytes / 3
        {
            // the kernel waits until a third of the window is open (tcp_tso_should_defer)
            &mut waited.window_ns
        } else if unprompted > slack {
            self.pauses.add(gap);
            if self.ends_write {
                self.pauses_after_writes += 1;
                &mut waited.program_ns
            } else if self.losses.has_any || self.rounds.level_count >= 2 {
                &mut waited.timer_ns
            } else {
                // while the congestion window grows, pacing follows it
                &mut waited.growing_ns
            }
        } else if self.losses.has_any {
            &mut waited.cut_ns
        } else if self.rounds.level_count >= 2 {
            &mut waited.level_ns
        } else {
            &mut waited.growing_ns
        };
        *total += gap;
        is_turn
    }

    /// Takes a segment below the newest data: reordered or retransmitted. `rtt` is the whole round trip.
    #[cold]
    fn late_data(&mut self, ip_id: Option<u16>, facts: &Facts, at: At, rtt: i64) {
        self.losses.newest_late_frame = at.frame;
        let hole = self.losses.hole_ns.take();
        let is_soon = hole.is_some_and(|since| at.time_ns - since < rtt / 2);
        let is_retransmission = self
            .is_sent_after_newest(ip_id)
            .unwrap_or_else(|| !is_soon && (hole.is_some() || facts.flags & flag::OUT_OF_ORDER == 0));
        if !self.is_near && !is_retransmission {
            self.losses.reordered += 1;
            self.last_ns = at.time_ns;
            return;
        }
        self.losses.retransmissions += 1;
        self.last_ns = at.time_ns;
        self.losses.has_any = true;
        if !self.losses.are_being_repaired() {
            self.losses.repair_end = Some(self.next_seq);
        }
        if !self.losses.has_retransmitted {
            self.losses.has_retransmitted = true;
            self.losses.holes_retransmitted += 1;
        }
    }

    /// Whether a segment with this IPv4 identification left the sender after the newest data. None where the sender
    /// does not count its packets in it.
    fn is_sent_after_newest(&self, ip_id: Option<u16>) -> Option<bool> {
        let steps = ip_id?.wrapping_sub(self.newest_ip_id?) as i16;
        (steps != 0 && steps.unsigned_abs() <= NEAR_IDS.get().unsigned_abs()).then_some(steps > 0)
    }

    /// Moves the ACKs that had reached the sender when it sent this segment from `acks.under_way` to
    /// `acks.received`.
    fn receive_acks(&mut self, segment: &Segment<'_>, now: i64, near_rtt: i64) {
        if self.is_near {
            self.acks.under_way.clear();
            self.acks.received = self.acks.newest;
            return;
        }
        let echo = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        let mut has_received = false;
        while let Some(next) = self.acks.under_way.front() {
            let has_reached = match echo {
                Some(echo) => (echo.wrapping_sub(next.tsval) as i32) >= 0,
                None => next.first_ns <= now - near_rtt,
            };
            if !has_reached {
                break;
            }
            self.acks.received = *next;
            has_received = true;
            self.acks.under_way.pop_front();
        }
        if has_received && echo.is_some() {
            let sample = now - self.acks.received.last_ns;
            smooth(&mut self.rounds.to_sender_ns, sample);
            best(&mut self.rounds.current.best_rtt_ns, sample);
        }
    }

    /// Takes a packet of the receiver with an ACK.
    fn ack(&mut self, segment: &Segment<'_>, facts: &Facts, at: At, stream: &StreamFacts<'_>) {
        let now = at.time_ns;
        self.has_answered |= segment.len > 0;
        if self.answered_ns == 0
            && self.next_seq > 0
            && facts.ack >= self.next_seq
            && (segment.len > 0 || segment.has(FIN))
        {
            self.answered_ns = now;
        }
        let window = i64::from(facts.window);
        self.window.is_known |= stream.scaled;
        self.window.zero_count += u64::from(window == 0);
        if window == 0 {
            self.window.room_bytes = 0; // 0 needs no scale
        }
        let edge = facts.ack + window;
        let before = self.acks.newest;
        if edge - before.edge >= 2 * i64::from(self.mss) && !segment.has(FIN) && self.answered_ns == 0 {
            self.reads.count += 1;
            (self.reads.newest_ns, self.reads.newest_edge) = (now, edge);
        }
        let acked = (facts.ack - before.ack).max(0);
        self.window.largest_bytes = self.window.largest_bytes.max(window);
        if acked > 0 && !self.losses.are_being_repaired() {
            self.count_acked(acked, window, now);
        }
        if facts.ack < self.next_seq {
            self.acked_all_ns = 0;
        } else if before.ack < self.next_seq {
            self.acked_all_ns = now;
        }
        self.acks.newest_ns = now;
        self.acks.newest = Received {
            tsval: segment.options.timestamps.map_or(0, |(tsval, _)| tsval),
            first_ns: now,
            last_ns: now,
            ack: facts.ack.max(before.ack),
            edge: edge.max(before.edge),
        };
        if !self.is_near {
            self.acks.remember_newest();
        }
        self.follow_repair(segment, facts);
        let covered = facts
            .covered
            .filter(|acked| acked.first_frame > self.losses.newest_late_frame);
        if let Some(covered) = covered.filter(|_| !self.losses.are_being_repaired()) {
            smooth(&mut self.rounds.to_receiver_ns, now - covered.first_time_ns);
            if self.is_near {
                best(&mut self.rounds.current.best_rtt_ns, now - covered.last_time_ns);
            }
        }
    }

    /// Counts bytes that an ACK newly covers, if it is not the first. Not in a repair: what follows a hole takes the
    /// room.
    fn count_acked(&mut self, acked: i64, window: i64, now: i64) {
        let before_ns = self.acks.newest.last_ns;
        if before_ns == 0 {
            return;
        }
        self.window.acked_bytes += acked as u64;
        if window < self.window.largest_bytes / 4 * 3 {
            self.window.acked_bytes_below += acked as u64;
        }
        // one ACK of a large part of the flight shows the receiving program's pace, not the line's
        let is_burst = acked > i64::from(WHOLE_SEGMENTS.get()) * i64::from(self.mss)
            && acked * 4 > self.rounds.largest_flight_bytes;
        if !is_burst {
            let bytes = acked.min(1 << 24) as u32;
            self.ack_spacing.add(now - before_ns, bytes, self.mss);
        }
    }

    /// Begins a repair when the receiver reports a hole by SACK, and ends it when all is acknowledged.
    fn follow_repair(&mut self, segment: &Segment<'_>, facts: &Facts) {
        let sacks = segment.options.sack.count > 0 && facts.flags & flag::DSACK == 0;
        if sacks && !self.losses.are_being_repaired() {
            self.losses.repair_end = Some(self.next_seq);
            self.losses.has_retransmitted = false;
            self.losses.holes += 1;
        } else if !sacks
            && self
                .losses
                .repair_end
                .is_some_and(|until| facts.ack >= until.min(self.next_seq))
        {
            self.losses.repair_end = None;
            self.losses.has_retransmitted = false;
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
        start_ns: pair.first().map_or(0, |round| round.start_ns),
        duration_ns: pair.iter().map(|round| round.duration_ns).sum(),
        smoothed_rtt_ns: mean(|round| round.smoothed_rtt_ns),
        best_rtt_ns: mean(|round| round.best_rtt_ns),
        flight_bytes: pair.iter().map(|round| round.flight_bytes).max().unwrap_or(0),
        has_reached_edge: pair.iter().any(|round| round.has_reached_edge),
        edge_ns: pair.iter().map(|round| round.edge_ns).sum(),
    }
}
