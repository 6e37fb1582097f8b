//! The end of an exchange: the client's packet that says the answer arrived, and the steps that the exchange takes along.

use std::collections::VecDeque;

use super::pairing::Pairing;
use super::{MAX_OPEN, Tracker, offset, pick};
use crate::exchange::steps::{slice, take_turns};
use crate::exchange::{Exchange, Ledger, Repeat, Seen};
use crate::messages::{At, Side};
use crate::segment::ACK;

/// An ACK this soon after a repeat (as a share of the leg) was caused by the first copy.
const ANSWERED_SHARE: f64 = 0.95;

/// The client's packet that acknowledges a response's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    at: At,
    tsecr: Option<u32>,
    leg: Option<i64>,
    /// Bytes that it reports as having come twice.
    twice: Option<(i64, i64)>,
}

impl Arrival {
    /// It answers something that was sent before `copy`: it echoes an older timestamp (RFC 7323 4.3: TSecr
    /// names what advanced the window), or came too soon after the copy.
    fn answers_earlier(&self, copy: &Repeat) -> bool {
        if self
            .twice
            .is_some_and(|(start, end)| copy.start < end && copy.end > start)
        {
            return true; // the first copy had come before
        }
        if let (Some(echo), Some(tsval)) = (self.tsecr, copy.tsval)
            && echo != tsval
        {
            return (echo.wrapping_sub(tsval) as i32) < 0;
        }
        self.leg
            .is_some_and(|leg| ((self.at.time_ns - copy.at.time_ns) as f64) < leg as f64 * ANSWERED_SHARE)
    }
}

impl Tracker {
    /// The peer's ACK says what it has: holes below it are the capture's, and a finished response arrived.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self, side: Side, seen: &Seen<'_, '_>, at: At, ledger: &mut Ledger) {
        let ack = seen.facts.ack;
        let other = side.other();
        if seen.segment.has(ACK) && !pick(&mut self.assemblers, other).acked_in_order(offset(ack)) {
            self.read(
                other,
                at,
                u64::MAX,
                |assembler, give| assembler.acked(offset(ack), give),
                ledger,
            );
        }
        if side == Side::Client {
            self.pairing.arrived(seen, at, ledger);
        }
    }
}

impl Pairing {
    /// The client has all that it acknowledges.
    #[inline(always)]
    fn arrived(&mut self, seen: &Seen<'_, '_>, at: At, ledger: &mut Ledger) {
        let ack = seen.facts.ack;
        self.client_ack = self.client_ack.max(ack);
        while let Some(first) = self.settling.front() {
            let arrived = first.response.as_ref().is_some_and(|r| ack >= r.end_offset);
            if !arrived && self.settling.len() <= MAX_OPEN {
                break;
            }
            let [client_leg, _] = seen.legs;
            let tsecr = seen.segment.options.timestamps.map(|t| t.1);
            self.settle_first(
                Some(Arrival {
                    at,
                    tsecr,
                    leg: client_leg,
                    twice: seen.came_twice(),
                }),
                ledger,
            );
        }
    }

    /// The exchange ends with the copy of its response that arrived.
    pub(super) fn settle_first(&mut self, arrival: Option<Arrival>, ledger: &mut Ledger) {
        let Some(mut exchange) = self.settling.pop_front() else {
            return;
        };
        if let Some(response) = &mut exchange.response {
            let arrived = |copy: &&Repeat| arrival.is_none_or(|a| !a.answers_earlier(copy));
            let late = response.copies.iter().rev().find(arrived).map(|copy| copy.at);
            if let Some(copy) = late.filter(|at| at.frame > response.last.frame) {
                response.last = copy;
            }
        }
        self.finish(exchange, ledger);
    }

    /// The exchange leaves with its own part of the steps.
    pub(super) fn finish(&mut self, mut exchange: Box<Exchange>, ledger: &mut Ledger) {
        if exchange.protocol.is_empty() {
            exchange.protocol = self.protocol;
        }
        let start = exchange.request.first;
        let end = later(exchange.end(), start);
        // up to here the client's own segments made the time pass, from here on the server's
        let asked = later(exchange.request.last, start);
        let border = if asked.time_ns < end.time_ns { asked } else { end };
        let last = self.is_idle();
        let [client, server] = &mut self.steps;
        if exchange.dialogue {
            take_turns([client, server], start, end, &mut exchange.pieces);
        } else {
            slice(client, last, Side::Client, start, border, &mut exchange.pieces);
            slice(server, last, Side::Server, border, end, &mut exchange.pieces);
        }
        self.busy = self.busy.saturating_add(end.time_ns - start.time_ns);
        ledger.settle(exchange);
        if last {
            self.steps.iter_mut().for_each(VecDeque::clear);
            self.forget_steps(ledger);
            return;
        }
        let needed = self
            .open
            .iter()
            .chain(&self.settling)
            .map(|e| e.start())
            .min()
            .unwrap_or(i64::MIN);
        for steps in &mut self.steps {
            while steps.front().is_some_and(|s| s.to.time_ns < needed) {
                steps.pop_front();
            }
        }
    }
}

/// `at`, or `floor` where that is later.
fn later(at: At, floor: At) -> At {
    if at.time_ns < floor.time_ns { floor } else { at }
}
