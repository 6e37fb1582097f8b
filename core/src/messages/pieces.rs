//! The pieces of a streamed body: server-sent events (HTML standard 9.2), lines, messages of gRPC. Reads the body's
//! bytes, finds where a piece ends; keeps nothing of them.

/// What cuts a body into pieces, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySplitter {
    Events(Events),
    /// Newline-delimited records; whether this line has anything in it.
    Lines(bool),
    Grpc(GrpcFrames),
    Web(Web),
}

impl BodySplitter {
    /// By the body's content type.
    pub(super) fn of(content_type: &str) -> Option<BodySplitter> {
        let kind = content_type.split([';', ' ']).next().unwrap_or_default();
        match kind.to_ascii_lowercase().as_str() {
            "text/event-stream" => Some(BodySplitter::Events(Events::default())),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines" => Some(BodySplitter::Lines(false)),
            kind if kind.starts_with("application/grpc-web") => Some(BodySplitter::Web(Web {
                text: kind.starts_with("application/grpc-web-text"),
                ..Web::default()
            })),
            kind if kind.starts_with("application/grpc") => Some(BodySplitter::Grpc(GrpcFrames::default())),
            _ => None,
        }
    }

    /// Whether they come when there is something to say, and nobody waits for the next one.
    pub(super) fn are_events(&self) -> bool {
        matches!(self, BodySplitter::Events(_))
    }

    /// Whether they are those of gRPC-Web.
    pub(super) fn are_web(&self) -> bool {
        matches!(self, BodySplitter::Web(_))
    }

    /// A message is whole: whether it is gRPC-Web's second or a later one, so that the answer is a stream.
    pub(super) fn goes_on(&mut self) -> bool {
        match self {
            BodySplitter::Web(web) => std::mem::replace(&mut web.begun, true),
            _ => false,
        }
    }

    /// gRPC's status, where the head has it: no trailers follow.
    pub(super) fn with_status(self, status: Option<u16>) -> BodySplitter {
        match self {
            BodySplitter::Web(web) => BodySplitter::Web(Web { status, ..web }),
            other => other,
        }
    }

    /// gRPC's status, once its trailers were read.
    pub(super) fn take_status(&mut self) -> Option<u16> {
        match self {
            BodySplitter::Web(web) => web.status.take(),
            _ => None,
        }
    }

    /// Whether a body, or a part of one that was written in one go, is a whole message of gRPC.
    pub(super) fn is_message(body: &[u8]) -> bool {
        let Some((header, message)) = body.split_first_chunk::<5>() else {
            return false;
        };
        let [compressed, length @ ..] = *header;
        compressed <= 1 && message.len() == u32::from_be_bytes(length) as usize
    }

    /// Takes all up to the end of the first piece off the front of `rest`; nothing where no piece ends there.
    pub(super) fn next<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (piece, behind) = rest.split_at_checked(self.end(rest)?)?;
        *rest = behind;
        Some(piece)
    }

    /// The place behind the first piece that ends in these bytes; `None` where they are all of the next one.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            BodySplitter::Events(events) => events.end(bytes),
            BodySplitter::Lines(begun) => {
                let ends = |byte: &u8| match byte {
                    b'\n' => std::mem::take(begun),
                    b'\r' => false,
                    _ => {
                        *begun = true;
                        false
                    }
                };
                Some(bytes.iter().position(ends)? + 1)
            }
            BodySplitter::Grpc(messages) => messages.end(bytes),
            BodySplitter::Web(web) => web.end(bytes),
        }
    }

    /// So many bytes are not in the capture: whether the next piece's beginning is known all the same.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        match self {
            BodySplitter::Grpc(messages) => messages.skip(missing),
            BodySplitter::Web(_) => false,
            // the next blank line or line end sets it right
            BodySplitter::Events(_) | BodySplitter::Lines(_) => true,
        }
    }
}

/// An event goes up to an empty line. Lines that begin with a colon are comments; some servers send one now and then
/// to keep the connection, and that is no event.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Events {
    line: Line,
    /// A line of this event was no comment.
    begun: bool,
    /// The last byte was a carriage return: a line feed belongs to it.
    returned: bool,
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
        Some(bytes.iter().position(|byte| self.ends(*byte))? + 1)
    }

    fn ends(&mut self, byte: u8) -> bool {
        let returned = std::mem::replace(&mut self.returned, byte == b'\r');
        match (byte, self.line) {
            (b'\n', _) if returned => false,
            (b'\r' | b'\n', Line::Empty) => std::mem::take(&mut self.begun),
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
                self.begun = true;
                false
            }
        }
    }
}

/// Messages of gRPC: a byte of flags and a length of four bytes before each (the gRPC project's PROTOCOL-HTTP2).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrpcFrames {
    header: [u8; 5],
    have: usize,
    left: u32,
}

impl GrpcFrames {
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.have == self.header.len() {
                let here = rest.len().min(self.left as usize);
                self.left -= here as u32;
                if self.left > 0 {
                    return None;
                }
                self.have = 0;
                return Some(at + here);
            }
            *self.header.get_mut(self.have)? = *rest.first()?;
            at += 1;
            self.have += 1;
            let [_, length @ ..] = self.header;
            self.left = u32::from_be_bytes(length);
        }
    }

    fn skip(&mut self, missing: u64) -> bool {
        let within = self.have == self.header.len() && missing < u64::from(self.left);
        if within {
            self.left -= missing as u32;
        }
        within
    }
}

/// Messages of gRPC-Web (the gRPC project's PROTOCOL-WEB): as gRPC's, the trailers behind them as a frame of its own, and
/// all of it maybe in Base64, each part with an end of its own.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Web {
    text: bool,
    /// Base64's digits that do not make a byte yet.
    bits: u32,
    digits: u8,
    messages: GrpcFrames,
    /// A message was whole.
    begun: bool,
    /// The beginning of a line of the trailers.
    line: [u8; STATUS.len() + 4],
    len: usize,
    status: Option<u16>,
}

const STATUS: &[u8] = b"grpc-status:";
/// The flag of a frame that holds trailers.
const TRAILERS: u8 = 0x80;

impl Web {
    /// The place behind the first message that ends in these bytes.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let ends = |byte: &u8| match self.text {
            true => self.digit(*byte).is_some_and(|byte| self.byte(byte)),
            false => self.byte(*byte),
        };
        Some(bytes.iter().position(ends)? + 1)
    }

    /// The byte that a digit of Base64 completes.
    fn digit(&mut self, digit: u8) -> Option<u8> {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => {
                self.digits = 0; // what follows the padding begins anew
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

    /// Whether a message ends with this byte.
    fn byte(&mut self, byte: u8) -> bool {
        let [flags, ..] = self.messages.header;
        let inside = self.messages.have == self.messages.header.len();
        let ends = self.messages.end(&[byte]).is_some();
        if !inside || flags & TRAILERS == 0 {
            return ends;
        }
        if byte != b'\n'
            && let Some(slot) = self.line.get_mut(self.len)
        {
            (*slot, self.len) = (byte.to_ascii_lowercase(), self.len + 1);
        }
        if ends || byte == b'\n' {
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
            let behind = before + chunk.len();
            while pieces.next(&mut chunk).is_some() {
                ends.push(behind - chunk.len());
            }
            before = behind;
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
