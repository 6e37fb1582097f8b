//! The Community ID of a connection (version 1, seed 0): an identifier that Zeek, Suricata and other tools compute
//! alike.
//!
//! It is the base64 of a SHA-1 over seed, both addresses, protocol, a zero byte and both ports, the lower end first
//! (github.com/corelight/community-id-spec).

use std::net::{IpAddr, SocketAddr};

use sha1::{Digest, Sha1};

const TCP: u8 = 6;
const SEED: [u8; 2] = [0, 0];
const VERSION: &str = "1:";
/// Length of a SHA-1 (20 bytes) in base64.
const DIGEST_LETTERS: usize = 28;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the id of the TCP connection between two ends, in either order.
pub fn id(a: SocketAddr, b: SocketAddr) -> String {
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    let mut hash = Sha1::new_with_prefix(SEED);
    for end in [low, high] {
        match end.ip() {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(address.octets()),
        }
    }
    hash.update([TCP, 0]);
    for end in [low, high] {
        hash.update(end.port().to_be_bytes());
    }
    let mut text = String::with_capacity(VERSION.len() + DIGEST_LETTERS);
    text.push_str(VERSION);
    text.extend(std::str::from_utf8(&base64(hash.finalize().into())));
    text
}

/// Encodes a SHA-1 as base64 (RFC 4648 section 4): 27 letters and one of padding.
fn base64(digest: [u8; 20]) -> [u8; DIGEST_LETTERS] {
    let mut padded = [0; 21];
    for (to, from) in padded.iter_mut().zip(digest) {
        *to = from;
    }
    let mut letters = [b'='; DIGEST_LETTERS];
    let (threes, _) = padded.as_chunks::<3>();
    let (fours, _) = letters.as_chunks_mut::<4>();
    for (four, [one, two, three]) in fours.iter_mut().zip(threes) {
        let word = u32::from_be_bytes([0, *one, *two, *three]);
        *four = [word >> 18, word >> 12, word >> 6, word]
            .map(|six| ALPHABET.get((six & 63) as usize).copied().unwrap_or(b'='));
    }
    letters[DIGEST_LETTERS - 1] = b'=';
    letters
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
