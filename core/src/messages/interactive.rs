//! Interactive sessions and tunnels: SSH (RFC 4253), Telnet (RFC 854), RDP (MS-RDPBCGR), VNC (RFC 6143), OpenVPN over
//! TCP. The log-in is read in turns, each a request of kind `Setup`. After it pass keys, echoes, screens and tunnelled
//! packets, which are not requests and get no note. SSH and Telnet are recognised in mid-stream by echoed keys.

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::turns::Turns;
use super::{
    Close, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Stretch, server_software,
};

/// The method of a log-in step.
const METHOD: &str = "handshake";
/// Upper bound on the bytes of a greeting line (RFC 4253 4.2).
const MAX_GREETING: usize = 255;
/// Encrypted turns of an SSH client after NEWKEYS that may be small although nobody types: service and user request.
const SSH_SMALL_TURNS: u32 = 2;
/// After those, a turn below this many bytes is a key press. Log-ins and channel requests of OpenSSH are larger.
const SSH_KEY_BYTES: u64 = 100;
/// Lengths of an encrypted key press: 16 bytes with a length before and a tag or MAC of 8 to 64 bytes after them, or
/// 24 or 32 bytes with a MAC.
const SSH_ENCRYPTED_KEY: [usize; 8] = [28, 36, 40, 48, 52, 64, 84, 96];
/// Client turns of a VNC log-in: version, security, its answer, ClientInit (RFC 6143 7.1 to 7.3).
const VNC_STEPS: u32 = 4;
/// Client turns of an RDP log-in: X.224, TLS, CredSSP and the channels (MS-RDPBCGR 1.3.1.1).
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

/// Returns the protocol in which the server's packet echoes a key press: the same byte in Telnet (RFC 857), an
/// encrypted packet of the same length in SSH.
pub(super) fn echo(key: &[u8], echo: &[u8]) -> Option<Protocol> {
    match (key, echo) {
        ([pressed], [shown]) if pressed == shown && pressed.is_ascii() => Some(Protocol::Telnet),
        _ => is_encrypted_echo(key, echo).then_some(Protocol::Ssh),
    }
}

/// Whether two packets can be a key press and its echo in SSH. Both have the length of channel data with one byte
/// under one of the ciphers and MACs (RFC 4253 6, RFC 4254 5.2). Both look random after the first four bytes, a
/// length that some modes leave in clear text.
fn is_encrypted_echo(key: &[u8], echo: &[u8]) -> bool {
    let looks_encrypted = |bytes: &[u8]| {
        let body = bytes.get(4..).unwrap_or_default();
        let distinct = body.iter().collect::<std::collections::BTreeSet<_>>().len();
        let printable = body.iter().filter(|byte| byte.is_ascii_graphic()).count();
        distinct * 5 >= body.len() * 4 && printable * 3 < body.len() * 2
    };
    key.len() == echo.len()
        && SSH_ENCRYPTED_KEY.contains(&key.len())
        && key != echo
        && looks_encrypted(key)
        && looks_encrypted(echo)
}

/// A reader for a session of Telnet or SSH after its log-in.
pub(super) fn logged_in_reader(protocol: Protocol) -> AnyReader {
    let reader = Box::new(Interactive {
        is_logged_in: true,
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
    /// The client's turns so far.
    steps: u32,
    /// The client's encrypted turns of SSH so far.
    encrypted_turns: u32,
    /// The log-in is over: turns get no note any more.
    is_logged_in: bool,
    /// The beginning of the server's first line; `None` once it was read.
    greeting: Option<Vec<u8>>,
}

impl Guess {
    fn or(self, other: Guess) -> Guess {
        if self == Guess::No { other } else { self }
    }
}

/// The guess for bytes that begin a greeting of `len` bytes (`fits`), or do not.
fn guess(fits: bool, input: &[u8], len: usize) -> Guess {
    match (fits, input.len() < len) {
        (false, _) => Guess::No,
        (true, true) => Guess::More,
        (true, false) => Guess::Yes,
    }
}

fn begins(input: &[u8], word: &[u8]) -> Guess {
    let fits = input.iter().zip(word).all(|(byte, letter)| byte == letter);
    guess(fits, input, word.len())
}

/// `RFB 003.008` and a line feed (RFC 6143 7.1.1).
fn vnc(first: &FirstBytes<'_>) -> Guess {
    let template = b"RFB 000.000\n";
    let fits = |(byte, like): (&u8, &u8)| byte == like || *like == b'0' && byte.is_ascii_digit();
    guess(
        first.input.iter().zip(template).all(fits),
        first.input,
        template.len(),
    )
}

/// An X.224 connection request with a cookie or a negotiation request, as only RDP sends them (MS-RDPBCGR 2.2.1.1).
/// Other protocols on X.224 send addresses.
fn rdp(first: &FirstBytes<'_>) -> Guess {
    let [3, 0, high, low, rest @ ..] = first.input else {
        let is_short = first.input.len() < 4 && begins(first.input, &[3, 0]) != Guess::No;
        return if is_short { Guess::More } else { Guess::No };
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

/// Two option commands in a row, or one that the other side answers with another (RFC 854, 855).
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

/// Number of option commands at the beginning; `None` where the bytes begin with anything else. Options above 49 are
/// not in use.
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

/// A hard reset of the client (opcode 7 or 10 in five bits, after a length) that the server answers with its own (8).
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
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        if let (Side::Server, Stretch::Bytes(bytes)) = (sink.side(), stretch) {
            self.read_greeting(&mut sink, bytes);
        }
        if self.is_logged_in {
            return Outcome::All;
        }
        let is_first = !sink.is_open();
        if is_first && sink.side() == Side::Client {
            self.is_logged_in = self.is_after_log_in(stretch);
            sink.end_other();
            if self.is_logged_in {
                return Outcome::All;
            }
            self.steps += 1;
        }
        sink.end_other();
        sink.count(stretch.len());
        if is_first && sink.side() == Side::Client {
            sink.request(&METHOD.into(), &"".into());
            sink.kind(Kind::Setup);
        }
        Outcome::All
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
        Turns.close(sink, how);
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {}
}

impl Interactive {
    fn new(protocol: Protocol) -> Interactive {
        Interactive {
            protocol,
            steps: 0,
            encrypted_turns: 0,
            is_logged_in: matches!(protocol, Protocol::Telnet | Protocol::OpenVpn),
            greeting: Some(Vec::new()),
        }
    }

    /// Whether the log-in is over with the client's next turn.
    fn is_after_log_in(&mut self, stretch: Stretch<'_>) -> bool {
        match self.protocol {
            Protocol::Ssh => {
                if self.encrypted_turns == 0 && self.is_clear_text(stretch) {
                    return false;
                }
                self.encrypted_turns += 1;
                self.encrypted_turns > SSH_SMALL_TURNS && stretch.len() < SSH_KEY_BYTES
            }
            Protocol::Vnc => self.steps >= VNC_STEPS,
            Protocol::Rdp => self.steps >= RDP_STEPS,
            _ => true,
        }
    }

    /// Whether a turn of SSH is the greeting, or a packet of the key exchange: a length, a padding length and a message
    /// number from 20 to 49 (RFC 4250 4.1.1).
    fn is_clear_text(&self, stretch: Stretch<'_>) -> bool {
        let Stretch::Bytes(bytes) = stretch else {
            return false;
        };
        match bytes {
            [0, 0, high, _, _, 20..=49, ..] => *high < 0x90,
            _ => self.steps == 0 || bytes.starts_with(b"SSH-"),
        }
    }

    /// Reads the server's software from its first line.
    fn read_greeting(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &[u8]) {
        let Some(line) = &mut self.greeting else {
            return;
        };
        let room = MAX_GREETING.saturating_sub(line.len());
        line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if !line.contains(&b'\n') && line.len() < MAX_GREETING {
            return;
        }
        if let Some(name) = server_software::of_greeting(line) {
            sink.software(name);
        }
        self.greeting = None;
    }
}
