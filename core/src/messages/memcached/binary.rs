//! memcached's binary protocol (memcached's protocol-binary.txt). Each message begins with a 24-byte header, which has
//! the length of its body. One exchange is a command and its response; responses come in the order of the commands. A
//! quiet get (`GETQ`) is answered only if there is a value; opcode and opaque show which command a response answers.

use smol_str::{SmolStr, format_smolstr};

use super::super::framed::{self, Head, Length, Role};
use super::super::pending_queue::PendingQueue;
use super::super::sink::Sink;
use super::super::{Kind, Listener, Side, Status, text};
use crate::cursor;

/// First byte of a request, and of a response.
const REQUEST_MAGIC: u8 = 0x80;
const RESPONSE_MAGIC: u8 = 0x81;
const HEADER: u64 = 24;
/// Upper bound on a body: a value of 1 GiB (the highest `-I`), with key and extras.
const MAX_BODY: u64 = (1 << 30) + 1024;
const MAX_KEY: usize = 250;
const MAX_EXTRAS: u8 = 20;

#[derive(Debug, Default)]
pub(in crate::messages) struct WireFormat {
    waiting: PendingQueue<Pending>,
}

/// A command without a complete response.
#[derive(Debug)]
struct Pending {
    opcode: u8,
    opaque: u32,
}

const STAT: u8 = 0x10;
const SASL_LIST: u8 = 0x20;
const SASL_AUTH: u8 = 0x21;
const SASL_STEP: u8 = 0x22;

/// Returns a command's name, and whether it is quiet.
fn command(opcode: u8) -> Option<(&'static str, bool)> {
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
        STAT => ("stats", false),
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
        SASL_LIST => ("sasl list", false),
        SASL_AUTH => ("sasl auth", false),
        SASL_STEP => ("sasl step", false),
        0x23 => ("gat", false),
        0x24 => ("gat", true),
        _ => return None,
    })
}

/// Statuses of responses that are not errors.
mod status {
    pub const OK: u16 = 0;
    pub const NOT_FOUND: u16 = 1;
    pub const EXISTS: u16 = 2;
    pub const NOT_STORED: u16 = 5;
    pub const AUTH_CONTINUE: u16 = 0x21;
}

/// Returns a status' name in the text protocol, else its number.
fn status_text(code: u16) -> SmolStr {
    SmolStr::new_static(match code {
        status::OK => "ok",
        status::NOT_FOUND => "NOT_FOUND",
        status::EXISTS => "EXISTS",
        3 => "E2BIG",
        4 => "EINVAL",
        status::NOT_STORED => "NOT_STORED",
        6 => "DELTA_BADVAL",
        0x20 => "AUTH_ERROR",
        status::AUTH_CONTINUE => "AUTH_CONTINUE",
        0x81 => "UNKNOWN_COMMAND",
        0x82 => "ENOMEM",
        _ => return format_smolstr!("0x{code:x}"),
    })
}

/// Whether a status is an error. A missing key and a present one are ordinary results.
fn is_error(code: u16) -> bool {
    !matches!(
        code,
        status::OK | status::NOT_FOUND | status::EXISTS | status::NOT_STORED | status::AUTH_CONTINUE
    )
}

impl framed::WireFormat for WireFormat {
    // header, extras and key
    const MAX_HEAD: usize = HEADER as usize + MAX_EXTRAS as usize + MAX_KEY;
    const MIN_PROOF: usize = 24;
    const LOST_REASON: &'static str = "not a message of memcached";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let magic = if side == Side::Client {
            REQUEST_MAGIC
        } else {
            RESPONSE_MAGIC
        };
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
        let is_command = cursor::u8_at(head.bytes, 1).is_none_or(|opcode| command(opcode).is_some());
        let key = cursor::be16_at(head.bytes, 2).unwrap_or(0);
        let extras = cursor::u8_at(head.bytes, 4).unwrap_or(0);
        let kind = cursor::u8_at(head.bytes, 5).unwrap_or(0);
        // a status; in a request of Couchbase a virtual bucket, of any value
        let code = cursor::be16_at(head.bytes, 6).filter(|_| side == Side::Server);
        let min_len = HEADER + u64::from(key) + u64::from(extras);
        is_command
            && kind == 0
            && usize::from(key) <= MAX_KEY
            && extras <= MAX_EXTRAS
            && code.unwrap_or(0) < 0x100
            && head.len >= min_len
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        match sink.side() {
            Side::Client => self.read_request(sink, head.bytes),
            Side::Server => self.read_response(sink, head.bytes),
        }
        .unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {
        self.waiting.clear(); // responses cannot be paired by order any more
    }
}

impl WireFormat {
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let opcode = cursor::u8_at(head, 1)?;
        let opaque = cursor::be32_at(head, 12)?;
        let (method, quiet) = command(opcode).unwrap_or(("?", false));
        // a quiet set is answered only if it fails, and the client does not wait
        if quiet && !matches!(method, "get" | "gat") {
            return Some(Role::Ignored);
        }
        let (key, extras) = (cursor::be16_at(head, 2)?, cursor::u8_at(head, 4)?);
        let from = HEADER as usize + usize::from(extras);
        let target = head.get(from..from + usize::from(key)).unwrap_or_default();
        let number = self.waiting.push(Pending { opcode, opaque })?;
        let is_login = (SASL_LIST..=SASL_STEP).contains(&opcode);
        let kind = if is_login { Kind::Setup } else { Kind::Request };
        sink.exchange(number).request(kind, method, &text::name(target));
        Some(Role::Last(number))
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, head: &[u8]) -> Option<Role> {
        let (opcode, code) = (cursor::u8_at(head, 1)?, cursor::be16_at(head, 6)?);
        let opaque = cursor::be32_at(head, 12)?;
        let number = loop {
            let (number, pending) = self.waiting.first()?;
            if (pending.opcode, pending.opaque) == (opcode, opaque) {
                break number;
            }
            if !command(pending.opcode).is_some_and(|(_, quiet)| quiet) {
                // answers a quiet set, or a request that is not in the capture
                return Some(Role::Ignored);
            }
            // the quiet get before found nothing
            let mut exchange = sink.exchange(number);
            exchange.begin_answer();
            report_status(&mut exchange, status::NOT_FOUND);
            exchange.end_answer();
            self.waiting.pop();
        };
        sink.exchange(number).begin_answer();
        if opcode == STAT && code == status::OK && cursor::be16_at(head, 2)? > 0 {
            return Some(Role::Part(number)); // one of several statistics
        }
        if command(opcode).is_some_and(|(method, _)| method == "version") && code == status::OK {
            let version = head.get(HEADER as usize..).unwrap_or_default();
            sink.software(format!("memcached {}", text::name_up_to(version, 64, false)).into());
        }
        report_status(&mut sink.exchange(number), code);
        self.waiting.pop();
        Some(Role::Last(number))
    }
}

fn report_status(exchange: &mut super::super::sink::ExchangeSink<'_, '_, impl Listener>, code: u16) {
    exchange.status(Status::new(Some(code), Some(&status_text(code)), is_error(code)));
}
