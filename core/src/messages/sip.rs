//! SIP (RFC 3261) and RTSP (RFC 2326, RFC 7826) over TCP. A message is a head like HTTP's, and a body of Content-Length
//! bytes. One exchange is a request of the client and the response with its CSeq and, in SIP, its Call-ID. Requests of
//! the server, and RTSP's media between messages, are pushes. A 1xx response is interim, ACK has none, and INVITE is a
//! long poll, as it waits for a person. Of a SIP address the user is shown only without digits, a password never.

mod head;

use smol_str::format_smolstr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status, errors};
use crate::cursor;
use head::{Line, Text};

pub(super) const SIP: Recognition = Recognition {
    protocol: Protocol::Sip,
    sniff: sniff::<false>,
    begins_message: begins_message::<false>,
    begins_inside_turn: |_, first| head::is_sure(false, first),
    reader: |_| AnyReader::Sip(Box::default()),
    ..Recognition::NEVER
};
pub(super) const RTSP: Recognition = Recognition {
    protocol: Protocol::Rtsp,
    sniff: sniff::<true>,
    begins_message: begins_message::<true>,
    begins_inside_turn: |_, first| head::is_sure(true, first),
    reader: |_| AnyReader::Rtsp(Box::default()),
    ..Recognition::NEVER
};

pub(super) type SipReader = Framed<Calls<false>>;
pub(super) type RtspReader = Framed<Calls<true>>;

/// First byte of an interleaved media packet (RFC 2326 10.12).
const MEDIA: u8 = b'$';
/// Bytes before a media packet: `MEDIA`, the channel, and a 2-byte length.
const BEFORE_MEDIA: u64 = 4;
/// Upper bound on a channel; each stream of a presentation uses two.
const MAX_CHANNEL: u8 = 32;
/// The version of RTP, in the highest bits of a packet (RFC 3550 5.1).
const RTP: u8 = 2;
/// Lowest status code that is an error, unless it requests a log-in.
const FIRST_ERROR: u16 = 400;

#[derive(Debug, Default)]
pub(super) struct Calls<const RTSP: bool>;

fn sniff<const RTSP: bool>(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Calls<RTSP>>(first.side, first.input) {
        Fit::No => Guess::No,
        _ if head::is_sure(RTSP, first.input) => Guess::Yes,
        _ => Guess::More,
    }
}

/// A request comes from the client, a response from the server.
fn begins_message<const RTSP: bool>(side: Side, first: &[u8]) -> bool {
    head::is_sure(RTSP, first) && head::is_response(first) == (side == Side::Server)
}

impl<const RTSP: bool> WireFormat for Calls<RTSP> {
    // most heads have about 500 bytes; each proxy adds to them
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
            [b'\r', b'\n', ..] => Length::Is(2), // an empty line between messages, or a keepalive
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

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        if let [MEDIA, channel, ..] = head.bytes {
            return match sink.side() {
                Side::Server => Role::push("media", format_smolstr!("channel {channel}")),
                Side::Client => Role::Ignored,
            };
        }
        let text = Text::of(head.bytes);
        let role = match (sink.side(), text.line()) {
            (Side::Client, Some(Line::Request(method, target))) => {
                read_request(sink, text.key(RTSP), method, &head::masked(target))
            }
            (Side::Server, Some(Line::Request(method, target))) => {
                Some(Role::push(method, head::masked(target)))
            }
            (Side::Server, Some(Line::Response(code))) => read_response(sink, &text, RTSP, code),
            _ => None,
        };
        role.unwrap_or_default()
    }
}

fn read_request(
    sink: &mut Sink<'_, impl Listener>,
    key: Option<u64>,
    method: &'static str,
    target: &str,
) -> Option<Role> {
    let key = key.filter(|_| method != "ACK")?;
    let rings = method == "INVITE";
    let kind = if rings { Kind::LongPoll } else { Kind::Request };
    sink.exchange(key).request(kind, method, target);
    Some(Role::Last(key))
}

fn read_response(sink: &mut Sink<'_, impl Listener>, text: &Text<'_>, rtsp: bool, code: u16) -> Option<Role> {
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
    let word = errors::word(errors::SIP, code).filter(|_| !rtsp);
    let is_error = code >= FIRST_ERROR && !errors::LOG_INS.contains(&code);
    exchange.status(Status::new(Some(code), word, is_error));
    Some(Role::Last(key))
}
