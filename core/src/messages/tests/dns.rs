//! DNS over TCP: many queries in one packet, answers in any order, cuts, holes, and what is not DNS.

use super::*;

/// A message with one question, after its length.
fn message(id: u16, flags: u16, name: &str, kind: u16, more: usize) -> Vec<u8> {
    let mut body = [id, flags, 1, 0, 0, 0]
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect::<Vec<_>>();
    for label in name.split('.') {
        body.push(label.len() as u8);
        body.extend(label.bytes());
    }
    body.push(0);
    body.extend([kind, 1].iter().flat_map(|word| word.to_be_bytes()));
    body.resize(body.len() + more, 0xAA);
    [(body.len() as u16).to_be_bytes().to_vec(), body].concat()
}

fn query(id: u16, name: &str) -> Vec<u8> {
    message(id, 0x0100, name, 1, 0)
}

fn answer(id: u16, rcode: u16, name: &str) -> Vec<u8> {
    message(id, 0x8180 | rcode, name, 1, 600)
}

/// The same however the bytes are cut: whole, byte by byte, in two at every place.
pub(super) fn transcript(script: &[(Side, Vec<u8>)]) -> (String, Option<Protocol>) {
    let run = |cut: &dyn Fn(&[u8]) -> Vec<Vec<u8>>| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, bytes) in script {
            for piece in cut(bytes) {
                at.frame += 1;
                messages.feed(*side, at, Stretch::Bytes(&piece), &mut notes);
            }
        }
        [C, S]
            .iter()
            .for_each(|side| messages.close(*side, at, Close::Fin, &mut notes));
        (short(&notes.list), messages.protocol())
    };
    let uncut = run(&|bytes| vec![bytes.to_vec()]);
    assert_eq!(run(&|bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect()), uncut);
    for offset in 1..script.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0) {
        let halves = |bytes: &[u8]| {
            let (first, last) = bytes.split_at(offset.min(bytes.len()));
            vec![first.to_vec(), last.to_vec()]
        };
        assert_eq!(run(&halves), uncut, "cut at {offset}");
    }
    uncut
}

#[test]
fn answers_in_any_order_find_their_queries() {
    let queries = [query(7, "a.lab"), query(9, "B.lab"), query(8, "c.lab")].concat();
    let (notes, protocol) = transcript(&[
        (C, queries),
        (S, [answer(9, 3, "B.lab"), answer(7, 0, "a.lab")].concat()),
        (S, answer(8, 2, "c.lab")),
    ]);
    assert_eq!(protocol, Some(Protocol::Dns));
    assert_eq!(
        notes,
        "C7:( C7:A.a.lab@ C7:25) C9:( C9:A.b.lab@ C9:25) C8:( C8:A.c.lab@ C8:25) \
         S9:( S9:625=3/NXDOMAIN/error S9:) S7:( S7:625=0/NOERROR S7:) S8:( S8:625=2/SERVFAIL/error S8:)"
    );
}

#[test]
fn the_first_byte_of_each_counts() {
    let (mut messages, mut notes) = (Messages::new(), Notes::default());
    let (asked, answered) = (query(1, "a.lab"), answer(1, 0, "a.lab"));
    let script = [
        (C, &asked[..1]),
        (C, &asked[1..]),
        (S, &answered[..9]),
        (S, &answered[9..]),
    ];
    for (frame, (side, bytes)) in script.into_iter().enumerate() {
        let at = At {
            frame: frame as u64 + 1,
            time_ns: 0,
        };
        messages.feed(side, at, Stretch::Bytes(bytes), &mut notes);
    }
    let frames = notes.list.iter().filter_map(|note| match note {
        Note::Keyed {
            at,
            event:
                event @ (ExchangeEvent::RequestBegin(_)
                | ExchangeEvent::RequestEnd
                | ExchangeEvent::AnswerBegin
                | ExchangeEvent::AnswerEnd),
            ..
        } => Some((at.frame, *event)),
        _ => None,
    });
    let want = [
        (1, ExchangeEvent::RequestBegin(Kind::Request)),
        (2, ExchangeEvent::RequestEnd),
        (3, ExchangeEvent::AnswerBegin),
        (4, ExchangeEvent::AnswerEnd),
    ];
    assert_eq!(frames.collect::<Vec<_>>(), want);
    assert!(!messages.has_unreported_bytes());
}

#[test]
fn a_client_that_has_asked_all_may_end_before_the_answer_tells() {
    let asked = [query(1, "a.lab"), query(2, "b.lab")].concat();
    let replied = [answer(1, 0, "a.lab"), answer(2, 0, "b.lab")].concat();
    let played = |script: &[(Side, Option<&[u8]>)]| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, said) in script {
            at.frame += 1;
            match said {
                Some(bytes) => messages.feed(*side, at, Stretch::Bytes(bytes), &mut notes),
                None => messages.close(*side, at, Close::Fin, &mut notes),
            }
        }
        (short(&notes.list), messages.protocol())
    };
    let (notes, protocol) = played(&[(C, Some(&asked)), (C, None), (S, Some(&replied)), (S, None)]);
    assert_eq!(protocol, Some(Protocol::Dns));
    assert!(notes.ends_with("S2:625=0/NOERROR S2:)"), "{notes}");
    // nobody answers, or not so
    assert_eq!(played(&[(C, Some(&asked)), (C, None), (S, None)]).0, "C( C)50");
    let other = played(&[(C, Some(&asked)), (C, None), (S, Some(b"no")), (S, None)]);
    assert_eq!(other, ("C( C)50 S( S)2".into(), Some(Protocol::Turns)));
}

#[test]
fn what_only_looks_like_a_query_is_turns() {
    for (asked, answered) in [
        (query(1, "a.lab"), query(1, "a.lab")),
        (message(1, 0x7900, "a.lab", 1, 0), vec![9; 40]), // no such operation
        ([query(1, "a.lab"), query(2, "a.lab")].concat(), vec![0; 40]),
        (b"\0\x17hello".to_vec(), vec![9; 40]),
    ] {
        let (notes, protocol) = transcript(&[(C, asked), (S, answered)]);
        assert_eq!(protocol, Some(Protocol::Turns), "{notes}");
        assert!(notes.starts_with("C( C)"), "{notes}");
    }
}

#[test]
fn holes_inside_records_do_no_harm_and_others_end_it() {
    let (asked, long) = (query(1, "a.lab"), message(1, 0x8180, "a.lab", 1, 3000));
    let rest = (long.len() - 400) as u64;
    let piece = |side, bytes: &'static [u8]| (side, Stretch::Bytes(bytes));
    let kept = |bytes: Vec<u8>| -> &'static [u8] { bytes.leak() };
    let (asked, long) = (kept(asked), kept(long));
    let notes = read(
        [
            piece(C, asked),
            piece(S, &long[..400]),
            (S, Stretch::Missing(rest)),
        ],
        FIN,
    );
    assert!(
        short(&notes).ends_with(&format!("S1:{}=0/NOERROR S1:)", long.len())),
        "{}",
        short(&notes)
    );
    let notes = read(
        [
            piece(C, asked),
            piece(S, &long[..400]),
            (S, Stretch::Missing(rest + 1)),
            piece(C, asked),
        ],
        FIN,
    );
    let notes = short(&notes);
    assert!(
        notes.contains("S?a_message's_beginning_is_not_in_the_capture"),
        "{notes}"
    );
    assert!(notes.ends_with("C1:( C1:A.a.lab@ C1:25)"), "{notes}"); // a query of a whole turn: read on
}
