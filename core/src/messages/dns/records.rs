//! The addresses in the records of a DNS response (RFC 1035 4.1.3, RFC 3596). Names are skipped, so that no compression
//! pointer is followed.

use std::net::IpAddr;

use super::message::HEADER;

/// Upper bound on the addresses returned of one response; a client tries only a few.
const MAX_ADDRESSES: usize = 16;
/// Upper bound on the records read of one response.
const MAX_RECORDS: u16 = 64;
/// The high bits of a compression pointer.
const POINTER: u8 = 0xC0;

/// Returns the addresses in a response, which may be cut.
pub fn addresses(message: &[u8]) -> Vec<IpAddr> {
    let mut records = Vec::new();
    let count = |at: usize| {
        let bytes = message.get(at..at + 2).and_then(|bytes| bytes.first_chunk::<2>());
        bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
    };
    let mut rest = message.get(HEADER..).unwrap_or_default();
    for _ in 0..count(4).min(1) {
        rest = skip_name(rest).and_then(|rest| rest.get(4..)).unwrap_or_default();
    }
    for _ in 0..count(6).min(MAX_RECORDS) {
        let Some((kind, data, after)) = record(rest) else {
            break;
        };
        match kind {
            1 => records.extend(data.first_chunk::<4>().map(|octets| IpAddr::from(*octets))),
            28 => records.extend(data.first_chunk::<16>().map(|octets| IpAddr::from(*octets))),
            _ => {}
        }
        rest = after;
    }
    records.truncate(MAX_ADDRESSES);
    records
}

/// Splits off a record: its type, its data, and the bytes after it.
fn record(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, rest) = skip_name(bytes)?.split_first_chunk::<10>()?;
    let [high, low, _, _, _, _, _, _, long, short] = *head;
    let (data, after) = rest.split_at_checked(usize::from(u16::from_be_bytes([long, short])))?;
    Some((u16::from_be_bytes([high, low]), data, after))
}

/// Returns the bytes after a name.
fn skip_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (label, rest) = bytes.split_first()?;
        match *label {
            0 => return Some(rest),
            pointer if pointer >= POINTER => return rest.get(1..),
            label => bytes = rest.get(usize::from(label)..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header with one question and two answers; `www.x` as alias of another name, which has an address.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![0, 7, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
        bytes.extend(b"\x03www\x01x\0\0\x01\0\x01");
        bytes.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x03\x01y\0");
        bytes.extend(b"\x01y\0\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x05");
        bytes
    }

    #[test]
    fn addresses_stand_behind_aliases_and_a_cut_message_has_fewer() {
        let whole = answer();
        assert_eq!(addresses(&whole), [IpAddr::from([10, 0, 0, 5])]);
        for len in 0..whole.len() {
            assert!(addresses(whole.get(..len).unwrap_or_default()).is_empty());
        }
    }

    #[test]
    fn no_more_than_the_cap() {
        let mut bytes = vec![0, 7, 0x81, 0x80, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0];
        for _ in 0..100 {
            bytes.extend(b"\0\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x05");
        }
        assert_eq!(addresses(&bytes).len(), MAX_ADDRESSES);
    }
}
