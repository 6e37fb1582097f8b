//! Every parse case (`cases.rs`) is run whole, byte by byte and cut in two at every place: the notes must
//! be the same but for the packets. Holes, caps and packets follow here, random bytes in `random.rs`.

mod amqp;
mod cases;
mod commands;
mod conversations;
mod dnp3;
mod dns;
mod frames;
mod http2;
mod industrial;
mod interactive;
mod kafka;
mod ldap;
mod lost;
mod memcached;
mod mid_stream;
mod missing;
mod modbus;
mod mongodb;
mod mqtt;
mod mysql;
mod postgres;
mod proxy;
mod random;
mod recorded;
mod redis;
mod rpc;
mod services;
mod sip;
mod smb;
mod tls;
mod tls_keys;
mod websocket;

use super::Side::{Client as C, Server as S};
use smol_str::SmolStr;

use super::*;
use cases::{CASES, FIN};

/// What was heard.
#[derive(Default)]
struct Notes {
    list: Vec<Note<'static>>,
    protocols: Vec<Protocol>,
    memory: Memory,
    /// Whole messages of DNS.
    dns: Vec<Vec<u8>>,
    /// How TLS was set up, as it was told last.
    secured: Option<TlsSetup>,
}

/// Tests read few texts, and end soon.
fn kept(text: &str) -> &'static str {
    Box::leak(text.to_string().into_boxed_str())
}

fn kept_status(status: Status<'_>) -> Status<'static> {
    Status {
        code: status.code,
        text: status.text.map(kept),
        error: status.error,
    }
}

impl Listener for Notes {
    fn note(&mut self, note: Note<'_>) {
        let short = |text: &SmolStr| &*Box::leak(Box::new(text.clone()));
        self.list.push(match note {
            Note::Request { method, target } => Note::Request {
                method: short(method),
                target: short(target),
            },
            Note::Begin { side, at, other } => Note::Begin { side, at, other },
            Note::Host(host) => Note::Host(short(host)),
            Note::Kind(kind) => Note::Kind(kind),
            Note::Tags { side, tags } => Note::Tags {
                side,
                tags: Box::leak(Box::new(tags.clone())),
            },
            Note::ConnectionTags(tags) => Note::ConnectionTags(Box::leak(Box::new(tags.clone()))),
            Note::Dialogue => Note::Dialogue,
            Note::Response { status, interim } => Note::Response { status, interim },
            Note::Status(status) => Note::Status(kept_status(status)),
            Note::IsEventStream => Note::IsEventStream,
            Note::Piece { at } => Note::Piece { at },
            Note::End { side, at, bytes } => Note::End { side, at, bytes },
            Note::Cut { side, at, bytes, by } => Note::Cut { side, at, bytes, by },
            Note::Keyed { key, side, at, event } => {
                let event = match event {
                    ExchangeEvent::RequestBegin(kind) => ExchangeEvent::RequestBegin(kind),
                    ExchangeEvent::RequestName(named) => ExchangeEvent::RequestName(RequestName {
                        method: kept(named.method),
                        target: kept(named.target),
                        host: kept(named.host),
                    }),
                    ExchangeEvent::Tags(tags) => ExchangeEvent::Tags(Box::leak(Box::new(tags.clone()))),
                    ExchangeEvent::Bytes(bytes) => ExchangeEvent::Bytes(bytes),
                    ExchangeEvent::RequestEnd => ExchangeEvent::RequestEnd,
                    ExchangeEvent::AnswerBegin => ExchangeEvent::AnswerBegin,
                    ExchangeEvent::Status(status) => ExchangeEvent::Status(kept_status(status)),
                    ExchangeEvent::IsEventStream => ExchangeEvent::IsEventStream,
                    ExchangeEvent::Piece => ExchangeEvent::Piece,
                    ExchangeEvent::Interim => ExchangeEvent::Interim,
                    ExchangeEvent::AnswerEnd => ExchangeEvent::AnswerEnd,
                    ExchangeEvent::Dialogue => ExchangeEvent::Dialogue,
                    ExchangeEvent::Reset => ExchangeEvent::Reset,
                    ExchangeEvent::GivenUp => ExchangeEvent::GivenUp,
                    ExchangeEvent::Adopt => ExchangeEvent::Adopt,
                    ExchangeEvent::Unanswered => ExchangeEvent::Unanswered,
                    ExchangeEvent::Subscribes(number) => ExchangeEvent::Subscribes(number),
                };
                Note::Keyed { key, side, at, event }
            }
            Note::Push(push) => Note::Push(Push {
                method: kept(push.method),
                target: kept(push.target),
                ..push
            }),
            Note::Lost { side, at, reason } => Note::Lost { side, at, reason },
            Note::Sealed { at, why } => Note::Sealed { at, why },
            Note::DataPort { .. } | Note::Transfer { .. } | Note::Flow(_) => return,
            Note::Dns { message, .. } => return self.dns.push(message.to_vec()),
            Note::TlsSetup { setup, .. } => return self.secured = Some(setup.clone()),
            Note::Protocol(protocol) => return self.protocols.push(protocol),
        });
    }

    fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

/// The notes in short, the same however the bytes were cut: bytes of an exchange with a key are added up until
/// something else is said of it, pieces (they are packets) are left out.
fn short(notes: &[Note]) -> String {
    let letter = |side: &Side| if *side == C { 'C' } else { 'S' };
    let status = |status: &Status| {
        let code = status.code.map(|code| code.to_string());
        let words = [code.as_deref(), status.text, status.error.then_some("error")];
        words.into_iter().flatten().collect::<Vec<_>>().join("/")
    };
    let (mut words, mut counted) = (Vec::new(), std::collections::BTreeMap::new());
    for note in notes {
        words.push(match note {
            Note::Begin { side, .. } => format!("{}(", letter(side)),
            Note::Request { method, target } => format!("{method}.{target}"),
            Note::Host(host) => format!("@{host}"),
            Note::Kind(kind) => format!("{kind:?}"),
            Note::Tags { tags, .. } | Note::ConnectionTags(tags) => {
                format!("#{}/{}/{}", tags.trace_id, tags.request_id, tags.forwarded_for)
            }
            Note::Response { status, interim } => format!("{status}{}", if *interim { "i" } else { "" }),
            Note::Status(event) => format!("={}", status(event)),
            Note::Dialogue => "dialogue".into(),
            Note::IsEventStream => "streams".into(),
            Note::Sealed { why, .. } => format!("{why:?}"),
            Note::End { side, bytes, .. } => format!("{}){bytes}", letter(side)),
            Note::Cut { side, bytes, by, .. } => format!("{}!{by:?}{bytes}", letter(side)),
            Note::Keyed {
                key,
                event: ExchangeEvent::Bytes(bytes),
                ..
            } => {
                *counted.entry(*key).or_insert(0u64) += bytes;
                continue;
            }
            Note::Flow(_)
            | Note::Piece { .. }
            | Note::Keyed {
                event: ExchangeEvent::Piece,
                ..
            } => continue,
            Note::Keyed { key, side, event, .. } => {
                let bytes = counted
                    .remove(key)
                    .map_or(String::new(), |bytes| bytes.to_string());
                let event = match event {
                    ExchangeEvent::RequestBegin(Kind::Request) => "(".into(),
                    ExchangeEvent::RequestBegin(kind) => format!("({kind:?}"),
                    ExchangeEvent::RequestName(RequestName { method, target, host }) => {
                        format!("{method}.{target}@{host}")
                    }
                    ExchangeEvent::RequestEnd => ")".into(),
                    ExchangeEvent::AnswerBegin => "(".into(),
                    ExchangeEvent::Status(event) => format!("={}", status(event)),
                    ExchangeEvent::AnswerEnd => ")".into(),
                    ExchangeEvent::Subscribes(number) => format!("subscribes{number}"),
                    ExchangeEvent::IsEventStream => "streams".into(),
                    other => format!("{other:?}").to_lowercase(),
                };
                format!("{}{key}:{bytes}{event}", letter(side))
            }
            Note::Push(push) => {
                let number = push.subscription.map(|number| format!("<{number}"));
                let number = number.unwrap_or_default();
                format!("push{}.{}.{}{number}", push.bytes, push.method, push.target)
            }
            Note::Lost { side, reason, .. } => format!("{}?{}", letter(side), reason.replace(' ', "_")),
            Note::Protocol(protocol) => format!("={}", protocol.word()),
            Note::TlsSetup { .. } | Note::Dns { .. } | Note::DataPort { .. } | Note::Transfer { .. } => {
                continue;
            } // not in the list
        });
    }
    words.join(" ")
}

/// Feeds pieces, one packet each, and closes both sides.
fn read<'a>(
    pieces: impl IntoIterator<Item = (Side, Stretch<'a>)>,
    close: Option<Close>,
) -> Vec<Note<'static>> {
    heard(pieces, close).list
}

fn heard<'a>(pieces: impl IntoIterator<Item = (Side, Stretch<'a>)>, close: Option<Close>) -> Notes {
    heard_by(Messages::new(), pieces, close)
}

fn heard_by<'a>(
    mut messages: Messages,
    pieces: impl IntoIterator<Item = (Side, Stretch<'a>)>,
    close: Option<Close>,
) -> Notes {
    let (mut notes, mut at) = (Notes::default(), At::default());
    for (side, piece) in pieces {
        at.frame += 1;
        messages.feed(side, at, piece, &mut notes);
    }
    at.frame += 1;
    for side in [C, S] {
        close
            .iter()
            .for_each(|how| messages.close(side, at, *how, &mut notes));
    }
    notes
}

const fn bytes(side: Side, text: &str) -> (Side, Stretch<'_>) {
    (side, Stretch::Bytes(text.as_bytes()))
}

/// All of `script`, each piece in chunks as `cut` says.
fn cut<'a>(script: &[(Side, &'a str)], cut: impl Fn(&'a [u8]) -> Vec<&'a [u8]>) -> Vec<(Side, Stretch<'a>)> {
    let mut pieces = Vec::new();
    for (side, text) in script {
        pieces.extend(
            cut(text.as_bytes())
                .into_iter()
                .map(|piece| (*side, Stretch::Bytes(piece))),
        );
    }
    pieces
}

#[test]
fn cases_read_the_same_however_they_are_cut() {
    for (name, script, close, notes) in CASES {
        let uncut = read(cut(script, |text| vec![text]), *close);
        assert_eq!(short(&uncut), *notes, "{name}");
        let single = read(cut(script, |text| text.chunks(1).collect()), *close);
        assert_eq!(short(&single), *notes, "{name}, byte by byte");
        for offset in 1..script.iter().map(|(_, text)| text.len()).max().unwrap_or(0) {
            let halves = cut(script, |text| {
                let (first, last) = text.split_at(offset.min(text.len()));
                vec![first, last]
            });
            assert_eq!(short(&read(halves, *close)), *notes, "{name}, cut at {offset}");
        }
    }
}

#[test]
fn a_head_that_was_cut_before_reads_the_same() {
    let ask = [bytes(C, "GET /a HTTP/1.1\r\nHo"), (C, Stretch::Missing(9))];
    let cut = [bytes(S, "HTTP/1.1 204 No"), (S, Stretch::Missing(30))];
    let whole = [bytes(S, "HTTP/1.1 204 No"), bytes(S, " Content\r\n\r\n")];
    let closed = [bytes(S, "HTTP/1.1 204 No")];
    let event = |answer: &[(Side, Stretch<'_>)], notes: &mut Notes| {
        let mut messages = Messages::new();
        notes.list.clear();
        for (side, piece) in ask.iter().chain(answer) {
            messages.feed(*side, At::default(), *piece, notes);
        }
        messages.close(S, At::default(), Close::Fin, notes);
        short(&notes.list)
    };
    let answers = [&cut[..], &whole, &closed];
    let first = answers.map(|answer| event(answer, &mut Notes::default()));
    assert!(first.iter().all(|event| event.contains("GET./a")));
    let mut notes = Notes::default();
    for _ in 0..2 {
        assert_eq!(answers.map(|answer| event(answer, &mut notes)), first);
    }
}

#[test]
fn begin_and_end_carry_the_packets_of_the_first_and_the_last_byte() {
    let (_, script, close, _) = CASES[0];
    let notes = read(cut(script, |text| text.chunks(1).collect()), close);
    let mut next = 1;
    for note in notes {
        match note {
            Note::Begin { at, .. } => assert_eq!(at.frame, next),
            Note::End { at, bytes, .. } => {
                assert_eq!(at.frame, next + bytes - 1);
                next += bytes;
            }
            _ => {}
        }
    }
    let fin = read([bytes(S, "HTTP/1.0 200 OK\r\n\r\nbody")], FIN);
    assert!(fin.contains(&Note::End {
        side: S,
        at: At { frame: 2, time_ns: 0 },
        bytes: 23
    }));
}

#[test]
fn the_server_says_what_it_is() {
    let name = |script: &[(Side, &str)]| {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        for (side, text) in script {
            messages.feed(*side, At::default(), Stretch::Bytes(text.as_bytes()), &mut notes);
        }
        messages.software().map(String::from)
    };
    let none = "HTTP/1.1 204 No\r\n\r\n";
    let nginx = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Length: 0\r\n\r\n";
    let other = "HTTP/1.1 204 No\r\nServer: other\r\n\r\n";
    let get = "GET /a HTTP/1.1\r\nServer: mine\r\n\r\n";
    for (script, expected) in [
        (
            &[(C, get), (S, none), (S, nginx), (S, other)][..],
            Some("nginx/1.22.1"),
        ),
        (
            &[
                (C, get),
                (S, "HTTP/1.1 204 No\r\nSer"),
                (S, "ver: two parts\r\n\r\n"),
            ],
            Some("two parts"),
        ),
        (
            &[(C, get), (S, none), (S, none), (S, none), (S, none), (S, nginx)],
            None,
        ),
        (
            &[(C, "SSH-2.0-PuTTY\r\n"), (S, "SSH-2.0-OpenSSH_9.2\r\n")],
            Some("OpenSSH_9.2"),
        ),
        (
            &[
                (S, "220 mx ESMTP Postfix\r\n"),
                (C, "EHLO me\r\n"),
                (S, "220 no SMTP greeting\r\n"),
            ],
            Some("Postfix"),
        ),
        (
            &[
                (S, "hello\r\n"),
                (C, "EHLO me\r\n"),
                (S, "220 no SMTP greeting\r\n"),
            ],
            None,
        ),
    ] {
        assert_eq!(name(script).as_deref(), expected, "{script:?}");
    }
}

/// RFC 9110 10.1.1: a client that is refused before it has sent its body may leave it out.
#[test]
fn a_body_is_left_out_after_an_early_answer() {
    let refused = [
        bytes(
            C,
            "PUT /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        ),
        bytes(S, "HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno"),
        bytes(C, "PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
        bytes(S, "HTTP/1.1 201 OK\r\nContent-Length: 0\r\n\r\n"),
        bytes(C, "GET /b HTTP/1.1\r\n\r\n"),
    ];
    assert_eq!(
        short(&read(refused, FIN)),
        "C( PUT./a S( 417 S)40 C)60 C( PUT./a C)41 S( 201 S)38 C( GET./b C)19"
    );
    let sent = [
        bytes(C, "POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\n"),
        bytes(S, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n"),
        bytes(C, "GET / HTTP/1.1 in words of the "),
    ];
    assert_eq!(short(&read(sent, FIN)), "C( POST./ S( 413 S)41 C)69 C( C!Fin1");
}

#[test]
fn heads_and_targets_are_capped() {
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "é".repeat(3000));
    let notes = read([bytes(C, &long)], FIN);
    let Some(Note::Request { target, .. }) = notes.get(1) else {
        panic!("{notes:?}")
    };
    assert_eq!((target.len(), target.chars().next_back()), (2047 + 3, Some('…')));

    let long_head = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    assert_eq!(
        short(&read([bytes(C, &long_head)], FIN)),
        format!("C( GET./ C){}", long_head.len())
    );

    for len in [70_000, 65_536 - 20, 65_536 - 21] {
        let head = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(len));
        let lost = if len > 65_536 - 23 {
            "C?head_is_too_long "
        } else {
            ""
        };
        let whole = format!("{head}\r\n\r\n");
        let expected = format!("C( GET./ {lost}C){}", whole.len());
        assert_eq!(short(&read([bytes(C, &whole)], FIN)), expected);
        let pieces = whole
            .as_bytes()
            .chunks(999)
            .map(|piece| (C, Stretch::Bytes(piece)));
        assert_eq!(short(&read(pieces, FIN)), expected);
    }
}

#[test]
fn who_would_say_this() {
    assert_eq!(likely_sender(b"GET / HTTP/1.1\r\n"), Some(C));
    assert_eq!(likely_sender(b"BREW pot HTTP/1.1\r\n"), Some(C));
    assert_eq!(likely_sender(b"HTTP/1.1 200 OK\r\n"), Some(S));
    assert_eq!(likely_sender(b"220 mail\r\n"), None);
}

#[test]
fn an_idle_stream_is_small() {
    assert!(size_of::<Messages>() <= 192, "{}", size_of::<Messages>());
}
