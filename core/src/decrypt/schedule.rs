//! Secrets to keys: TLS 1.3's HKDF-Expand-Label (RFC 8446 7.1) and TLS 1.2's PRF (RFC 5246 5).

use std::fmt;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384};

use super::suite::Hash;
use crate::cursor;

/// SHA-384's output, and TLS 1.2's master secret.
pub(super) const MAX_SECRET_BYTES: usize = 48;
/// A label of RFC 8446 with its length, the length requested and an empty context.
const MAX_INFO: usize = 4 + 6 + 16;

/// A secret of a key log, or one that came of it. It is not printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Secret {
    bytes: [u8; MAX_SECRET_BYTES],
    len: u8,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Secrets are as long as a hash of TLS 1.3's suites, or the master secret's 48 bytes.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() != Hash::Sha256.len() && secret.len() != Hash::Sha384.len() {
            return None;
        }
        let mut bytes = [0; MAX_SECRET_BYTES];
        copy(&mut bytes, secret);
        Some(Secret {
            bytes,
            len: secret.len() as u8,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        cursor::upto(&self.bytes, self.len.into())
    }

    /// The secret after a KeyUpdate (RFC 8446 7.2).
    pub fn next(&self, hash: Hash) -> Option<Self> {
        let mut bytes = [0; MAX_SECRET_BYTES];
        let len = hash.len();
        expand_label(hash, self.bytes(), "traffic upd", bytes.get_mut(..len)?)?;
        Some(Secret {
            bytes,
            len: len as u8,
        })
    }
}

/// As many bytes as both have.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// HKDF-Expand-Label with an empty context. None where the secret is shorter than the hash.
pub(super) fn expand_label(hash: Hash, secret: &[u8], label: &str, out: &mut [u8]) -> Option<()> {
    let mut info = Vec::with_capacity(MAX_INFO);
    info.extend_from_slice(&(out.len() as u16).to_be_bytes());
    info.push(b"tls13 ".len() as u8 + label.len() as u8);
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    match hash {
        Hash::Sha256 => Hkdf::<Sha256>::from_prk(secret).ok()?.expand(&info, out).ok(),
        Hash::Sha384 => Hkdf::<Sha384>::from_prk(secret).ok()?.expand(&info, out).ok(),
    }
}

/// PRF(secret, label, seed), where `seed` comes in two parts.
pub(super) fn prf(
    hash: Hash,
    secret: &[u8],
    label: &str,
    seed: (&[u8], &[u8]),
    out: &mut [u8],
) -> Option<()> {
    let parts = [label.as_bytes(), seed.0, seed.1];
    match hash {
        Hash::Sha256 => p_hash(&Hmac::<Sha256>::new_from_slice(secret).ok()?, &parts, out),
        Hash::Sha384 => p_hash(&Hmac::<Sha384>::new_from_slice(secret).ok()?, &parts, out),
    }
    Some(())
}

/// P_hash: HMAC(A(i) + seed) one after the other, A(i) = HMAC(A(i-1)), A(0) = seed.
fn p_hash<M: Mac + Clone>(keyed: &M, seed: &[&[u8]], out: &mut [u8]) {
    let mac = |parts: &[&[u8]]| {
        let mut mac = keyed.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = mac(seed);
    let mut left = out;
    while !left.is_empty() {
        let mut parts = vec![a.as_slice()];
        parts.extend_from_slice(seed);
        let block = mac(&parts);
        let len = block.len().min(left.len());
        let (here, rest) = std::mem::take(&mut left).split_at_mut(len);
        copy(here, &block);
        left = rest;
        a = mac(&[&a]);
    }
}
