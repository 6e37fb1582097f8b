//! One connection's bytes, cut into records and opened. A record that lies whole in a piece is read where it is; any
//! other is held until it is whole. Behind lost bytes it looks for the next record that opens.

use smol_str::SmolStr;

use super::cipher::{HEADER, Head};
use super::keylog::KeyLog;
use super::session::{Content, Early, Sealed, Session};
use crate::base::{At, Side};
use crate::cursor;

/// RFC 5246 6.2.3; RFC 8446 5.2 allows less.
const MAX_RECORD_BYTES: usize = (1 << 14) + 2048;
/// Early data that wait for the server's word. Servers allow 16 KiB as a rule.
const MAX_EARLY: usize = 64 << 10;
/// The tag and the content's type (RFC 8446 5.2).
const EARLY_OVERHEAD: usize = 17;

/// Receives the plaintext that programs sent.
pub trait Taker {
    /// `bytes` of a record that `begun` brought the first byte of, and `at` the last.
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]);

    /// So many bytes of `side` are not in the capture; with CBC suites about so many.
    fn missing(&mut self, side: Side, at: At, len: u64);
}

/// Both sides of one TLS connection. Holds at most a record a side, and early data.
#[derive(Debug, Default)]
pub struct Connection {
    session: Session,
    client: Cutter,
    server: Cutter,
    early: Vec<EarlyRecord>,
    early_bytes: usize,
}

/// What the client sent before the server's hello, and the packets of its first and last byte.
#[derive(Debug)]
struct EarlyRecord {
    begun: At,
    at: At,
    bytes: Vec<u8>,
    /// So many more behind them stayed closed, or found no room.
    closed: u64,
}

/// One side's bytes on their way to records.
#[derive(Debug, Default)]
struct Cutter {
    /// The beginning of a record; while searching, what may hold one.
    held: Vec<u8>,
    begun: At,
    lost: Lost,
}

#[derive(Debug, Default, Clone, Copy)]
enum Lost {
    #[default]
    Nothing,
    /// Bytes of a record: so many are left of it, and so long is its body.
    Inside { left: usize, body: usize },
    /// It is not known where a record begins. So many bytes lie between the last one and `held`, and this showed that
    /// they are lost.
    Somewhere { passed: u64, at: At },
}

/// What the bytes begin with.
enum Next<'a> {
    Whole(Head, &'a [u8], &'a [u8]),
    /// So many bytes it takes.
    Needs(usize),
    NotTls,
}

/// A record's header, where that is what it is: type and version are a record's, the length is allowed.
fn header(bytes: &[u8]) -> Option<(Head, usize)> {
    let head: Head = *bytes.first_chunk()?;
    let [kind, major, minor, high, low] = head;
    let len = usize::from(u16::from_be_bytes([high, low]));
    ((20..=24).contains(&kind) && major == 3 && minor <= 4 && len <= MAX_RECORD_BYTES).then_some((head, len))
}

fn next(bytes: &[u8]) -> Next<'_> {
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

    /// Both hellos were read, and there are keys for what follows.
    pub fn keyed(&self) -> bool {
        self.session.keyed()
    }

    /// Both sides have finished their handshake.
    pub fn finished(&self) -> bool {
        self.session.finished()
    }

    /// The protocol that the server chose under its keys (ALPN in TLS 1.3).
    pub fn alpn(&self) -> Option<&SmolStr> {
        self.session.alpn.as_ref()
    }

    /// The beginning of a record of `side` is held.
    pub fn holds(&self, side: Side) -> bool {
        match side {
            Side::Client => !self.client.held.is_empty() || !self.early.is_empty(),
            Side::Server => !self.server.held.is_empty(),
        }
    }

    /// Why nothing more is opened.
    pub fn sealed(&self) -> Option<Sealed> {
        self.session.sealed
    }

    /// The next bytes of `side`, which the packet `at` made readable.
    pub fn bytes(&mut self, side: Side, at: At, bytes: &[u8], log: &KeyLog, taker: &mut impl Taker) {
        let mut out = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() && self.session.sealed.is_none() {
            let cutter = self.cutter(side);
            match cutter.lost {
                Lost::Nothing => rest = self.record(side, at, rest, log, &mut out, taker),
                Lost::Inside { left, body } => {
                    let (passed, after) = cursor::split(rest, left);
                    let left = left.saturating_sub(passed.len());
                    cutter.lost = Lost::Inside { left, body };
                    rest = after;
                    self.passed(side, at, taker);
                }
                Lost::Somewhere { .. } => {
                    cutter.held.extend_from_slice(rest);
                    rest = &[];
                    self.search(side, at, log, &mut out, taker);
                }
            }
        }
        if self.session.sealed.is_some() {
            (self.client, self.server) = (Cutter::default(), Cutter::default());
            self.early = Vec::new();
        }
    }

    /// So many bytes of `side` are not in the capture.
    pub fn missing(&mut self, side: Side, at: At, len: u64, taker: &mut impl Taker) {
        if len == 0 || self.session.sealed.is_some() {
            return;
        }
        let hidden = self.session.hidden(side);
        let cutter = self.cutter(side);
        let here = usize::try_from(len).unwrap_or(usize::MAX);
        let held = std::mem::take(&mut cutter.held);
        let before = match cutter.lost {
            Lost::Inside { left, body } if here <= left => {
                cutter.lost = Lost::Inside {
                    left: left - here,
                    body,
                };
                return self.passed(side, at, taker);
            }
            Lost::Inside { left, body } => (HEADER + body - left.min(body)) as u64,
            Lost::Somewhere { passed, .. } => passed.saturating_add(held.len() as u64),
            Lost::Nothing => match header(&held) {
                Some((_, body)) if hidden && held.len() + here <= HEADER + body => {
                    let left = HEADER + body - held.len() - here;
                    cutter.lost = Lost::Inside { left, body };
                    return self.passed(side, at, taker);
                }
                _ => held.len() as u64,
            },
        };
        cutter.lost = Lost::Somewhere {
            passed: before.saturating_add(len),
            at,
        };
        self.session.lose_some(side);
    }

    /// Bytes of a damaged record went by: was it the last of them?
    fn passed(&mut self, side: Side, at: At, taker: &mut impl Taker) {
        if let Lost::Inside { left: 0, body } = self.cutter(side).lost {
            self.cutter(side).lost = Lost::Nothing;
            match self.session.lose_one(side, body) {
                0 => {}
                len => taker.missing(side, at, len as u64),
            }
        }
    }

    /// Reads at most one record. Gives what is left.
    fn record<'a>(
        &mut self,
        side: Side,
        at: At,
        bytes: &'a [u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
        taker: &mut impl Taker,
    ) -> &'a [u8] {
        let cutter = self.cutter(side);
        if cutter.held.is_empty() {
            cutter.begun = at;
            match next(bytes) {
                Next::Whole(head, body, rest) => {
                    self.open(side, at, &head, body, log, out, taker);
                    return rest;
                }
                Next::Needs(_) => cutter.held.extend_from_slice(bytes),
                Next::NotTls => self.session.sealed = Some(Sealed::NotTls),
            }
            return &[];
        }
        let needs = match next(&cutter.held) {
            Next::Needs(needs) => needs,
            _ => 0,
        };
        let (here, rest) = cursor::split(bytes, needs.saturating_sub(cutter.held.len()));
        cutter.held.extend_from_slice(here);
        if cutter.held.len() < needs {
            return rest;
        }
        let held = std::mem::take(&mut cutter.held);
        match next(&held) {
            Next::Whole(head, body, _) => self.open(side, at, &head, body, log, out, taker),
            Next::Needs(_) => self.cutter(side).held = held,
            Next::NotTls => self.session.sealed = Some(Sealed::NotTls),
        }
        rest
    }

    #[allow(clippy::too_many_arguments)] // what a record is, and where it goes
    fn open(
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
        if content == Content::Closed && self.session.sealed.is_none() {
            match self.session.lose_one(side, body.len()) {
                0 => {}
                len => taker.missing(side, at, len as u64),
            }
        }
        self.deliver(content, side, at, body.len(), out, taker);
    }

    /// Gives what a record held to whom it is for.
    fn deliver(
        &mut self,
        content: Content,
        side: Side,
        at: At,
        body: usize,
        out: &[u8],
        taker: &mut impl Taker,
    ) {
        let begun = self.cutter(side).begun;
        match content {
            Content::Plaintext if !out.is_empty() => {
                self.decide_early(taker);
                taker.plain(side, begun, at, out);
            }
            Content::EarlyPlaintext | Content::ClosedEarly => {
                let (bytes, closed) = match content {
                    Content::EarlyPlaintext => (out.to_vec(), 0),
                    _ => (Vec::new(), body.saturating_sub(EARLY_OVERHEAD) as u64),
                };
                self.early_bytes = self.early_bytes.saturating_add(bytes.len().max(1));
                let early = EarlyRecord {
                    begun,
                    at,
                    bytes,
                    closed,
                };
                match self.early.last_mut().filter(|_| self.early_bytes > MAX_EARLY) {
                    Some(last) => last.closed += early.closed + early.bytes.len() as u64,
                    None => self.early.push(early),
                }
                self.decide_early(taker);
            }
            _ => self.decide_early(taker),
        }
    }

    /// Early data count, or not.
    fn decide_early(&mut self, taker: &mut impl Taker) {
        if self.early.is_empty() || self.session.early == Early::Open {
            return;
        }
        for early in std::mem::take(&mut self.early) {
            if self.session.early == Early::Accepted {
                if !early.bytes.is_empty() {
                    taker.plain(Side::Client, early.begun, early.at, &early.bytes);
                }
                if early.closed > 0 {
                    taker.missing(Side::Client, early.at, early.closed);
                }
            }
        }
    }

    /// Looks for a record that opens in what came behind lost bytes. Only such a one is believed.
    fn search(&mut self, side: Side, at: At, log: &KeyLog, out: &mut Vec<u8>, taker: &mut impl Taker) {
        let held = std::mem::take(&mut self.cutter(side).held);
        let mut from = 0;
        while !self.session.half(side).hopeless() {
            let left = cursor::from(&held, from);
            let Some(found) = left.iter().position(|byte| (20..=24).contains(byte)) else {
                from = held.len();
                break;
            };
            from += found;
            let left = cursor::from(&held, from);
            match next(left) {
                Next::NotTls => from += 1,
                Next::Needs(_) => break,
                Next::Whole(head, body, rest) => {
                    let Some((content, lost)) = self.session.find(side, &head, body, log, out) else {
                        from += 1;
                        continue;
                    };
                    self.found(side, at, from, lost, taker);
                    self.deliver(content, side, at, body.len(), out, taker);
                    return self.bytes(side, at, rest, log, taker);
                }
            }
        }
        let kept = cursor::from(&held, from).to_vec();
        let cutter = self.cutter(side);
        cutter.held = kept;
        if let Lost::Somewhere { passed, .. } = &mut cutter.lost {
            *passed = passed.saturating_add(from as u64);
        }
        if self.session.half(side).hopeless() {
            self.session.sealed = Some(Sealed::Lost);
        }
    }

    /// The record behind the lost bytes begins `from` bytes into what was held, and `lost` ones were before it.
    fn found(&mut self, side: Side, at: At, from: usize, lost: Option<u64>, taker: &mut impl Taker) {
        let overhead = self.session.overhead(side).unwrap_or_default() as u64;
        let cutter = self.cutter(side);
        cutter.begun = at;
        if let Lost::Somewhere { passed, at } = std::mem::take(&mut cutter.lost)
            && let Some(lost) = lost
        {
            let content = (passed.saturating_add(from as u64)).saturating_sub(lost.saturating_mul(overhead));
            if content > 0 {
                taker.missing(side, at, content);
            }
        }
    }

    fn cutter(&mut self, side: Side) -> &mut Cutter {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}
