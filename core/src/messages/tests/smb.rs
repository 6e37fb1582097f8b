//! SMB2: commands in one message, "pending", files by their numbers, statuses, holes, the middle, what is sealed.

use super::frames::*;
use super::*;

fn framed(messages: &[u8]) -> Vec<u8> {
    [&(messages.len() as u32).to_be_bytes()[..], messages].concat()
}

struct Head {
    status: u32,
    command: u16,
    flags: u32,
    number: u64,
}

/// One command; `next` is where the next one begins.
fn command(head: &Head, next: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = [
        &b"\xfeSMB\x40\0\0\0"[..],
        &head.status.to_le_bytes(),
        &head.command.to_le_bytes(),
        &[1, 0],
        &head.flags.to_le_bytes(),
        &next.to_le_bytes(),
        &head.number.to_le_bytes(),
        &[0; 32],
    ]
    .concat();
    bytes.extend(body);
    bytes
}

fn ask(number: u64, kind: u16, body: &[u8]) -> Vec<u8> {
    framed(&command(
        &Head {
            status: 0,
            command: kind,
            flags: 0,
            number,
        },
        0,
        body,
    ))
}

fn answer(number: u64, kind: u16, status: u32, body: &[u8]) -> Vec<u8> {
    framed(&command(
        &Head {
            status,
            command: kind,
            flags: 1,
            number,
        },
        0,
        body,
    ))
}

/// A CREATE's body with this name.
fn create(name: &str) -> Vec<u8> {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut body = vec![0; 56];
    body[44..46].copy_from_slice(&120u16.to_le_bytes());
    body[46..48].copy_from_slice(&(name.len() as u16).to_le_bytes());
    body.extend(name);
    body
}

/// A body with a file's number.
fn file(before: usize, number: u8, len: usize) -> Vec<u8> {
    let mut body = vec![0; before];
    body.extend([number; 16]);
    body.resize(len.max(body.len()), 0);
    body
}

fn heard(script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [Protocol::Smb], "{notes}");
    notes
}

#[test]
fn files_are_known_by_their_numbers() {
    let script = [
        (C, ask(4, 5, &create("docs\\Größe.txt"))),
        (S, answer(4, 5, 0, &file(64, 7, 88))),
        (
            C,
            [
                ask(5, 8, &file(16, 7, 48)),
                ask(6, 6, &file(8, 7, 24)),
                ask(7, 5, &create("none")),
            ]
            .concat(),
        ),
        (
            S,
            [
                answer(7, 5, 0xC000_0034, &[0; 9]),
                answer(5, 8, 0, &[0; 3000]),
                answer(6, 6, 0, &[0; 60]),
            ]
            .concat(),
        ),
    ];
    assert_eq!(
        heard(&script),
        "C4:( C4:Create.docs\\Größe.txt@ C4:152) S4:( S4:=0/0x00000000 S4:156) C5:( C5:Read.docs\\Größe.txt@ C5:116) \
         C6:( C6:Close.docs\\Größe.txt@ C6:92) C7:( C7:Create.none@ C7:132) S7:( S7:=0xc0000034/error S7:77) \
         S5:( S5:=0/0x00000000 S5:3068) S6:( S6:=0/0x00000000 S6:128)"
    );
}

#[test]
fn several_commands_in_one_message_are_several_requests() {
    let head = |number, kind, flags| Head {
        status: 0,
        command: kind,
        flags,
        number,
    };
    let first = create("a.txt");
    let padded = [first.clone(), vec![0; 6]].concat();
    let asks = [
        command(&head(1, 5, 0), 136, &padded),
        command(&head(2, 6, 4), 0, &file(8, 0xff, 24)),
    ]
    .concat();
    let answers = [
        command(&head(1, 5, 1), 160, &file(64, 9, 96)),
        command(&head(2, 6, 5), 0, &[0; 60]),
    ]
    .concat();
    let script = [(C, framed(&asks)), (S, framed(&answers))];
    assert_eq!(
        heard(&script),
        "C1:( C1:Create.a.txt@ C1:136) C2:( C2:Close.a.txt@ C2:228) S1:( S1:=0/0x00000000 S1:160) \
         S2:( S2:=0/0x00000000 S2:288)"
    );
}

#[test]
fn answers_behind_a_long_one_in_its_message_are_not_missed() {
    let head = |number, flags| Head {
        status: 0,
        command: 14,
        flags,
        number,
    };
    let body = file(8, 7, 40);
    let asks = [command(&head(8, 0), 104, &body), command(&head(9, 0), 0, &body)].concat();
    let answers = |long: usize| {
        let first = command(&head(8, 1), 64 + long as u32, &vec![0; long]);
        framed(&[first, command(&head(9, 1), 0, &[0; 9])].concat())
    };
    let notes = |long| heard(&[(C, framed(&asks)), (S, answers(long))]);
    assert!(notes(800).contains("S9:=0/0x00000000"), "{}", notes(800));
    let long = notes(3000);
    assert!(
        long.contains("S8:=0/0x00000000") && long.contains("S9:(") && long.contains("S9:"),
        "{long}"
    );
}

#[test]
fn pending_is_no_answer_and_some_commands_have_none() {
    let script = [
        (C, ask(1, 15, &file(8, 7, 32))),
        (S, answer(1, 15, 0x103, &[0; 9])),
        (C, ask(1, 12, &[0; 4])),
        (S, answer(1, 15, 0xC000_0120, &[0; 9])),
        (S, answer(u64::MAX, 18, 0, &[0; 24])),
        (C, ask(2, 1, &[0; 24])),
        (S, answer(2, 1, 0xC000_0016, &[0; 9])),
    ];
    assert_eq!(
        heard(&script),
        "C1:(LongPoll C1:ChangeNotify.@ C1:100) S1:77interim S1:( S1:=0xc0000120/error S1:77) push92.OplockBreak. \
         C2:( C2:SessionSetup.@ C2:92) S2:( S2:=0xc0000016 S2:77)"
    );
}

#[test]
fn smb1_asks_for_smb2() {
    let old = framed(&[&b"\xffSMB\x72"[..], &[0; 60]].concat());
    let mut dialects = vec![0; 36];
    dialects[2] = 2;
    dialects.extend([0x02, 0x02, 0x11, 0x03]);
    let script = [
        (C, old),
        (S, answer(0, 0, 0, &[0; 65])),
        (C, ask(1, 0, &dialects)),
        (S, answer(1, 0, 0, &[0; 65])),
    ];
    let notes = heard(&script);
    assert!(
        notes.starts_with("C0:( C0:Negotiate.@ C0:69) S0:( S0:=0/0x00000000 S0:133) C1:( C1:SMB3Negotiate."),
        "{notes}"
    );
}

/// A message of SMB1: command, flags, process and number.
fn old(kind: u8, flags: u8, number: u16, status: u32, words: &[u8]) -> Vec<u8> {
    framed(
        &[
            &b"\xffSMB"[..],
            &[kind],
            &status.to_le_bytes(),
            &[flags, 0, 0xC0],
            &[0; 14],
            &7u16.to_le_bytes(),
            &[0; 2],
            &number.to_le_bytes(),
            words,
        ]
        .concat(),
    )
}

#[test]
fn smb1_is_read_too_behind_a_session_on_port_139() {
    let session = [&[0x81, 0, 0, 68, 32][..], &[b'C'; 67]].concat();
    let mut create = vec![0; 52];
    (create[0], create[6]) = (24, 10);
    create.extend(b"a\0.\0t\0x\0t\0");
    let mut notify = vec![0; 39];
    notify[37] = 4;
    let script = [
        (C, session),
        (S, vec![0x82, 0, 0, 0]),
        (C, old(0x72, 0, 1, 0, &[0; 9])),
        (S, old(0x72, 0x80, 1, 0, &[0; 9])),
        (C, old(0xA2, 0, 2, 0, &create)),
        (C, old(0xA0, 0, 3, 0, &notify)),
        (C, old(0x2E, 0, 4, 0, &[0; 9])),
        (C, old(0xA4, 0, 3, 0, &[0; 9])),
        (S, old(0x2E, 0x80, 4, 0, &[0; 200])),
        (S, old(0xA2, 0x80, 2, 0xC000_0034, &[0; 9])),
        (S, old(0x24, 0, 0xFFFF, 0, &[0; 9])),
        (S, old(0xA0, 0x80, 3, 0, &[0; 9])),
    ];
    let [create, notify, read] = [2u64, 3, 4].map(|number| 1 << 32 | 7 << 16 | number);
    assert_eq!(
        heard(&script),
        format!(
            "C0:( C0:Negotiate.@ C0:45) S0:( S0:=0/0x00000000 S0:45) C{create}:( C{create}:Create.a.txt@ C{create}:98) \
             C{notify}:(LongPoll C{notify}:NTTransact.@ C{notify}:75) C{read}:( C{read}:Read.@ C{read}:45) \
             S{read}:( S{read}:=0/0x00000000 S{read}:236) S{create}:( S{create}:=0xc0000034/error S{create}:45) \
             push45.Locking. S{notify}:( S{notify}:=0/0x00000000 S{notify}:45)"
        )
    );
}

/// An error, and the answer to CLOSE, have neither words nor bytes: a word count and a byte count of zero.
#[test]
fn the_shortest_answer_of_smb1_has_a_header_only() {
    let script = [
        (C, old(0x72, 0, 1, 0, &[0; 9])),
        (S, old(0x72, 0x80, 1, 0, &[0; 9])),
        (C, old(0x04, 0, 2, 0, &[0; 9])),
        (S, old(0x04, 0x80, 2, 0, &[0; 3])),
    ];
    let key = 1u64 << 32 | 7 << 16 | 2;
    assert_eq!(
        heard(&script),
        format!(
            "C0:( C0:Negotiate.@ C0:45) S0:( S0:=0/0x00000000 S0:45) \
             C{key}:( C{key}:Close.@ C{key}:45) S{key}:( S{key}:=0/0x00000000 S{key}:39)"
        )
    );
}

#[test]
fn who_joins_in_the_middle_finds_the_mark() {
    let (read, long) = (ask(5, 8, &file(16, 7, 48)), answer(5, 8, 0, &[0; 3000]));
    assert_eq!(
        (likely_sender(&read), likely_sender(&long[..1448])),
        (Some(C), Some(S))
    );
    let next = ask(6, 8, &file(16, 7, 48));
    let last = answer(6, 8, 0, &[0; 3000]);
    let script = [
        (S, Stretch::Bytes(&b"the end of something"[..])),
        (C, Stretch::Bytes(&read)),
        (S, Stretch::Bytes(&long[..1448])),
        (S, Stretch::Missing(1000)),
        (S, Stretch::Bytes(&long[2448..])),
        (C, Stretch::Missing(40)),
        (S, Stretch::Missing(40)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Bytes(&last[..1448])),
        (S, Stretch::Bytes(&last[1448..])),
    ];
    let notes = short(&stretches(&script));
    assert!(
        notes.contains("C5:Read.@ C5:116) S5:( S5:=0/0x00000000 S5:3068)"),
        "{notes}"
    );
    assert!(
        notes.ends_with("C6:Read.@ C6:116) S6:( S6:=0/0x00000000 S6:3068)"),
        "{notes}"
    );
}

#[test]
fn what_is_sealed_or_only_looks_like_it_is_turns() {
    let sealed = framed(&[&b"\xfdSMB"[..], &[9; 100]].concat());
    let up = [(C, ask(1, 0, &[0; 40])), (S, answer(1, 0, 0, &[0; 65]))];
    let script: Vec<_> = [&up[..], &[(C, sealed.clone()), (S, sealed)]].concat();
    let pieces: Vec<_> = script
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    let notes = short(&stretches(&pieces));
    assert!(
        notes.ends_with("C?not_a_message_of_SMB,_or_one_that_is_sealed C( C)108 S( S)108"),
        "{notes}"
    );
    for other in [
        framed(&[&b"\xfeSMC"[..], &[0; 60]].concat()),
        framed(&[&b"\xfeSMB\x41\0"[..], &[0; 60]].concat()),
    ] {
        let (notes, protocols) = transcript(&[(C, other), (S, b"no".to_vec())]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}
