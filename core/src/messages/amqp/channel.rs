//! Open requests of one AMQP channel: methods, answered in their order, and publishes, confirmed by their delivery
//! tags. Also finds where the content after a method ends.

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::frame::Method;
use crate::base::At;
use crate::messages::framed::{PushedMessage, Role};
use crate::messages::pending_queue::{push_dropping_oldest, take_first};
use crate::messages::{BySide, Side};

/// Upper bound on the open methods, the unconfirmed publishes and the consumers of one channel; beyond it the oldest is
/// dropped.
const MAX_WAITING: usize = 256;

#[derive(Debug)]
pub(super) struct Channel {
    /// Methods without an answer, oldest first: key, and the answer's class and method number.
    waiting: VecDeque<(u64, (u16, u16))>,
    /// Publishes without a confirmation, oldest first: delivery tag and key.
    unconfirmed: VecDeque<(u64, u64)>,
    /// Consumer tags, oldest first, with the key of the subscribing request. Empty until the server has chosen the tag.
    consumers: VecDeque<(Box<[u8]>, u64)>,
    /// The server confirms publishes.
    confirms: bool,
    /// Delivery tag of the next publish; None if the count is not known.
    tag: Option<u64>,
    /// Publishes without a known tag since the server's newest confirmation.
    uncounted: u64,
    /// Time of that confirmation, in ns.
    confirmed_at_ns: Option<i64>,
    /// The tag after that confirmation's; None if publishes may still be open.
    tag_after: Option<u64>,
    /// The content that each side is sending.
    pub(super) contents: BySide<Content>,
}

/// The content that is being read after a method.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// None: the content of an unconfirmed publish, or of a method that is not in the capture.
    owner: Option<Owner>,
    /// Payload bytes still to come, once the content's header was read.
    remaining: u64,
    /// Bytes of the frames that were read.
    bytes: u64,
}

/// The exchange, or the push, that a content belongs to.
#[derive(Debug, Clone)]
pub(super) enum Owner {
    Exchange(u64),
    /// Where it began, method, target, and key of its subscription.
    Push(At, &'static str, SmolStr, Option<u64>),
}

impl Channel {
    /// `from_start`: the channel's beginning is in the capture.
    pub(super) fn new(from_start: bool) -> Self {
        Channel {
            waiting: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            consumers: VecDeque::new(),
            confirms: false,
            tag: from_start.then_some(1),
            uncounted: 0,
            confirmed_at_ns: None,
            tag_after: None,
            contents: BySide::default(),
        }
    }

    /// Adds a method that the client has sent and the server will answer.
    pub(super) fn add_waiting(&mut self, key: u64, method: Method<'_>) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.extend(method.answer().map(|answer| (key, answer)));
        if method.opens_channel() {
            (self.tag, self.confirms) = (Some(1), false);
            self.unconfirmed.clear();
        }
        if method.selects_confirms() {
            // delivery tags count from confirm.select (RabbitMQ, "Publisher Confirms")
            (self.tag, self.confirms) = (Some(1), true);
        }
    }

    /// Adds the consumer of the request with this key. An empty tag is filled by `name_consumer`.
    pub(super) fn add_consumer(&mut self, key: u64, tag: &[u8]) {
        push_dropping_oldest(&mut self.consumers, MAX_WAITING, (tag.into(), key));
    }

    /// Sets the tag that the server's answer gives to the consumer of this request.
    pub(super) fn name_consumer(&mut self, key: u64, tag: &[u8]) {
        if let Some((consumer_tag, _)) = self.consumers.iter_mut().find(|(_, request)| *request == key) {
            *consumer_tag = tag.into();
        }
    }

    /// Returns the key of the request that subscribed the consumer with this tag.
    pub(super) fn consumer(&self, tag: &[u8]) -> Option<u64> {
        let mut newest = self.consumers.iter().rev();
        newest.find(|(named, _)| **named == *tag).map(|(_, key)| *key)
    }

    /// Counts a publish. Returns whether it is an exchange: the server will confirm it, and its tag is known.
    pub(super) fn publish(&mut self, key: u64, at_ns: i64) -> bool {
        let is_later = self.confirmed_at_ns.is_some_and(|confirmed| confirmed < at_ns);
        if self.tag.is_none() && is_later && self.uncounted == 0 {
            self.tag = self.tag_after;
        }
        if let Some(tag) = self.tag
            && self.confirms
        {
            self.tag = Some(tag.saturating_add(1));
            push_dropping_oldest(&mut self.unconfirmed, MAX_WAITING, (tag, key));
            return true;
        }
        self.uncounted += u64::from(is_later);
        false
    }

    /// Removes the publishes that the server confirms with this tag (`multiple`: and all before it); returns their
    /// keys.
    pub(super) fn take_confirmed(&mut self, tag: u64, is_multiple: bool, at_ns: i64) -> Vec<u64> {
        let is_first = !std::mem::replace(&mut self.confirms, true);
        self.confirmed_at_ns = Some(at_ns);
        if self.tag.is_none_or(|next| tag >= next) || is_first {
            // publishes are not in the capture, or have no known tag: count from here, if none is open
            self.unconfirmed.clear();
            let none_is_open = is_multiple || self.uncounted <= 1;
            self.tag_after = none_is_open.then(|| tag.saturating_add(1));
            (self.tag, self.uncounted) = (None, 0);
            return Vec::new();
        }
        let mut keys = Vec::new();
        self.unconfirmed.retain(|(published, key)| {
            let is_confirmed = *published == tag || is_multiple && *published < tag;
            if is_confirmed {
                keys.push(*key);
            }
            !is_confirmed
        });
        keys
    }

    /// Removes the request that this method of the server answers; returns its key.
    pub(super) fn take_answered(&mut self, method: Method<'_>) -> Option<u64> {
        take_first(&mut self.waiting, |(_, answer)| method.is_answer(*answer)).map(|(key, _)| key)
    }

    /// Removes all open requests, which will get no answer; returns their keys, methods first.
    pub(super) fn take_all(&mut self) -> Vec<u64> {
        let waiting = self.waiting.drain(..).map(|(key, _)| key);
        waiting
            .chain(self.unconfirmed.drain(..).map(|(_, key)| key))
            .collect()
    }

    /// Forgets what frames of `side` that are not in the capture may have changed.
    pub(super) fn lost(&mut self, side: Side) {
        self.contents[side] = Content::default();
        match side {
            Side::Client => (self.tag, self.tag_after) = (None, None),
            // the next answer may belong to a later request of the same method
            Side::Server => self.waiting.clear(),
        }
    }
}

impl Content {
    pub(super) fn new(owner: Option<Owner>) -> Self {
        Content {
            owner,
            ..Content::default()
        }
    }

    /// Counts a frame of `len` bytes, which others follow.
    pub(super) fn count(&mut self, len: u64) -> Role {
        self.bytes += len;
        match self.owner {
            Some(Owner::Exchange(key)) => Role::Part(key),
            _ => Role::Ignored,
        }
    }

    /// Reads the header frame, of `len` bytes, of a content of `size` bytes.
    pub(super) fn begin(&mut self, size: u64, len: u64) -> Role {
        self.remaining = size;
        self.count_body(0, len)
    }

    /// Reads a body frame of `len` bytes with `size` bytes of payload.
    pub(super) fn count_body(&mut self, size: u64, len: u64) -> Role {
        self.remaining = self.remaining.saturating_sub(size);
        if self.remaining > 0 {
            return self.count(len);
        }
        let Content { owner, bytes, .. } = std::mem::take(self);
        match owner {
            Some(Owner::Exchange(key)) => Role::Last(key),
            Some(Owner::Push(since, method, target, subscription)) => Role::Push(PushedMessage {
                since: Some(since),
                method,
                target,
                bytes,
                subscription,
            }),
            None => Role::Ignored,
        }
    }
}
