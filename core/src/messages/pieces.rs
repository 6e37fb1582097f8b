//! The pieces of a streamed body: server-sent events (HTML standard 9.2), lines, messages of gRPC. Reads the body's
//! bytes, finds where a piece ends; keeps nothing of them.

/// What cuts a body into pieces, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    Events(Events),
    /// Newline-delimited records; whether this line has anything in it.
    Lines(bool),
    Messages(Messages),
}

impl Pieces {
    /// By the body's content type.
    pub(super) fn of(content_type: &str) -> Option<Pieces> {
        let kind = content_type.split([';', ' ']).next().unwrap_or_default();
        match kind.to_ascii_lowercase().as_str() {
            "text/event-stream" => Some(Pieces::Events(Events::default())),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines" => Some(Pieces::Lines(false)),
            // in Base64, a piece's end cannot be counted
            "application/grpc-web-text" | "application/grpc-web-text+proto" => None,
            kind if kind.starts_with("application/grpc") => Some(Pieces::Messages(Messages::default())),
            _ => None,
        }
    }

    /// Whether they come when there is something to say, and nobody waits for the next one.
    pub(super) fn are_events(&self) -> bool {
        matches!(self, Pieces::Events(_))
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
            Pieces::Events(events) => events.end(bytes),
            Pieces::Lines(begun) => {
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
            Pieces::Messages(messages) => messages.end(bytes),
        }
    }

    /// So many bytes are not in the capture: whether the next piece's beginning is known all the same.
    pub(super) fn skip(&mut self, missing: u64) -> bool {
        match self {
            Pieces::Messages(messages) => messages.skip(missing),
            // the next blank line or line end sets it right
            Pieces::Events(_) | Pieces::Lines(_) => true,
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
pub(super) struct Messages {
    header: [u8; 5],
    have: usize,
    left: u32,
}

impl Messages {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where pieces end in `bytes`, given in chunks of `size`.
    fn ends(mut pieces: Pieces, bytes: &[u8], size: usize) -> Vec<usize> {
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
        let pieces = Pieces::of(content_type).unwrap();
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
    fn a_message_of_grpc_is_as_long_as_it_says() {
        assert!(Pieces::is_message(b"\0\0\0\0\x02hi") && Pieces::is_message(b"\x01\0\0\0\0"));
        for other in [
            &b""[..],
            b"\0\0\0\0",
            b"\0\0\0\0\x02h",
            b"\0\0\0\0\x01hi",
            b"\x02\0\0\0\x01x",
            b"{\"a\": 1}",
        ] {
            assert!(!Pieces::is_message(other), "{other:?}");
        }
    }

    #[test]
    fn other_bodies_have_no_pieces_of_their_own() {
        for kind in ["", "text/html", "application/json", "application/grpc-web-text"] {
            assert_eq!(Pieces::of(kind), None, "{kind}");
        }
    }

    #[test]
    fn a_hole_inside_a_message_is_counted() {
        let mut pieces = Pieces::of("application/grpc").unwrap();
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
            kind in prop::sample::select(vec!["text/event-stream", "application/jsonl", "application/grpc"]),
        ) {
            let pieces = Pieces::of(kind).unwrap();
            prop_assert_eq!(ends(pieces, &body, size), ends(pieces, &body, body.len()));
        }
    }
}
