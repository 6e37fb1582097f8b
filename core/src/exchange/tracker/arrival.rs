//! The end of an exchange: the client's packet that shows the response's arrival, and the steps that the exchange
//! takes along.

use std::num::NonZeroI64;

use super::data::FEW_STEPS;
use super::pairing::Pairing;
use super::{MAX_OPEN, Tracker, offset};
use crate::base::{At, Side};
use crate::exchange::steps::between;
use crate::exchange::{Context, Exchange, RetransmittedBytes, SeenSegment};
use crate::limits::NEARLY_ALL;
use crate::messages::{Kind, Protocol};
use crate::segment::ACK;

/// Number of waiting exchanges from which steps are dropped less often, as that scans all of them.
const MANY_EXCHANGES: usize = 64;

/// The client's packet that acknowledges a response's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    at: At,
    tsecr: Option<u32>,
    /// Best RTT to the client in ns, if known.
    rtt_ns: Option<i64>,
    /// The D-SACK block: bytes that arrived twice.
    dsack_block: Option<(i64, i64)>,
}

impl Arrival {
    /// Whether it answers a packet sent before `copy`: it echoes an older TSval (RFC 7323 4.3: TSecr names the
    /// segment that advanced the window), or follows the copy by less than a round trip.
    fn answers_earlier(&self, copy: &RetransmittedBytes) -> bool {
        if self
            .dsack_block
            .is_some_and(|(start, end)| copy.start_seq < end && copy.end_seq > start)
        {
            return true; // the copy was the second one to arrive
        }
        if let (Some(echo), Some(tsval)) = (self.tsecr, copy.tsval)
            && echo != tsval
        {
            return (echo.wrapping_sub(tsval) as i32) < 0;
        }
        self.rtt_ns
            .is_some_and(|rtt| ((self.at.time_ns - copy.at.time_ns) as f64) < rtt as f64 * NEARLY_ALL.get())
    }
}

impl Tracker {
    /// Handles the peer's cumulative ACK: holes below it were lost by the capture, and a response that ends below it
    /// has arrived.
    #[inline(always)]
    pub(super) fn acknowledged(
        &mut self,
        side: Side,
        seen: &SeenSegment<'_, '_>,
        at: At,
        context: &mut Context,
    ) {
        let ack = seen.facts.ack;
        let other = side.other();
        if seen.segment.has(ACK) && !other.pick_mut(&mut self.assemblers).acked_in_order(offset(ack)) {
            self.read(
                other,
                at,
                u64::MAX,
                |assembler, give| assembler.acked(offset(ack), give),
                context,
            );
        }
        let acked = side.pick_mut(&mut self.pairing.acked_seqs);
        *acked = (*acked).max(ack);
        if side == Side::Client {
            self.pairing.finish_arrived(seen, at, context);
        }
    }
}

impl Pairing {
    /// Finishes the exchanges whose response the client has acknowledged.
    #[inline(always)]
    fn finish_arrived(&mut self, seen: &SeenSegment<'_, '_>, at: At, context: &mut Context) {
        let ack = seen.facts.ack;
        while let Some(first) = self.settling.front() {
            let has_arrived = first
                .response
                .as_ref()
                .is_some_and(|response| ack >= response.end_offset);
            if !has_arrived && self.settling.len() <= MAX_OPEN {
                break;
            }
            let [client_rtt, _] = *seen.rtts;
            let tsecr = seen.segment.options.timestamps.map(|(_, tsecr)| tsecr);
            self.settle_first(
                Some(Arrival {
                    at,
                    tsecr,
                    rtt_ns: client_rtt,
                    dsack_block: seen.dsack_block(),
                }),
                context,
            );
        }
    }

    /// Ends the oldest settling exchange with the copy of its response that arrived.
    pub(super) fn settle_first(&mut self, arrival: Option<Arrival>, context: &mut Context) {
        let Some(mut exchange) = self.settling.pop_front() else {
            return;
        };
        if let Some(response) = &mut exchange.response {
            // Repeats that were never acknowledged repaired nothing: the client had left.
            let arrived =
                |copy: &&RetransmittedBytes| arrival.is_some_and(|arrival| !arrival.answers_earlier(copy));
            let arrived_at = response
                .retransmissions
                .iter()
                .rev()
                .find(arrived)
                .map(|copy| copy.at);
            if let Some(copy) = arrived_at.filter(|at| at.frame > response.last.frame) {
                response.whole = response.last;
                response.last = copy;
            }
        }
        self.finish(exchange, context);
    }

    /// Ends the exchange with its share of the steps.
    #[inline(always)]
    pub(super) fn finish(&mut self, mut exchange: Box<Exchange>, context: &mut Context) {
        exchange.protocol = exchange.protocol.or(self.protocol);
        let request = &mut exchange.request;
        let is_lost =
            exchange.response.is_none() && request.retransmissions.0.is_some() && !exchange.by_server;
        let [_, server_acked] = self.acked_seqs;
        if is_lost && request.whole.frame > 0 && server_acked < request.end_offset {
            request.last = request.whole; // no retransmission reached a server that was still there
        }
        (exchange.kernel_rtts, exchange.is_doubled) = (self.kernel_rtts, self.is_doubled);
        let (start, end) = exchange.span();
        self.busy_ns = self.busy_ns.saturating_add(end.time_ns - start.time_ns);
        if exchange.is_dialogue && exchange.is_complete && exchange.protocol == Some(Protocol::Tls) {
            self.begun.tls_ns = self.begun.tls_ns.or(NonZeroI64::new(end.time_ns - start.time_ns));
        }
        if let (Some(host), None) = (&exchange.host, self.begun.named) {
            self.begun.named = context.name(host, end);
        }
        if self.is_idle() && !self.needs_steps() && !self.has_pushed {
            std::mem::swap(&mut exchange.steps, &mut self.steps);
            self.forget_steps(context);
        } else {
            self.share_steps(&mut exchange);
        }
        match exchange.kind {
            Kind::Turn => self.turn_over(exchange, context),
            Kind::Subscription => self.subscription_over(exchange, context),
            _ => context.queue(exchange),
        }
    }

    /// Copies the steps of this exchange, which others need as well, and drops steps that none needs.
    #[inline(never)]
    fn share_steps(&mut self, exchange: &mut Exchange) {
        let (start, border, end) = exchange.boundaries();
        let parts = if exchange.is_dialogue {
            [(start, end); 2]
        } else {
            [(start, border), (border, end)]
        };
        let [first, second] = parts;
        let parts = if exchange.by_server {
            [second, first]
        } else {
            parts
        };
        for ((exchange_steps, stream_steps), (start, end)) in
            exchange.steps.iter_mut().zip(&self.steps).zip(parts)
        {
            exchange_steps.extend(between(stream_steps, start, end).cloned());
        }
        if self.open.len() + self.settling.len() > MANY_EXCHANGES
            && !exchange.index.is_multiple_of(MANY_EXCHANGES as u32)
        {
            return; // only one in `MANY_EXCHANGES` scans all others
        }
        let needed = self
            .open
            .iter()
            .chain(&self.settling)
            .map(|exchange| exchange.start())
            .min()
            .unwrap_or(i64::MIN);
        for steps in &mut self.steps {
            let over = steps.partition_point(|step| step.to.time_ns < needed);
            // removing few of many steps is not worth moving the rest
            if over >= steps.len() / 2 || steps.len() < FEW_STEPS {
                steps.drain(..over);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_within_most_of_a_round_trip_answers_what_was_sent_before() {
        let copy = RetransmittedBytes {
            at: At { frame: 1, time_ns: 0 },
            start_seq: 0,
            end_seq: 1,
            tsval: None,
        };
        let earlier = |time_ns| {
            let arrival = Arrival {
                at: At { frame: 2, time_ns },
                tsecr: None,
                rtt_ns: Some(1_000_000),
                dsack_block: None,
            };
            arrival.answers_earlier(&copy)
        };
        let share = 950_000; // NEARLY_ALL
        assert_eq!([share - 1, share].map(earlier), [true, false]);
    }
}
