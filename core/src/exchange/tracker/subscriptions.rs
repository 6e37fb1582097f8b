//! Subscriptions: requests after which the server sends messages without further requests. Each has one row, with the
//! number of its messages, the time of the first one and the longest time between two. The row is written at the end
//! of the stream.

use std::collections::VecDeque;

use super::pairing::Pairing;
use crate::base::At;
use crate::exchange::{BodyPartStats, Context, Exchange};
use crate::messages::Kind;

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
        let own = self.subscriptions.as_mut().filter(|_| !self.over);
        let own = own.and_then(|list| list.0.iter_mut().rev().find(|own| own.exchange == exchange.id));
        match own {
            Some(own) => own.row = Some(exchange),
            None => {
                exchange.kind = Kind::Request;
                context.queue(exchange);
            }
        }
    }

    /// Records a message for this subscription.
    pub(super) fn subscribed(&mut self, number: u64, at: At) {
        let list = self.subscriptions.iter_mut().flat_map(|list| list.0.iter_mut());
        if let Some(own) = list.rev().find(|own| own.number == number) {
            own.pieces.add(at);
        }
    }

    /// Ends all subscriptions.
    pub(super) fn leave_subscriptions(&mut self, context: &mut Context) {
        for own in self.subscriptions.take().into_iter().flat_map(|list| list.0) {
            self.leave_subscription(own, context);
        }
    }

    fn leave_subscription(&mut self, own: Subscription, context: &mut Context) {
        let Some(mut row) = own.row else { return };
        row.pieces = own.pieces;
        // With a response it is a request like others. Otherwise the messages are all that the server sends.
        row.kind = if row.response.is_none() && own.pieces.count > 0 {
            Kind::EventStream
        } else {
            Kind::Request
        };
        if own.pieces.count > 0 || row.response.is_some() || !row.complete {
            return context.queue(row);
        }
        // neither a response nor a message (an inbox of NATS): no row
        self.beats.get_or_insert_default().dropped += 1;
        context.done(row);
    }
}
