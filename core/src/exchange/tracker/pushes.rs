//! Pushes: a message that a server sends without a request has its own row, with the server's steps while it was
//! sent.

use super::pairing::Pairing;
use crate::exchange::steps::between;
use crate::exchange::{Context, Message, RowKind};
use crate::messages::Push;
use crate::observe::{Step, Wait};

impl Pairing {
    /// Adds the row of a complete push.
    #[cold]
    pub(super) fn push(&mut self, push: &Push<'_>, context: &mut Context) {
        let (first, unseen) = self.seen(push.first);
        let (last, hole) = self.seen(push.last);
        if unseen || hole {
            return; // the capture lacks a packet of it, so that its time is unknown
        }
        if let Some(number) = push.subscription {
            self.subscribed(number, last);
        }
        let mut exchange = context.open(self.stream, self.exchanges, self.pair);
        (exchange.rounds, exchange.doubled) = (self.rounds, self.doubled);
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
        let [_, own] = &mut exchange.steps;
        own.extend(between(steps, first, last).cloned());
        if let Some(held) = steps.iter().rfind(|step| step.to.frame == first.frame)
            && matches!(held.wait, Wait::Small(_))
            && !context.ends_in(self.stream, first.frame)
        {
            // Only the first message of its segment: a later one may have been written at any time before it left.
            exchange.before = Some(Box::new(held.clone()));
        }
        let known = own.first().map_or(last, |step| step.from);
        if first.time_ns < known.time_ns {
            // steps before the first push are not kept, as no request was open
            let step = Step {
                from: first,
                to: known,
                wait: Wait::Unsure,
            };
            own.insert(0, step);
        }
        self.pushes = true;
        context.queue(exchange);
    }
}
