//! Gearman's binary protocol (gearman.org/protocol). Each message begins with a magic, a type and a 4-byte length. One
//! exchange is a client's job up to its result, which has the job's handle, or another request and its response: these
//! come in the order of the requests. A worker's sleep is a long poll. Jobs' data are not read.

use std::collections::VecDeque;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::push_dropping_oldest;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, text};
use crate::cursor;
use crate::limits::HELD_BEHIND_NS;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Gearman,
    sniff: framed::sniff::<Gearman>,
    begins_message: |side, first| side == Side::Client && framed::fit::<Gearman>(side, first) != Fit::No,
    begins_inside_turn: |side, first| framed::fit::<Gearman>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Gearman(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Gearman>;

/// Bytes of a header: magic, type, length.
const HEADER: usize = 12;
/// Upper bound on a message's length; a longer one is taken for another protocol.
const MAX_MESSAGE: u32 = 1 << 28;
/// Upper bound on requests without a response, and on running jobs; beyond it the oldest is dropped.
const MAX_WAITING: usize = 1024;

/// The types of messages that decide something.
mod types {
    pub(super) const PRE_SLEEP: u32 = 4;
    pub(super) const NOOP: u32 = 6;
    pub(super) const SUBMIT_JOB: u32 = 7;
    pub(super) const JOB_CREATED: u32 = 8;
    pub(super) const GRAB_JOB: u32 = 9;
    pub(super) const NO_JOB: u32 = 10;
    pub(super) const JOB_ASSIGN: u32 = 11;
    pub(super) const WORK_STATUS: u32 = 12;
    pub(super) const WORK_COMPLETE: u32 = 13;
    pub(super) const WORK_FAIL: u32 = 14;
    pub(super) const GET_STATUS: u32 = 15;
    pub(super) const ECHO_REQ: u32 = 16;
    pub(super) const ECHO_RES: u32 = 17;
    pub(super) const SUBMIT_JOB_BG: u32 = 18;
    pub(super) const ERROR: u32 = 19;
    pub(super) const STATUS_RES: u32 = 20;
    pub(super) const SUBMIT_JOB_HIGH: u32 = 21;
    pub(super) const WORK_EXCEPTION: u32 = 25;
    pub(super) const OPTION_REQ: u32 = 26;
    pub(super) const OPTION_RES: u32 = 27;
    pub(super) const WORK_DATA: u32 = 28;
    pub(super) const WORK_WARNING: u32 = 29;
    pub(super) const GRAB_JOB_UNIQ: u32 = 30;
    pub(super) const JOB_ASSIGN_UNIQ: u32 = 31;
    pub(super) const SUBMIT_JOB_HIGH_BG: u32 = 32;
    pub(super) const SUBMIT_JOB_LOW: u32 = 33;
    pub(super) const SUBMIT_JOB_LOW_BG: u32 = 34;
    pub(super) const SUBMIT_JOB_SCHED: u32 = 35;
    pub(super) const SUBMIT_JOB_EPOCH: u32 = 36;
    pub(super) const GRAB_JOB_ALL: u32 = 39;
    pub(super) const JOB_ASSIGN_ALL: u32 = 40;
    pub(super) const GET_STATUS_UNIQUE: u32 = 41;
    pub(super) const STATUS_RES_UNIQUE: u32 = 42;
}

#[derive(Debug, Default)]
pub(super) struct Gearman {
    /// Requests without a response, oldest first: key and expected response.
    waiting: VecDeque<(u64, Answer)>,
    /// Accepted jobs without a result, oldest first: handle and key.
    jobs: VecDeque<(Box<[u8]>, u64)>,
    next_key: u64,
}

/// The response that a request expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// JOB_CREATED.
    Created,
    /// JOB_CREATED, and later the job's result.
    Result,
    /// NO_JOB, or JOB_ASSIGN.
    Job,
    /// NOOP, which the server sends when there is a job.
    Wake,
    /// The message of this type.
    Type(u32),
}

impl Answer {
    fn is_type(self, kind: u32) -> bool {
        match self {
            Answer::Created | Answer::Result => kind == types::JOB_CREATED,
            Answer::Job => matches!(
                kind,
                types::NO_JOB | types::JOB_ASSIGN | types::JOB_ASSIGN_UNIQ | types::JOB_ASSIGN_ALL
            ),
            Answer::Wake => kind == types::NOOP,
            Answer::Type(wanted) => kind == wanted,
        }
    }
}

/// Returns a request's name and expected response. None for messages that are not answered: abilities and results of a
/// worker.
fn request(kind: u32) -> Option<(&'static str, Answer)> {
    Some(match kind {
        types::SUBMIT_JOB => ("SUBMIT_JOB", Answer::Result),
        types::SUBMIT_JOB_HIGH => ("SUBMIT_JOB_HIGH", Answer::Result),
        types::SUBMIT_JOB_LOW => ("SUBMIT_JOB_LOW", Answer::Result),
        types::SUBMIT_JOB_BG => ("SUBMIT_JOB_BG", Answer::Created),
        types::SUBMIT_JOB_HIGH_BG => ("SUBMIT_JOB_HIGH_BG", Answer::Created),
        types::SUBMIT_JOB_LOW_BG => ("SUBMIT_JOB_LOW_BG", Answer::Created),
        types::SUBMIT_JOB_SCHED => ("SUBMIT_JOB_SCHED", Answer::Created),
        types::SUBMIT_JOB_EPOCH => ("SUBMIT_JOB_EPOCH", Answer::Created),
        types::GRAB_JOB => ("GRAB_JOB", Answer::Job),
        types::GRAB_JOB_UNIQ => ("GRAB_JOB_UNIQ", Answer::Job),
        types::GRAB_JOB_ALL => ("GRAB_JOB_ALL", Answer::Job),
        types::PRE_SLEEP => ("PRE_SLEEP", Answer::Wake),
        types::GET_STATUS => ("GET_STATUS", Answer::Type(types::STATUS_RES)),
        types::GET_STATUS_UNIQUE => ("GET_STATUS_UNIQUE", Answer::Type(types::STATUS_RES_UNIQUE)),
        types::ECHO_REQ => ("ECHO_REQ", Answer::Type(types::ECHO_RES)),
        types::OPTION_REQ => ("OPTION_REQ", Answer::Type(types::OPTION_RES)),
        _ => return None,
    })
}

/// Returns the first argument: the function, or the job's handle.
fn argument(head: &[u8]) -> &[u8] {
    let arguments = cursor::from(head, HEADER);
    arguments.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn kind(head: &[u8]) -> u32 {
    cursor::be32_at(head, 4).unwrap_or(0)
}

impl WireFormat for Gearman {
    const MAX_HEAD: usize = 128;
    const MIN_PROOF: usize = HEADER;
    const LOST_REASON: &'static str = "not a message of Gearman";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let magic: &[u8] = match side {
            Side::Client => b"\0REQ",
            Side::Server => b"\0RES",
        };
        if !magic.iter().zip(first).all(|(want, byte)| want == byte) {
            return Length::Wrong;
        }
        match cursor::be32_at(first, 8) {
            Some(len) if len <= MAX_MESSAGE => Length::Is(HEADER as u64 + u64::from(len)),
            Some(_) => Length::Wrong,
            None => Length::More,
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        head.bytes.len() < 8 || (1..=types::STATUS_RES_UNIQUE).contains(&kind(head.bytes))
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let kind = kind(head.bytes);
        match sink.side() {
            Side::Client => self.read_request(sink, kind, head.bytes),
            Side::Server => self.read_response(sink, kind, head.bytes),
        }
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear();
    }
}

impl Gearman {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, kind: u32, head: &[u8]) -> Role {
        // a request that was held behind unanswered messages begins with them, unless that is too long ago
        if sink.at().time_ns.saturating_sub(sink.marked().time_ns) > HELD_BEHIND_NS.get() {
            sink.unmark();
        }
        let Some((method, answer)) = request(kind) else {
            return Role::Prelude;
        };
        let key = self.next_key;
        self.next_key += 1;
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, (key, answer));
        let target = match answer {
            Answer::Created | Answer::Result => text::name(argument(head)),
            _ => "".into(),
        };
        let kind = match answer {
            Answer::Wake => Kind::LongPoll,
            _ => Kind::Request,
        };
        sink.exchange(key).request(kind, method, &target);
        Role::Last(key)
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, kind: u32, head: &[u8]) -> Role {
        if let types::WORK_STATUS
        | types::WORK_COMPLETE
        | types::WORK_FAIL
        | types::WORK_EXCEPTION
        | types::WORK_DATA
        | types::WORK_WARNING = kind
        {
            return self.read_job_message(sink, kind, head);
        }
        let index = match kind {
            types::ERROR => (!self.waiting.is_empty()).then_some(0),
            _ => self.waiting.iter().position(|(_, answer)| answer.is_type(kind)),
        };
        let Some((key, answer)) = index.and_then(|index| self.waiting.remove(index)) else {
            return Role::Ignored;
        };
        if kind == types::JOB_CREATED && answer == Answer::Result {
            push_dropping_oldest(&mut self.jobs, MAX_WAITING, (argument(head).into(), key));
            return Role::Interim(key);
        }
        let error = text::name(argument(head));
        let text = match kind {
            types::ERROR => error.as_str(),
            types::NO_JOB => "NO_JOB",
            _ => "ok",
        };
        begin_answer(sink, key, text, kind == types::ERROR)
    }

    /// Reads a message about a job: its status, a part of its result, or the result.
    fn read_job_message(&mut self, sink: &mut Sink<'_, impl Listener>, kind: u32, head: &[u8]) -> Role {
        let handle = argument(head);
        let Some(index) = self.jobs.iter().position(|(job, _)| **job == *handle) else {
            return Role::Ignored;
        };
        if let types::WORK_COMPLETE | types::WORK_FAIL = kind
            && let Some((_, key)) = self.jobs.remove(index)
        {
            return match kind {
                types::WORK_FAIL => begin_answer(sink, key, "WORK_FAIL", true),
                _ => begin_answer(sink, key, "ok", false),
            };
        }
        let key = self.jobs.get(index).map_or(0, |(_, key)| *key);
        // WORK_STATUS is not part of the result
        if kind == types::WORK_STATUS {
            return Role::Interim(key);
        }
        sink.exchange(key).begin_answer();
        Role::Part(key)
    }
}

fn begin_answer(sink: &mut Sink<'_, impl Listener>, key: u64, text: &str, error: bool) -> Role {
    sink.exchange(key).answer(Status::word(text, error));
    Role::Last(key)
}
