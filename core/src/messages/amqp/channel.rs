//! What one channel of AMQP waits for: answers to methods in their order, confirmations by their tags, the content
//! that follows a method. Keeps keys, no names.

use std::collections::VecDeque;

use smol_str::SmolStr;

use super::frame::Method;
use crate::base::At;
use crate::messages::Side;
use crate::messages::framed::{PushedMessage, Role};

/// Requests of one channel that may wait, and publishes; beyond it the oldest is forgotten.
const MAX_WAITING: usize = 256;

#[derive(Debug)]
pub(super) struct Channel {
    /// Methods that wait, oldest first: key, and the answer's class and number.
    waiting: VecDeque<(u64, (u16, u16))>,
    /// Publishes that wait to be confirmed, oldest first: tag and key.
    unconfirmed: VecDeque<(u64, u64)>,
    /// The tags of consumers and the keys of what subscribed them, oldest first. An empty one is not known yet.
    consumers: VecDeque<(Box<[u8]>, u64)>,
    /// The server confirms publishes.
    confirms: bool,
    /// The tag of the next publish, where it is known.
    tag: Option<u64>,
    /// Publishes without a tag since the server's newest confirmation, and when that came.
    uncounted: u64,
    confirmed_at: Option<i64>,
    /// The tag behind that confirmation, where it left no publish open.
    behind: Option<u64>,
    client: Content,
    server: Content,
}

/// The content that is being read behind a method.
#[derive(Debug, Default)]
pub(super) struct Content {
    of: Option<Of>,
    /// Its bytes still to come, once its header is read.
    left: u64,
    /// Of the frames before.
    bytes: u64,
}

/// What it belongs to.
#[derive(Debug, Clone)]
pub(super) enum Of {
    Exchange(u64),
    Push(At, &'static str, SmolStr, Option<u64>),
}

impl Channel {
    /// `whole`: its beginning was read.
    pub(super) fn new(whole: bool) -> Self {
        Channel {
            waiting: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            consumers: VecDeque::new(),
            confirms: false,
            tag: whole.then_some(1),
            uncounted: 0,
            confirmed_at: None,
            behind: None,
            client: Content::default(),
            server: Content::default(),
        }
    }

    pub(super) fn content(&mut self, side: Side) -> &mut Content {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The client waits for the answer to this method.
    pub(super) fn waits(&mut self, key: u64, method: Method<'_>) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.extend(method.answer().map(|answer| (key, answer)));
        if method.opens() {
            (self.tag, self.confirms) = (Some(1), false);
            self.unconfirmed.clear();
        }
        if method.selects_confirms() {
            // tags count from here (RabbitMQ, "Publisher Confirms")
            (self.tag, self.confirms) = (Some(1), true);
        }
    }

    /// The request with this key subscribes, with this tag; one without a tag gets it with its answer.
    pub(super) fn consumes(&mut self, key: u64, tag: &[u8]) {
        if self.consumers.len() >= MAX_WAITING {
            self.consumers.pop_front();
        }
        self.consumers.push_back((tag.into(), key));
    }

    pub(super) fn consumes_as(&mut self, key: u64, tag: &[u8]) {
        if let Some((own, _)) = self.consumers.iter_mut().find(|(_, of)| *of == key) {
            *own = tag.into();
        }
    }

    /// What subscribed the consumer with this tag.
    pub(super) fn consumer(&self, tag: &[u8]) -> Option<u64> {
        let mut newest = self.consumers.iter().rev();
        newest.find(|(own, _)| **own == *tag).map(|(_, key)| *key)
    }

    /// The client publishes at this time: whether it waits for a confirmation, and is counted.
    pub(super) fn publishes(&mut self, key: u64, at: i64) -> bool {
        let later = self.confirmed_at.is_some_and(|confirmed| confirmed < at);
        if self.tag.is_none() && later && self.uncounted == 0 {
            self.tag = self.behind;
        }
        let (Some(tag), true) = (self.tag, self.confirms) else {
            self.uncounted += u64::from(later);
            return false;
        };
        self.tag = Some(tag.saturating_add(1));
        if self.unconfirmed.len() >= MAX_WAITING {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((tag, key));
        true
    }

    /// Which publishes the server confirms with this tag.
    pub(super) fn confirmed(&mut self, tag: u64, multiple: bool, at: i64) -> Vec<u64> {
        let first = !std::mem::replace(&mut self.confirms, true);
        self.confirmed_at = Some(at);
        if self.tag.is_none_or(|next| tag >= next) || first {
            // publishes were not seen, or not counted: the count is taken up where none is open
            self.unconfirmed.clear();
            let none_is_open = multiple || self.uncounted <= 1;
            self.behind = none_is_open.then(|| tag.saturating_add(1));
            (self.tag, self.uncounted) = (None, 0);
            return Vec::new();
        }
        let mut keys = Vec::new();
        self.unconfirmed.retain(|(of, key)| {
            let confirmed = *of == tag || multiple && *of < tag;
            if confirmed {
                keys.push(*key);
            }
            !confirmed
        });
        keys
    }

    /// Which request this method of the server answers.
    pub(super) fn answered(&mut self, method: Method<'_>) -> Option<u64> {
        let same = |(_, answer): &(u64, (u16, u16))| method.is_answer(*answer);
        let place = self.waiting.iter().position(same)?;
        self.waiting.remove(place).map(|(key, _)| key)
    }

    /// All that wait, methods first; nobody answers them any more.
    pub(super) fn all(&mut self) -> Vec<u64> {
        let waiting = self.waiting.drain(..).map(|(key, _)| key);
        waiting
            .chain(self.unconfirmed.drain(..).map(|(_, key)| key))
            .collect()
    }

    /// Messages of `side` are not in the capture.
    pub(super) fn lost(&mut self, side: Side) {
        *self.content(side) = Content::default();
        match side {
            Side::Client => (self.tag, self.behind) = (None, None),
            // the next answer may be another's
            Side::Server => self.waiting.clear(),
        }
    }
}

impl Content {
    pub(super) fn of(of: Option<Of>) -> Self {
        Content {
            of,
            ..Content::default()
        }
    }

    /// A frame of so many bytes, and others follow.
    pub(super) fn part(&mut self, len: u64) -> Role {
        self.bytes += len;
        match self.of {
            Some(Of::Exchange(key)) => Role::Part(key),
            _ => Role::Ignored,
        }
    }

    /// The header, behind which `size` bytes follow.
    pub(super) fn header(&mut self, size: u64, len: u64) -> Role {
        self.left = size;
        self.body(0, len)
    }

    pub(super) fn body(&mut self, size: u64, len: u64) -> Role {
        self.left = self.left.saturating_sub(size);
        if self.left > 0 {
            return self.part(len);
        }
        match std::mem::take(self) {
            Content {
                of: Some(Of::Exchange(key)),
                ..
            } => Role::Last(key),
            Content {
                of: Some(Of::Push(since, method, target, subscription)),
                bytes,
                ..
            } => Role::Push(PushedMessage {
                since: Some(since),
                method,
                target,
                bytes,
                subscription,
            }),
            _ => Role::Ignored,
        }
    }
}
