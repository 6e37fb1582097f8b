//! People and tunnels: SSH (RFC 4253), Telnet (RFC 854), RDP (MS-RDPBCGR), VNC (RFC 6143), OpenVPN over TCP. Knows them by
//! their first bytes and the steps of the log-in, in turns; SSH and Telnet in the middle by the echoes of keys. Behind the
//! log-in keys, echoes, screens and packets of others pass, which are no requests: these get no note.

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::turns::Turns;
use super::{
    Close, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Stretch, server_software,
};

/// What the steps of a log-in are called.
const METHOD: &str = "handshake";
/// A line longer than this is no greeting (RFC 4253 4.2).
const LONGEST_GREETING: usize = 255;
/// Behind NEWKEYS the first two of SSH's client are small (service, user); then a small one is a key that somebody
/// pressed, while log-ins and channels are larger (sizes of OpenSSH's packets).
const SSH_SEALED_SMALL: u32 = 2;
const SSH_KEY: u64 = 100;
/// Lengths of one sealed key: 16 bytes with a length before it and a tag or MAC of 8 to 64 bytes behind it, or 24 or 32
/// with a MAC.
const SSH_SEALED_KEY: [usize; 8] = [28, 36, 40, 48, 52, 64, 84, 96];
/// Version, security, its answer, ClientInit (RFC 6143 7.1 to 7.3).
const VNC_STEPS: u32 = 4;
/// X.224, TLS, CredSSP and the channels (MS-RDPBCGR 1.3.1.1).
const RDP_STEPS: u32 = 12;

macro_rules! recognition {
    ($name:ident, $protocol:ident, $sniff:expr) => {
        pub(super) const $name: Recognition = Recognition {
            protocol: Protocol::$protocol,
            sniff: $sniff,
            reader: |_| AnyReader::$protocol(Box::new(Interactive::new(Protocol::$protocol))),
            ..Recognition::NEVER
        };
    };
}

recognition!(SSH, Ssh, |first| begins(first.input, b"SSH-2.0-")
    .or(begins(first.input, b"SSH-1.")));
recognition!(VNC, Vnc, vnc);
recognition!(RDP, Rdp, rdp);
recognition!(TELNET, Telnet, telnet);
recognition!(OPENVPN, OpenVpn, openvpn);

/// Whether the server's answer is the echo of a key that somebody pressed: in which protocol. Plain, the byte itself
/// (Telnet; RFC 857).
pub(super) fn echo(key: &[u8], echo: &[u8]) -> Option<Protocol> {
    match (key, echo) {
        ([pressed], [shown]) if pressed == shown && pressed.is_ascii() => Some(Protocol::Telnet),
        _ => is_sealed_echo(key, echo).then_some(Protocol::Ssh),
    }
}

/// Sealed, both have one length, which is SSH's channel data with one byte under one of its ciphers and MACs (RFC 4253 6,
/// RFC 4254 5.2), and are as mixed as random bytes, behind at most four bytes of a length, which some modes leave plain.
fn is_sealed_echo(key: &[u8], echo: &[u8]) -> bool {
    let sealed = |bytes: &[u8]| {
        let body = bytes.get(4..).unwrap_or_default();
        let distinct = body.iter().collect::<std::collections::BTreeSet<_>>().len();
        let printable = body.iter().filter(|byte| byte.is_ascii_graphic()).count();
        distinct * 5 >= body.len() * 4 && printable * 3 < body.len() * 2
    };
    key.len() == echo.len()
        && SSH_SEALED_KEY.contains(&key.len())
        && key != echo
        && sealed(key)
        && sealed(echo)
}

/// The reader of a session behind its log-in.
pub(super) fn typed(protocol: Protocol) -> AnyReader {
    let reader = Box::new(Interactive {
        over: true,
        ..Interactive::new(protocol)
    });
    match protocol {
        Protocol::Telnet => AnyReader::Telnet(reader),
        _ => AnyReader::Ssh(reader),
    }
}

#[derive(Debug)]
pub(super) struct Interactive {
    protocol: Protocol,
    /// The client's steps so far, and SSH's behind its new keys.
    steps: u32,
    sealed: u32,
    /// The log-in is over.
    over: bool,
    /// The beginning of the server's line, until it ends.
    greeting: Option<Vec<u8>>,
}

impl Guess {
    fn or(self, other: Guess) -> Guess {
        if self == Guess::No { other } else { self }
    }
}

fn begins(input: &[u8], word: &[u8]) -> Guess {
    match (
        input.iter().zip(word).all(|(byte, letter)| byte == letter),
        input.len() < word.len(),
    ) {
        (false, _) => Guess::No,
        (true, true) => Guess::More,
        (true, false) => Guess::Yes,
    }
}

/// `RFB 003.008` and a line's end, from the server first.
fn vnc(first: &FirstBytes<'_>) -> Guess {
    let template = b"RFB 000.000\n";
    let fits = |(byte, like): (&u8, &u8)| {
        if *like == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == like
        }
    };
    match (
        first.input.iter().zip(template).all(fits),
        first.input.len() < template.len(),
    ) {
        (false, _) => Guess::No,
        (true, true) => Guess::More,
        (true, false) => Guess::Yes,
    }
}

/// An X.224 connection request with what only RDP asks for: a cookie, or its negotiation (MS-RDPBCGR 2.2.1.1). Others ask
/// with addresses.
fn rdp(first: &FirstBytes<'_>) -> Guess {
    let [3, 0, high, low, rest @ ..] = first.input else {
        let few = first.input.len() < 4 && begins(first.input, &[3, 0]) != Guess::No;
        return if few { Guess::More } else { Guess::No };
    };
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    if first.side == Side::Server || !(11..512).contains(&len) {
        return Guess::No;
    }
    match rest.get(1) {
        Some(0xE0) => {}
        None => return Guess::More,
        Some(_) => return Guess::No,
    }
    let Some(routing) = first.input.get(11..len) else {
        return if first.input.len() < len {
            Guess::More
        } else {
            Guess::No
        };
    };
    let negotiates = |bytes: &[u8]| matches!(bytes, [1, _, 8, 0, _, _, _, _]);
    let tail = routing.get(routing.len().saturating_sub(8)..).unwrap_or_default();
    if routing.starts_with(b"Cookie: mstshash=") || negotiates(tail) {
        Guess::Yes
    } else {
        Guess::No
    }
}

/// Two options in a row, or one that the other side answers with one (RFC 854, 855). Options above 49 are not in use.
fn telnet(first: &FirstBytes<'_>) -> Guess {
    match (options(first.input), options(first.other)) {
        (None, _) => Guess::No,
        (Some(2..), _) => Guess::Yes,
        (Some(1), Some(1..)) => Guess::Yes,
        (Some(0), _) => Guess::More,
        (Some(1), Some(0) | None) if first.other.len() < 3 => Guess::NeedsOtherSide,
        _ => Guess::No,
    }
}

/// So many options these bytes begin with; none where they begin with anything else.
fn options(mut input: &[u8]) -> Option<usize> {
    let mut count = 0;
    loop {
        match input {
            [255, 251..=254, 0..=49, rest @ ..] => (count, input) = (count + 1, rest),
            [] | [255] | [255, 251..=254] => return Some(count),
            [255, 250 | 240, ..] if count > 0 => return Some(count),
            _ if count > 0 => return Some(count),
            _ => return None,
        }
    }
}

/// The client resets, and the server answers with its own reset: a length, then 7 or 10 and 8 in five bits.
fn openvpn(first: &FirstBytes<'_>) -> Guess {
    let reset = |input: &[u8], codes: &[u8]| match input {
        [high, low, code, rest @ ..] => {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            codes.contains(&(code >> 3)) && (14..=512).contains(&len) && rest.len() + 1 >= len
        }
        _ => false,
    };
    let client = |input: &[u8]| reset(input, &[7, 10]);
    match first.side {
        Side::Client if client(first.input) && first.other.is_empty() => Guess::NeedsOtherSide,
        Side::Server if client(first.other) && reset(first.input, &[8]) => Guess::Yes,
        _ => Guess::No,
    }
}

impl MessageReader for Interactive {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        if let (Side::Server, Stretch::Bytes(bytes)) = (sink.side(), stretch) {
            self.greets(&mut sink, bytes);
        }
        if self.over {
            return Outcome::All;
        }
        let begins = !sink.is_open();
        if begins && sink.side() == Side::Client {
            self.over = self.logged_in(stretch);
            sink.end_other();
            if self.over {
                return Outcome::All;
            }
            self.steps += 1;
        }
        sink.end_other();
        sink.count(stretch.len());
        if begins && sink.side() == Side::Client {
            sink.request(&METHOD.into(), &"".into());
            sink.kind(Kind::Setup);
        }
        Outcome::All
    }

    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        Turns.close(sink, how);
    }

    fn resume(&mut self, _side: Side, _inside: bool) {}
}

impl Interactive {
    fn new(protocol: Protocol) -> Interactive {
        Interactive {
            protocol,
            steps: 0,
            sealed: 0,
            over: matches!(protocol, Protocol::Telnet | Protocol::OpenVpn),
            greeting: Some(Vec::new()),
        }
    }

    /// Whether the client's next turn is none of the log-in any more.
    fn logged_in(&mut self, stretch: Stretch<'_>) -> bool {
        match self.protocol {
            Protocol::Ssh => {
                if self.sealed == 0 && self.plain(stretch) {
                    return false;
                }
                self.sealed += 1;
                self.sealed > SSH_SEALED_SMALL && stretch.len() < SSH_KEY
            }
            Protocol::Vnc => self.steps >= VNC_STEPS,
            Protocol::Rdp => self.steps >= RDP_STEPS,
            _ => true,
        }
    }

    /// The greeting, or a packet of the key exchange: its length, its padding, a number from 20 to 49 (RFC 4250 4.1.1).
    fn plain(&self, stretch: Stretch<'_>) -> bool {
        let Stretch::Bytes(bytes) = stretch else {
            return false;
        };
        match bytes {
            [0, 0, high, _, _, 20..=49, ..] => *high < 0x90,
            _ => self.steps == 0 || bytes.starts_with(b"SSH-"),
        }
    }

    /// What the server calls itself in its first line.
    fn greets(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: &[u8]) {
        let Some(line) = &mut self.greeting else {
            return;
        };
        let room = LONGEST_GREETING.saturating_sub(line.len());
        line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if !line.contains(&b'\n') && line.len() < LONGEST_GREETING {
            return;
        }
        if let Some(name) = server_software::of_greeting(line) {
            sink.software(name);
        }
        self.greeting = None;
    }
}
