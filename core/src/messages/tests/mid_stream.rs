//! Streams whose beginning is not in the capture: a protocol is known by a later turn of each side, and an unknown
//! protocol stays unknown.

use super::*;

/// What a stream speaks in the end, and what it was told of requests.
fn spoken(script: &[(Side, &[u8])], joined: bool) -> (Option<Protocol>, usize) {
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    if joined {
        messages.set_mid_stream();
    }
    for (side, text) in script {
        at.frame += 1;
        messages.feed(*side, at, Stretch::Bytes(text), &mut notes);
    }
    let named = |note: &&Note| {
        matches!(
            note,
            Note::Keyed {
                event: ExchangeEvent::RequestName(_),
                ..
            }
        )
    };
    (messages.protocol(), notes.list.iter().filter(named).count())
}

const MAILBOX: &[(Side, &[u8])] = &[
    (S, b"the end of a mail\r\n.\r\n"),
    (C, b"RETR 2\r\n"),
    (S, b"+OK 9 octets\r\nb\r\n.\r\n"),
    (C, b"RETR 3\r\n"),
    (S, b"+OK 9 octets\r\nc\r\n.\r\n"),
    (C, b"DELE 3\r\n"),
    (S, b"+OK\r\n"),
];

/// A subscriber of MQTT: a PUBLISH goes on where the capture begins, PUBREC, PUBREL, PUBCOMP, another PUBLISH.
const SUBSCRIBER: &[(Side, &[u8])] = &[
    (C, b"\x50\x02\0\x0d"),
    (S, b"xxxxxxxx"),
    (C, b"\x50\x02\0\x0e"),
    (S, b"\x62\x02\0\x0d\x62\x02\0\x0e"),
    (C, b"\x70\x02\0\x0d"),
    (S, b"\x32\x0a\0\x03a/b\0\x0fhey"),
    (C, b"\x40\x02\0\x0f"),
];

#[test]
fn a_later_turn_of_each_side_tells_the_protocol() {
    assert_eq!(spoken(MAILBOX, true), (Some(Protocol::Pop3), 2));
    assert_eq!(spoken(SUBSCRIBER, true).0, Some(Protocol::Mqtt));
    let directory: &[(Side, &[u8])] = &[
        (S, b"226 Transfer complete.\r\n"),
        (C, b"xxxx"),
        (S, b"257 \"/\"\r\n"),
        (C, b"SIZE a\r\n"),
        (S, b"213 30000\r\n"),
    ];
    assert_eq!(spoken(directory, true), (Some(Protocol::Ftp), 1));
}

#[test]
fn a_stream_that_was_seen_from_its_beginning_is_not_asked_again() {
    assert_eq!(spoken(MAILBOX, false), (Some(Protocol::Turns), 0));
    assert_eq!(spoken(SUBSCRIBER, false).0, Some(Protocol::Turns));
}

#[test]
fn words_of_others_are_told_apart_by_both_sides() {
    // NATS says words of Redis, a work queue those of memcached, one side at a time
    let nats: &[(Side, &[u8])] = &[
        (S, b"MSG feed 1 3\r\nabc\r\n"),
        (C, b"PING\r\n"),
        (S, b"PONG\r\n"),
        (C, b"PUB svc 2\r\nhi\r\n"),
        (S, b"+OK\r\n"),
        (C, b"SUB svc 1\r\n"),
        (S, b"+OK\r\n"),
    ];
    let queue: &[(Side, &[u8])] = &[
        (S, b"RESERVED 1 3\r\nabc\r\n"),
        (C, b"delete 1\r\n"),
        (S, b"DELETED\r\n"),
        (C, b"put 0 0 60 2\r\nhi\r\n"),
        (S, b"INSERTED 2\r\n"),
        (C, b"delete 2\r\n"),
        (S, b"DELETED\r\n"),
        (C, b"reserve\r\n"),
        (S, b"RESERVED 3 1\r\na\r\n"),
    ];
    for (script, protocol) in [(nats, Protocol::Nats), (queue, Protocol::Beanstalk)] {
        assert_eq!(spoken(script, true).0, Some(protocol));
    }
}

#[test]
fn memcached_is_known_by_two_turns_in_a_row() {
    let script: &[(Side, &[u8])] = &[
        (S, b"xyz\r\nEND\r\n"),
        (C, b"touch a 9\r\n"),
        (S, b"TOUCHED\r\n"),
        (C, b"incr b 1\r\n"),
        (S, b"2\r\n"),
        (C, b"incr b 1\r\n"),
        (S, b"3\r\n"),
    ];
    assert_eq!(spoken(script, true).0, Some(Protocol::Memcached));
}

#[test]
fn only_so_many_turns_are_looked_at() {
    let odd = [(C, &b"xxxx"[..]), (S, b"yyyy")];
    for (rounds, protocol) in [(12, Protocol::Pop3), (20, Protocol::Turns)] {
        let mut script = odd.repeat(rounds);
        script.extend_from_slice(MAILBOX);
        assert_eq!(spoken(&script, true).0, Some(protocol), "{rounds}");
    }
}

#[test]
fn the_text_of_a_mail_before_the_first_command_is_no_other_protocol() {
    let script: &[(Side, &[u8])] = &[
        (S, b"+OK\r\n1 00000001\r\n2 00000002\r\n.\r\n"),
        (C, b"RETR 1\r\n"),
        (S, b"+OK 3 octets\r\na\r\n.\r\n"),
        (C, b"QUIT\r\n"),
        (S, b"+OK\r\n"),
    ];
    assert_eq!(spoken(script, true), (Some(Protocol::Pop3), 2));
}
