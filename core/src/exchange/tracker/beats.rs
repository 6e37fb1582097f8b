//! Streams of unknown protocol, which are read in turns: finds heartbeats, and keys that a person types.
//!
//! Heartbeats are small messages of one size that each side sends by a timer of its own. Taken for turns, they would
//! appear to answer each other after the time between the two timers. Hence turns that may be heartbeats are held
//! until that is decided. Others are queued at once, as are turns whose answer has no delay, or one that no timer
//! explains.

use super::pairing::Pairing;
use crate::exchange::{Context, CutBy, Exchange};
use crate::limits::{BEAT_BYTES, BEATS, OUTLIER_SHARE, RARE_SHARE, SILENCE_NS, TWO_TICKS_NS};

/// Number of undecided turns whose time no longer counts as busy: one more turn decides.
fn nearly_decided() -> usize {
    BEATS.get() as usize - 1
}

/// What is known about one stream's heartbeats.
#[derive(Debug, Default)]
pub(super) struct Beats {
    /// Turns that may be heartbeats, oldest first; boxed, as an exchange is moved several times.
    #[allow(clippy::vec_box)]
    undecided_turns: Vec<Box<Exchange>>,
    /// Sizes of the client's and the server's heartbeats, once found.
    sizes: Option<[u64; 2]>,
    /// Time of the client's newest heartbeat and the period of its timer, in ns.
    client: (i64, i64),
    /// Number of messages of either side that met no other.
    pub(super) unmatched: u32,
    /// Number of turns that were heartbeats.
    pub(super) dropped: u32,
}

/// Bytes of both messages of a turn that may be two heartbeats: one small packet each.
fn sizes(exchange: &Exchange) -> Option<[u64; 2]> {
    let answer = exchange.response.as_ref()?;
    let same = |first: u64, last: u64| first == last;
    let is_alone = !matches!(exchange.cut_by, Some(CutBy::Gap | CutBy::Reset))
        && !exchange.is_dialogue
        && exchange.key.is_none();
    let is_small = exchange.request.bytes.max(answer.bytes) <= BEAT_BYTES.get() as u64;
    let is_whole = same(exchange.request.first.frame, exchange.request.last.frame)
        && same(answer.first.frame, answer.last.frame);
    (is_alone && is_small && is_whole).then_some([exchange.request.bytes, answer.bytes])
}

/// Whether a person typed the request: one or two bytes per packet, with `TWO_TICKS_NS` or more between packets.
fn is_typed(exchange: &Exchange) -> bool {
    let (first, last) = (exchange.request.first, exchange.request.last);
    let [client, _] = &exchange.steps;
    let typed = client
        .iter()
        .filter(|step| (first.frame..=last.frame).contains(&step.to.frame))
        .count() as i64;
    let spread = last.time_ns - first.time_ns;
    !exchange.by_server
        && typed >= BEATS.get()
        && exchange.request.bytes as i64 <= 2 * typed
        && spread >= (typed - 1) * TWO_TICKS_NS.get()
}

/// Times of a turn's two messages, in ns.
fn times(exchange: &Exchange) -> [i64; 2] {
    [
        exchange.start(),
        exchange
            .response
            .as_ref()
            .map_or(exchange.start(), |answer| answer.first.time_ns),
    ]
}

/// Time from the request to the response, in ns.
fn duration_ns(exchange: &Exchange) -> i64 {
    let [start, end] = times(exchange);
    end - start
}

/// The period in ns of a timer that fired at these times, some of which may be missing.
fn period(times: impl Iterator<Item = i64> + Clone) -> Option<i64> {
    let steps = || {
        times
            .clone()
            .zip(times.clone().skip(1))
            .map(|(time, next)| next - time)
    };
    let shortest = steps().min().filter(|shortest| *shortest >= SILENCE_NS.get())?;
    // The other side's timer may fire less often, so that each two turns are two or three periods apart.
    [1, 2, 3]
        .into_iter()
        .map(|divisor| shortest / divisor)
        .find(|period| {
            let fits = |step: i64| {
                let times = (step + period / 2) / period;
                ((step - times * period).abs() as f64) <= *period as f64 * RARE_SHARE.get()
            };
            steps().all(fits)
        })
}

impl Beats {
    /// The client's period in ns, if the undecided turns are heartbeats: the times of either side fit a timer, and the
    /// server's do not depend on the client's.
    fn client_period(&self) -> Option<i64> {
        let at = |side: usize| {
            self.undecided_turns
                .iter()
                .map(move |exchange| times(exchange).get(side).copied().unwrap_or_default())
        };
        let (client, server) = (period(at(0))?, period(at(1))?);
        let phases = || at(0).zip(at(1)).map(|(request, answer)| answer - request);
        let (least, most) = (phases().min().unwrap_or(0), phases().max().unwrap_or(0));
        let exceeds = |ns: i64, share: f64| ns as f64 > client.min(server) as f64 * share;
        // A response keeps its delay. Two timers with the same period do so as well, but their messages have one size.
        let has_drifted = exceeds(most - least, RARE_SHARE.get() + RARE_SHARE.get());
        let are_sizes_equal = self
            .undecided_turns
            .first()
            .and_then(|exchange| sizes(exchange))
            .is_some_and(|[request, answer]| request == answer);
        let are_beats = exceeds(most, OUTLIER_SHARE.get())
            && (has_drifted || self.unmatched > 0 || are_sizes_equal && exceeds(least, OUTLIER_SHARE.get()));
        are_beats.then_some(client)
    }

    fn undecided_ns(&self) -> i64 {
        self.undecided_turns.iter().map(|turn| duration_ns(turn)).sum()
    }

    /// Removes a heartbeat from the start of a request that followed it closely.
    fn remove_leading_beat(&self, exchange: &mut Exchange) {
        let (Some([size, _]), (newest, period)) = (self.sizes, self.client) else {
            return;
        };
        let (first, last) = (exchange.request.first, exchange.request.last);
        let off = (first.time_ns - newest + period / 2).rem_euclid(period) - period / 2;
        let [client, _] = &exchange.steps;
        let second = client
            .iter()
            .find(|step| (first.frame + 1..=last.frame).contains(&step.to.frame));
        if let Some(second) = second.filter(|_| exchange.request.bytes > size && !exchange.by_server)
            && off.abs() as f64 <= period as f64 * RARE_SHARE.get()
        {
            exchange.request.first = second.to;
            exchange.request.bytes -= size;
        }
    }
}

impl Pairing {
    /// Ends a turn: queues it, or holds it until it is known whether it was a heartbeat.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_over(&mut self, mut exchange: Box<Exchange>, context: &mut Context) {
        if is_typed(&exchange) {
            // the response waits for the last key, so the request begins with it
            exchange.request.first = exchange.request.last;
        }
        if self.has_server_ended && self.beats.is_none() {
            return context.queue(exchange);
        }
        let server_ended = self.has_server_ended;
        let beats = self.beats.get_or_insert_default();
        let size = sizes(&exchange);
        // the last heartbeat of the client may have no counterpart
        let is_lone = exchange.response.is_none()
            && beats
                .sizes
                .is_some_and(|[bytes, _]| bytes == exchange.request.bytes);
        if is_lone || size.is_some() && size == beats.sizes {
            beats.dropped += 1;
            let [start, end] = times(&exchange);
            beats.client.0 = start;
            self.busy_ns = self.busy_ns.saturating_sub(end - start);
            return context.recycle(exchange);
        }
        beats.remove_leading_beat(&mut exchange);
        let goes_on = beats.undecided_turns.last().is_none_or(|last| {
            let [request, answer] = times(last);
            let is_late =
                exchange.start() - answer.max(request) >= 0 && exchange.start() - request >= SILENCE_NS.get();
            sizes(last) == size && is_late
        });
        if !goes_on || server_ended || size.is_none() {
            self.release_turns(context);
        }
        if server_ended || size.is_none() {
            return context.queue(exchange);
        }
        let Some(beats) = &mut self.beats else { return };
        beats.undecided_turns.push(exchange);
        // The time of heartbeats is not the program's. With fewer turns it still counts.
        if beats.undecided_turns.len() == nearly_decided() {
            self.busy_ns = self.busy_ns.saturating_sub(beats.undecided_ns());
        } else if beats.undecided_turns.len() > nearly_decided() {
            let newest_ns = beats.undecided_turns.last().map_or(0, |turn| duration_ns(turn));
            self.busy_ns = self.busy_ns.saturating_sub(newest_ns);
        }
        if beats.undecided_turns.len() < BEATS.get() as usize {
            return;
        }
        if let Some(period) = beats.client_period() {
            beats.sizes = size;
            beats.client = (
                beats.undecided_turns.last().map_or(0, |beat| beat.start()),
                period,
            );
            beats.dropped += beats.undecided_turns.len() as u32;
            beats
                .undecided_turns
                .drain(..)
                .for_each(|beat| context.recycle(beat));
        } else {
            self.release_turns(context);
        }
    }

    /// Queues the undecided turns, which are no heartbeats as far as the capture shows.
    pub(super) fn release_turns(&mut self, context: &mut Context) {
        let Some(beats) = &mut self.beats else { return };
        if beats.undecided_turns.len() >= nearly_decided() {
            self.busy_ns = self.busy_ns.saturating_add(beats.undecided_ns());
        }
        for turn in std::mem::take(&mut beats.undecided_turns) {
            context.queue(turn);
        }
    }
}
