//! HTTP/1.0 and HTTP/1.1 (RFC 9112): keep-alive, pipelining, and every way to end a body. A message is a head, which
//! ends with an empty line, and a body; responses come in the order of the requests.
//!
//! A head in one stretch is parsed in place; a head in several stretches is copied until its empty line. Bodies are
//! counted, and only chunked and streamed ones are read. A hole inside a body is counted if the body's end can still be
//! found (a known length, the data of a chunk, a body until the close). After any other hole the reader is lost.

mod broken;
mod chunked;
mod head;
mod head_cache;
mod lines;
mod recognise;
mod streamed;

use super::pieces::BodySplitter;
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, Listener, MessageReader, Note, Outcome, Side, Stretch};
use super::{http2, server_software, websocket};
use crate::cursor;
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
/// Upper bound on a head in bytes. Servers refuse heads above 8 to 64 KiB.
const MAX_HEAD: usize = 64 << 10;
/// Upper bound on requests without a response; beyond it (mostly in captures of one direction) the oldest is dropped.
const MAX_PENDING: usize = 4096;
/// Length of a chunk's line end and the last chunk (`\r\n0\r\n\r\n`): the end of a chunked body without any data.
const CHUNKED_END_BYTES: usize = 7;
/// Upper bound on response heads searched for `Server`. Servers that send it do so in the first response.
const MAX_SEARCHED: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Http1 {
    sides: BySide<Half>,
    /// The requests whose response has not begun, oldest first.
    pending: Queue<MethodKind>,
    /// `pending` has been full, which was reported.
    has_dropped_requests: bool,
    /// The client's open message was answered before its end.
    is_answered_early: bool,
    /// Response heads searched for `Server`; `MAX_SEARCHED` once it was found.
    searched: u8,
    /// A CONNECT was granted: the tunnel's bytes follow.
    is_tunnel: bool,
    /// The newest response was of gRPC-Web.
    is_grpc_web: bool,
    /// The reader of the protocol that a 101 has switched to.
    next: Option<AnyReader>,
}

/// Per-direction state: the message that is being read.
#[derive(Debug, Default)]
struct Half {
    state: State,
    /// The beginning of a head in several stretches.
    head: Vec<u8>,
    /// The start line in `head` is whole.
    has_line: bool,
    /// The splitter of a streamed body.
    pieces: Option<BodySplitter>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a message or in its head.
    #[default]
    Head,
    /// In a body with this many bytes left.
    Length(u64),
    /// In a streamed body with this many bytes left.
    StreamedLength(u64),
    Chunked(Chunked),
    UntilClose,
    /// After a CONNECT request: the response decides whether the next bytes are HTTP.
    Tunnel,
}

impl MessageReader for Http1 {
    #[inline(always)]
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.read_bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err(rest) if self.is_tunnel => Outcome::Restart(Stretch::Bytes(rest)),
                Err(rest) => match self.next.take() {
                    Some(reader) => Outcome::Switch(reader, Stretch::Bytes(rest)),
                    None => Outcome::Lost(Stretch::Bytes(rest)),
                },
            },
            Stretch::Missing(missing) => match self.skip_hole(sink, missing) {
                Ok(()) => Outcome::All,
                Err(rest) => Outcome::Lost(Stretch::Missing(rest)),
            },
        }
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
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

    fn resume(&mut self, side: Side, is_inside_turn: bool) {
        self.sides = BySide::default();
        self.is_answered_early = false;
        if side == Side::Client && !is_inside_turn {
            // a client that begins another turn has received the responses before it
            self.pending.clear();
        }
    }
}

impl Http1 {
    /// Reads bytes. The error is the rest that is not of HTTP/1: after `Lost` was noted, or in another protocol.
    #[inline(always)]
    fn read_bytes<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        if self.is_answered_early && sink.side() == Side::Client {
            self.check_omitted_body(sink.lend(), bytes);
        }
        match self.read_part(sink, bytes)? {
            [] => Ok(()),
            more => self.read_parts(sink.lend(), more),
        }
    }

    /// Reads a body after its head, and further messages. Apart from `read_bytes`, so that its common case is
    /// inlined.
    #[inline(never)]
    fn read_parts<'a>(
        &mut self,
        mut sink: Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), &'a [u8]> {
        while !bytes.is_empty() {
            bytes = self.read_part(&mut sink, bytes)?;
        }
        Ok(())
    }

    /// Reads a head or a body, or a part of one. Returns the bytes after it.
    #[inline(always)]
    fn read_part<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let half = &mut self.sides[sink.side()];
        match &mut half.state {
            State::Head => self.read_head(sink, bytes),
            State::Chunked(_) | State::UntilClose if half.pieces.is_some() => {
                half.read_streamed(sink.lend(), bytes)
            }
            State::Length(remaining) => {
                let (body, rest) = cursor::split_left(bytes, remaining);
                sink.piece(body.len() as u64);
                if *remaining == 0 {
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
                Step::Done(read_len) => {
                    half.state = State::Head;
                    if read_len > CHUNKED_END_BYTES {
                        sink.piece(read_len as u64);
                    } else {
                        sink.count(read_len as u64);
                    }
                    sink.end();
                    Ok(cursor::split(bytes, read_len).1)
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
            State::StreamedLength(_) => half.read_streamed(sink.lend(), bytes),
        }
    }

    /// Reads a head or a part of one. Returns the bytes after it.
    #[inline(always)]
    fn read_head<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        let side = sink.side();
        let half = &mut self.sides[side];
        let mut bytes = bytes;
        if half.head.is_empty() {
            // RFC 9112 2.2: empty lines before a start line belong to no message
            bytes = skip_line_ends(bytes);
            if bytes.is_empty() {
                return Ok(bytes);
            }
            // taken out of the sink, so that the sink can be used while the head is borrowed
            let mut cache = sink.memory().head_cache.take().unwrap_or_default();
            let head = cache.or_read(side, bytes, head::parse);
            if let Some(head) = head.filter(|head| head.len <= MAX_HEAD) {
                let rest = self.read_whole_head(sink, head, bytes);
                sink.memory().head_cache = Some(cache);
                return rest;
            }
            sink.memory().head_cache = Some(cache);
        }
        self.keep_part_of_head(sink.lend(), bytes)
    }

    /// Handles a whole head at the beginning of `bytes`.
    #[inline(always)]
    fn read_whole_head<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        head: &Head,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], &'a [u8]> {
        sink.count(head.len as u64);
        let (head_bytes, rest) = cursor::split(bytes, head.len);
        if sink.side() == Side::Server && self.searched < MAX_SEARCHED {
            self.search_software(sink.lend(), head_bytes);
        }
        self.begin_message(sink, head, rest)
    }

    /// Names the message of a head and decides where its body ends. Returns the bytes after the head.
    #[inline(always)]
    fn begin_message<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
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
                self.push_request(sink, *kind);
                let after = match *kind {
                    MethodKind::Connect => State::Tunnel,
                    MethodKind::WaitsForEvents(kind) => {
                        sink.kind(kind);
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
                match self.pair_response(sink, head, status) {
                    Some(body) => (body, State::Head),
                    None => return Err(rest),
                }
            }
        };
        match body {
            Ok(body) => {
                self.begin_body(sink, head, body, after);
                Ok(rest)
            }
            Err(reason) => {
                sink.lost(reason);
                Err(rest)
            }
        }
    }

    /// Pairs a final response with its request. Returns the framing of its body; None if HTTP ends here.
    #[inline(always)]
    fn pair_response(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        head: &Head,
        status: u16,
    ) -> Option<Result<Body, &'static str>> {
        if let Some(tags) = &head.tags {
            sink.tags(tags);
        }
        if self.is_grpc_web || head.pieces.is_some() {
            self.begin_pieces(sink.lend(), head);
        }
        let kind = self.pending.pop_front().unwrap_or(MethodKind::Other);
        self.is_answered_early = self.pending.is_empty() && sink.other_is_open();
        if status == 101 || kind == MethodKind::Connect && (200..300).contains(&status) {
            self.begin_tunnel(sink);
            return None;
        }
        if self.sides.client.state == State::Tunnel {
            self.sides.client.state = State::Head;
            if sink.other_is_open() {
                sink.lost("data behind a connect that was refused");
                return None;
            }
        }
        let has_no_body = kind == MethodKind::Head;
        Some(if has_no_body { Ok(Body::None) } else { head.body })
    }

    /// Ends the response after which the connection carries another protocol.
    #[cold]
    fn begin_tunnel(&mut self, sink: &mut Sink<'_, impl Listener>) {
        self.is_tunnel = !sink.other_is_open();
        sink.end();
        if !self.is_tunnel {
            // the tunnel's first bytes are counted, so its protocol cannot be recognised any more
            let (side, at) = (Side::Client, sink.at());
            let reason = "data before the tunnel was granted";
            sink.listener().note(Note::Lost { side, at, reason });
        }
    }

    /// Begins a message's body; without one, the message ends, and `after` follows.
    #[inline(always)]
    fn begin_body(&mut self, sink: &mut Sink<'_, impl Listener>, head: &Head, body: Body, after: State) {
        let state = match body {
            Body::None => {
                sink.end();
                after
            }
            Body::Length(length) if head.pieces.is_none() => State::Length(length),
            Body::Length(length) => State::StreamedLength(length),
            Body::Chunked => State::Chunked(Chunked::new()),
            Body::UntilClose | Body::Switched(_) => State::UntilClose,
        };
        let half = &mut self.sides[sink.side()];
        if !matches!(state, State::Head | State::Tunnel | State::Length(_)) {
            half.pieces = head.pieces;
        }
        half.state = state;
    }

    /// Begins a streamed response, or one after a response of gRPC-Web.
    #[cold]
    fn begin_pieces(&mut self, mut sink: Sink<'_, impl Listener>, head: &Head) {
        let is_grpc_web = head.pieces.is_some_and(|pieces| pieces.is_grpc_web());
        if std::mem::replace(&mut self.is_grpc_web, is_grpc_web) != is_grpc_web {
            sink.protocol(if is_grpc_web {
                Protocol::GrpcWeb
            } else {
                Protocol::Http
            });
        }
        if head.pieces.is_some_and(|pieces| pieces.is_event_stream()) {
            sink.mark_event_stream();
        }
        if let Some(code) = head.pieces.and_then(|mut pieces| pieces.take_status()) {
            sink.status(http2::grpc_status(code));
        }
    }

    /// Ends the 101 that switches to another protocol.
    #[cold]
    fn switch(&mut self, mut sink: Sink<'_, impl Listener>, to: Upgrade) {
        match to {
            Upgrade::WebSocket => {
                sink.response(101, false);
                sink.end();
                self.next = Some(AnyReader::WebSocket(websocket::WebSocket::upgraded()));
            }
            // HTTP/2 answers the request, as stream 1
            Upgrade::Http2 => {
                sink.response(101, true);
                sink.end();
                sink.exchange(1).adopt();
                self.next = Some(AnyReader::Http2(http2::Http2::upgraded()));
            }
        }
    }

    /// Searches a response's head for the server's software.
    #[cold]
    fn search_software(&mut self, mut sink: Sink<'_, impl Listener>, head: &[u8]) {
        self.searched += 1;
        if let Some(name) = server_software::of_head(head) {
            self.searched = MAX_SEARCHED;
            sink.software(name);
        }
    }

    /// Ends a request that was answered before its end, if the client begins another one. A client that waited for 100
    /// Continue may omit the body after a final response (RFC 9110 10.1.1).
    #[cold]
    fn check_omitted_body(&mut self, mut sink: Sink<'_, impl Listener>, bytes: &[u8]) {
        if self.sides.client.state == State::Head {
            self.is_answered_early = false;
        } else if recognise::begins_inside_turn(Side::Client, bytes) {
            self.is_answered_early = false;
            self.sides.client = Half::default();
            sink.end();
        }
    }

    #[inline(always)]
    fn push_request(&mut self, sink: &mut Sink<'_, impl Listener>, kind: MethodKind) {
        if self.pending.len() >= MAX_PENDING {
            self.drop_oldest_request(sink.lend());
        }
        self.pending.push_back(kind);
    }

    /// Forgets the oldest request's method, with one issue per stream: responses may be read with the wrong method.
    #[cold]
    fn drop_oldest_request(&mut self, mut sink: Sink<'_, impl Listener>) {
        self.pending.pop_front();
        if !std::mem::replace(&mut self.has_dropped_requests, true) {
            sink.lost("too many requests without a response");
        }
    }
}

/// Whether a final response follows this status. 101 is final: it is the last message of HTTP on its connection.
fn is_interim(status: u16) -> bool {
    matches!(status, 100 | 102..200)
}
