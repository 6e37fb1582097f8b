//! LDAP: several searches at once, entries as pieces, results, holes, the middle, and what is none of it.

use super::frames::*;
use super::*;

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let len = match value.len() {
        0..=127 => vec![value.len() as u8],
        len => [&[0x84][..], &(len as u32).to_be_bytes()].concat(),
    };
    [&[tag], &len[..], &value].concat()
}

fn message(id: u8, operation: u8, parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &[&tlv(2, &[&[id]]), &tlv(operation, parts)])
}

fn search(id: u8, base: &str) -> Vec<u8> {
    message(id, 0x63, &[&tlv(4, &[base.as_bytes()]), &[10, 1, 2], &[0; 20]])
}

fn done(id: u8, operation: u8, code: u8) -> Vec<u8> {
    message(id, operation, &[&[10, 1, code, 4, 0, 4, 0]])
}

fn entry(id: u8, len: usize) -> Vec<u8> {
    message(id, 0x64, &[&tlv(4, &[b"cn=a"]), &tlv(0x30, &[&vec![7; len]])])
}

fn bind(id: u8) -> Script {
    let ask = message(
        id,
        0x60,
        &[&[2, 1, 3], &tlv(4, &[b"cn=me"]), &tlv(0x80, &[b"secret"])],
    );
    vec![(C, ask), (S, done(id, 0x61, 0))]
}

const BOUND: &str = "C1:( C1:bind.cn=me@ C1:25) S1:( S1:=0 S1:14)";

fn heard(more: Script) -> String {
    let (notes, protocols) = transcript(&[bind(1), more].concat());
    assert_eq!(protocols, [Protocol::Ldap], "{notes}");
    let rest = notes.strip_prefix(BOUND).unwrap_or_else(|| panic!("{notes}"));
    rest.trim_start().to_string()
}

#[test]
fn searches_at_once_end_in_any_order() {
    let entries = [entry(3, 9), entry(2, 5000), done(3, 0x65, 32), entry(2, 9)].concat();
    let script = vec![
        (C, [search(2, "dc=a"), search(3, "dc=b")].concat()),
        (S, entries),
        (S, done(2, 0x65, 0)),
    ];
    assert_eq!(
        heard(script),
        "C2:( C2:search.dc=a@ C2:36) C3:( C3:search.dc=b@ C3:36) S3:( S2:( S3:24( S3:=32/noSuchObject/error S3:14) S2:5027( \
         S2:24( S2:=0 S2:14)"
    );
}

#[test]
fn operations_say_what_they_are_about_and_some_are_never_answered() {
    let name = |name: &str| tlv(4, &[name.as_bytes()]);
    let script = vec![
        (C, message(2, 0x4a, &[b"cn=x"])),
        (S, done(2, 0x6b, 0)),
        (
            C,
            message(3, 0x6e, &[&name("cn=y"), &tlv(0x30, &[&name("sn"), &name("v")])]),
        ),
        (S, done(3, 0x6f, 6)),
        (C, message(4, 0x77, &[&tlv(0x80, &[b"1.2.3"])])),
        (S, done(4, 0x78, 2)),
        (
            C,
            [
                search(5, "dc=a"),
                message(6, 0x50, &[&[5]]),
                message(7, 0x42, &[]),
            ]
            .concat(),
        ),
        (S, done(0, 0x78, 52)),
    ];
    assert_eq!(
        heard(script),
        "C2:( C2:delete.cn=x@ C2:11) S2:( S2:=0 S2:14) C3:( C3:compare.cn=y@ C3:22) S3:( S3:=6 S3:14) \
         C4:( C4:extended.1.2.3@ C4:14) S4:( S4:=2/protocolError/error S4:14) C5:( C5:search.dc=a@ C5:36) C5:reset push14.notice."
    );
}

#[test]
fn who_joins_in_the_middle_knows_both_sides() {
    assert_eq!(
        (likely_sender(&search(2, "dc=a")), likely_sender(&entry(2, 9))),
        (Some(C), Some(S))
    );
    let script = [
        (S, done(40, 0x65, 0)),
        (C, search(41, "dc=a")),
        (S, done(41, 0x65, 0)),
    ];
    let (notes, _) = transcript(&script);
    assert!(
        notes.ends_with("C41:( C41:search.dc=a@ C41:36) S41:( S41:=0 S41:14)"),
        "{notes}"
    );
}

#[test]
fn holes_are_counted_in_an_entry_and_searched_over_elsewhere() {
    let up = bind(1);
    let (ask, long, end) = (search(2, "dc=a"), entry(2, 5000), done(2, 0x65, 0));
    let (next, last) = (search(3, "dc=b"), done(3, 0x65, 0));
    let mut script: Vec<_> = up
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    script.extend([
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Bytes(&long[..2000])),
        (S, Stretch::Missing(long.len() as u64 - 2000)),
        (S, Stretch::Bytes(&end)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Missing(30)),
        (S, Stretch::Bytes(&last)),
    ]);
    let notes = short(&stretches(&script));
    assert!(
        notes.contains("S2:=0") && notes.ends_with("S3:( S3:=0 S3:14)"),
        "{notes}"
    );
}

#[test]
fn what_only_looks_like_it_is_turns() {
    let certificate = [&[0x30, 0x20, 2, 1, 5][..], &[0x30, 0x1b], &[1; 27]].concat(); // BER, but no operation
    for (asked, answered) in [
        (certificate.clone(), certificate),
        (search(2, "dc=a"), done(3, 0x65, 0)),
        (search(2, "dc=a"), b"nothing of it".to_vec()),
        (
            b"0 is a digit and a tag".to_vec(),
            b"0 is a digit and a tag".to_vec(),
        ),
        ([&[0x30, 0x80][..], &[0; 20]].concat(), done(2, 0x65, 0)),
    ] {
        let script: Vec<_> = [(C, &asked), (S, &answered)]
            .map(|(side, bytes)| (side, Stretch::Bytes(bytes)))
            .to_vec();
        let first = &stretches(&script[..1]);
        assert_eq!(short(first), format!("C( C){}", asked.len()));
        assert!(!short(&stretches(&script)).contains("search"), "{asked:?}");
    }
}

#[test]
fn tls_goes_on_where_the_server_agrees() {
    let ask = message(2, 0x77, &[&tlv(0x80, &[b"1.3.6.1.4.1.1466.20037"])]);
    let hello = vec![22, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    let asked = "C2:( C2:extended.1.3.6.1.4.1.1466.20037@ C2:31)";
    for (code, last, protocols) in [
        (0, hello.clone(), vec![Protocol::Ldap, Protocol::Tls]),
        (52, search(3, "dc=a"), vec![Protocol::Ldap]),
    ] {
        let (notes, spoken) = transcript(&[(C, ask.clone()), (S, done(2, 0x78, code)), (C, last)]);
        assert!(notes.starts_with(asked), "{notes}");
        assert!(!notes.contains('?'), "nothing is lost: {notes}");
        assert_eq!(spoken, protocols, "{notes}");
    }
    // an answer to another request agrees to nothing
    let (_, spoken) = transcript(&[
        (C, [ask, search(3, "dc=a")].concat()),
        (S, done(3, 0x65, 0)),
        (C, search(4, "dc=b")),
    ]);
    assert_eq!(spoken, [Protocol::Ldap]);
}
