//! memcached's binary protocol (protocol-binary.txt of memcached): a head of 24 bytes before each request and answer.
//! Answers come in order; those of quiet commands (`GETQ`) only where there is something to say, and repeat the number
//! that the client chose.

use smol_str::{SmolStr, format_smolstr};

use super::super::framed::{self, Head, Length, Role};
use super::super::pending_queue::PendingQueue;
use super::super::sink::MessageSink;
use super::super::{Kind, Listener, RequestName, Side, Status, text};
use crate::cursor;

const ASKS: u8 = 0x80;
const ANSWERS: u8 = 0x81;
const HEADER: u64 = 24;
/// A value has at most 1 GiB (`-I`), and a key 250 bytes.
const MAX_BODY: u64 = (1 << 30) + 1024;
const MAX_KEY: usize = 250;
const MAX_EXTRAS: u8 = 20;

#[derive(Debug, Default)]
pub(in crate::messages) struct WireFormat {
    waiting: PendingQueue<Waits>,
}

#[derive(Debug)]
struct Waits {
    opcode: u8,
    opaque: u32,
}

/// The command, and whether it is quiet.
fn word(opcode: u8) -> Option<(&'static str, bool)> {
    Some(match opcode {
        0x00 => ("get", false),
        0x01 => ("set", false),
        0x02 => ("add", false),
        0x03 => ("replace", false),
        0x04 => ("delete", false),
        0x05 => ("incr", false),
        0x06 => ("decr", false),
        0x07 => ("quit", false),
        0x08 => ("flush_all", false),
        0x09 => ("get", true),
        0x0a => ("noop", false),
        0x0b => ("version", false),
        0x0c => ("get", false),
        0x0d => ("get", true),
        0x0e => ("append", false),
        0x0f => ("prepend", false),
        0x10 => ("stats", false),
        0x11 => ("set", true),
        0x12 => ("add", true),
        0x13 => ("replace", true),
        0x14 => ("delete", true),
        0x15 => ("incr", true),
        0x16 => ("decr", true),
        0x17 => ("quit", true),
        0x18 => ("flush_all", true),
        0x19 => ("append", true),
        0x1a => ("prepend", true),
        0x1b => ("verbosity", false),
        0x1c => ("touch", false),
        0x1d => ("gat", false),
        0x1e => ("gat", true),
        0x20 => ("sasl list", false),
        0x21 => ("sasl auth", false),
        0x22 => ("sasl step", false),
        0x23 => ("gat", false),
        0x24 => ("gat", true),
        _ => return None,
    })
}

const STAT: u8 = 0x10;
const SASL: std::ops::RangeInclusive<u8> = 0x20..=0x22;

/// What a code of an answer is called in the text protocol, else its number.
fn status(code: u16) -> SmolStr {
    SmolStr::new_static(match code {
        0 => "ok",
        1 => "NOT_FOUND",
        2 => "EXISTS",
        3 => "E2BIG",
        4 => "EINVAL",
        5 => "NOT_STORED",
        6 => "DELTA_BADVAL",
        0x20 => "AUTH_ERROR",
        0x21 => "AUTH_CONTINUE",
        0x81 => "UNKNOWN_COMMAND",
        0x82 => "ENOMEM",
        _ => return format_smolstr!("0x{code:x}"),
    })
}

/// What a program does about these is no repair of a failure: nothing was there, or it was there already.
fn is_error(code: u16) -> bool {
    !matches!(code, 0 | 1 | 2 | 5 | 0x21)
}

impl framed::WireFormat for WireFormat {
    /// Extras and key behind the header.
    const MAX_HEAD: usize = HEADER as usize + MAX_EXTRAS as usize + MAX_KEY;
    const MIN_PROOF: usize = 24;
    const LOST_REASON: &'static str = "not a message of memcached";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let magic = if side == Side::Client { ASKS } else { ANSWERS };
        if first.first().is_some_and(|byte| *byte != magic) {
            return Length::Wrong;
        }
        match cursor::be32_at(first, 8) {
            None => Length::More,
            Some(body) if u64::from(body) <= MAX_BODY => Length::Is(u64::from(body) + HEADER),
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let known = cursor::u8_at(head.bytes, 1).is_none_or(|opcode| word(opcode).is_some());
        let key = cursor::be16_at(head.bytes, 2).unwrap_or(0);
        let extras = cursor::u8_at(head.bytes, 4).unwrap_or(0);
        let kind = cursor::u8_at(head.bytes, 5).unwrap_or(0);
        // a client names the virtual bucket here: only Couchbase has any
        let code = cursor::be16_at(head.bytes, 6).filter(|_| side == Side::Server);
        let least = HEADER + u64::from(key) + u64::from(extras);
        known
            && kind == 0
            && usize::from(key) <= MAX_KEY
            && extras <= MAX_EXTRAS
            && code.unwrap_or(0) < 0x100
            && head.len >= least
    }

    fn has_magic(_side: Side) -> bool {
        false
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.asks(sink, head.bytes),
            Side::Server => self.answers(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear(); // which answer is whose is not known
    }
}

impl WireFormat {
    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let opcode = cursor::u8_at(head, 1)?;
        let opaque = cursor::be32_at(head, 12)?;
        let (method, quiet) = word(opcode).unwrap_or(("?", false));
        // who stores quietly does not want to know
        if quiet && !matches!(method, "get" | "gat") {
            return Some(Role::Ignored);
        }
        let (key, extras) = (cursor::be16_at(head, 2)?, cursor::u8_at(head, 4)?);
        let from = HEADER as usize + usize::from(extras);
        let named = head.get(from..from + usize::from(key)).unwrap_or_default();
        let number = self.waiting.push(Waits { opcode, opaque })?;
        let mut exchange = sink.exchange(number);
        let is_login = SASL.contains(&opcode);
        exchange.begin_request(if is_login { Kind::Setup } else { Kind::Request });
        exchange.name(RequestName {
            method,
            target: &text::name(named),
            host: "",
        });
        Some(Role::Last(number))
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let (opcode, code) = (cursor::u8_at(head, 1)?, cursor::be16_at(head, 6)?);
        let opaque = cursor::be32_at(head, 12)?;
        let number = loop {
            let (number, waits) = self.waiting.first()?;
            if (waits.opcode, waits.opaque) == (opcode, opaque) {
                break number;
            }
            let quiet = word(waits.opcode).is_some_and(|(_, quiet)| quiet);
            if !quiet {
                // of a command that is left out, or whose request is not in the capture
                return Some(Role::Ignored);
            }
            // nothing was found
            let mut exchange = sink.exchange(number);
            exchange.begin_answer();
            tell(&mut exchange, 1);
            exchange.end_answer();
            self.waiting.pop();
        };
        sink.exchange(number).begin_answer();
        let goes_on = opcode == STAT && code == 0 && cursor::be16_at(head, 2)? > 0;
        if goes_on {
            return Some(Role::Part(number));
        }
        if word(opcode).is_some_and(|(method, _)| method == "version") && code == 0 {
            let version = head.get(HEADER as usize..).unwrap_or_default();
            sink.software(format!("memcached {}", text::name_up_to(version, 64, false)).into());
        }
        tell(&mut sink.exchange(number), code);
        self.waiting.pop();
        Some(Role::Last(number))
    }
}

fn tell(exchange: &mut super::super::sink::ExchangeSink<'_, '_, impl Listener>, code: u16) {
    exchange.status(Status {
        code: Some(code),
        text: Some(&status(code)),
        error: is_error(code),
    });
}
