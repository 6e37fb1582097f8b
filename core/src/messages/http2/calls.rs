//! The streams of a connection that are open: each is one request and its answer, or a push. Reads what the frames
//! and header blocks carry, by the stream's number; knows no bytes.

use smol_str::SmolStr;

use super::Block;
use super::fields::{Fields, grpc_status};
use crate::base::{At, Side};
use crate::messages::pieces::BodySplitter;
use crate::messages::readers::Protocol;
use crate::messages::sink::MessageSink;
use crate::messages::{Kind, Listener, Status, waits};

/// Streams that may be open at once: peers allow 100 to 256 mostly. The oldest is forgotten beyond it.
const MAX_OPEN: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// In the order in which they were opened.
    open: Vec<Call>,
    /// The client's newest stream: lower numbers do not begin any more (5.1.1).
    newest: u32,
    /// The newest exchange was gRPC's.
    grpc: bool,
}

/// One open stream.
#[derive(Debug, Default)]
struct Call {
    stream: u32,
    /// The client has sent all, or it is not known whether it has.
    requested: bool,
    /// The answer's head was read: what follows it are trailers.
    answering: bool,
    connects: bool,
    grpc: bool,
    /// Its content type is in a table that the capture does not show: its first DATA frame may tell that it is gRPC's.
    nameless: bool,
    pieces: Option<BodySplitter>,
    /// A message of gRPC came: what follows it makes the answer a stream.
    has_piece: bool,
    /// What the server promised to push.
    push: Option<Box<Promise>>,
}

#[derive(Debug)]
struct Promise {
    first: At,
    bytes: u64,
    method: SmolStr,
    target: SmolStr,
}

impl Calls {
    /// The request of HTTP/1 that requested the upgrade.
    pub(super) fn adopted(&mut self) {
        self.open(Call {
            stream: 1,
            requested: true,
            ..Call::default()
        });
        self.newest = 1;
    }

    /// A header block of the side that speaks is whole.
    pub(super) fn headers(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        block: &Block,
        fields: &Fields,
    ) {
        match (sink.side(), block.promised) {
            (Side::Client, _) => self.request_fields(sink, block, fields),
            (Side::Server, Some(promised)) => self.promised(sink, block, promised, fields),
            (Side::Server, None) => self.answer_fields(sink, block, fields),
        }
        sink.unmark();
        if block.last {
            self.ends(sink, block.stream);
        }
    }

    fn request_fields(&mut self, sink: &mut MessageSink<'_, impl Listener>, block: &Block, fields: &Fields) {
        let stream = block.stream;
        if stream.is_multiple_of(2) || stream <= self.newest {
            // trailers of a request, or of one that was answered before it was over
            return self.count(sink, stream, block.bytes);
        }
        self.newest = stream;
        self.open(Call {
            stream,
            connects: fields.connects(),
            grpc: fields.grpc,
            nameless: fields.unknown && !fields.grpc,
            ..Call::default()
        });
        self.speaks(sink, fields.grpc);
        let mut call = sink.exchange(u64::from(stream));
        let named = fields.named();
        let waits = if fields.grpc {
            waits::of_call(named.target)
        } else {
            waits::of_target(named.target).filter(|_| named.method == "GET")
        };
        call.begin_request(waits.unwrap_or(Kind::Request));
        call.name(named);
        call.tags(&fields.tags);
        call.count(block.bytes);
        if fields.connects() {
            call.end_request(); // what follows goes through the tunnel
        }
    }

    fn answer_fields(&mut self, sink: &mut MessageSink<'_, impl Listener>, block: &Block, fields: &Fields) {
        if let Some(server) = &fields.server {
            sink.software(server.as_str().into());
        }
        let Some(call) = self.find(block.stream) else {
            return;
        };
        if let Some(push) = &mut call.push {
            push.bytes += block.bytes;
            return;
        }
        let mut exchange = sink.exchange(u64::from(block.stream));
        if !call.answering {
            exchange.begin_answer();
        }
        exchange.count(block.bytes);
        if fields.is_interim() {
            return exchange.interim();
        }
        exchange.tags(&fields.tags);
        if !std::mem::replace(&mut call.answering, true) {
            call.grpc |= fields.grpc;
            call.pieces = fields.pieces.filter(|_| !fields.encoded || fields.grpc);
            if call.pieces.is_some_and(|pieces| pieces.are_events()) {
                exchange.streams();
            }
            if call.grpc && call.pieces.is_none() {
                call.pieces = BodySplitter::of("application/grpc");
            }
        }
        if let Some(status) = fields.ends(call.grpc) {
            exchange.status(status);
        }
        if call.connects && fields.status.is_some_and(|status| status < 300) {
            self.over(sink, block.stream, false);
        }
    }

    fn promised(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        block: &Block,
        promised: u32,
        fields: &Fields,
    ) {
        let named = fields.named();
        self.open(Call {
            stream: promised,
            push: Some(Box::new(Promise {
                first: sink.marked(),
                bytes: block.bytes,
                method: named.method.into(),
                target: named.target.into(),
            })),
            ..Call::default()
        });
    }

    /// Bytes of a stream that hold nothing of a body.
    pub(super) fn count(&mut self, sink: &mut MessageSink<'_, impl Listener>, stream: u32, bytes: u64) {
        match self.find(stream) {
            Some(Call { push: Some(push), .. }) => push.bytes += bytes,
            Some(_) => sink.exchange(u64::from(stream)).count(bytes),
            None => {}
        }
    }

    /// Data of a DATA frame, and bytes around them; whether they are the frame's `whole` data.
    pub(super) fn data(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        stream: u32,
        around: u64,
        data: &[u8],
        whole: bool,
    ) {
        let bytes = around + data.len() as u64;
        let (pieces, has_piece, grpc, requested) = match self.find(stream) {
            Some(call) if sink.side() == Side::Server && call.push.is_none() => {
                (&mut call.pieces, &mut call.has_piece, call.grpc, call.requested)
            }
            Some(call) if call.nameless && whole => {
                call.nameless = false;
                call.grpc = BodySplitter::is_message(data);
                return self.count(sink, stream, bytes);
            }
            _ => return self.count(sink, stream, bytes),
        };
        let mut exchange = sink.exchange(u64::from(stream));
        exchange.count(around);
        let Some(pieces) = pieces else {
            return exchange.piece(data.len() as u64);
        };
        let mut rest = data;
        while let Some(piece) = pieces.next(&mut rest) {
            exchange.piece(piece.len() as u64);
            // or the client may go on, too: neither side's messages are one request and its answer
            if (std::mem::replace(has_piece, true) || !requested) && grpc {
                exchange.streams();
            }
        }
        exchange.count(rest.len() as u64);
        if let Some(code) = pieces.take_status() {
            exchange.status(grpc_status(code));
        }
    }

    /// Body bytes that are not in the capture.
    pub(super) fn skip(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        stream: u32,
        bytes: u64,
        data: u64,
    ) {
        if let Some(call) = self.find(stream)
            && let Some(pieces) = &mut call.pieces
            && sink.side() == Side::Server
            && !pieces.skip(data)
        {
            call.pieces = None;
        }
        self.count(sink, stream, bytes);
    }

    /// The side that speaks has ended this stream.
    pub(super) fn ends(&mut self, sink: &mut MessageSink<'_, impl Listener>, stream: u32) {
        match sink.side() {
            Side::Client => {
                if let Some(call) = self.find(stream) {
                    call.requested = true;
                    sink.exchange(u64::from(stream)).end_request();
                }
            }
            Side::Server => self.over(sink, stream, false),
        }
    }

    pub(super) fn reset(&mut self, sink: &mut MessageSink<'_, impl Listener>, stream: u32) {
        self.over(sink, stream, true);
    }

    /// The server has processed no request beyond this one, and will not (6.8).
    pub(super) fn goes_away(&mut self, sink: &mut MessageSink<'_, impl Listener>, last: u32) {
        let beyond = |call: &Call| call.push.is_none() && call.stream > last;
        while sink.side() == Side::Server
            && let Some(stream) = self.open.iter().find(|call| beyond(call)).map(|call| call.stream)
        {
            self.reset(sink, stream);
        }
    }

    /// The stream has ended.
    fn over(&mut self, sink: &mut MessageSink<'_, impl Listener>, stream: u32, reset: bool) {
        let Some(place) = self.open.iter().position(|call| call.stream == stream) else {
            return;
        };
        let call = self.open.remove(place);
        if let Some(push) = call.push {
            if !reset {
                sink.push_since(push.first, &push.method, &push.target, push.bytes, None);
            }
            return;
        }
        self.speaks(sink, call.grpc);
        let mut exchange = sink.exchange(u64::from(stream));
        if !reset {
            return exchange.end_answer();
        }
        exchange.status(Status {
            code: None,
            text: Some("reset"),
            error: true,
        });
        exchange.reset();
    }

    /// Calls of gRPC and plain requests may share a connection.
    fn speaks(&mut self, sink: &mut MessageSink<'_, impl Listener>, grpc: bool) {
        if std::mem::replace(&mut self.grpc, grpc) != grpc {
            sink.protocol(if grpc { Protocol::Grpc } else { Protocol::Http2 });
        }
    }

    /// Frames of the client are not in the capture.
    pub(super) fn lost(&mut self) {
        self.open.iter_mut().for_each(|call| call.requested = true);
    }

    fn open(&mut self, call: Call) {
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(call);
    }

    fn find(&mut self, stream: u32) -> Option<&mut Call> {
        self.open.iter_mut().find(|call| call.stream == stream)
    }
}
