//! Generated HTTP conversations (RFC 9110, 9112): who said which messages is known, and has to be read out of them
//! however the bytes are cut into packets, and with holes in the bodies.

use proptest::prelude::*;

use super::cases::FIN;
use super::{C, Note, S, Side, Stretch, read};

#[derive(Debug, Clone)]
enum Body {
    None,
    Length(usize),
    /// Sizes of the chunks, with an extension, with trailers.
    Chunked(Vec<usize>, bool, bool),
    UntilClose,
}

#[derive(Debug, Clone)]
struct Turn {
    method: &'static str,
    request: Body,
    interim: Vec<u16>,
    status: u16,
    response: Body,
}

/// One message: its name in the notes, and what is on the wire.
struct Message {
    side: Side,
    name: String,
    head: String,
    body: String,
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::None),
        (0..300usize).prop_map(Body::Length),
        (
            prop::collection::vec(1..200usize, 0..4),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(|(sizes, extension, trailers)| Body::Chunked(sizes, extension, trailers)),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let method = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "OPTIONS", "PROPFIND"]);
    let interim = prop::collection::vec(prop::sample::select(vec![100, 102, 103]), 0..2);
    let status = prop::sample::select(vec![200, 204, 206, 304, 404, 500]);
    (method, body(), interim, status, body()).prop_map(|(method, request, interim, status, response)| Turn {
        method,
        request,
        interim,
        status,
        response,
    })
}

/// How a connection ends HTTP: not at all, with a body up to the FIN, upgraded, or as a tunnel.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    UntilClose,
    Upgrade,
    Tunnel,
}

fn head(line: String, body: &Body) -> String {
    let framing = match body {
        Body::None | Body::UntilClose => String::new(),
        Body::Length(length) => format!("Content-Length: {length}\r\n"),
        Body::Chunked(..) => "Transfer-Encoding: chunked\r\n".into(),
    };
    format!("{line}\r\nDate: today\r\n{framing}\r\n")
}

fn payload(body: &Body) -> String {
    match body {
        Body::None => String::new(),
        Body::Length(length) => "x".repeat(*length),
        Body::Chunked(sizes, extension, trailers) => {
            let extension = if *extension { ";a=\"b;c\"" } else { "" };
            let chunks = sizes
                .iter()
                .map(|size| format!("{size:x}{extension}\r\n{}\r\n", "y".repeat(*size)));
            let end = if *trailers {
                "0\r\nDigest: z\r\n\r\n"
            } else {
                "0\r\n\r\n"
            };
            chunks.chain([end.to_string()]).collect()
        }
        Body::UntilClose => "z".repeat(200),
    }
}

fn request(index: usize, method: &str, body: &Body) -> Message {
    Message {
        side: C,
        name: format!("{method}./{index}"),
        head: head(format!("{method} /{index} HTTP/1.1"), body),
        body: payload(body),
    }
}

fn response(status: u16, body: &Body, sent: bool) -> Message {
    Message {
        side: S,
        name: status.to_string(),
        head: head(format!("HTTP/1.1 {status} Word"), body),
        body: if sent { payload(body) } else { String::new() },
    }
}

/// The messages of a connection in their order: groups of `depth` requests, then their answers.
fn script(turns: &[Turn], depth: usize, last: Last) -> Vec<Message> {
    let mut script = Vec::new();
    for (group, turns) in turns.chunks(depth).enumerate() {
        let ask = |(at, turn): (usize, &Turn)| request(group * depth + at, turn.method, &turn.request);
        script.extend(turns.iter().enumerate().map(ask));
        for turn in turns {
            script.extend(
                turn.interim
                    .iter()
                    .map(|status| response(*status, &Body::None, true)),
            );
            let bodiless = matches!(turn.status, 204 | 304) || turn.method == "HEAD";
            // a response without any framing would go on to the close
            let answer = match &turn.response {
                Body::None if !bodiless => Body::Length(0),
                body => body.clone(),
            };
            script.push(response(turn.status, &answer, !bodiless));
        }
    }
    let (method, status, body) = match last {
        Last::Nothing => return script,
        Last::UntilClose => ("GET", 200, Body::UntilClose),
        Last::Upgrade => ("GET", 101, Body::None),
        Last::Tunnel => ("CONNECT", 200, Body::None),
    };
    script.push(request(turns.len(), method, &Body::None));
    script.push(response(status, &body, true));
    if last != Last::UntilClose {
        for (side, text) in [(C, "\x01frame"), (S, "\x02frames"), (C, "\x03")] {
            script.push(Message {
                side,
                name: String::new(),
                head: text.into(),
                body: String::new(),
            });
        }
    }
    script
}

/// What each side said, by the notes: names and bytes of its messages.
fn transcript(notes: &[Note], side: Side) -> Vec<(String, u64)> {
    let (mut input, mut name) = (Vec::new(), String::new());
    for note in notes {
        match note {
            Note::Begin { side: whose, .. } if *whose == side => name.clear(),
            Note::Request { method, target } if side == C => name = format!("{method}.{target}"),
            Note::Response { status, .. } if side == S => name = status.to_string(),
            Note::End {
                side: whose, bytes, ..
            } if *whose == side => input.push((name.clone(), *bytes)),
            Note::Cut { .. } => panic!("{notes:?}"),
            _ => {}
        }
    }
    input
}

fn truth(script: &[Message], side: Side) -> Vec<(String, u64)> {
    script
        .iter()
        .filter(|message| message.side == side)
        .map(|message| (message.name.clone(), message.head.len() + message.body.len()))
        .map(|(name, len)| (name, len as u64))
        .collect()
}

fn connection() -> impl Strategy<Value = Vec<Message>> {
    let last = prop::sample::select(vec![Last::Nothing, Last::UntilClose, Last::Upgrade, Last::Tunnel]);
    (prop::collection::vec(turn(), 1..7), 1..4usize, last)
        .prop_map(|(turns, depth, last)| script(&turns, depth, last))
}

impl std::fmt::Debug for Message {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?} {:?} {:?}", self.side, self.head, self.body)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn messages_are_read_however_they_are_cut(script in connection(), sizes in prop::collection::vec(1..400usize, 1..9)) {
        // neighbours of one side share packets; the cuts follow the sizes, again and again
        let mut streams: Vec<(Side, String)> = Vec::new();
        for message in &script {
            match streams.last_mut() {
                Some((side, text)) if *side == message.side => *text += &message.head,
                _ => streams.push((message.side, message.head.clone())),
            }
            if let Some((_, text)) = streams.last_mut() {
                *text += &message.body;
            }
        }
        let mut pieces = Vec::new();
        let mut sizes = sizes.iter().cycle();
        for (side, text) in &streams {
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                pieces.push((*side, Stretch::Bytes(piece)));
                rest = behind;
            }
        }
        let notes = read(pieces, FIN);
        for side in [C, S] {
            prop_assert_eq!(transcript(&notes, side), truth(&script, side));
        }
    }

    /// Every message begins with a packet; bodies lack a stretch, which may reach to their end.
    #[test]
    fn holes_in_bodies_hide_no_other_message(script in connection(), holes in prop::collection::vec((0..400usize, 1..400usize), 14)) {
        let mut pieces = Vec::new();
        for (message, (start, len)) in script.iter().zip(holes.iter().cycle()) {
            pieces.push((message.side, Stretch::Bytes(message.head.as_bytes())));
            let body = message.body.as_bytes();
            let (before, rest) = body.split_at((*start).min(body.len()));
            let mut len = (*len).min(rest.len());
            // so much after a chunk's data is taken for the last chunk, which a snap length may have cut off
            let seems_last = |end: usize| end > 7 && body[end - 8] == b'y' && body[end - 7..].starts_with(b"\r\n");
            if len < rest.len() && seems_last(before.len() + len) {
                len += 1;
            }
            let (hole, behind) = rest.split_at(len);
            pieces.push((message.side, Stretch::Bytes(before)));
            pieces.push((message.side, Stretch::Missing(hole.len() as u64)));
            pieces.push((message.side, Stretch::Bytes(behind)));
        }
        let notes = read(pieces, FIN);
        for side in [C, S] {
            prop_assert_eq!(transcript(&notes, side), truth(&script, side));
        }
    }
}
