//! Redis: pipelines, pushes of both versions of the protocol, holes, and what only looks like it.

use super::dns::transcript;
use super::*;

fn told(script: &[(Side, &str)]) -> (String, Option<Protocol>) {
    let script: Vec<_> = script
        .iter()
        .map(|(side, text)| (*side, text.as_bytes().to_vec()))
        .collect();
    transcript(&script)
}

/// A command as clients send it.
fn command(words: &[&str]) -> String {
    let strings = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), strings.collect::<String>())
}

#[test]
fn conversations() {
    let (set, get) = (command(&["set", "k:1", "secret"]), command(&["GET", "k:1"]));
    let many = command(&["SUBSCRIBE", "a", "b"]);
    for (name, script, notes) in [
        (
            "a pipeline, whose answers come in order",
            vec![(C, [&set[..], &get, &command(&["INCR", "k:1"])].concat()), (S, "+OK\r\n$6\r\nsecret\r\n-ERR value is not\r\n".into())],
            "C0:( C0:SET.k:1@ C0:34) C1:( C1:GET.k:1@ C1:22) C2:( C2:INCR.k:1@ C2:23) \
             S0:( S0:5=ok S0:) S1:( S1:12=ok S1:) S2:( S2:19=ERR/error S2:)",
        ),
        (
            "nested answers, empty ones, and those of version 3",
            vec![
                (C, [command(&["HELLO", "3", "AUTH", "me", "secret"]), command(&["LRANGE", "l", "0", "1"]), command(&["X"]), command(&["Y"]), command(&["Z"])].concat()),
                (S, "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n*2\r\n*0\r\n*2\r\n:1\r\n$-1\r\n*-1\r\n|1\r\n+ttl\r\n:5\r\n#t\r\n_\r\n".into()),
            ],
            "C0:(Setup C0:HELLO.@ C0:52) C1:( C1:LRANGE.l@ C1:37) C2:( C2:X.@ C2:11) C3:( C3:Y.@ C3:11) C4:( C4:Z.@ C4:11) \
             S0:( S0:51=ok S0:) S1:( S1:21=ok S1:) S2:( S2:5=ok S2:) S3:( S3:18=ok S3:) S4:( S4:3=ok S4:)",
        ),
        (
            "messages of channels are pushes (version 2)",
            vec![
                (C, many.clone()),
                (S, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n".into()),
                (S, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n".into()),
                (C, command(&["PING"])),
                (S, "*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$2\r\nhi\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n".into()),
                (C, command(&["UNSUBSCRIBE"])),
                (S, "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n".into()),
            ],
            "C0:( C0:SUBSCRIBE.a@ C0:subscribes0 C0:33) S0:( S0:60=ok S0:) push32.message.a<0 C1:( C1:PING.@ C1:14) push42.pmessage.ab \
             S1:( S1:20=ok S1:) C2:( C2:UNSUBSCRIBE.@ C2:22) S2:( S2:66=ok S2:)",
        ),
        (
            "pushes between answers, and confirmations that look like them (version 3)",
            vec![
                (C, [command(&["GET", "k"]), command(&["SUBSCRIBE", "a"]), command(&["GET", "message"])].concat()),
                (S, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$1\r\nv\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n+x\r\n$2\r\nhi\r\n".into()),
            ],
            "C0:( C0:GET.k@ C0:20) C1:( C1:SUBSCRIBE.a@ C1:subscribes1 C1:26) C2:( C2:GET.message@ C2:26) push32.invalidate.k \
             S0:( S0:7=ok S0:) S1:( S1:30=ok S1:) push28.message.a<1 S2:( S2:8=ok S2:)",
        ),
        (
            "what MONITOR shows is pushes, and tells no command",
            vec![
                (C, command(&["MONITOR"])),
                (S, "+OK\r\n+1795331748.880416 [0 10.0.0.1:41528] \"SET\" \"k\" \"secret\"\r\n".into()),
                (C, command(&["PING"])),
                (S, "+PONG\r\n".into()),
            ],
            "C0:( C0:MONITOR.@ C0:subscribes0 C0:17) S0:( S0:5=ok S0:) push58.monitor.<0 C1:( C1:PING.@ C1:14) S1:( S1:7=ok S1:)",
        ),
        (
            "a blocking command waits for an event",
            vec![(C, [command(&["BLPOP", "jobs", "0"]), command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"])].concat()), (S, "*2\r\n$4\r\njobs\r\n$1\r\nx\r\n*-1\r\n".into())],
            "C0:(LongPoll C0:BLPOP.jobs@ C0:32) C1:(LongPoll C1:XREAD.s@ C1:60) S0:( S0:21=ok S0:) S1:( S1:5=ok S1:)",
        ),
        (
            "no answers where the client wants none",
            vec![
                (C, [command(&["CLIENT", "REPLY", "SKIP"]), set.clone(), get.clone(), command(&["CLIENT", "REPLY", "OFF"]), set.clone(), command(&["CLIENT", "REPLY", "ON"])].concat()),
                (S, "$1\r\nv\r\n+OK\r\n".into()),
            ],
            "C0:( C0:GET.k:1@ C0:22) C1:( C1:CLIENT.REPLY@ C1:35) S0:( S0:7=ok S0:) S1:( S1:5=ok S1:)",
        ),
        (
            "an answer to the command that asks for answers again",
            vec![
                (C, [command(&["CLIENT", "REPLY", "SKIP"]), command(&["CLIENT", "REPLY", "ON"])].concat()),
                (S, "+OK\r\n".into()),
            ],
            "C0:( C0:CLIENT.REPLY@ C0:35) S0:( S0:5=ok S0:)",
        ),
        (
            "lines of words",
            vec![(C, "PING\r\nSET k secret\r\n\r\nGET  k\r\n".into()), (S, "+PONG\r\n+OK\r\n$6\r\nsecret\r\n".into())],
            "C0:( C0:PING.@ C0:6) C1:( C1:SET.k@ C1:14) C2:( C2:GET.k@ C2:8) S0:( S0:7=ok S0:) S1:( S1:5=ok S1:) S2:( S2:12=ok S2:)",
        ),
        (
            "scripts without their values, with their key",
            vec![
                (C, [command(&["EVAL", "return {1, 'secret'}", "0"]), command(&["EVALSHA", "abcd", "1", "k", "secret"]), command(&["OBJECT", "ENCODING", "k"]), command(&["DEBUG", "SLEEP", "0.1"])].concat()),
                (S, "*0\r\n+OK\r\n+OK\r\n+OK\r\n".into()),
            ],
            "C0:( C0:EVAL.return {?}@ C0:48) C1:( C1:EVALSHA.k@ C1:53) C2:( C2:OBJECT ENCODING.k@ C2:37) C3:( C3:DEBUG.SLEEP@ C3:35) \
             S0:( S0:4=ok S0:) S1:( S1:5=ok S1:) S2:( S2:5=ok S2:) S3:( S3:5=ok S3:)",
        ),
        (
            "a replica is not asked any more",
            vec![(C, command(&["PSYNC", "?", "-1"])), (S, "+FULLRESYNC abc 0\r\n$5\r\nREDIS".into()), (S, "*1\r\n$4\r\nPING\r\n".into()), (C, command(&["REPLCONF", "ACK", "0"]))],
            "C0:( C0:PSYNC.@ C0:30) S0:( S0:19=ok S0:)",
        ),
        (
            "empty lines before a replica's data, and how far it has come",
            vec![
                (C, command(&["PSYNC", "?", "-1"])),
                (S, "\n".into()),
                (S, "\n\n+FULLRESYNC abc 0\r\n".into()),
                (C, command(&["REPLCONF", "ACK", "0"])),
                (S, "*1\r\n$4\r\nPING\r\n".into()),
            ],
            "C0:( C0:PSYNC.@ C0:30) S0:( S0:19=ok S0:)",
        ),
        (
            "a replica that is joined in the middle",
            vec![
                (C, command(&["REPLCONF", "ACK", "0"])),
                (S, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n".into()),
                (C, command(&["REPLCONF", "ACK", "9"])),
            ],
            "",
        ),
        (
            "the server says no before it is asked",
            vec![(C, command(&["PING"])), (S, "-DENIED not here\r\n".into())],
            "C0:( C0:PING.@ C0:14) S0:( S0:18=DENIED/error S0:)",
        ),
        (
            "joined where only the server speaks",
            vec![(S, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n:1\r\n".into())],
            "push32.message.a",
        ),
    ] {
        let script: Vec<_> = script.iter().map(|(side, text)| (*side, &text[..])).collect();
        let (heard, protocol) = told(&script);
        assert_eq!(heard, notes, "{name}");
        assert_eq!(protocol, Some(Protocol::Redis), "{name}");
    }
}

#[test]
fn what_only_looks_like_it() {
    for script in [
        [(C, "*12\r\n$5 apples\r\n"), (S, "ok\r\n")],
        [(C, "*2\r\n+PING\r\n"), (S, "ok\r\n")],
        [(C, "*1\r\n$4\r\n\x01\x02\x03\x04\r\n"), (S, "ok\r\n")],
        [(C, "*1\r\n$4\r\nPING--"), (S, "+PONG\r\n")],
        [(C, "* OK ready\r\n"), (S, "+PONG\r\n")],
        [(C, "GET k\r\n"), (S, "END\r\n")],
        [(C, "PING me\r\n"), (S, "+pong: and so on\r\n")],
        [(C, "INFO\r\n"), (S, "+OK no line end\n")],
        [(S, "+OK POP3 ready\r\n"), (C, "USER me\r\n")],
        [(S, "*1\r\n$4\r\nPING\r\n"), (C, "+PONG\r\n")],
    ] {
        assert_ne!(told(&script).1, Some(Protocol::Redis), "{script:?}");
    }
}

#[test]
fn the_server_is_named_by_its_answers() {
    for (asked, answered) in [
        (command(&["HELLO", "3"]), "%1\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n"),
        (
            command(&["INFO"]),
            "$32\r\n# Server\r\nredis_version:7.0.1\r\nx\r\n",
        ),
    ] {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        for (side, text) in [(C, &asked[..]), (S, answered)] {
            messages.feed(side, At::default(), Stretch::Bytes(text.as_bytes()), &mut notes);
        }
        assert_eq!(messages.software(), Some("Redis 7.0.1"));
    }
}

#[test]
fn holes_inside_values_do_no_harm_and_others_end_it() {
    let (get, set) = (
        command(&["GET", "k"]),
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000\r\nabc",
    );
    let notes = read(
        [
            bytes(C, &get),
            bytes(S, "$9000\r\nabc"),
            (S, Stretch::Missing(8994)),
            bytes(S, "def\r\n"),
            bytes(C, set),
            (C, Stretch::Missing(8997)),
            bytes(C, "\r\n"),
            bytes(S, "+O"),
            (S, Stretch::Missing(9)),
            bytes(S, "+OK\r\n"),
            bytes(C, &get),
            bytes(S, "$-1\r\n"),
        ],
        FIN,
    );
    assert_eq!(
        short(&notes),
        "C0:( C0:GET.k@ C0:20) S0:( S0:9009=ok S0:) C1:( C1:SET.k@ C1:9029) \
         S1:( S?a_value's_beginning_is_not_in_the_capture S( S)14 C2:( C2:GET.k@ C2:20) S2:( S2:5=ok S2:)"
    );
}

#[test]
fn joined_in_the_middle_answers_before_the_first_command_are_dropped() {
    let notes = read(
        [
            bytes(C, "rest of a value\r\n"),
            bytes(S, ":1\r\n"),
            bytes(C, &command(&["GET", "k"])),
            bytes(S, "$-1\r\n"),
        ],
        FIN,
    );
    assert_eq!(
        short(&notes),
        "C( C)17 S( S)4 C0:( C0:GET.k@ C0:20) S0:( S0:5=ok S0:)"
    );
    // an array of words may be a reply
    assert_eq!(likely_sender(b"*2\r\n$1\r\na\r\n$1\r\n1\r\n"), None);
    for verb in ["get", "ZUNIONSTORE", "json.SET"] {
        assert_eq!(likely_sender(command(&[verb, "k"]).as_bytes()), Some(C), "{verb}");
    }
}

#[test]
fn a_long_answer_comes_in_pieces_and_too_deep_a_one_ends_it() {
    let deep = "*1\r\n".repeat(31) + ":1\r\n";
    let (heard, _) = told(&[(C, &command(&["GET", "k"])), (S, &deep)]);
    assert!(heard.ends_with("S0:128=ok S0:)"), "{heard}");
    let deeper = format!("*1\r\n{deep}");
    let heard = short(&read([bytes(C, &command(&["GET", "k"])), bytes(S, &deeper)], FIN));
    assert!(heard.contains("S?not_a_reply_of_Redis"), "{heard}");
    let notes = read(
        [
            bytes(C, &command(&["GET", "k"])),
            bytes(S, "$8\r\nab"),
            bytes(S, "cdefgh\r\n"),
        ],
        FIN,
    );
    let pieces = notes.iter().filter(|note| {
        matches!(
            note,
            Note::Keyed {
                event: ExchangeEvent::Piece,
                ..
            }
        )
    });
    assert_eq!(pieces.count(), 2);
}
