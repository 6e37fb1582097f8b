//! Header and question of a DNS message (RFC 1035 4.1), from TCP or a datagram.

use crate::messages::{RequestName, Status};

pub(in crate::messages) const HEADER: usize = 12;
/// Upper bound on header and question: the longest name, type and class.
pub(in crate::messages) const MAX_QUESTION_BYTES: usize = HEADER + MAX_WIRE_NAME + 4;
/// Upper bound on a name in bytes (RFC 1035 2.3.4).
const MAX_WIRE_NAME: usize = 255;
/// Upper bound on a label of a name in bytes (RFC 1035 2.3.4).
const MAX_LABEL: u8 = 63;
/// The QR bit: the message is a response.
const ANSWER: u16 = 0x8000;
/// Query, status, notify, update (RFC 1035, 1996, 2136). DSO (RFC 8490) has no question.
const OPCODES: [u16; 4] = [0, 2, 4, 5];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: u16,
    pub is_answer: bool,
    rcode: u16,
    /// The question's name in lower case; None if the message has no question or is cut inside it.
    pub name: Option<String>,
    /// The question's type (`A`, `TYPE300`); None as for `name`.
    pub kind: Option<String>,
}

impl Message {
    /// Reads the beginning of a message. None if it cannot be DNS.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [id, flags, questions, answers, authorities, additions] = header_fields(header);
        let opcode = flags >> 11 & 0xF;
        let is_answer = flags & ANSWER != 0;
        let is_update = opcode == 5;
        // a response to a malformed query has no question
        let has_question = questions == 1 || is_answer && questions == 0;
        // a query has no records but a few additional ones (RFC 6891), and the SOA that an IXFR starts from
        let is_bare = is_answer || is_update || answers == 0 && authorities <= 1 && additions <= 4;
        let reserved = flags & 0x40;
        if !OPCODES.contains(&opcode) || !has_question || !is_bare || reserved != 0 {
            return None;
        }
        let question = if questions == 1 { question(rest)? } else { None };
        let (name, kind) = question.unzip();
        Some(Message {
            id,
            is_answer,
            rcode: flags & 0xF,
            name,
            kind: kind.map(kind_word),
        })
    }

    pub(in crate::messages) fn request_name(&self) -> RequestName<'_> {
        RequestName::new(
            self.kind.as_deref().unwrap_or_default(),
            self.name.as_deref().unwrap_or_default(),
        )
    }

    pub fn status(&self) -> Status<'static> {
        Status::new(Some(self.rcode), rcode_word(self.rcode), self.rcode != 0)
    }
}

fn header_fields(header: &[u8; HEADER]) -> [u16; 6] {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(header.chunks_exact(2)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u16::from(*byte));
    }
    words
}

/// Reads name and type of a question. `None`: the bytes are not a question. `Some(None)`: they are cut inside it.
fn question(mut bytes: &[u8]) -> Option<Option<(String, u16)>> {
    let (mut name, mut length) = (String::new(), 1);
    loop {
        let Some((label, rest)) = bytes.split_first() else {
            return Some(None);
        };
        length += usize::from(*label) + 1;
        if *label > MAX_LABEL || length > MAX_WIRE_NAME {
            return None; // also a compression pointer: no name precedes the question
        }
        if *label == 0 {
            bytes = rest;
            break;
        }
        let Some((text, rest)) = rest.split_at_checked(usize::from(*label)) else {
            return Some(None);
        };
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&String::from_utf8_lossy(text).to_ascii_lowercase());
        bytes = rest;
    }
    if name.is_empty() {
        name.push('.');
    }
    let Some((fields, _)) = bytes.split_first_chunk::<4>() else {
        return Some(None);
    };
    let [high, low, ..] = *fields;
    Some(Some((name, u16::from_be_bytes([high, low]))))
}

/// Returns a type's name (IANA, "Domain Name System (DNS) Parameters").
fn kind_word(kind: u16) -> String {
    let word = match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        35 => "NAPTR",
        43 => "DS",
        46 => "RRSIG",
        48 => "DNSKEY",
        52 => "TLSA",
        64 => "SVCB",
        65 => "HTTPS",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        257 => "CAA",
        other => return format!("TYPE{other}"), // RFC 3597 5
    };
    word.to_string()
}

/// Returns a response code's name (RFC 1035 4.1.1, RFC 2136 2.2).
fn rcode_word(rcode: u16) -> Option<&'static str> {
    const WORDS: [&str; 11] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET",
        "NOTAUTH", "NOTZONE",
    ];
    WORDS.get(usize::from(rcode)).copied()
}
