//! Derivation of keys from secrets: HKDF-Expand-Label of TLS 1.3 (RFC 8446 7.1) and the PRF of TLS 1.2 (RFC 5246 5).

use std::fmt;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384};

use super::suite::Hash;
use crate::cursor;

/// Upper bound on a secret: the output of SHA-384, and the master secret of TLS 1.2.
pub(super) const MAX_SECRET_BYTES: usize = 48;
/// Upper bound on the HkdfLabel structure: output length, label with its length, and an empty context.
const MAX_INFO_BYTES: usize = 4 + 6 + 16;

/// A secret from a key log, or derived from one. `Debug` does not print it.
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
    /// `None` unless the length is that of a hash of TLS 1.3 (32 or 48 bytes); a master secret has 48 bytes too.
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

    /// Derives the secret after a KeyUpdate (RFC 8446 7.2).
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

/// Copies as many bytes as both slices have.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// HKDF-Expand-Label with an empty context. `None` if the secret is shorter than the hash.
pub(super) fn expand_label(hash: Hash, secret: &[u8], label: &str, out: &mut [u8]) -> Option<()> {
    let mut info = Vec::with_capacity(MAX_INFO_BYTES);
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

/// PRF(secret, label, seed); `seed` is the concatenation of two parts.
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

/// P_hash: the concatenation of HMAC(A(i) + seed) for i = 1, 2, ..., where A(i) = HMAC(A(i-1)) and A(0) = seed.
fn p_hash<M: Mac + Clone>(keyed: &M, seed: &[&[u8]], out: &mut [u8]) {
    let mac = |parts: &[&[u8]]| {
        let mut mac = keyed.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = mac(seed);
    let mut unfilled = out;
    while !unfilled.is_empty() {
        let mut parts = vec![a.as_slice()];
        parts.extend_from_slice(seed);
        let block = mac(&parts);
        let len = block.len().min(unfilled.len());
        let (filled, rest) = std::mem::take(&mut unfilled).split_at_mut(len);
        copy(filled, &block);
        unfilled = rest;
        a = mac(&[&a]);
    }
}
