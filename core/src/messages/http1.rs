//! HTTP/1.0 and HTTP/1.1 (RFC 9112): keep-alive, pipelining, every way to end a body. Reads both sides'
//! bytes, writes messages; refuses to know what a header or a body means beyond where it ends.
//!
//! Strategy: a head that lies whole in one piece is parsed where it lies; only a head that is split is
//! copied, until its blank line comes. Bodies are counted, not looked at, unless they are chunked.
//! A hole counts as bytes where the length is known; anywhere else the reader is lost, with a note.

mod broken;
mod chunked;
mod head;
mod head_cache;
mod lines;
mod recognise;
mod streamed;

use super::pieces::BodySplitter;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{BySide, Close, Listener, MessageReader, Outcome, Side, Stretch};
use super::{http2, server_software, websocket};
use crate::queue::Queue;
use chunked::{Chunked, Step};
use head::{Body, Head, MethodKind, Start, Upgrade};
pub(super) use head_cache::HeadCache;
use lines::skip_line_ends;
use recognise::{begins_inside_turn, begins_message, sniff};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Http,
    sniff: |first| sniff(first.side, first.input),
    begins_message,
    begins_inside_turn,
    reader: |memory| AnyReader::Http(memory.http()),
    ..Recognition::NEVER
};
/// Longest head: servers refuse above 8 to 64 KiB.
const MAX_HEAD: usize = 64 << 10;
/// Requests that may await their response; beyond it (one direction captured, mostly) the oldest is forgotten.
const MAX_PENDING: usize = 4096;
/// A chunk's line end and the last chunk: what ends a chunked body brings nothing of it if it is no longer.
const WITHOUT_DATA: usize = 7;
/// Heads that are searched for the server's name: whoever names itself does so at once.
const MAX_SEARCHED: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Http1 {
    sides: BySide<Half>,
    /// The requests whose response has not begun, oldest first.
    pending: Queue<MethodKind>,
    /// The client's open message was answered before its end.
    early: bool,
    /// Response heads that were searched for the server's name; `MAX_SEARCHED` once it is known.
    searched: u8,
    /// A CONNECT was granted: what follows is the tunnel's own.
    tunnels: bool,
    /// The newest answer was gRPC-Web's.
    web: bool,
    /// Who reads on, where a 101 has switched to a protocol that is known.
    next: Option<AnyReader>,
}

/// One side.
#[derive(Debug, Default)]
struct Half {
    state: State,
    /// The beginning of a head that came in pieces.
    head: Vec<u8>,
    /// The start line in `head` is whole.
    line: bool,
    /// What its body consists of, where that is known.
    pieces: Option<BodySplitter>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a message or in its head.
    #[default]
    Head,
    Length(u64),
    /// Of known length, and its pieces are looked at.
    Measured(u64),
    Chunked(Chunked),
    UntilClose,
    /// Behind a CONNECT request: whether this is HTTP depends on the response.
    Tunnel,
}

impl MessageReader for Http1 {
    #[inline(always)]
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, piece: Stretch<'a>) -> Outcome<'a> {
        match piece {
            Stretch::Bytes(bytes) => match self.bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) if self.tunnels => Outcome::Restart(Stretch::Bytes(rest)),
                Err(rest) => match self.next.take() {
                    Some(reader) => Outcome::Switch(reader, Stretch::Bytes(rest)),
                    None => Outcome::Lost(Stretch::Bytes(rest)),
                },
            },
            Stretch::Missing(missing) => match self.missing(sink, missing) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Missing(rest)),
            },
        }
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        match (self.sides[sink.side()].state, how) {
            (State::UntilClose, Close::Fin) => sink.end_at_packet(),
            (State::Tunnel, Close::Fin) => sink.end(),
            _ => {
                self.name_unfinished(sink, false);
                sink.cut(how);
            }
        }
        self.sides[sink.side()] = Half::default();
    }

    fn resume(&mut self, side: Side, inside: bool) {
        self.sides = BySide::default();
        self.early = false;
        if side == Side::Client && !inside {
            // In turns, whoever asks again has had the answer.
            self.pending.clear();
        }
    }
}

impl Http1 {
    /// Reads bytes; the error is the rest that could not be followed, after `Lost` has been written.
    #[inline(always)]
    fn bytes<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        if self.early && sink.side() == Side::Client {
            self.body_left_out(sink.lend(), bytes);
        }
        match self.stretch(sink, bytes)? {
            [] => Ok(()),
            more => self.stretches(sink.lend(), more),
        }
    }

    /// A stretch with a head and its body, or with several messages.
    #[inline(never)]
    fn stretches<'a>(
        &mut self,
        mut sink: MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        while !bytes.is_empty() {
            bytes = self.stretch(&mut sink, bytes)?;
        }
        Ok(())
    }

    /// Reads a head, a body or a part of one; gives what stands behind it.
    #[inline(always)]
    fn stretch<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let half = &mut self.sides[sink.side()];
        match &mut half.state {
            State::Head => self.head(sink, bytes),
            State::Chunked(_) | State::UntilClose if half.pieces.is_some() => {
                half.streamed(sink.lend(), bytes)
            }
            State::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let (body, rest) = split(bytes, here);
                sink.piece(here as u64);
                *left -= body.len() as u64;
                if *left == 0 {
                    half.state = State::Head;
                    sink.end();
                }
                Ok(rest)
            }
            State::Chunked(chunked) => match chunked.read(bytes) {
                Step::All => {
                    sink.piece(bytes.len() as u64);
                    Ok(&[])
                }
                Step::Done(here) => {
                    half.state = State::Head;
                    if here > WITHOUT_DATA {
                        sink.piece(here as u64);
                    } else {
                        sink.count(here as u64);
                    }
                    sink.end();
                    Ok(split(bytes, here).1)
                }
                Step::Wrong(reason) => {
                    sink.lost(reason);
                    Err(bytes)
                }
            },
            State::UntilClose | State::Tunnel => {
                sink.piece(bytes.len() as u64);
                Ok(&[])
            }
            State::Measured(_) => half.streamed(sink.lend(), bytes),
        }
    }

    /// Reads a head or a part of one; gives what stands behind it.
    #[inline(always)]
    fn head<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let side = sink.side();
        let half = &mut self.sides[side];
        let mut bytes = bytes;
        if half.head.is_empty() {
            // RFC 9112 2.2: empty lines before a start line are of no message.
            bytes = skip_line_ends(bytes);
            if bytes.is_empty() {
                return Ok(bytes);
            }
            // taken out, so that the sink can write while the head is read from
            let mut again = sink.head_cache().take().unwrap_or_default();
            let head = again.or_read(side, bytes, head::parse);
            if let Some(head) = head.filter(|head| head.len <= MAX_HEAD) {
                let rest = self.whole_head(sink, head, bytes);
                *sink.head_cache() = Some(again);
                return rest;
            }
            *sink.head_cache() = Some(again);
        }
        self.part_of_head(sink.lend(), bytes)
    }

    /// A head that begins these bytes, in one piece.
    #[inline(always)]
    fn whole_head<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        head: &Head,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        sink.count(head.len as u64);
        let (mine, rest) = split(bytes, head.len);
        if sink.side() == Side::Server && self.searched < MAX_SEARCHED {
            self.name_of_server(sink.lend(), mine);
        }
        self.body(sink, head, rest)
    }

    /// A head has been read: names its message and finds out where it ends.
    #[inline(always)]
    fn body<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        head: &Head,
        rest: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let (body, after) = match &head.start {
            Start::Request {
                method,
                target,
                host,
                kind,
            } => {
                sink.request(method, target);
                if !host.is_empty() {
                    sink.host(host);
                }
                if let Some(tags) = &head.tags {
                    sink.tags(tags);
                }
                self.ask(*kind);
                let after = match *kind {
                    MethodKind::Connect => State::Tunnel,
                    MethodKind::Waits(for_events) => {
                        sink.kind(for_events);
                        State::Head
                    }
                    _ => State::Head,
                };
                (head.body, after)
            }
            &Start::Response { status } => {
                if let Ok(Body::Switched(to)) = head.body {
                    self.switch(sink.lend(), to);
                    return Err(rest);
                }
                sink.response(status, is_interim(status));
                if is_interim(status) {
                    sink.end();
                    return Ok(rest);
                }
                if let Some(tags) = &head.tags {
                    sink.tags(tags);
                }
                if self.web || head.pieces.is_some() {
                    self.pieces_of(sink.lend(), head);
                }
                let switched = status == 101;
                let kind = self.pending.pop_front().unwrap_or(MethodKind::Other);
                self.early = self.pending.is_empty() && sink.other_is_open();
                if switched || kind == MethodKind::Connect && (200..300).contains(&status) {
                    self.tunnels = !sink.other_is_open();
                    sink.end();
                    return Err(rest);
                }
                if self.sides.client.state == State::Tunnel {
                    self.sides.client.state = State::Head;
                    if sink.other_is_open() {
                        sink.lost("data behind a connect that was refused");
                        return Err(rest);
                    }
                }
                let body = if kind == MethodKind::Head {
                    Ok(Body::None)
                } else {
                    head.body
                };
                (body, State::Head)
            }
        };
        self.sides[sink.side()].state = match body {
            Ok(Body::None) => {
                sink.end();
                after
            }
            Ok(Body::Length(length)) if head.pieces.is_none() => State::Length(length),
            Ok(body @ (Body::Length(_) | Body::Chunked | Body::UntilClose | Body::Switched(_))) => {
                self.sides[sink.side()].pieces = head.pieces;
                match body {
                    Body::Length(length) => State::Measured(length),
                    Body::Chunked => State::Chunked(Chunked::new()),
                    _ => State::UntilClose,
                }
            }
            Err(reason) => {
                sink.lost(reason);
                return Err(rest);
            }
        };
        Ok(rest)
    }

    /// An answer with a body of pieces begins, or another one behind those of gRPC-Web.
    #[cold]
    fn pieces_of(&mut self, mut sink: MessageSink<'_, impl Listener>, head: &Head) {
        let web = head.pieces.is_some_and(|pieces| pieces.are_web());
        if std::mem::replace(&mut self.web, web) != web {
            sink.protocol(if web { Protocol::GrpcWeb } else { Protocol::Http });
        }
        if head.pieces.is_some_and(|pieces| pieces.are_events()) {
            sink.streams();
        }
        if let Some(code) = head.pieces.and_then(|mut pieces| pieces.take_status()) {
            sink.status(http2::grpc_status(code));
        }
    }

    /// The connection goes on in another protocol.
    #[cold]
    fn switch(&mut self, mut sink: MessageSink<'_, impl Listener>, to: Upgrade) {
        match to {
            Upgrade::WebSocket => {
                sink.response(101, false);
                sink.end();
                self.next = Some(AnyReader::WebSocket(websocket::WebSocket::upgraded()));
            }
            // the request is answered there, as stream 1
            Upgrade::Http2 => {
                sink.response(101, true);
                sink.end();
                sink.exchange(1).adopt();
                self.next = Some(AnyReader::Http2(http2::Http2::upgraded()));
            }
        }
    }

    /// Looks in a head of the server for what it calls itself.
    #[cold]
    fn name_of_server(&mut self, mut sink: MessageSink<'_, impl Listener>, head: &[u8]) {
        self.searched += 1;
        if let Some(name) = server_software::of_head(head) {
            self.searched = MAX_SEARCHED;
            sink.software(name);
        }
    }

    /// A client that was answered early may leave the rest of its body out (RFC 9110 10.1.1: it waited for 100
    /// Continue) and ask again.
    #[cold]
    fn body_left_out(&mut self, mut sink: MessageSink<'_, impl Listener>, bytes: &[u8]) {
        if self.sides.client.state == State::Head {
            self.early = false;
        } else if recognise::begins_inside_turn(Side::Client, bytes) {
            self.early = false;
            self.sides.client = Half::default();
            sink.end();
        }
    }

    #[inline(always)]
    fn ask(&mut self, kind: MethodKind) {
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back(kind);
    }
}

/// 101 is a 1xx, but the last word of HTTP on its connection: it answers the request.
fn is_interim(status: u16) -> bool {
    matches!(status, 100 | 102..200)
}

fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}
