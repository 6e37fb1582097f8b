//! Frames of HTTP/2 and WebSocket as their senders write them, and scripts that read the same however they are cut.

use super::*;

/// What both sides say, in packets.
pub(super) type Script = Vec<(Side, Vec<u8>)>;

fn heard_in(script: &[(Side, Vec<u8>)], cut: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> (String, Vec<Protocol>) {
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    for (side, bytes) in script {
        for piece in cut(bytes) {
            at.frame += 1;
            messages.feed(*side, at, Stretch::Bytes(&piece), &mut notes);
        }
    }
    for side in [C, S] {
        messages.close(side, at, Close::Fin, &mut notes);
    }
    (short(&notes.list), notes.protocols)
}

/// The notes in short and the protocols, the same however the bytes are cut: whole, byte by byte, in two at every
/// place.
pub(super) fn transcript(script: &[(Side, Vec<u8>)]) -> (String, Vec<Protocol>) {
    let uncut = heard_in(script, |bytes| vec![bytes.to_vec()]);
    let single = heard_in(script, |bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect());
    assert_eq!(single, uncut, "byte by byte");
    for offset in 1..script.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0) {
        let halves = heard_in(script, |bytes| {
            let (first, last) = bytes.split_at(offset.min(bytes.len()));
            vec![first.to_vec(), last.to_vec()]
        });
        assert_eq!(halves, uncut, "cut at {offset}");
    }
    uncut
}

pub(super) fn notes(script: &[(Side, Vec<u8>)]) -> String {
    transcript(script).0
}

/// The notes of stretches, one packet each: for holes, and for what begins in the middle.
pub(super) fn stretches(script: &[(Side, Stretch<'_>)]) -> Vec<Note<'static>> {
    read(script.iter().copied(), Some(Close::Fin))
}

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
/// Headers that are the whole message.
pub(super) const WHOLE: u8 = END_STREAM | END_HEADERS;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) fn data(stream: u32, flags: u8, body: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, body)
}

/// A header block that leaves the table alone.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let literal = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.iter().flat_map(literal).collect()
}

pub(super) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, flags, stream, &block(fields))
}

pub(super) fn get(stream: u32, path: &str) -> Vec<u8> {
    headers(
        stream,
        WHOLE,
        &[(":method", "GET"), (":authority", "h"), (":path", path)],
    )
}

pub(super) fn status(stream: u32, flags: u8, status: &str) -> Vec<u8> {
    headers(stream, flags, &[(":status", status)])
}

/// The beginning of a connection.
pub(super) fn opening() -> Script {
    let settings = frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]);
    vec![
        (C, [PREFACE, &settings, &frame(8, 0, 0, &[0, 1, 0, 0])].concat()),
        (S, [settings, frame(4, 1, 0, &[])].concat()),
        (C, frame(4, 1, 0, &[])),
    ]
}

pub(super) fn after_opening(more: Script) -> Script {
    [opening(), more].concat()
}

/// A frame of WebSocket; the client's is masked.
pub(super) fn ws(side: Side, first: u8, payload: &[u8]) -> Vec<u8> {
    let bit = if side == C { 0x80 } else { 0 };
    let mut out = vec![first];
    match payload.len() {
        len @ 0..=125 => out.push(bit | len as u8),
        len => {
            out.push(bit | 126);
            out.extend((len as u16).to_be_bytes());
        }
    }
    let mask: &[u8] = if side == C { &[0x37, 0xfa, 0x21, 0x3d] } else { &[] };
    out.extend(mask);
    let masks = mask.iter().copied().cycle().chain(std::iter::repeat(0));
    out.extend(payload.iter().zip(masks).map(|(byte, mask)| byte ^ mask));
    out
}

pub(super) fn text(side: Side, payload: &str) -> Vec<u8> {
    ws(side, 0x81, payload.as_bytes())
}
