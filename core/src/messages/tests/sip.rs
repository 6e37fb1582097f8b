//! SIP and RTSP: calls and their answers, what either side asks, media, keepalives, names, holes, the middle.

use super::frames::*;
use super::*;

fn ask(method: &str, call: &str, number: u32, body: &str) -> Vec<u8> {
    format!(
        "{method} sip:anna@lab SIP/2.0\r\nVia: SIP/2.0/TCP h\r\nCall-ID: {call}\r\nCSeq: {number} {method}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn answer(code: u16, method: &str, call: &str, number: u32) -> Vec<u8> {
    format!(
        "SIP/2.0 {code} Said\r\ni: {call}\r\ncseq:  {number}   {method}\r\nServer: Kamailio (5.7)\r\nl: 3\r\n\r\nv=0"
    )
    .into()
}

fn rtsp(first: &str, number: u32) -> Vec<u8> {
    format!("{first}\r\nCSeq: {number}\r\n\r\n").into()
}

fn media(channel: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x80;
    [&[b'$', channel][..], &(len as u16).to_be_bytes(), &packet].concat()
}

/// The notes with the keys as letters, in the order in which they are met.
fn heard(script: &[(Side, Vec<u8>)], want: Protocol) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [want], "{notes}");
    lettered(&notes)
}

fn lettered(notes: &str) -> String {
    let mut keys: Vec<String> = Vec::new();
    let words = notes.split(' ').map(|word| {
        let key = word
            .get(1..)
            .and_then(|rest| rest.split_once(':'))
            .filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_digit()) && key.len() > 9);
        let Some((key, rest)) = key else {
            return word.to_string();
        };
        let place = keys.iter().position(|known| known == key).unwrap_or_else(|| {
            keys.push(key.to_string());
            keys.len() - 1
        });
        format!("{}{}:{rest}", &word[..1], char::from(b'a' + place as u8))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_call_waits_for_a_person_and_ack_for_nobody() {
    let script = [
        (C, ask("INVITE", "x1", 1, "v=0")),
        (
            S,
            [answer(100, "INVITE", "x1", 1), answer(180, "INVITE", "x1", 1)].concat(),
        ),
        (C, b"\r\n\r\n".to_vec()),
        (S, [answer(200, "INVITE", "x1", 1), b"\r\n".to_vec()].concat()),
        (
            C,
            [ask("ACK", "x1", 1, ""), ask("REGISTER", "x2", 7, "")].concat(),
        ),
        (S, answer(401, "REGISTER", "x2", 7)),
        (
            C,
            [ask("BYE", "x1", 2, ""), ask("REGISTER", "x2", 8, "")].concat(),
        ),
        (
            S,
            [answer(404, "REGISTER", "x2", 8), answer(200, "BYE", "x1", 2)].concat(),
        ),
    ];
    assert_eq!(
        heard(&script, Protocol::Sip),
        "Ca:(LongPoll Ca:INVITE.sip:anna@lab@ Ca:102) Sa:( Sa:79interim Sa:( Sa:79interim Sa:( Sa:=200 Sa:79) \
         Cb:( Cb:REGISTER.sip:anna@lab@ Cb:103) Sb:( Sb:=401/Unauthorized Sb:81) Cc:( Cc:BYE.sip:anna@lab@ Cc:93) \
         Cd:( Cd:REGISTER.sip:anna@lab@ Cd:103) Sd:( Sd:=404/Not Found/error Sd:81) Sc:( Sc:=200 Sc:76)"
    );
}

#[test]
fn what_the_server_asks_is_a_push() {
    let script = [
        (C, ask("SUBSCRIBE", "x1", 1, "")),
        (
            S,
            [answer(200, "SUBSCRIBE", "x1", 1), ask("NOTIFY", "x1", 1, "open")].concat(),
        ),
        (C, answer(200, "NOTIFY", "x1", 1)),
    ];
    assert!(heard(&script, Protocol::Sip).ends_with("Sa:=200 Sa:82) push103.NOTIFY.sip:anna@lab"));
}

#[test]
fn addresses_are_shown_without_numbers_and_passwords() {
    for (address, shown) in [
        ("sip:service@10.0.0.1:5060", "sip:service@10.0.0.1:5060"),
        ("sip:+4930123@lab;user=phone", "sip:?@lab"),
        ("sips:anna:secret@lab", "sips:anna@lab"),
        ("sip:lab", "sip:lab"),
        ("tel:+4930123", "tel:?"),
    ] {
        let line = format!("OPTIONS {address} SIP/2.0\r\nCall-ID: a\r\nCSeq: 1 OPTIONS\r\n\r\n");
        let notes = notes(&[(C, line.into())]);
        assert!(notes.contains(&format!(":OPTIONS.{shown}@ ")), "{notes}");
    }
    let line = rtsp("PLAY rtsp://me:pw@cam/one/two?token=7 RTSP/1.0", 1);
    assert!(notes(&[(C, line)]).contains("PLAY.rtsp://me@cam/one/two@"));
}

#[test]
fn media_between_messages_are_pushes() {
    let script = [
        (C, rtsp("OPTIONS * RTSP/1.0", 1)),
        (S, rtsp("RTSP/1.0 200 OK", 1)),
        (C, rtsp("PLAY rtsp://cam/one RTSP/1.0", 2)),
        (
            S,
            [rtsp("RTSP/1.0 200 OK", 2), media(0, 600), media(1, 40)].concat(),
        ),
        (
            C,
            [media(1, 40), rtsp("TEARDOWN rtsp://cam/one RTSP/1.0", 3)].concat(),
        ),
        (
            S,
            [media(0, 600), rtsp("RTSP/1.0 454 Session Not Found", 3)].concat(),
        ),
    ];
    assert_eq!(
        heard(&script, Protocol::Rtsp),
        "C1:( C1:OPTIONS.*@ C1:31) S1:( S1:=200 S1:28) C2:( C2:PLAY.rtsp://cam/one@ C2:41) S2:( S2:=200 S2:28) \
         push604.media.channel 0 push44.media.channel 1 C3:( C3:TEARDOWN.rtsp://cam/one@ C3:45) push604.media.channel 0 \
         S3:( S3:=454/error S3:43)"
    );
}

#[test]
fn who_joins_in_the_middle_finds_a_first_line() {
    assert_eq!(likely_sender(&ask("BYE", "x", 1, "")), Some(C));
    assert_eq!(likely_sender(&answer(200, "BYE", "x", 1)), Some(S));
    let (play, ok, long) = (
        rtsp("PLAY rtsp://cam RTSP/1.0", 2),
        rtsp("RTSP/1.0 200 OK", 2),
        media(0, 1200),
    );
    let script = [
        (S, Stretch::Bytes(&b"the end of a picture"[..])),
        (C, Stretch::Bytes(&play)),
        (S, Stretch::Bytes(&ok)),
        (S, Stretch::Bytes(&long[..600])),
        (S, Stretch::Missing(400)),
        (S, Stretch::Bytes(&long[1000..])),
        (S, Stretch::Missing(40)),
        (S, Stretch::Bytes(&long)),
    ];
    let notes = short(&stretches(&script));
    assert!(
        notes.ends_with("S2:=200 S2:28) push1204.media.channel 0 push1204.media.channel 0"),
        "{notes}"
    );
}

#[test]
fn what_only_looks_like_it_is_not_taken() {
    for (request, response) in [
        ("INVITE http://lab SIP/2.0\r\n\r\n", "no"),
        ("INVITE sip:anna@lab SIP/3.0\r\n\r\n", "no"),
        ("SIP/2.0 is a version\r\n\r\n", "no"),
        ("PLAY the music\r\n", "no"),
        ("RTSP/1.0 OK\r\n\r\n", "no"),
    ] {
        let script = [(C, request), (S, response)].map(|(side, text)| bytes(side, text));
        let notes = short(&stretches(&script));
        assert_eq!(notes, format!("C( C){} S( S){}", request.len(), response.len()));
    }
    let (_, protocols) = transcript(&[(C, b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n".to_vec())]);
    assert_eq!(protocols, [Protocol::Http]);
}
