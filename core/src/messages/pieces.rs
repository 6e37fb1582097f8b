//! Splits a streamed body into pieces: server-sent events (HTML standard 9.2), newline-delimited records, messages of
//! gRPC and gRPC-Web. Finds where each piece ends and keeps nothing of its bytes.

const STATUS: &[u8] = b"grpc-status:";
/// The flag of a frame that holds trailers.
const TRAILERS: u8 = 0x80;

/// A splitter with its state in the body that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySplitter {
    Events(Events),
    /// Newline-delimited records; true once the current line is not empty.
    Lines(bool),
    Grpc(GrpcFrames),
    GrpcWeb(GrpcWeb),
}

impl BodySplitter {
    /// Returns the splitter for a content type; `None` where a body of this type has no pieces.
    pub(super) fn of(content_type: &str) -> Option<BodySplitter> {
        let kind = content_type.split([';', ' ']).next().unwrap_or_default();
        match kind.to_ascii_lowercase().as_str() {
            "text/event-stream" => Some(BodySplitter::Events(Events::default())),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines" => Some(BodySplitter::Lines(false)),
            kind if kind.starts_with("application/grpc-web") => Some(BodySplitter::GrpcWeb(GrpcWeb {
                is_base64: kind.starts_with("application/grpc-web-text"),
                ..GrpcWeb::default()
            })),
            kind if kind.starts_with("application/grpc") => Some(BodySplitter::Grpc(GrpcFrames::default())),
            _ => None,
        }
    }

    /// Whether each piece is sent when its event happens, so that no delay before one is the server's.
    pub(super) fn is_event_stream(&self) -> bool {
        matches!(self, BodySplitter::Events(_))
    }

    pub(super) fn is_grpc_web(&self) -> bool {
        matches!(self, BodySplitter::GrpcWeb(_))
    }

    /// Notes that a message ended. Returns whether it shows that a call of gRPC-Web streams: its second or a later one.
    pub(super) fn is_later_message(&mut self) -> bool {
        match self {
            BodySplitter::GrpcWeb(web) => std::mem::replace(&mut web.has_message, true),
            _ => false,
        }
    }

    /// Sets gRPC's status from the head of an answer of gRPC-Web without trailers.
    pub(super) fn with_status(self, status: Option<u16>) -> BodySplitter {
        match self {
            BodySplitter::GrpcWeb(web) => BodySplitter::GrpcWeb(GrpcWeb { status, ..web }),
            other => other,
        }
    }

    /// Takes gRPC's status, once it was read.
    pub(super) fn take_status(&mut self) -> Option<u16> {
        match self {
            BodySplitter::GrpcWeb(web) => web.status.take(),
            _ => None,
        }
    }

    /// Whether the bytes are one whole message of gRPC.
    pub(super) fn is_message(body: &[u8]) -> bool {
        let Some((header, message)) = body.split_first_chunk::<5>() else {
            return false;
        };
        let [compressed, length @ ..] = *header;
        compressed <= 1 && message.len() == u32::from_be_bytes(length) as usize
    }

    /// Takes the bytes up to the first end of a piece off the front of `rest`; `None` where no piece ends in it.
    pub(super) fn next<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (piece, after) = rest.split_at_checked(self.end(rest)?)?;
        *rest = after;
        Some(piece)
    }

    /// Returns the index after the first piece that ends in these bytes.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            BodySplitter::Events(events) => events.end(bytes),
            BodySplitter::Lines(has_bytes) => {
                let ends = |byte: &u8| match byte {
                    b'\n' => std::mem::take(has_bytes),
                    b'\r' => false,
                    _ => {
                        *has_bytes = true;
                        false
                    }
                };
                Some(bytes.iter().position(ends)? + 1)
            }
            BodySplitter::Grpc(messages) => messages.end(bytes),
            BodySplitter::GrpcWeb(web) => web.end(bytes),
        }
    }

    /// Passes over a hole. Returns whether the end of later pieces can be found.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        match self {
            BodySplitter::Grpc(messages) => messages.skip(missing),
            BodySplitter::GrpcWeb(_) => false,
            // the next empty line or line end shows where a piece ends
            BodySplitter::Events(_) | BodySplitter::Lines(_) => true,
        }
    }
}

/// Server-sent events. An event ends with an empty line. Lines that begin with a colon are comments, which some servers
/// send to keep the connection alive; comments alone are not an event.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Events {
    line: Line,
    /// The event has a line that is not a comment.
    has_field: bool,
    /// The last byte was a carriage return, so a line feed belongs to it.
    is_after_return: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Comment,
    Field,
}

impl Events {
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        Some(bytes.iter().position(|byte| self.ends_with(*byte))? + 1)
    }

    fn ends_with(&mut self, byte: u8) -> bool {
        let is_after_return = std::mem::replace(&mut self.is_after_return, byte == b'\r');
        match (byte, self.line) {
            (b'\n', _) if is_after_return => false,
            (b'\r' | b'\n', Line::Empty) => std::mem::take(&mut self.has_field),
            (b'\r' | b'\n', _) => {
                self.line = Line::Empty;
                false
            }
            (b':', Line::Empty) => {
                self.line = Line::Comment;
                false
            }
            (_, Line::Comment) => false,
            _ => {
                self.line = Line::Field;
                self.has_field = true;
                false
            }
        }
    }
}

/// Messages of gRPC, each after a byte of flags and a length of four bytes (PROTOCOL-HTTP2.md of the gRPC project).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrpcFrames {
    header: [u8; 5],
    have: usize,
    remaining: u32,
}

impl GrpcFrames {
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.have == self.header.len() {
                let taken = rest.len().min(self.remaining as usize);
                self.remaining -= taken as u32;
                if self.remaining > 0 {
                    return None;
                }
                self.have = 0;
                return Some(at + taken);
            }
            *self.header.get_mut(self.have)? = *rest.first()?;
            at += 1;
            self.have += 1;
            let [_, length @ ..] = self.header;
            self.remaining = u32::from_be_bytes(length);
        }
    }

    fn skip(&mut self, missing: u64) -> bool {
        let is_within = self.have == self.header.len() && missing < u64::from(self.remaining);
        if is_within {
            self.remaining -= missing as u32;
        }
        is_within
    }
}

/// Messages of gRPC-Web (PROTOCOL-WEB.md of the gRPC project): as of gRPC, then the trailers in a frame of their own.
/// The body may be in Base64, as several parts with padding each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrpcWeb {
    is_base64: bool,
    /// The Base64 digits read so far, six bits each.
    bits: u32,
    /// Number of the digits, modulo 4.
    digits: u8,
    messages: GrpcFrames,
    /// A message has ended.
    has_message: bool,
    /// The beginning of the current line of the trailers, and its length.
    line: [u8; STATUS.len() + 4],
    len: usize,
    status: Option<u16>,
}

impl GrpcWeb {
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let ends = |byte: &u8| match self.is_base64 {
            true => self.decode_digit(*byte).is_some_and(|byte| self.ends_with(byte)),
            false => self.ends_with(*byte),
        };
        Some(bytes.iter().position(ends)? + 1)
    }

    /// Decodes a digit of Base64; returns the byte that it completes.
    fn decode_digit(&mut self, digit: u8) -> Option<u8> {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => {
                self.digits = 0; // padding: another part begins
                return None;
            }
        };
        self.bits = self.bits << 6 | u32::from(value);
        self.digits = (self.digits + 1) % 4;
        match self.digits {
            2 => Some((self.bits >> 4) as u8),
            3 => Some((self.bits >> 2) as u8),
            0 => Some(self.bits as u8),
            _ => None,
        }
    }

    /// Whether a message ends with this byte. Reads the status from the trailers, which are not a message.
    fn ends_with(&mut self, byte: u8) -> bool {
        let [flags, ..] = self.messages.header;
        let is_inside = self.messages.have == self.messages.header.len();
        let is_end = self.messages.end(&[byte]).is_some();
        if !is_inside || flags & TRAILERS == 0 {
            return is_end;
        }
        if byte != b'\n'
            && let Some(slot) = self.line.get_mut(self.len)
        {
            (*slot, self.len) = (byte.to_ascii_lowercase(), self.len + 1);
        }
        if is_end || byte == b'\n' {
            let line = self.line.get(..std::mem::take(&mut self.len));
            let value = line.and_then(|line| std::str::from_utf8(line.strip_prefix(STATUS)?).ok());
            self.status = value.and_then(|value| value.trim().parse().ok()).or(self.status);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where pieces end in `bytes`, given in chunks of `size`.
    fn ends(mut pieces: BodySplitter, bytes: &[u8], size: usize) -> Vec<usize> {
        let (mut ends, mut before) = (Vec::new(), 0);
        for mut chunk in bytes.chunks(size) {
            let after = before + chunk.len();
            while pieces.next(&mut chunk).is_some() {
                ends.push(after - chunk.len());
            }
            before = after;
        }
        ends
    }

    fn count(content_type: &str, body: &[u8]) -> usize {
        let pieces = BodySplitter::of(content_type).unwrap();
        let whole = ends(pieces, body, body.len());
        for size in 1..body.len() {
            assert_eq!(ends(pieces, body, size), whole, "in chunks of {size}");
        }
        whole.len()
    }

    #[test]
    fn events_end_at_empty_lines_and_comments_are_none() {
        let body =
            b"data: a\n\ndata: b\ndata: c\n\n: still here\n\nevent: x\r\ndata: d\r\n\r\n\n\nid: 5\r\rdata: e";
        assert_eq!(count("text/event-stream; charset=utf-8", body), 4);
        assert_eq!(count("text/event-stream", b":comment\ndata: in one event\n\n"), 1);
    }

    #[test]
    fn lines_are_records_and_empty_ones_are_none() {
        assert_eq!(
            count("application/x-ndjson", b"{\"a\":1}\n{}\r\n\r\n\n{\"half\""),
            2
        );
    }

    #[test]
    fn messages_of_grpc_are_counted_by_their_length() {
        let body = b"\0\0\0\0\x03abc\0\0\0\0\0\x01\0\0\0\x01x\0\0\0\0\x09half";
        assert_eq!(count("application/grpc+proto", body), 3);
    }

    #[test]
    fn trailers_of_grpc_web_are_no_message_and_have_the_status() {
        let plain = b"\0\0\0\0\x03abc\0\0\0\0\x01d\x80\0\0\0\x21Grpc-Status: 5\r\ngrpc-message:no\r\n";
        // the same, each part in Base64 by itself
        let text = b"AAAAAANhYmM=AAAAAAFkgAAAACFHcnBjLVN0YXR1czogNQ0KZ3JwYy1tZXNzYWdlOm5vDQo=";
        for (kind, body) in [
            ("application/grpc-web+proto", &plain[..]),
            ("application/grpc-web-text", text),
        ] {
            assert_eq!(count(kind, body), 2, "{kind}");
            let mut pieces = BodySplitter::of(kind).unwrap();
            ends(pieces, body, body.len());
            let mut rest = body;
            while pieces.next(&mut rest).is_some() {}
            assert_eq!(
                (pieces.take_status(), pieces.take_status()),
                (Some(5), None),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_message_of_grpc_is_as_long_as_it_says() {
        assert!(BodySplitter::is_message(b"\0\0\0\0\x02hi") && BodySplitter::is_message(b"\x01\0\0\0\0"));
        for other in [
            &b""[..],
            b"\0\0\0\0",
            b"\0\0\0\0\x02h",
            b"\0\0\0\0\x01hi",
            b"\x02\0\0\0\x01x",
            b"{\"a\": 1}",
        ] {
            assert!(!BodySplitter::is_message(other), "{other:?}");
        }
    }

    #[test]
    fn other_bodies_have_no_pieces_of_their_own() {
        for kind in ["", "text/html", "application/json"] {
            assert_eq!(BodySplitter::of(kind), None, "{kind}");
        }
    }

    #[test]
    fn a_hole_inside_a_message_is_counted() {
        let mut pieces = BodySplitter::of("application/grpc").unwrap();
        assert_eq!(pieces.end(b"\0\0\0\0\x09ab"), None);
        assert!(pieces.skip(6));
        assert_eq!(pieces.end(b"c\0"), Some(1));
        assert!(!pieces.skip(1), "in a header");
    }

    proptest! {
        #[test]
        fn pieces_end_at_the_same_places_however_the_body_is_cut(
            body in prop::collection::vec(prop::sample::select(b"\r\n:a\0\x01\x02".to_vec()), 1..60),
            size in 1..10usize,
            kind in prop::sample::select(vec![
                "text/event-stream",
                "application/jsonl",
                "application/grpc",
                "application/grpc-web",
                "application/grpc-web-text",
            ]),
        ) {
            let pieces = BodySplitter::of(kind).unwrap();
            prop_assert_eq!(ends(pieces, &body, size), ends(pieces, &body, body.len()));
        }
    }
}
