//! SIP (RFC 3261) and RTSP (RFC 2326, RFC 7826) over TCP: heads like HTTP's, with a number and, in SIP, the name of a
//! call. Either side may ask: what the server asks is a push here. Reads methods, addresses and codes; the user of a
//! SIP address is shown where it has no digit, a password never. 1xx is no answer, ACK has none, and who calls waits
//! for a person. RTSP's media between its messages are pushes.

mod head;

use smol_str::{SmolStr, format_smolstr};

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status, errors};
use crate::cursor;
use head::{Line, Text};

pub(super) const SIP: Recognition = Recognition {
    protocol: Protocol::Sip,
    sniff: sniff::<false>,
    begins_message: begins_message::<false>,
    begins_inside_turn: |_, first| head::sure(false, first),
    reader: |_| AnyReader::Sip(Box::default()),
    ..Recognition::NEVER
};
pub(super) const RTSP: Recognition = Recognition {
    protocol: Protocol::Rtsp,
    sniff: sniff::<true>,
    begins_message: begins_message::<true>,
    begins_inside_turn: |_, first| head::sure(true, first),
    reader: |_| AnyReader::Rtsp(Box::default()),
    ..Recognition::NEVER
};

pub(super) type SipReader = Framed<Calls<false>>;
pub(super) type RtspReader = Framed<Calls<true>>;

/// Before a packet of media (RFC 2326 10.12): a mark, the channel, its length in two bytes.
const MEDIA: u8 = b'$';
const BEFORE_MEDIA: u64 = 4;
/// Channels come in pairs, for each stream of a presentation two.
const MAX_CHANNEL: u8 = 32;
/// The version of RTP, in the highest bits of a packet (RFC 3550 5.1).
const RTP: u8 = 2;
/// From here on a code is an error, but where a log-in is requested.
const FIRST_ERROR: u16 = 400;

#[derive(Debug, Default)]
pub(super) struct Calls<const RTSP: bool>;

fn sniff<const RTSP: bool>(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Calls<RTSP>>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if head::sure(RTSP, first.input) => Guess::Yes,
        _ => Guess::More,
    }
}

/// Who asks first is the client.
fn begins_message<const RTSP: bool>(side: Side, first: &[u8]) -> bool {
    head::sure(RTSP, first) && head::answers(first) == (side == Side::Server)
}

impl<const RTSP: bool> WireFormat for Calls<RTSP> {
    /// Heads are about 500 bytes; more proxies make them longer.
    const MAX_HEAD: usize = 4096;
    const MIN_PROOF: usize = 32;
    const LOST_REASON: &'static str = if RTSP {
        "not a message of RTSP"
    } else {
        "not a message of SIP"
    };

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        match first {
            [] | [b'\r'] => Length::More,
            [b'\r', b'\n', ..] => Length::Is(2), // between messages, or to keep the connection
            [MEDIA, ..] if RTSP => match cursor::be16_at(first, 2) {
                Some(len) => Length::Is(u64::from(len) + BEFORE_MEDIA),
                None => Length::More,
            },
            _ => head::length(RTSP, first),
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        match head.bytes {
            [MEDIA, channel, _, _, first, ..] => *channel < MAX_CHANNEL && first >> 6 == RTP,
            _ => true,
        }
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        if let [MEDIA, channel, ..] = head.bytes {
            return match sink.side() {
                Side::Server => push("media", format_smolstr!("channel {channel}")),
                Side::Client => Role::Ignored,
            };
        }
        let text = Text::of(head.bytes);
        let role = match (sink.side(), text.line()) {
            (Side::Client, Some(Line::Asks(method, target))) => {
                asks(sink, text.key(RTSP), method, &head::shown(target))
            }
            (Side::Server, Some(Line::Asks(method, target))) => Some(push(method, head::shown(target))),
            (Side::Server, Some(Line::Answers(code))) => answers(sink, &text, RTSP, code),
            _ => None,
        };
        role.unwrap_or_default()
    }

    fn lost(&mut self, _side: Side) {}
}

fn push(method: &'static str, target: SmolStr) -> Role {
    Role::Push(PushedMessage {
        method,
        target,
        ..PushedMessage::default()
    })
}

fn asks(
    sink: &mut MessageSink<'_, impl Listener>,
    key: Option<u64>,
    method: &'static str,
    target: &str,
) -> Option<Role> {
    let key = key.filter(|_| method != "ACK")?;
    let mut exchange = sink.exchange(key);
    exchange.begin_request(if method == "INVITE" {
        Kind::LongPoll
    } else {
        Kind::Request
    });
    exchange.name(RequestName {
        method,
        target,
        host: "",
    });
    Some(Role::Last(key))
}

fn answers(
    sink: &mut MessageSink<'_, impl Listener>,
    text: &Text<'_>,
    rtsp: bool,
    code: u16,
) -> Option<Role> {
    let key = text.key(rtsp)?;
    let names = [&b"server"[..], b"user-agent"];
    if let Some(name) = names.iter().find_map(|name| text.value(name)) {
        sink.software(super::text::name_up_to(name, 100, false).as_str().into());
    }
    let mut exchange = sink.exchange(key);
    exchange.begin_answer();
    if code < 200 {
        return Some(Role::Interim(key));
    }
    exchange.status(Status {
        code: Some(code),
        text: errors::word(errors::SIP, code).filter(|_| !rtsp),
        error: code >= FIRST_ERROR && !errors::LOG_INS.contains(&code),
    });
    Some(Role::Last(key))
}
