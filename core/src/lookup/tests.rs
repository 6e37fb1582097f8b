use super::*;
use crate::base::At;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 53));
const WEB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9));
const MS: i64 = 1_000_000;

fn at(frame: u64, ms: i64) -> At {
    At {
        frame,
        time_ns: ms * MS,
    }
}

fn message(id: u16, kind: u8, answer: bool) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let records = u8::from(answer && kind == 1);
    let mut bytes = vec![
        high,
        low,
        if answer { 0x81 } else { 1 },
        0,
        0,
        1,
        0,
        records,
        0,
        0,
        0,
        0,
    ];
    bytes.extend(b"\x01w\x01x\0\0");
    bytes.extend([kind, 0, 1]);
    if records == 1 {
        bytes.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x09");
    }
    bytes
}

fn say(lookups: &mut Lookups, port: u16, bytes: &[u8], at: At) -> bool {
    let asks = bytes.get(2).is_some_and(|flags| flags & 0x80 == 0);
    let (src, dst, sport, dport) = if asks {
        (CLIENT, SERVER, port, 53)
    } else {
        (SERVER, CLIENT, 53, port)
    };
    let udp = Udp {
        src,
        dst,
        sport,
        dport,
        payload: bytes,
    };
    lookups.datagram(&udp, at).is_some()
}

#[test]
fn the_first_connect_soon_after_both_answers_waited_for_them() {
    for (after, other, want) in [
        (0, CLIENT, true),
        (1000, CLIENT, true),  // LOOKED_UP_NS
        (1001, CLIENT, false), // what it has known for long
        (0, SERVER, false),    // another client's lookup
    ] {
        let mut lookups = Lookups::default();
        say(&mut lookups, 5000, &message(1, 1, false), at(1, 0));
        say(&mut lookups, 5000, &message(2, 28, false), at(2, 1));
        say(&mut lookups, 5000, &message(1, 1, true), at(3, 4));
        say(&mut lookups, 5000, &message(2, 28, true), at(4, 30));
        assert_eq!(lookups.take_finished().len(), 2);
        // the address stands in the answer of 4 ms
        lookups.connect(other, WEB, at(5, 4 + after));
        lookups.connect(CLIENT, IpAddr::from([10, 0, 0, 8]), at(6, 31));
        let found = lookups.take_for_syn(5);
        assert_eq!(found.is_some(), want, "{after} {other}");
        assert!(found.is_none_or(
            |lookup| (lookup.name.as_str(), lookup.duration_ns, lookup.number) == ("w.x", 30 * MS, 0)
        ));
        lookups.connect(CLIENT, WEB, at(7, 32));
        assert_eq!(lookups.take_for_syn(7).is_some(), !want && after == 0);
        assert_eq!(lookups.take_for_syn(6), None);
    }
}

#[test]
fn a_question_asked_again_is_one_lookup_and_other_answers_are_none() {
    let mut lookups = Lookups::default();
    say(&mut lookups, 5000, &message(1, 1, false), at(1, 0));
    say(&mut lookups, 5001, &message(1, 1, true), at(2, 1)); // of another port
    say(&mut lookups, 5000, &message(2, 1, true), at(3, 2)); // with another id
    say(&mut lookups, 5000, &message(1, 1, false), at(4, 5000));
    say(&mut lookups, 5000, &message(1, 1, true), at(5, 5010));
    say(&mut lookups, 5000, &message(1, 1, true), at(6, 5011)); // twice
    let [one] = &lookups.take_finished()[..] else {
        panic!("one lookup")
    };
    assert_eq!(
        (
            one.retransmissions,
            one.answered,
            one.status.and_then(|status| status.text)
        ),
        (1, Some(at(5, 5010)), Some("NOERROR"))
    );
    assert_eq!((one.kind.as_str(), &one.addresses[..]), ("A", &[WEB][..]));
    assert!(lookups.take_unanswered().is_empty());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut lookups = Lookups::default();
    let mut issues = 0;
    for number in 0..=MAX_WAITING as u16 {
        issues += u32::from(say(&mut lookups, 5000, &message(number, 1, false), at(1, 0)));
    }
    assert_eq!(
        (issues, lookups.waiting.len(), lookups.take_finished().len()),
        (1, MAX_WAITING, 1)
    );
    for number in 1..=MAX_WAITING as u16 {
        say(&mut lookups, 5000, &message(number, 1, true), at(2, 1));
    }
    assert_eq!((lookups.answers.len(), lookups.waiting.len()), (MAX_ANSWERS, 0));
    for turn in 0..5 * MAX_WAITING as u16 {
        say(
            &mut lookups,
            5000,
            &message(turn % 7, 1 + 27 * u8::from(turn % 2 == 0), false),
            at(3, 2),
        );
    }
    assert!(lookups.order.len() <= 2 * MAX_WAITING);
    assert_eq!(lookups.take_unanswered().len(), 7);
}
