//! Subscriptions: requests whose answer is over soon, if there is one, and for which the server sends what happens from then
//! on. Each is one row, with the number of its messages, the first one's time and the longest gap between two. It waits for
//! the end of the stream.

use std::collections::VecDeque;

use super::pairing::Pairing;
use crate::base::At;
use crate::exchange::{BodyPartStats, Context, Exchange};
use crate::messages::Kind;

/// Subscriptions of one stream that are followed; beyond it the oldest has its row at once.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(VecDeque<Subscription>);

#[derive(Debug)]
struct Subscription {
    /// As its reader counts them.
    number: u64,
    /// The exchange that subscribed, once that is over.
    exchange: u64,
    row: Option<Box<Exchange>>,
    pieces: BodyPartStats,
}

impl Pairing {
    /// This exchange subscribes.
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

    /// An exchange that subscribed is over.
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

    /// A message for this subscription came.
    pub(super) fn subscribed(&mut self, number: u64, at: At) {
        let list = self.subscriptions.iter_mut().flat_map(|list| list.0.iter_mut());
        if let Some(own) = list.rev().find(|own| own.number == number) {
            own.pieces.add(at);
        }
    }

    /// Nothing more comes for any of them.
    pub(super) fn leave_subscriptions(&mut self, context: &mut Context) {
        for own in self.subscriptions.take().into_iter().flat_map(|list| list.0) {
            self.leave_subscription(own, context);
        }
    }

    fn leave_subscription(&mut self, own: Subscription, context: &mut Context) {
        let Some(mut row) = own.row else { return };
        row.pieces = own.pieces;
        // what is answered is a request like others; of the rest the messages are all that comes
        row.kind = if row.response.is_none() && own.pieces.count > 0 {
            Kind::EventStream
        } else {
            Kind::Request
        };
        if own.pieces.count > 0 || row.response.is_some() || !row.complete {
            return context.queue(row);
        }
        // nobody answers it, and nothing came (an inbox of NATS)
        self.beats.get_or_insert_default().dropped += 1;
        context.done(row);
    }
}
