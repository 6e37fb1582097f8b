//! Splits the bytes of a connection into records and decrypts them. A record that is whole in one piece is read in
//! place; any other is buffered until it is whole. After lost bytes, searches for the next record that decrypts.

use smol_str::SmolStr;

use super::cipher::{HEADER, Head};
use super::keylog::KeyLog;
use super::session::{Content, Early, Sealed, Session};
use crate::base::{At, Side};
use crate::cursor;

/// Upper bound on a record's body (RFC 5246 6.2.3; RFC 8446 5.2 allows less).
const MAX_RECORD_BYTES: usize = (1 << 14) + 2048;
/// Upper bound on buffered early data, until the server accepts or rejects it. Servers commonly allow 16 KiB.
const MAX_EARLY_BYTES: usize = 64 << 10;
/// Bytes of an early data record that are not content: the tag and the content type (RFC 8446 5.2).
const EARLY_OVERHEAD: usize = 17;

/// Receives the plaintext of application data.
pub trait Taker {
    /// Takes the content of a record whose first byte was in packet `begun` and whose last byte was in `at`.
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]);

    /// Takes notice that `len` bytes of content are missing. With CBC suites `len` is an estimate.
    fn missing(&mut self, side: Side, at: At, len: u64);
}

/// Both directions of a TLS connection. Buffers at most one record per direction, and early data.
#[derive(Debug, Default)]
pub struct Connection {
    session: Session,
    client: Direction,
    server: Direction,
    early: Vec<EarlyRecord>,
    early_bytes: usize,
}

/// Early data of the client that the server has not yet accepted, and the packets of its first and last byte.
#[derive(Debug)]
struct EarlyRecord {
    begun: At,
    at: At,
    bytes: Vec<u8>,
    /// Number of bytes after these that were not decrypted, or did not fit the buffer.
    missing: u64,
}

/// The buffer of one direction.
#[derive(Debug, Default)]
struct Direction {
    /// The beginning of a record. While searching: bytes that may contain one.
    buffer: Vec<u8>,
    /// The packet of the record's first byte.
    begun: At,
    lost: Lost,
}

/// Lost bytes of one direction.
#[derive(Debug, Default, Clone, Copy)]
enum Lost {
    #[default]
    Nothing,
    /// Bytes of one record, whose end is known: `remaining` bytes of it are still to come, `body` is the length of its
    /// body.
    Inside { remaining: usize, body: usize },
    /// It is unknown where the next record begins. `passed` bytes lie between the last record and `buffer`. Packet `at`
    /// was the one that showed the loss.
    Somewhere { passed: u64, at: At },
}

/// The beginning of the bytes.
enum Next<'a> {
    /// A whole record: header, body, and the bytes after it.
    Whole(Head, &'a [u8], &'a [u8]),
    /// A part of a record, which needs this many bytes.
    Needs(usize),
    NotTls,
}

/// Returns a record header and the body's length, if type, version and length are valid.
fn header(bytes: &[u8]) -> Option<(Head, usize)> {
    let head: Head = *bytes.first_chunk()?;
    let [kind, major, minor, high, low] = head;
    let len = usize::from(u16::from_be_bytes([high, low]));
    ((20..=24).contains(&kind) && major == 3 && minor <= 4 && len <= MAX_RECORD_BYTES).then_some((head, len))
}

/// Reads the record at the beginning of `bytes`.
fn next_record(bytes: &[u8]) -> Next<'_> {
    if bytes.len() < HEADER {
        return Next::Needs(HEADER);
    }
    let Some((head, len)) = header(bytes) else {
        return Next::NotTls;
    };
    match cursor::from(bytes, HEADER).split_at_checked(len) {
        Some((body, rest)) => Next::Whole(head, body, rest),
        None => Next::Needs(HEADER + len),
    }
}

impl Connection {
    pub fn new() -> Self {
        Connection::default()
    }

    /// Whether both hellos were read and the keys are known.
    pub fn keyed(&self) -> bool {
        self.session.keyed()
    }

    /// Whether both sides have finished the handshake.
    pub fn finished(&self) -> bool {
        self.session.finished()
    }

    /// The protocol that the server chose in its encrypted extensions (ALPN in TLS 1.3).
    pub fn alpn(&self) -> Option<&SmolStr> {
        self.session.alpn.as_ref()
    }

    /// Whether data of `side` is buffered.
    pub fn holds(&self, side: Side) -> bool {
        match side {
            Side::Client => !self.client.buffer.is_empty() || !self.early.is_empty(),
            Side::Server => !self.server.buffer.is_empty(),
        }
    }

    /// The reason why nothing more is decrypted, if so.
    pub fn sealed(&self) -> Option<Sealed> {
        self.session.sealed
    }

    /// Takes the next bytes of `side`. `at` is the packet that completed them.
    pub fn bytes(&mut self, side: Side, at: At, bytes: &[u8], log: &KeyLog, taker: &mut impl Taker) {
        let mut out = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() && self.session.sealed.is_none() {
            let direction = self.direction(side);
            match direction.lost {
                Lost::Nothing => rest = self.read_record(side, at, rest, log, &mut out, taker),
                Lost::Inside { remaining, body } => {
                    let (passed, after) = cursor::split(rest, remaining);
                    let remaining = remaining.saturating_sub(passed.len());
                    direction.lost = Lost::Inside { remaining, body };
                    rest = after;
                    self.end_damaged(side, at, taker);
                }
                Lost::Somewhere { .. } => {
                    direction.buffer.extend_from_slice(rest);
                    rest = &[];
                    self.search(side, at, log, &mut out, taker);
                }
            }
        }
        if self.session.sealed.is_some() {
            (self.client, self.server) = (Direction::default(), Direction::default());
            self.early = Vec::new();
        }
    }

    /// Takes notice that the next `len` bytes of `side` are not in the capture.
    pub fn missing(&mut self, side: Side, at: At, len: u64, taker: &mut impl Taker) {
        if len == 0 || self.session.sealed.is_some() {
            return;
        }
        let is_encrypted = self.session.is_encrypted(side);
        let direction = self.direction(side);
        let lost = usize::try_from(len).unwrap_or(usize::MAX);
        let held = std::mem::take(&mut direction.buffer);
        let before = match direction.lost {
            Lost::Inside { remaining, body } if lost <= remaining => {
                direction.lost = Lost::Inside {
                    remaining: remaining - lost,
                    body,
                };
                return self.end_damaged(side, at, taker);
            }
            Lost::Inside { remaining, body } => (HEADER + body - remaining.min(body)) as u64,
            Lost::Somewhere { passed, .. } => passed.saturating_add(held.len() as u64),
            Lost::Nothing => match header(&held) {
                Some((_, body)) if is_encrypted && held.len() + lost <= HEADER + body => {
                    let remaining = HEADER + body - held.len() - lost;
                    direction.lost = Lost::Inside { remaining, body };
                    return self.end_damaged(side, at, taker);
                }
                _ => held.len() as u64,
            },
        };
        direction.lost = Lost::Somewhere {
            passed: before.saturating_add(len),
            at,
        };
        self.session.lose_some(side);
    }

    /// Ends a record with lost bytes once all of its bytes have passed.
    fn end_damaged(&mut self, side: Side, at: At, taker: &mut impl Taker) {
        if let Lost::Inside { remaining: 0, body } = self.direction(side).lost {
            self.direction(side).lost = Lost::Nothing;
            match self.session.lose_one(side, body) {
                0 => {}
                len => taker.missing(side, at, len as u64),
            }
        }
    }

    /// Reads at most one record. Returns the bytes after it.
    fn read_record<'a>(
        &mut self,
        side: Side,
        at: At,
        bytes: &'a [u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
        taker: &mut impl Taker,
    ) -> &'a [u8] {
        let direction = self.direction(side);
        if direction.buffer.is_empty() {
            direction.begun = at;
            match next_record(bytes) {
                Next::Whole(head, body, rest) => {
                    self.decrypt(side, at, &head, body, log, out, taker);
                    return rest;
                }
                Next::Needs(_) => direction.buffer.extend_from_slice(bytes),
                Next::NotTls => self.session.sealed = Some(Sealed::NotTls),
            }
            return &[];
        }
        let needs = match next_record(&direction.buffer) {
            Next::Needs(needs) => needs,
            _ => 0,
        };
        let (beginning, rest) = cursor::split(bytes, needs.saturating_sub(direction.buffer.len()));
        direction.buffer.extend_from_slice(beginning);
        if direction.buffer.len() < needs {
            return rest;
        }
        let held = std::mem::take(&mut direction.buffer);
        match next_record(&held) {
            Next::Whole(head, body, _) => self.decrypt(side, at, &head, body, log, out, taker),
            Next::Needs(_) => self.direction(side).buffer = held,
            Next::NotTls => self.session.sealed = Some(Sealed::NotTls),
        }
        rest
    }

    /// Decrypts a whole record and delivers its content.
    #[allow(clippy::too_many_arguments)]
    fn decrypt(
        &mut self,
        side: Side,
        at: At,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
        taker: &mut impl Taker,
    ) {
        let content = self.session.record(side, head, body, log, out);
        if content == Content::Undecrypted && self.session.sealed.is_none() {
            match self.session.lose_one(side, body.len()) {
                0 => {}
                len => taker.missing(side, at, len as u64),
            }
        }
        self.deliver(content, side, at, body.len(), out, taker);
    }

    /// Passes on the content of a record, and buffers early data.
    fn deliver(
        &mut self,
        content: Content,
        side: Side,
        at: At,
        body: usize,
        out: &[u8],
        taker: &mut impl Taker,
    ) {
        let begun = self.direction(side).begun;
        match content {
            Content::Plaintext if !out.is_empty() => {
                self.settle_early(taker);
                taker.plain(side, begun, at, out);
            }
            Content::EarlyPlaintext | Content::UndecryptedEarly => {
                let (bytes, missing) = match content {
                    Content::EarlyPlaintext => (out.to_vec(), 0),
                    _ => (Vec::new(), body.saturating_sub(EARLY_OVERHEAD) as u64),
                };
                self.early_bytes = self.early_bytes.saturating_add(bytes.len().max(1));
                let early = EarlyRecord {
                    begun,
                    at,
                    bytes,
                    missing,
                };
                match self.early.last_mut() {
                    Some(last) if self.early_bytes > MAX_EARLY_BYTES => {
                        last.missing += early.missing + early.bytes.len() as u64
                    }
                    _ => self.early.push(early),
                }
                self.settle_early(taker);
            }
            _ => self.settle_early(taker),
        }
    }

    /// Delivers or discards the early data, once the server has accepted or rejected it.
    fn settle_early(&mut self, taker: &mut impl Taker) {
        if self.early.is_empty() || self.session.early == Early::Undecided {
            return;
        }
        for early in std::mem::take(&mut self.early) {
            if self.session.early == Early::Accepted {
                if !early.bytes.is_empty() {
                    taker.plain(Side::Client, early.begun, early.at, &early.bytes);
                }
                if early.missing > 0 {
                    taker.missing(Side::Client, early.at, early.missing);
                }
            }
        }
    }

    /// Searches the bytes after a loss for a record that decrypts. A header alone does not prove a record.
    fn search(&mut self, side: Side, at: At, log: &KeyLog, out: &mut Vec<u8>, taker: &mut impl Taker) {
        let held = std::mem::take(&mut self.direction(side).buffer);
        let mut offset = 0;
        while !self.session.half(side).is_hopeless() {
            let rest_held = cursor::from(&held, offset);
            let Some(record_start) = rest_held.iter().position(|byte| (20..=24).contains(byte)) else {
                offset = held.len();
                break;
            };
            offset += record_start;
            let rest_held = cursor::from(&held, offset);
            match next_record(rest_held) {
                Next::NotTls => offset += 1,
                Next::Needs(_) => break,
                Next::Whole(head, body, rest) => {
                    let Some((content, lost)) = self.session.find(side, &head, body, log, out) else {
                        offset += 1;
                        continue;
                    };
                    self.resynchronise(side, at, offset, lost, taker);
                    self.deliver(content, side, at, body.len(), out, taker);
                    return self.bytes(side, at, rest, log, taker);
                }
            }
        }
        let kept = cursor::from(&held, offset).to_vec();
        let direction = self.direction(side);
        direction.buffer = kept;
        if let Lost::Somewhere { passed, .. } = &mut direction.lost {
            *passed = passed.saturating_add(offset as u64);
        }
        if self.session.half(side).is_hopeless() {
            self.session.sealed = Some(Sealed::Lost);
        }
    }

    /// Continues with the record found after lost bytes. It begins at `offset` in the buffer. `lost` is the number of
    /// records before it, if known; then the length of their content is reported.
    fn resynchronise(
        &mut self,
        side: Side,
        at: At,
        offset: usize,
        lost: Option<u64>,
        taker: &mut impl Taker,
    ) {
        let overhead = self.session.overhead(side).unwrap_or_default() as u64;
        let direction = self.direction(side);
        direction.begun = at;
        if let Lost::Somewhere { passed, at } = std::mem::take(&mut direction.lost)
            && let Some(lost) = lost
        {
            let content =
                (passed.saturating_add(offset as u64)).saturating_sub(lost.saturating_mul(overhead));
            if content > 0 {
                taker.missing(side, at, content);
            }
        }
    }

    fn direction(&mut self, side: Side) -> &mut Direction {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}
