//! People and tunnels: their log-ins are told, keys and screens are not; and what only begins like one of them.

use super::*;

type Script<'a> = [(Side, &'a [u8])];

/// The same however the bytes are cut, as far as a greeting is not decided by them.
fn transcript(script: &Script<'_>) -> (String, Option<Protocol>, Option<String>) {
    let run = |size: usize| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, bytes) in script {
            for piece in bytes.chunks(size) {
                at.frame += 1;
                messages.feed(*side, at, Stretch::Bytes(piece), &mut notes);
            }
        }
        let known = (messages.protocol(), messages.software().map(String::from));
        for side in [C, S] {
            messages.close(side, at, Close::Fin, &mut notes);
        }
        (short(&notes.list), known.0, known.1)
    };
    let uncut = run(usize::MAX);
    for size in [1, 2, 3, 5, 7] {
        let known = |protocol: Option<Protocol>| protocol.filter(|known| known.is_interactive());
        assert_eq!(known(run(size).1), known(uncut.1), "in pieces of {size}");
    }
    uncut
}

#[test]
fn the_log_in_of_ssh_is_told_and_keys_are_not() {
    let kex = b"\0\0\x02\x0c\x09\x14rest";
    let newkeys = b"\0\0\0\x0c\x0a\x15----------";
    let script: &Script<'_> = &[
        (C, b"SSH-2.0-PuTTY\r\n"),
        (S, b"SSH-2.0-OpenSSH_9.2\r\n"),
        (C, kex),
        (S, kex),
        (C, newkeys),
        (C, &[7; 44]),
        (S, &[8; 44]),
        (C, &[7; 60]),
        (S, &[8; 76]),
        (C, &[7; 140]),
        (S, &[8; 28]),
        (C, &[7; 36]),
        (S, &[8; 36]),
        (C, &[7; 36]),
    ];
    let (notes, protocol, software) = transcript(script);
    assert_eq!(
        (protocol, software.as_deref()),
        (Some(Protocol::Ssh), Some("OpenSSH_9.2"))
    );
    assert_eq!(
        notes,
        "C( handshake. Setup C)15 S( S)21 C( handshake. Setup C)10 S( S)10 C( handshake. Setup C)60 S( S)44 \
         C( handshake. Setup C)60 S( S)76 C( handshake. Setup C)140 S( S)28"
    );
}

#[test]
fn the_others_are_known_by_their_first_bytes() {
    let vnc: &Script<'_> = &[
        (S, b"RFB 003.889\n"),
        (C, b"RFB 003.008\n"),
        (S, b"\x01\x01"),
        (C, b"\x01"),
        (S, b"\0\0\0\0"),
        (C, b"\x01"),
        (S, b"init"),
        (C, b"\x02\0\0\x01"),
        (S, b"x"),
        (C, b"\x03\0\0\x01"),
        (S, b"screen"),
    ];
    let (notes, protocol, _) = transcript(vnc);
    assert_eq!(protocol, Some(Protocol::Vnc));
    assert_eq!(notes.matches("handshake").count(), 4, "{notes}");
    assert!(notes.ends_with("C)4 S( S)1"), "{notes}");
    let negotiation = b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x0b\0\0\0";
    assert_eq!(
        transcript(&[(C, negotiation), (S, b"\x03\0")]).1,
        Some(Protocol::Rdp)
    );
    let cookie = b"\x03\0\0\x1f\x1a\xe0\0\0\0\0\0Cookie: mstshash=a\r\n";
    assert_eq!(transcript(&[(C, cookie)]).1, Some(Protocol::Rdp));
    let options: &Script<'_> = &[
        (S, b"\xff\xfd\x18\xff\xfd\x20"),
        (C, b"\xff\xfb\x18"),
        (S, b"login: "),
        (C, b"a"),
    ];
    assert_eq!(
        (transcript(options).0.as_str(), transcript(options).1),
        ("", Some(Protocol::Telnet))
    );
    let one: &Script<'_> = &[(S, b"\xff\xfd\x18"), (C, b"\xff\xfb\x18")];
    assert_eq!(transcript(one).1, Some(Protocol::Telnet));
    let mut reset = vec![0, 14, 0x38];
    reset.extend([9; 13]);
    let mut answer = vec![0, 26, 0x40];
    answer.extend([9; 25]);
    let mut messages = Messages::new();
    for (side, bytes) in [(C, &reset), (S, &answer)] {
        messages.feed(side, At::default(), Stretch::Bytes(bytes), &mut Notes::default());
    }
    assert_eq!(messages.protocol(), Some(Protocol::OpenVpn));
}

#[test]
fn what_only_begins_like_them_is_something_else() {
    let picture: &Script<'_> = &[(C, b"\xff\xd8\xff\xe0JFIF"), (S, b"ok")];
    let music: &Script<'_> = &[(C, b"\xff\xfb\x90\x64sound"), (S, b"ok")];
    let controller: &Script<'_> = &[
        (
            C,
            b"\x03\0\0\x16\x11\xe0\0\0\0\x2e\0\xc1\x02\x01\0\xc2\x02\x01\x02\xc0\x01\x0a",
        ),
        (S, b"\x03\0\0\x07\x02\xf0\0"),
    ];
    let words: &Script<'_> = &[(C, b"SSH-keys please, all of them\r\n"), (S, b"RFB 0x3.008 no\n")];
    let length: &Script<'_> = &[(C, b"\0\x0e\x38 fourteen bytes"), (S, b"\0\x05 answer")];
    for script in [picture, music, controller, words, length] {
        let (notes, protocol, _) = transcript(script);
        assert!(!protocol.is_some_and(Protocol::is_interactive), "{notes}");
    }
}

/// A session that the capture joins in its middle: what is seen once three keys have come back.
fn joined(pairs: &[(&[u8], &[u8])]) -> (String, Option<Protocol>) {
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    messages.set_mid_stream();
    for (key, echo) in pairs {
        for (side, bytes) in [(C, key), (S, echo)] {
            at.frame += 1;
            messages.feed(side, at, Stretch::Bytes(bytes), &mut notes);
        }
    }
    (short(&notes.list), messages.protocol())
}

/// Bytes that look random, as sealed ones do.
fn sealed(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[2]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn a_session_of_ssh_is_known_in_its_middle_by_its_sealed_keys() {
    for len in [36, 52] {
        let packets: Vec<_> = (1..=12).map(|seed| sealed(seed, len)).collect();
        let pairs: Vec<_> = packets
            .chunks_exact(2)
            .filter_map(|pair| Some((pair.first()?.as_slice(), pair.last()?.as_slice())))
            .collect();
        let (notes, protocol) = joined(&pairs);
        assert_eq!(protocol, Some(Protocol::Ssh));
        assert_eq!(notes.matches("C(").count(), 3, "{notes}");
    }
}

#[test]
fn a_session_of_telnet_is_known_in_its_middle_by_the_echo_of_its_keys() {
    let line = b"ls -l";
    let pairs: Vec<_> = line.chunks(1).map(|key| (key, key)).collect();
    assert_eq!(joined(&pairs).1, Some(Protocol::Telnet));
    // a probe that comes back
    let probes: Vec<_> = [b"x"; 40]
        .iter()
        .map(|key| (key.as_slice(), key.as_slice()))
        .collect();
    assert_eq!(joined(&probes).1, Some(Protocol::Turns));
}

#[test]
fn requests_and_answers_of_one_length_are_no_keys() {
    // a counter in plain fields, text, and sealed messages of a length that SSH's keys never have
    let plain: Vec<Vec<u8>> = (0..12u8)
        .map(|count| {
            [[0, 0, 0, 36], [1, 2, 0, count], [0; 4], [0; 4]]
                .concat()
                .repeat(2)[..28]
                .to_vec()
        })
        .collect();
    let text: Vec<Vec<u8>> = (0..12)
        .map(|count| {
            format!(
                "{:<36}",
                format!("reading {count:03} temp=21.{count:02} ok=yes q=zx")
            )
            .into()
        })
        .collect();
    let other: Vec<Vec<u8>> = (1..=12).map(|seed| sealed(seed, 37)).collect();
    for packets in [plain, text, other] {
        let pairs: Vec<_> = packets
            .chunks_exact(2)
            .filter_map(|pair| Some((pair.first()?.as_slice(), pair.last()?.as_slice())))
            .collect();
        let (notes, protocol) = joined(&pairs);
        assert_eq!(protocol, Some(Protocol::Turns), "{notes}");
        assert_eq!(notes.matches("C(").count(), 6, "{notes}");
    }
}
