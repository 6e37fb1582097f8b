//! Messages that a server sends without a request.
//!
//! A push has its own row, with the server's steps while it was sent. A subscription is a request after which the
//! server sends messages: one row, with their number, the time of the first one and the longest time between two,
//! written at the end of the stream.

use std::collections::VecDeque;

use super::pairing::Pairing;
use crate::base::At;
use crate::exchange::steps::between;
use crate::exchange::{BodyPartStats, Context, Exchange, Message, RowKind};
use crate::messages::{Kind, Push};
use crate::observe::{Step, Wait};

/// Upper bound on the subscriptions per stream; beyond it the oldest has its row at once.
const MAX_SUBSCRIPTIONS: usize = 256;

/// The subscriptions of one stream, oldest first.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(VecDeque<Subscription>);

/// One subscription and its messages so far.
#[derive(Debug)]
struct Subscription {
    /// Id that the protocol reader gives it.
    number: u64,
    /// Id of the exchange that subscribed.
    exchange: u64,
    /// That exchange, once it has ended.
    row: Option<Box<Exchange>>,
    pieces: BodyPartStats,
}

impl Pairing {
    /// Adds the row of a complete push.
    #[cold]
    pub(super) fn push(&mut self, push: &Push<'_>, context: &mut Context) {
        let (first, is_first_unseen) = self.seen(push.first);
        let (last, is_last_unseen) = self.seen(push.last);
        if is_first_unseen || is_last_unseen {
            return; // the capture lacks a packet of it, so that its time is unknown
        }
        if let Some(number) = push.subscription {
            self.subscribed(number, last);
        }
        let mut exchange = context.open(self.ids.stream, self.exchange_count, self.ids.pair);
        (exchange.kernel_rtts, exchange.is_doubled) = (self.kernel_rtts, self.is_doubled);
        (exchange.row, exchange.protocol) = (RowKind::Push, self.protocol);
        exchange.kind = self.protocol.unwrap_or_default().kind();
        let named = |text: &str| (!text.is_empty()).then(|| text.into());
        (exchange.method, exchange.target) = (named(push.method), named(push.target));
        let message = |bytes| Message {
            first,
            last: if bytes > 0 { last } else { first },
            bytes,
            ..Message::default()
        };
        (exchange.request, exchange.response) = (message(0), Some(message(push.bytes)));
        let [_, steps] = &self.steps;
        let [_, push_steps] = &mut exchange.steps;
        push_steps.extend(between(steps, first, last).cloned());
        if let Some(held) = steps.iter().rfind(|step| step.to.frame == first.frame)
            && matches!(held.wait, Wait::Small(_))
            && !context.ends_in(self.ids.stream, first.frame)
        {
            // Only the first message of its segment: a later one may have been written at any time before it left.
            exchange.held_before = Some(Box::new(held.clone()));
        }
        let earliest = push_steps.first().map_or(last, |step| step.from);
        if first.time_ns < earliest.time_ns {
            // steps before the first push are not kept, as no request was open
            let step = Step {
                from: first,
                to: earliest,
                wait: Wait::Unsure,
            };
            push_steps.insert(0, step);
        }
        self.has_pushed = true;
        context.queue(exchange);
    }

    /// Adds a subscription made by this exchange.
    pub(super) fn subscribes(&mut self, exchange: u64, number: u64, context: &mut Context) {
        let Subscriptions(list) = &mut **self.subscriptions.get_or_insert_default();
        let oldest = if list.len() < MAX_SUBSCRIPTIONS {
            None
        } else {
            list.pop_front()
        };
        list.push_back(Subscription {
            number,
            exchange,
            row: None,
            pieces: BodyPartStats::default(),
        });
        if let Some(oldest) = oldest {
            self.leave_subscription(oldest, context);
        }
    }

    /// Keeps an exchange that subscribed and has ended, until the end of its messages.
    #[cold]
    pub(super) fn subscription_over(&mut self, mut exchange: Box<Exchange>, context: &mut Context) {
        let list = self.subscriptions.as_mut().filter(|_| !self.has_server_ended);
        let subscription = list.and_then(|list| {
            list.0
                .iter_mut()
                .rev()
                .find(|subscription| subscription.exchange == exchange.id)
        });
        match subscription {
            Some(subscription) => subscription.row = Some(exchange),
            None => {
                exchange.kind = Kind::Request;
                context.queue(exchange);
            }
        }
    }

    /// Records a message for this subscription.
    pub(super) fn subscribed(&mut self, number: u64, at: At) {
        let list = self.subscriptions.iter_mut().flat_map(|list| list.0.iter_mut());
        if let Some(subscription) = list.rev().find(|subscription| subscription.number == number) {
            subscription.pieces.add(at);
        }
    }

    /// Ends all subscriptions.
    pub(super) fn leave_subscriptions(&mut self, context: &mut Context) {
        for subscription in self.subscriptions.take().into_iter().flat_map(|list| list.0) {
            self.leave_subscription(subscription, context);
        }
    }

    fn leave_subscription(&mut self, subscription: Subscription, context: &mut Context) {
        let Some(mut row) = subscription.row else { return };
        row.pieces = subscription.pieces;
        // With a response it is a request like others. Otherwise the messages are all that the server sends.
        row.kind = if row.response.is_none() && subscription.pieces.count > 0 {
            Kind::EventStream
        } else {
            Kind::Request
        };
        if subscription.pieces.count > 0 || row.response.is_some() || !row.is_complete {
            return context.queue(row);
        }
        // neither a response nor a message (an inbox of NATS): no row
        self.beats.get_or_insert_default().dropped += 1;
        context.recycle(row);
    }
}
