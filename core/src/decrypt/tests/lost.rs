//! Bytes that are not in the capture, bytes that were changed, and bytes that are anything.

use proptest::prelude::*;

use super::modern::keyed;
use super::talk::{RANDOM, log12, log13};
use super::{Bytes, Client, Heard, Missing, Part, Sealed, Server, classic, keys, listen, listen_in};
use crate::decrypt::suite::Hash;

/// Ten answers after a handshake of TLS 1.3; what is in each record, and the log.
fn answers() -> (Vec<Part>, Vec<Vec<u8>>, Vec<u8>, String) {
    let mut talk = keyed(1);
    let parts = talk.handshake();
    let content: Vec<u8> = (0..10).flat_map(|n| vec![b'0' + n; 100]).collect();
    let records = content
        .chunks(100)
        .map(|content| talk.server.seal(23, content))
        .collect();
    (parts, records, content, log13(Hash::Sha384, &[]))
}

#[test]
fn a_hole_inside_a_record_loses_that_record() {
    let (mut parts, records, content, log) = answers();
    parts.push(Bytes(Server, [&records[0], &records[1][..20]].concat()));
    parts.push(Missing(Server, 50));
    parts.push(Missing(Server, 10));
    parts.push(Bytes(Server, [&records[1][80..], &records[2]].concat()));
    let (heard, sealed) = listen(&parts, &log);
    assert_eq!((sealed, heard.missing), (None, vec![(Server, 100)]));
    assert_eq!(heard.server, [&content[..100], &content[200..300]].concat());
}

#[test]
fn a_hole_over_records_is_measured_by_their_numbers() {
    for (from, until) in [
        (0, 1),
        (0, 150),
        (122, 244),
        (30, 400),
        (200, 201),
        (121, 122),
        (122, 125),
        (0, 1000),
    ] {
        let (mut parts, records, content, log) = answers();
        let joined = records.concat();
        let each = records[0].len();
        parts.push(Bytes(Server, joined[..from].to_vec()));
        parts.push(Missing(Server, until - from as u64));
        parts.push(Bytes(Server, joined[until as usize..].to_vec()));
        let (heard, sealed) = listen(&parts, &log);
        let (before, after) = (from / each, (until as usize).div_ceil(each));
        let lost = (after - before) as u64 * 100;
        assert_eq!(
            (sealed, heard.missing),
            (None, vec![(Server, lost)]),
            "{from}..{until}"
        );
        assert_eq!(
            heard.server,
            [&content[..before * 100], &content[after * 100..]].concat()
        );
    }
}

#[test]
fn a_key_update_may_be_in_the_hole() {
    let mut talk = keyed(0);
    let mut parts = talk.handshake();
    parts.push(Bytes(Server, talk.server.seal(23, b"one ")));
    let Bytes(_, update) = talk.update(Server) else {
        unreachable!()
    };
    parts.push(Missing(Server, update.len() as u64));
    talk.server.seal(23, b"lost, too");
    parts.push(Missing(Server, 31));
    parts.push(Bytes(Server, talk.server.seal(23, b"two")));
    let (heard, sealed) = listen(&parts, &log13(Hash::Sha256, &[]));
    assert_eq!((sealed, heard.server), (None, b"one two".to_vec()));
}

#[test]
fn the_rest_of_a_handshake_may_be_in_the_hole() {
    let mut talk = keyed(0);
    let Bytes(_, flight) = talk.server_flight(false) else {
        unreachable!()
    };
    let parts = [
        talk.hello(),
        Bytes(Server, flight[..3000].to_vec()),
        Missing(Server, flight.len() as u64 - 3000),
        talk.client_finished(),
        Bytes(Client, talk.client.seal(23, b"ask")),
        Bytes(Server, talk.server.seal(23, b"answer")),
    ];
    let (heard, sealed) = listen(&parts, &log13(Hash::Sha256, &[]));
    assert_eq!(
        (sealed, heard.client, heard.server),
        (None, b"ask".to_vec(), b"answer".to_vec())
    );

    let parts = [
        talk.hello(),
        Missing(Server, 10),
        Bytes(Server, flight[10..].to_vec()),
    ];
    assert_eq!(listen(&parts, &log13(Hash::Sha256, &[])).1, Some(Sealed::Hellos));
}

#[test]
fn a_change_of_keys_in_a_hole_is_found_in_tls_1_2() {
    for number in [0xc02f, 0xcca8, 0xc014] {
        let (mut keyed, mut parts) = classic::talk(number, false, false);
        parts.truncate(4);
        parts.push(Missing(Server, 100));
        parts.push(Bytes(Client, keyed.client.seal(23, b"ask")));
        parts.push(Bytes(Server, keyed.server.seal(23, b"answer")));
        let (heard, sealed) = listen(&parts, &log12(&RANDOM, &[0x42; 48]));
        assert_eq!(
            (sealed, heard.client, heard.server),
            (None, b"ask".to_vec(), b"answer".to_vec())
        );
    }
}

#[test]
fn a_changed_record_is_lost_and_the_next_one_opens() {
    let (mut parts, mut records, content, log) = answers();
    records[3][40] ^= 1;
    parts.push(Bytes(Server, records.concat()));
    let (heard, sealed) = listen(&parts, &log);
    assert_eq!((sealed, heard.missing), (None, vec![(Server, 100)]));
    assert_eq!(heard.server, [&content[..300], &content[400..]].concat());
}

#[test]
fn too_many_lost_records_seal_the_rest() {
    let mut talk = keyed(1);
    let mut parts = talk.handshake();
    parts.push(Bytes(Server, talk.server.seal(23, b"one")));
    talk.server.seq += 100;
    parts.push(Missing(Server, 10_000));
    (0..100).for_each(|_| parts.push(Bytes(Server, talk.server.seal(23, b"two"))));
    let (heard, sealed) = listen(&parts, &log13(Hash::Sha384, &[]));
    assert_eq!((sealed, heard.server), (Some(Sealed::Lost), b"one".to_vec()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever is changed, lost or put in: no panic, nothing that was not said, the same however it is cut.
    #[test]
    fn only_what_was_said_is_heard(
        changes in proptest::collection::vec((0..4_usize, 0..12_000_usize, 0..2000_u64, any::<u8>()), 1..6)
    ) {
        let mut talk = keyed(2);
        let mut parts = talk.handshake();
        let content: Vec<Vec<u8>> = (0..10).map(|n| vec![b'0' + n; 900]).collect();
        for content in &content {
            parts.push(Bytes(Server, talk.server.seal(23, content)));
        }
        let mut server: Vec<u8> = Vec::new();
        let mut client: Vec<u8> = Vec::new();
        for part in &parts {
            match part {
                Bytes(Server, bytes) => server.extend(bytes),
                Bytes(Client, bytes) => client.extend(bytes),
                Missing(..) => {}
            }
        }
        let mut changed = vec![Bytes(Client, client)];
        let mut from = 0;
        for (what, skip, len, byte) in changes {
            let until = (from + skip).min(server.len());
            let mut piece = server[from..until].to_vec();
            let mut lost = 0;
            match what {
                0 => lost = len,
                1 => piece.iter_mut().take(1).for_each(|first| *first ^= byte),
                2 => piece.push(byte),
                _ => {}
            }
            changed.push(Bytes(Server, piece));
            from = (until + lost as usize).min(server.len());
            changed.push(Missing(Server, lost));
        }
        changed.push(Bytes(Server, server[from..].to_vec()));
        let log = keys(&log13(Hash::Sha256, &[]));
        let (whole, _) = listen_in(&changed, &log, |bytes| vec![bytes.to_vec()]);
        let (cut, _) = listen_in(&changed, &log, |bytes| bytes.chunks(11).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(&whole, &cut);
        let mut last = 0;
        for byte in &whole.server {
            prop_assert!(byte.is_ascii_digit() && *byte >= last);
            last = *byte;
        }
        prop_assert_eq!(&whole.client, &Heard::default().client);
    }
}
