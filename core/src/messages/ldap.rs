//! LDAP (RFC 4511). Each message is a BER sequence with its length. One exchange is a request and the responses with
//! its message id; entries and references are pieces of a search's response. The reader takes the operation, the name
//! of its entry and the result, but no attributes and no passwords.

use smol_str::SmolStr;

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{Kind, Listener, Side, Status, errors, text};
use crate::cursor::{self, Cursor};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Ldap,
    sniff: |first| framed::sniff_by_id::<Ldap>(first, id),
    begins_message: |side, first| framed::fit::<Ldap>(side, first) == Fit::Whole,
    begins_inside_turn: |side, first| framed::fit::<Ldap>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Ldap(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Ldap>;

/// Upper bound on a message; OpenLDAP accepts 4 MiB of authenticated clients (`sockbuf_max_incoming_auth`).
const MAX_MESSAGE: usize = 16 << 20;
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const OCTETS: u8 = 4;
const ENUMERATED: u8 = 10;
/// Tag of the controls, which alone may follow the operation.
const CONTROLS: u8 = 0xA0;
/// Tag of an extended operation's name.
const OPERATION_NAME: u8 = 0x80;
/// Controls of searches that stay open after all present entries were sent (RFC 4533 2.2, draft-ietf-ldapext-psearch).
const PERSISTENT: [&[u8]; 2] = [b"1.3.6.1.4.1.4203.1.9.1.1", b"2.16.840.1.113730.3.4.3"];
/// Results that are not errors (RFC 4511 appendix A): success, compareFalse, compareTrue, referral,
/// saslBindInProgress.
const NO_ERRORS: [u16; 5] = [0, 5, 6, 10, 14];
/// The extended operation after whose positive response TLS follows (RFC 4511 4.14).
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";

/// Tags of the operations (RFC 4511 appendix B).
mod operation {
    pub(super) const UNBIND_REQUEST: u8 = 0x42;
    pub(super) const DELETE_REQUEST: u8 = 0x4A;
    pub(super) const ABANDON_REQUEST: u8 = 0x50;
    pub(super) const BIND_REQUEST: u8 = 0x60;
    pub(super) const BIND_RESPONSE: u8 = 0x61;
    pub(super) const SEARCH_REQUEST: u8 = 0x63;
    pub(super) const SEARCH_ENTRY: u8 = 0x64;
    pub(super) const SEARCH_DONE: u8 = 0x65;
    pub(super) const MODIFY_REQUEST: u8 = 0x66;
    pub(super) const MODIFY_RESPONSE: u8 = 0x67;
    pub(super) const ADD_REQUEST: u8 = 0x68;
    pub(super) const ADD_RESPONSE: u8 = 0x69;
    pub(super) const DELETE_RESPONSE: u8 = 0x6B;
    pub(super) const MODIFY_DN_REQUEST: u8 = 0x6C;
    pub(super) const MODIFY_DN_RESPONSE: u8 = 0x6D;
    pub(super) const COMPARE_REQUEST: u8 = 0x6E;
    pub(super) const COMPARE_RESPONSE: u8 = 0x6F;
    pub(super) const SEARCH_REFERENCE: u8 = 0x73;
    pub(super) const EXTENDED_REQUEST: u8 = 0x77;
    pub(super) const EXTENDED_RESPONSE: u8 = 0x78;
    pub(super) const INTERMEDIATE_RESPONSE: u8 = 0x79;
}

#[derive(Debug, Default)]
pub(super) struct Ldap {
    /// Message id of the client's StartTLS.
    start_tls: Option<u32>,
    /// The server has accepted StartTLS.
    has_accepted_tls: bool,
}

/// A message as far as it was kept.
struct Message<'a> {
    id: u32,
    /// Tag of the operation.
    operation: u8,
    /// What the operation holds.
    body: Cursor<'a>,
    /// Length of the operation's body, by its length field.
    len: usize,
}

/// Reads a length: short form, or in one to four bytes (X.690 8.1.3).
fn ber_length(cursor: &mut Cursor<'_>) -> Option<usize> {
    let first = cursor.u8()?;
    let bytes = match first {
        0..=0x7F => return Some(usize::from(first)),
        0x81..=0x84 => cursor.take(usize::from(first & 0x7F))?,
        _ => return None,
    };
    Some(bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
}

/// Reads the value with this tag. Leaves the cursor as it is if another follows.
fn value<'a>(cursor: &mut Cursor<'a>, tag: u8) -> Option<&'a [u8]> {
    let mut ahead = *cursor;
    if ahead.u8()? != tag {
        return None;
    }
    let len = ber_length(&mut ahead)?;
    let value = ahead.take(len)?;
    *cursor = ahead;
    Some(value)
}

impl<'a> Message<'a> {
    fn read(head: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        cursor.u8()?;
        ber_length(&mut cursor)?;
        let id = value(&mut cursor, INTEGER).filter(|id| (1..=4).contains(&id.len()))?;
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let operation = cursor.u8()?;
        let len = ber_length(&mut cursor)?;
        Some(Message {
            id,
            operation,
            body: cursor,
            len,
        })
    }

    /// Returns method and target of a request: the operation, and its entry.
    fn request_name(mut self) -> Option<(&'static str, SmolStr)> {
        let word = match self.operation {
            operation::BIND_REQUEST => {
                value(&mut self.body, INTEGER)?; // the version
                "bind"
            }
            operation::SEARCH_REQUEST => "search",
            operation::MODIFY_REQUEST => "modify",
            operation::ADD_REQUEST => "add",
            operation::MODIFY_DN_REQUEST => "modifyDN",
            operation::COMPARE_REQUEST => "compare",
            operation::DELETE_REQUEST => {
                let name = cursor::upto(self.body.rest(), self.len);
                return Some(("delete", text::name(name)));
            }
            operation::EXTENDED_REQUEST => {
                let name = value(&mut self.body, OPERATION_NAME).unwrap_or_default();
                return Some(("extended", text::name(name)));
            }
            _ => return None,
        };
        let entry = value(&mut self.body, OCTETS).unwrap_or_default();
        Some((word, text::name(entry)))
    }

    fn result(mut self) -> Option<u16> {
        let code = value(&mut self.body, ENUMERATED)?;
        Some(code.iter().fold(0, |code, byte| code << 8 | u16::from(*byte)))
    }
}

fn may_send(side: Side, operation: u8) -> bool {
    match operation {
        operation::UNBIND_REQUEST
        | operation::DELETE_REQUEST
        | operation::ABANDON_REQUEST
        | operation::BIND_REQUEST
        | operation::SEARCH_REQUEST
        | operation::MODIFY_REQUEST
        | operation::ADD_REQUEST
        | operation::MODIFY_DN_REQUEST
        | operation::COMPARE_REQUEST
        | operation::EXTENDED_REQUEST => side == Side::Client,
        operation::BIND_RESPONSE
        | operation::SEARCH_ENTRY
        | operation::SEARCH_DONE
        | operation::MODIFY_RESPONSE
        | operation::ADD_RESPONSE
        | operation::DELETE_RESPONSE
        | operation::MODIFY_DN_RESPONSE
        | operation::COMPARE_RESPONSE
        | operation::SEARCH_REFERENCE
        | operation::EXTENDED_RESPONSE
        | operation::INTERMEDIATE_RESPONSE => side == Side::Server,
        _ => false,
    }
}

fn id(_side: Side, head: &[u8]) -> Option<u64> {
    Message::read(head).map(|message| u64::from(message.id))
}

impl WireFormat for Ldap {
    const MAX_HEAD: usize = 1024;
    const MIN_PROOF: usize = 14;
    const LOST_REASON: &'static str = "not a message of LDAP";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        let mut cursor = Cursor::new(first);
        match (cursor.u8(), cursor.rest().first()) {
            (None | Some(SEQUENCE), None) => return Length::More,
            (Some(SEQUENCE), Some(0..=0x7F | 0x81..=0x84)) => {}
            _ => return Length::Wrong,
        }
        match ber_length(&mut cursor) {
            None => Length::More,
            Some(len) if (5..=MAX_MESSAGE).contains(&len) => {
                Length::Is((len + first.len() - cursor.left()) as u64)
            }
            Some(_) => Length::Wrong,
        }
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        let Some(message) = Message::read(head.bytes) else {
            let begins = |want: &[u8]| {
                let mut cursor = Cursor::new(head.bytes);
                let read = cursor.u8().and_then(|_| ber_length(&mut cursor));
                read.is_none() || cursor.rest().iter().zip(want).all(|(byte, want)| byte == want)
            };
            return (head.bytes.len() as u64) < head.len && begins(&[INTEGER]);
        };
        let before = head.bytes.len() - message.body.left();
        let bytes_after = head.len.checked_sub((before + message.len) as u64);
        let is_controls = message
            .body
            .rest()
            .get(message.len)
            .is_none_or(|tag| *tag == CONTROLS);
        may_send(side, message.operation) && is_controls && bytes_after.is_some_and(|len| len != 1)
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let Some(message) = Message::read(head.bytes) else {
            return Role::Ignored;
        };
        match sink.side() {
            Side::Client => self.read_request(sink, message, head.bytes),
            Side::Server => self.read_response(sink, message),
        }
        .unwrap_or_default()
    }

    fn starts_tls(&self) -> bool {
        self.has_accepted_tls
    }
}

impl Ldap {
    fn read_request(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        message: Message<'_>,
        head: &[u8],
    ) -> Option<Role> {
        let (id, key) = (message.id, u64::from(message.id));
        if message.operation == operation::ABANDON_REQUEST {
            let id = cursor::upto(message.body.rest(), message.len.min(4));
            let abandoned = id.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
            sink.exchange(abandoned).reset();
            return None;
        }
        let (method, target) = message.request_name()?;
        if target == START_TLS {
            self.start_tls = Some(id);
        }
        let waits = method == "search"
            && PERSISTENT
                .iter()
                .any(|oid| memchr::memmem::find(head, oid).is_some());
        let kind = if waits { Kind::LongPoll } else { Kind::Request };
        sink.exchange(key).request(kind, method, &target);
        Some(Role::Last(key))
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, message: Message<'_>) -> Option<Role> {
        let (id, key) = (message.id, u64::from(message.id));
        if key == 0 {
            return Some(Role::push("notice", ""));
        }
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        if matches!(
            message.operation,
            operation::SEARCH_ENTRY | operation::SEARCH_REFERENCE | operation::INTERMEDIATE_RESPONSE
        ) {
            return Some(Role::Part(key));
        }
        let code = message.result()?;
        self.has_accepted_tls |= code == 0 && self.start_tls == Some(id);
        let (word, error) = (errors::word(errors::LDAP, code), !NO_ERRORS.contains(&code));
        exchange.status(Status::new(Some(code), word, error));
        Some(Role::Last(key))
    }
}
