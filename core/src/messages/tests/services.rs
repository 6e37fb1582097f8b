//! iSCSI, OPC UA, EtherNet/IP, RabbitMQ's streams, NATS, STOMP, FastCGI, Gearman and beanstalkd: what only looks like
//! them, holes, and what goes on. Their conversations are in `tests/cases`, which `recorded.rs` cuts in every way.

use super::frames::*;
use super::*;

fn turns(client: &[u8], server: &[u8]) {
    let (notes, protocols) = transcript(&[(C, client.to_vec()), (S, server.to_vec())]);
    assert_eq!(protocols, [Protocol::Turns], "{notes}");
}

/// A unit of iSCSI without data.
fn unit(operation: u8, tag: u32, len: u8) -> Vec<u8> {
    let mut unit = vec![0; 48];
    (unit[0], unit[1], unit[7]) = (operation, 0x80, len);
    unit[16..20].copy_from_slice(&tag.to_be_bytes());
    unit
}

#[test]
fn zeros_and_other_tags_are_no_scsi() {
    turns(&unit(1, 0, 0), &unit(0x21, 0, 0)); // zeros repeat zeros
    turns(&unit(0x11, 7, 0), &unit(0x21, 7, 0)); // no operation of an initiator
    turns(&[unit(1, 7, 0), vec![0x70]].concat(), &unit(0x21, 7, 0));
}

#[test]
fn a_hole_in_a_target_s_data_is_counted() {
    let (asks, data, ends) = (unit(0x43, 7, 0), unit(0x25, 7, 40), unit(0x21, 7, 0));
    let login = unit(0x23, 7, 0);
    let pieces = [
        (C, Stretch::Bytes(&asks[..])),
        (S, Stretch::Bytes(&login)),
        (C, Stretch::Bytes(&asks)),
        (S, Stretch::Bytes(&data)),
        (S, Stretch::Missing(40)),
        (S, Stretch::Bytes(&ends)),
    ];
    let notes = short(&stretches(&pieces));
    assert!(notes.ends_with("S7:88( S7:=0/ok S7:48)"), "{notes}");
}

fn command(key: u16, id: u32, more: &[u8]) -> Vec<u8> {
    let len = 8 + more.len() as u32;
    [
        &len.to_be_bytes()[..],
        &key.to_be_bytes(),
        &[0, 1],
        &id.to_be_bytes(),
        more,
    ]
    .concat()
}

#[test]
fn kafka_and_rabbitmq_streams_are_told_apart() {
    let asks = command(17, 1, &[0; 4]);
    let (notes, protocols) = transcript(&[(C, asks.clone()), (S, command(0x8011, 1, &[0, 1, 0, 0, 0, 0]))]);
    assert_eq!(protocols, [Protocol::RabbitStreams], "{notes}");
    // the same words to a broker of Kafka, which repeats the number alone
    let (notes, protocols) = transcript(&[
        (C, asks),
        (S, [&[0, 0, 0, 8][..], &[0, 0, 0, 1, 0, 0, 0, 0]].concat()),
    ]);
    assert_eq!(protocols, [Protocol::Kafka], "{notes}");
}

fn opcua(kind: &[u8], id: u8, service: u16, more: &[u8]) -> Vec<u8> {
    let body = [
        &[1, 0, 0, 0, 1, 0, 0, 0, id, 0, 0, 0, id, 0, 0, 0, 1, 0],
        &service.to_le_bytes()[..],
        more,
    ]
    .concat();
    [kind, &(8 + body.len() as u32).to_le_bytes(), &body].concat()
}

#[test]
fn messages_of_opc_ua_go_on_in_chunks_and_sealed_ones_keep_their_order() {
    let hello = [&b"HELF\x20\0\0\0"[..], &[0; 24]].concat();
    let yes = [&b"ACKF\x1c\0\0\0"[..], &[0; 20]].concat();
    let script = [
        (C, hello),
        (S, yes),
        (C, opcua(b"MSGF", 5, 631, &[0; 9])),
        (
            S,
            [opcua(b"MSGC", 5, 634, &[0; 16]), opcua(b"MSGF", 5, 9, &[])].concat(),
        ),
        (
            C,
            [opcua(b"MSGF", 6, 9999, &[]), opcua(b"MSGF", 7, 9999, &[])].concat(),
        ),
        (S, opcua(b"MSGF", 1, 9998, &[])),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::OpcUa], "{notes}");
    assert_eq!(
        notes,
        "C1099511627776:(Setup C1099511627776:Hello.@ C1099511627776:32) S1099511627776:( S1099511627776:=ok \
         S1099511627776:28) C5:( C5:Read.@ C5:37) S5:( S5:=ok S5:72) C2199023255552:( C2199023255552:message.@ \
         C2199023255552:28) C2199023255553:( C2199023255553:message.@ C2199023255553:28) S2199023255552:( \
         S2199023255552:28)"
    );
    turns(b"HELP ", b"no");
}

#[test]
fn lines_that_other_servers_say_are_not_theirs() {
    turns(b"use mail\r\n", b"ERR\r\n");
    turns(b"PUB a 2\r\nhi\r\n", b"-ERRor\r\n");
    turns(b"put 1 0 9 2 7\r\n", b"INSERTED 7\r\n");
    turns(b"stop\r\n", b"OK 2\r\nhi\r\n");
    turns(&[0x65, 0, 5, 0], b"no");
    turns(b"SEND\nmoney\n", b"OK\n\n");
    turns(b"PING\r\n", b"PONG\r\n");
    turns(b"CONNECTED\nto:you\n\n\0", b"RECEIPT\nid:1\n\n\0");
    turns(&[1, 1, 0, 1, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0], b"no"); // no role of FastCGI
}

#[test]
fn what_a_broker_delivers_belongs_to_what_subscribed() {
    let (notes, protocols) = transcript(&[
        (S, b"INFO {\"server_id\":\"x\"} \r\n".to_vec()),
        (C, b"CONNECT {}\r\nSUB jobs.* 4\r\nSUB log workers 5\r\n".to_vec()),
        (
            S,
            b"MSG log 5 2\r\nhi\r\nMSG jobs.a 4 2\r\nhi\r\nMSG other 9 2\r\nhi\r\n".to_vec(),
        ),
    ]);
    assert_eq!(protocols, [Protocol::Nats], "{notes}");
    assert_eq!(
        notes,
        "C0:( C0:SUB.jobs.*@ C0:subscribes0 C0:14) C0:unanswered C1:( C1:SUB.log@ C1:subscribes1 C1:19) C1:unanswered \
         push17.MSG.log<1 push20.MSG.jobs.a<0 push19.MSG.other"
    );
    let (notes, protocols) = transcript(&[
        (C, b"CONNECT\n\n\0".to_vec()),
        (S, b"CONNECTED\nversion:1.2\n\n\0".to_vec()),
        (C, b"SUBSCRIBE\nid:7\ndestination:/queue/a\n\n\0".to_vec()),
        (
            C,
            b"SUBSCRIBE\nid:8\ndestination:/queue/b\nreceipt:r\n\n\0".to_vec(),
        ),
        (
            S,
            b"RECEIPT\nreceipt-id:r\n\n\0MESSAGE\nsubscription:7\ndestination:/queue/a\n\nx\0".to_vec(),
        ),
        (
            S,
            b"MESSAGE\nsubscription:8\ndestination:/queue/b\n\nx\0".to_vec(),
        ),
    ]);
    assert_eq!(protocols, [Protocol::Stomp], "{notes}");
    assert!(
        notes.contains("C1:unanswered")
            && notes.contains("C2:subscribes2")
            && !notes.contains("C2:unanswered"),
        "{notes}"
    );
    assert!(notes.ends_with("/queue/a<1 push47.MESSAGE./queue/b<2"), "{notes}");
    let subscribe = [&[5][..], &[0, 3], b"log", &[0, 1]].concat();
    let (notes, protocols) = transcript(&[
        (C, command(17, 1, &[0; 4])),
        (S, command(0x8011, 1, &[0, 1, 0, 0, 0, 0])),
        (C, command(7, 2, &subscribe)),
        (
            S,
            [
                command(0x8007, 2, &[0, 1]),
                [&[0, 0, 0, 6][..], &[0, 8, 0, 1, 5, 0]].concat(),
            ]
            .concat(),
        ),
    ]);
    assert_eq!(protocols, [Protocol::RabbitStreams], "{notes}");
    assert!(
        notes.contains("C2:subscribes2") && notes.ends_with("push10.Deliver.<2"),
        "{notes}"
    );
}

#[test]
fn a_full_list_of_receipts_of_stomp_loses_none_to_a_subscription_without_one() {
    let frames = (0..1024).map(|receipt| format!("SEND\nreceipt:{receipt}\n\n\0"));
    let subscription = "SUBSCRIBE\nid:7\ndestination:/queue/a\n\n\0".to_owned();
    let commands = frames.chain([subscription]).collect::<String>();
    let notes = short(&stretches(&[
        (C, Stretch::Bytes(b"CONNECT\n\n\0")),
        (S, Stretch::Bytes(b"CONNECTED\nversion:1.2\n\n\0")),
        (C, Stretch::Bytes(commands.as_bytes())),
        (S, Stretch::Bytes(b"RECEIPT\nreceipt-id:0\n\n\0")),
    ]));
    assert!(notes.ends_with("S1:( S1:=ok S1:23)"), "{notes}");
}

#[test]
fn a_hole_in_a_body_of_stomp_is_counted_where_its_length_is_known() {
    let head = b"SEND\ncontent-length:9\nreceipt:1\n\nab";
    let pieces = [
        (C, Stretch::Bytes(&b"CONNECT\n\n\0"[..])),
        (S, Stretch::Bytes(b"CONNECTED\nversion:1.2\n\n\0")),
        (C, Stretch::Bytes(head)),
        (C, Stretch::Missing(6)),
        (C, Stretch::Bytes(b"i\0")),
        (S, Stretch::Bytes(b"RECEIPT\nreceipt-id:1\n\n\0")),
    ];
    let notes = short(&stretches(&pieces));
    assert!(
        notes.ends_with("C1:( C1:SEND.@ C1:43) S1:( S1:=ok S1:23)"),
        "{notes}"
    );
    let unknown = [
        pieces[0],
        pieces[1],
        (C, Stretch::Bytes(b"SEND\n\nab")),
        (C, Stretch::Missing(1)),
    ];
    assert!(short(&stretches(&unknown)).contains("a_frame's_beginning"));
}

fn job(magic: &[u8], kind: u8, arguments: &[u8]) -> Vec<u8> {
    [
        magic,
        &[0, 0, 0, kind],
        &(arguments.len() as u32).to_be_bytes(),
        arguments,
    ]
    .concat()
}

#[test]
fn jobs_of_gearman_end_with_their_results() {
    let (ask, say) = (b"\0REQ".as_slice(), b"\0RES".as_slice());
    let script = [
        (C, job(ask, 7, b"reverse\0id1\0secret")),
        (C, job(ask, 18, b"mail\0\0secret")),
        (S, [job(say, 8, b"H:1"), job(say, 8, b"H:2")].concat()),
        (S, job(say, 12, b"H:1\x001\x002")),
        (S, job(say, 28, b"H:1\0half")),
        (S, job(say, 13, b"H:1\0whole")),
        (C, job(ask, 7, b"reverse\0id2\0x")),
        (S, job(say, 8, b"H:3")),
        (S, job(say, 14, b"H:3")),
        (C, job(ask, 1, b"reverse")),
        (C, job(ask, 9, b"")),
        (S, job(say, 10, b"")),
        (C, job(ask, 4, b"")),
        (S, job(say, 6, b"")),
        (S, job(say, 6, b"")),
        (C, job(ask, 16, b"hi")),
        (S, job(say, 19, b"ERR_UNKNOWN_COMMAND\0no")),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::Gearman], "{notes}");
    assert_eq!(
        notes,
        "C0:( C0:SUBMIT_JOB.reverse@ C0:30) C1:( C1:SUBMIT_JOB_BG.mail@ C1:24) S0:15interim S1:( S1:=ok S1:15) \
         S0:19interim S0:( S0:20( S0:=ok S0:21) C2:( C2:SUBMIT_JOB.reverse@ C2:25) S2:15interim S2:( \
         S2:=WORK_FAIL/error S2:15) C3:( C3:GRAB_JOB.@ C3:12) S3:( S3:=NO_JOB S3:12) C4:(LongPoll C4:PRE_SLEEP.@ \
         C4:12) S4:( S4:=ok S4:12) C5:( C5:ECHO_REQ.@ C5:14) S5:( S5:=ERR_UNKNOWN_COMMAND/error S5:34)"
    );
}

#[test]
fn what_looks_like_gearman_is_not() {
    for (asks, answers) in [
        (job(b"\0REQ", 43, b""), job(b"\0RES", 8, b"H:1")),
        (job(b"\0REQ", 9, b""), b"\0RESULT of something".to_vec()),
        (b"\0REQUEST number one".to_vec(), job(b"\0RES", 10, b"")),
    ] {
        let (notes, protocols) = transcript(&[(C, asks), (S, answers)]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}

#[test]
fn a_worker_of_gearman_asks_with_what_it_wrote_just_before() {
    let (mut messages, mut notes) = (Messages::new(), Notes::default());
    let result = job(b"\0REQ", 13, b"H:1\0x");
    let grab = job(b"\0REQ", 9, b"");
    let none = job(b"\0RES", 10, b"");
    let script = [
        (C, &grab, 1, 0),
        (S, &none, 2, 5),
        (C, &result, 3, 10),
        (C, &grab, 4, 50), // Nagle's algorithm held it
        (S, &none, 5, 55),
        (C, &result, 6, 60),
        (C, &grab, 7, 2_000), // its program slept
    ];
    for (side, bytes, frame, ms) in script {
        let at = At {
            frame,
            time_ns: ms * 1_000_000,
        };
        messages.feed(side, at, Stretch::Bytes(bytes), &mut notes);
    }
    let begun: Vec<u64> = notes
        .list
        .iter()
        .filter_map(|note| match note {
            Note::Keyed {
                at,
                event: ExchangeEvent::RequestBegin(_),
                ..
            } => Some(at.frame),
            _ => None,
        })
        .collect();
    assert_eq!(begun, [1, 3, 7]);
}

#[test]
fn responses_of_beanstalkd_belong_to_their_commands_however_many_wait() {
    let commands = [b"watch a\r\n".repeat(4_096), b"stats\r\n".to_vec()].concat();
    let notes = stretches(&[
        (C, Stretch::Bytes(b"use a\r\n")),
        (S, Stretch::Bytes(b"USING a\r\n")),
        (C, Stretch::Bytes(&commands)),
        (S, Stretch::Bytes(b"WATCHING 1\r\n")),
        (C, Stretch::Bytes(b"stats\r\n")), // like the one before without a row
        (S, Stretch::Bytes(&b"WATCHING 1\r\n".repeat(4_095))),
        (S, Stretch::Bytes(&b"OK 2\r\nok\r\n".repeat(2))),
        (C, Stretch::Bytes(b"ignore a\r\n")),
        (S, Stretch::Bytes(b"NOT_IGNORED\r\n")),
    ]);
    let keys = |wanted: fn(&ExchangeEvent<'_>) -> bool| {
        let keyed = notes.iter().filter_map(move |note| match note {
            Note::Keyed { key, event, .. } if wanted(event) => Some(*key),
            _ => None,
        });
        keyed.collect::<Vec<_>>()
    };
    let begun = keys(|event| matches!(event, ExchangeEvent::RequestBegin(_)));
    assert_eq!(begun.len(), 4_098);
    assert_eq!(keys(|event| matches!(event, ExchangeEvent::AnswerEnd)), begun);
}

#[test]
fn a_client_of_beanstalkd_may_quit() {
    let notes = stretches(&[
        (C, Stretch::Bytes(b"use a\r\n")),
        (S, Stretch::Bytes(b"USING a\r\n")),
        (C, Stretch::Bytes(b"quit\r\n")),
    ]);
    assert!(!notes.iter().any(|note| matches!(note, Note::Lost { .. })));
    let is_request = |note: &&Note| {
        matches!(
            note,
            Note::Keyed {
                event: ExchangeEvent::RequestBegin(_),
                ..
            }
        )
    };
    assert_eq!(notes.iter().filter(is_request).count(), 1);
}
