//! Community ID of a connection (version 1, seed 0): one word that Zeek, Suricata and others give the same connection.
//!
//! github.com/corelight/community-id-spec: SHA-1 over seed, both addresses, protocol, a zero and both ports, the lower
//! end first, in base64.

use std::net::{IpAddr, SocketAddr};

use sha1::{Digest, Sha1};

const TCP: u8 = 6;
const SEED: [u8; 2] = [0, 0];
/// Of two IPv6 ends.
const MOST_HASHED: usize = 2 + 2 * 16 + 2 + 2 * 2;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The id of the TCP connection between these ends, whichever comes first.
pub fn id(one: SocketAddr, other: SocketAddr) -> String {
    let (low, high) = if one <= other { (one, other) } else { (other, one) };
    let mut hashed = Vec::with_capacity(MOST_HASHED);
    hashed.extend_from_slice(&SEED);
    for end in [low, high] {
        match end.ip() {
            IpAddr::V4(address) => hashed.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => hashed.extend_from_slice(&address.octets()),
        }
    }
    hashed.extend_from_slice(&[TCP, 0]);
    for end in [low, high] {
        hashed.extend_from_slice(&end.port().to_be_bytes());
    }
    let mut text = String::with_capacity(2 + 28);
    text.push_str("1:");
    base64(&Sha1::digest(&hashed), &mut text);
    text
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8], text: &mut String) {
    let letter = |six: u32| char::from(ALPHABET.get((six & 63) as usize).copied().unwrap_or(b'='));
    let (whole, rest) = bytes.as_chunks::<3>();
    for [one, two, three] in whole {
        let word = u32::from_be_bytes([0, *one, *two, *three]);
        text.extend([word >> 18, word >> 12, word >> 6, word].map(letter));
    }
    match rest {
        [one] => text.extend([u32::from(*one) >> 2, u32::from(*one) << 4].map(letter)),
        [one, two] => {
            let word = u32::from_be_bytes([0, *one, *two, 0]);
            text.extend([word >> 18, word >> 12, word >> 6].map(letter));
        }
        _ => return,
    }
    text.push_str(if rest.len() == 1 { "==" } else { "=" });
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::id;

    /// The examples of the specification.
    #[test]
    fn published_examples() {
        for (one, other, expected) in [
            (
                "128.232.110.120:34855",
                "66.35.250.204:80",
                "1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
            ),
            (
                "[2001:470:e5bf:dead:4957:2174:e82c:4887]:63943",
                "[2607:f8b0:400c:c03::1a]:25",
                "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
            ),
        ] {
            let ends: Vec<SocketAddr> = [one, other].iter().filter_map(|end| end.parse().ok()).collect();
            let &[one, other] = ends.as_slice() else {
                panic!("two ends")
            };
            assert_eq!(id(one, other), expected);
            assert_eq!(id(other, one), expected);
        }
    }
}
