//! Beanstalkd's work queue (beanstalkd's doc/protocol.txt). Messages are lines, some with a job after them whose
//! length is the line's last word. One exchange is a command and the next response: responses come in the order of the
//! commands. `reserve` is a long poll, as it may wait for a job. Jobs are not read.

use std::collections::VecDeque;

use super::framed::{self, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, text};
use smol_str::SmolStr;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Beanstalk,
    sniff: framed::sniff::<Beanstalk>,
    reader: |_| AnyReader::Beanstalk(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Beanstalk>;

/// Upper bound on a job: the largest that beanstalkd can be configured for; its default is 64 KiB.
const MAX_JOB: u64 = 1 << 30;
/// Upper bound on commands that wait for their responses; further ones are only counted until all of these are
/// answered.
const MAX_WAITING: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Beanstalk {
    /// Keys of the commands without a response, oldest first.
    waiting: VecDeque<u64>,
    /// Commands without a key that follow the last of `waiting`. Their responses are ignored.
    unlisted: u64,
    next_key: u64,
}

/// Commands, and the number of their arguments.
#[rustfmt::skip]
const COMMANDS: [(&str, usize); 25] = [
    ("put", 4), ("use", 1), ("reserve", 0), ("reserve-with-timeout", 1), ("reserve-job", 1), ("delete", 1),
    ("release", 3), ("bury", 2), ("touch", 1), ("watch", 1), ("ignore", 1), ("peek", 1), ("peek-ready", 0),
    ("peek-delayed", 0), ("peek-buried", 0), ("kick", 1), ("kick-job", 1), ("stats-job", 1),
    ("stats-tube", 1), ("stats", 0), ("list-tubes", 0), ("list-tube-used", 0), ("list-tubes-watched", 0),
    ("pause-tube", 2), ("quit", 0),
];

/// Responses, and the minimum and maximum number of words after them.
#[rustfmt::skip]
const RESPONSES: [(&str, usize, usize); 23] = [
    ("INSERTED", 1, 1), ("BURIED", 0, 1), ("EXPECTED_CRLF", 0, 0), ("JOB_TOO_BIG", 0, 0), ("DRAINING", 0, 0),
    ("USING", 1, 1), ("RESERVED", 2, 2), ("DEADLINE_SOON", 0, 0), ("TIMED_OUT", 0, 0), ("DELETED", 0, 0),
    ("NOT_FOUND", 0, 0), ("RELEASED", 0, 0), ("TOUCHED", 0, 0), ("WATCHING", 1, 1), ("NOT_IGNORED", 0, 0),
    ("FOUND", 2, 2), ("KICKED", 0, 1), ("OK", 1, 1), ("PAUSED", 0, 0), ("OUT_OF_MEMORY", 0, 0),
    ("INTERNAL_ERROR", 0, 0), ("BAD_FORMAT", 0, 0), ("UNKNOWN_COMMAND", 0, usize::MAX),
];
/// Responses that mean an error.
#[rustfmt::skip]
const ERRORS: [&str; 9] = [
    "EXPECTED_CRLF", "JOB_TOO_BIG", "DRAINING", "NOT_FOUND", "NOT_IGNORED", "OUT_OF_MEMORY",
    "INTERNAL_ERROR", "BAD_FORMAT", "UNKNOWN_COMMAND",
];

/// A command or a response.
struct Line<'a> {
    word: &'static str,
    /// The words after the first.
    rest: &'a str,
    /// A job follows; the last word is its length.
    has_job: bool,
    /// Bytes of the line, with CR LF.
    len: u64,
}

impl<'a> Line<'a> {
    /// Reads a whole line. None if this side does not send it.
    fn read(side: Side, head: &'a [u8]) -> Option<Line<'a>> {
        let end = head.iter().position(|byte| *byte == b'\n')?;
        let text = std::str::from_utf8(head.get(..end)?.strip_suffix(b"\r")?).ok()?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let count = rest.split(' ').filter(|word| !word.is_empty()).count();
        let word = match side {
            Side::Client => {
                COMMANDS
                    .iter()
                    .find(|command| command.0 == word && command.1 == count)?
                    .0
            }
            Side::Server => {
                let fits = |response: &&(&'static str, usize, usize)| {
                    response.0 == word && (response.1..=response.2).contains(&count)
                };
                RESPONSES.iter().find(fits)?.0
            }
        };
        Some(Line {
            word,
            rest,
            has_job: matches!(word, "put" | "RESERVED" | "FOUND" | "OK"),
            len: end as u64 + 1,
        })
    }
}

/// Whether a line of this side may begin with these bytes.
fn begins(side: Side, head: &[u8]) -> bool {
    let fits = |word: &str| {
        let line = word.bytes().map(Some).chain([None]);
        head.iter().zip(line).all(|(byte, want)| match want {
            Some(want) => *byte == want,
            None => matches!(byte, b' ' | b'\r'),
        })
    };
    match side {
        Side::Client => COMMANDS.iter().any(|command| fits(command.0)),
        Side::Server => RESPONSES.iter().any(|response| fits(response.0)),
    }
}

impl WireFormat for Beanstalk {
    // the longest line: a tube's name has at most 200 bytes
    const MAX_HEAD: usize = 272;
    const MIN_PROOF: usize = 4;
    const LOST_REASON: &'static str = "not a line of beanstalkd";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        if !begins(side, first) {
            return Length::Wrong;
        }
        let Some(line) = Line::read(side, first) else {
            return if first.contains(&b'\n') {
                Length::Wrong
            } else {
                Length::More
            };
        };
        if !line.has_job {
            return Length::Is(line.len);
        }
        match line
            .rest
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<u64>().ok())
        {
            Some(size) if size <= MAX_JOB => Length::Is(line.len + size + 2),
            _ => Length::Wrong,
        }
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let side = sink.side();
        let Some(line) = Line::read(side, head.bytes) else {
            return Role::Ignored;
        };
        if side == Side::Client {
            // the server closes without a response
            return if line.word == "quit" {
                Role::Ignored
            } else {
                self.read_request(sink, &line)
            };
        }
        let Some(key) = self.waiting.pop_front() else {
            self.unlisted = self.unlisted.saturating_sub(1);
            return Role::Ignored;
        };
        sink.exchange(key)
            .answer(Status::word(line.word, ERRORS.contains(&line.word)));
        Role::Last(key)
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear();
        self.unlisted = 0;
    }
}

impl Beanstalk {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, line: &Line<'_>) -> Role {
        if self.unlisted > 0 || self.waiting.len() >= MAX_WAITING {
            self.unlisted += 1;
            return Role::Ignored;
        }
        let key = self.next_key;
        self.next_key += 1;
        self.waiting.push_back(key);
        let tube = matches!(
            line.word,
            "use" | "watch" | "ignore" | "stats-tube" | "pause-tube"
        );
        let name = line.rest.split(' ').next().filter(|_| tube);
        let target = name.map_or(SmolStr::default(), |name| text::name(name.as_bytes()));
        let waits = matches!(line.word, "reserve" | "reserve-with-timeout");
        let kind = if waits { Kind::LongPoll } else { Kind::Request };
        sink.exchange(key).request(kind, line.word, &target);
        Role::Last(key)
    }
}
