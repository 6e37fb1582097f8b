//! The open streams of a connection. Each is a request with its answer, or a push. Reports exchanges from decoded
//! header blocks and from the data of frames.

use smol_str::SmolStr;

use super::Block;
use super::fields::{Fields, grpc_status};
use crate::base::{At, Side};
use crate::messages::pieces::BodySplitter;
use crate::messages::readers::Protocol;
use crate::messages::sink::Sink;
use crate::messages::{Kind, Listener, Status, waits};

/// Upper bound on open streams; beyond it the oldest is dropped. Most peers allow 100 to 256.
const MAX_OPEN: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// In the order in which they were opened.
    open: Vec<Call>,
    /// The client's newest stream. New ones have higher numbers (5.1.1).
    newest: u32,
    /// The newest exchange was of gRPC.
    is_grpc: bool,
}

/// One open stream.
#[derive(Debug, Default)]
struct Call {
    stream: u32,
    /// The request has ended, or may have ended in a hole.
    is_requested: bool,
    /// The answer's head was read: the next header block is the trailers.
    is_answering: bool,
    connects: bool,
    grpc: Grpc,
    pieces: Option<BodySplitter>,
    /// The answer has a message of gRPC. Another one makes it a stream.
    has_piece: bool,
    /// The push that the server promised on this stream.
    push: Option<Box<Promise>>,
}

/// Whether a call is of gRPC.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Grpc {
    #[default]
    No,
    /// The content type may be one of the unknown fields: the first DATA frame decides.
    Maybe,
    Yes,
}

#[derive(Debug)]
struct Promise {
    first: At,
    bytes: u64,
    method: SmolStr,
    target: SmolStr,
}

impl Calls {
    /// Opens the stream of the request of HTTP/1 that requested the upgrade.
    pub(super) fn open_upgraded(&mut self) {
        self.open(Call {
            stream: 1,
            is_requested: true,
            ..Call::default()
        });
        self.newest = 1;
    }

    /// Takes a whole header block.
    pub(super) fn read_headers(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        block: &Block,
        fields: &Fields,
    ) {
        match (sink.side(), block.promised) {
            (Side::Client, _) => self.read_request_fields(sink, block, fields),
            (Side::Server, Some(promised)) => self.begin_promised(sink, block, promised, fields),
            (Side::Server, None) => self.read_answer_fields(sink, block, fields),
        }
        sink.unmark();
        if block.is_last {
            self.end_side(sink, block.stream);
        }
    }

    fn read_request_fields(&mut self, sink: &mut Sink<'_, impl Listener>, block: &Block, fields: &Fields) {
        let stream = block.stream;
        if stream.is_multiple_of(2) || stream <= self.newest {
            // trailers of a request, which may have been answered already
            return self.count(sink, stream, block.bytes);
        }
        self.newest = stream;
        self.open(Call {
            stream,
            connects: fields.connects(),
            grpc: match fields.grpc {
                true => Grpc::Yes,
                false if fields.has_unknown => Grpc::Maybe,
                false => Grpc::No,
            },
            ..Call::default()
        });
        self.report_protocol(sink, fields.grpc);
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
            call.end_request(); // the tunnel's bytes follow
        }
    }

    fn read_answer_fields(&mut self, sink: &mut Sink<'_, impl Listener>, block: &Block, fields: &Fields) {
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
        if !call.is_answering {
            exchange.begin_answer();
        }
        exchange.count(block.bytes);
        if fields.is_interim() {
            return exchange.interim();
        }
        exchange.tags(&fields.tags);
        if !std::mem::replace(&mut call.is_answering, true) {
            if fields.grpc {
                call.grpc = Grpc::Yes;
            }
            call.pieces = fields.pieces.filter(|_| !fields.is_encoded || fields.grpc);
            if call.pieces.is_some_and(|pieces| pieces.is_event_stream()) {
                exchange.mark_event_stream();
            }
            if call.grpc == Grpc::Yes && call.pieces.is_none() {
                call.pieces = BodySplitter::of("application/grpc");
            }
        }
        if let Some(status) = fields.final_status(call.grpc == Grpc::Yes) {
            exchange.status(status);
        }
        if call.connects && fields.status.is_some_and(|status| status < 300) {
            self.end(sink, block.stream, false);
        }
    }

    fn begin_promised(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
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

    /// Counts bytes of a stream that are not of a body.
    pub(super) fn count(&mut self, sink: &mut Sink<'_, impl Listener>, stream: u32, bytes: u64) {
        match self.find(stream) {
            Some(Call { push: Some(push), .. }) => push.bytes += bytes,
            Some(_) => sink.exchange(u64::from(stream)).count(bytes),
            None => {}
        }
    }

    /// Takes data of a DATA frame. `around` is the number of bytes of padding before and after them; `is_whole`: they
    /// are all data of the frame.
    pub(super) fn read_data(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        stream: u32,
        around: u64,
        data: &[u8],
        is_whole: bool,
    ) {
        let bytes = around + data.len() as u64;
        let (pieces, has_piece, is_grpc, requested) = match self.find(stream) {
            Some(call) if sink.side() == Side::Server && call.push.is_none() => {
                let is_grpc = call.grpc == Grpc::Yes;
                (&mut call.pieces, &mut call.has_piece, is_grpc, call.is_requested)
            }
            Some(call) if call.grpc == Grpc::Maybe && is_whole => {
                let is_grpc = BodySplitter::is_message(data);
                call.grpc = if is_grpc { Grpc::Yes } else { Grpc::No };
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
            // a second message, or one before the request's end, shows that the call streams
            if (std::mem::replace(has_piece, true) || !requested) && is_grpc {
                exchange.mark_event_stream();
            }
        }
        exchange.count(rest.len() as u64);
        if let Some(code) = pieces.take_status() {
            exchange.status(grpc_status(code));
        }
    }

    /// Passes over a hole in a DATA frame of `bytes`, of which `data` are of the body.
    pub(super) fn skip(&mut self, sink: &mut Sink<'_, impl Listener>, stream: u32, bytes: u64, data: u64) {
        if let Some(call) = self.find(stream)
            && let Some(pieces) = &mut call.pieces
            && sink.side() == Side::Server
            && !pieces.skip(data)
        {
            call.pieces = None;
        }
        self.count(sink, stream, bytes);
    }

    /// Ends this side of a stream.
    pub(super) fn end_side(&mut self, sink: &mut Sink<'_, impl Listener>, stream: u32) {
        match sink.side() {
            Side::Client => {
                if let Some(call) = self.find(stream) {
                    call.is_requested = true;
                    sink.exchange(u64::from(stream)).end_request();
                }
            }
            Side::Server => self.end(sink, stream, false),
        }
    }

    pub(super) fn reset(&mut self, sink: &mut Sink<'_, impl Listener>, stream: u32) {
        self.end(sink, stream, true);
    }

    /// Resets the requests beyond stream `last` of a GOAWAY, which the server will not process (6.8).
    pub(super) fn reset_beyond(&mut self, sink: &mut Sink<'_, impl Listener>, last: u32) {
        let beyond = |call: &Call| call.push.is_none() && call.stream > last;
        while sink.side() == Side::Server
            && let Some(stream) = self.open.iter().find(|call| beyond(call)).map(|call| call.stream)
        {
            self.reset(sink, stream);
        }
    }

    /// Removes a stream and reports its end.
    fn end(&mut self, sink: &mut Sink<'_, impl Listener>, stream: u32, reset: bool) {
        let Some(index) = self.open.iter().position(|call| call.stream == stream) else {
            return;
        };
        let call = self.open.remove(index);
        if let Some(push) = call.push {
            if !reset {
                sink.push_since(push.first, &push.method, &push.target, push.bytes, None);
            }
            return;
        }
        self.report_protocol(sink, call.grpc == Grpc::Yes);
        let mut exchange = sink.exchange(u64::from(stream));
        if !reset {
            return exchange.end_answer();
        }
        exchange.status(Status::word("reset", true));
        exchange.reset();
    }

    /// Notes the protocol where it changes: calls of gRPC and plain requests may share a connection.
    fn report_protocol(&mut self, sink: &mut Sink<'_, impl Listener>, is_grpc: bool) {
        if std::mem::replace(&mut self.is_grpc, is_grpc) != is_grpc {
            sink.protocol(if is_grpc { Protocol::Grpc } else { Protocol::Http2 });
        }
    }

    /// Notes a hole of the client, in which any request may have ended.
    pub(super) fn lost(&mut self) {
        self.open.iter_mut().for_each(|call| call.is_requested = true);
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
