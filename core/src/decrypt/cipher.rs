//! Decryption of one record: AEAD of TLS 1.3 (RFC 8446 5.2) and 1.2 (RFC 5246 6.2.3.3, RFC 5288, RFC 7905), and CBC
//! with MAC-then-encrypt or encrypt-then-MAC (RFC 5246 6.2.3.2, RFC 7366). A record that fails authentication gives no
//! content.

use std::fmt;

use aes::cipher::{Array, BlockModeDecrypt, KeyIvInit};
use aes::{Aes128, Aes256};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::ChaCha20Poly1305;
use hmac::Hmac;
use sha1::Sha1;
use sha2::{Sha256, Sha384};

use super::schedule::{Secret, copy, expand_label, prf};
use super::suite::{Cipher, Mac, Suite};
use crate::cursor::{self, Cursor};

/// Length of a record header in bytes.
pub(super) const HEADER: usize = 5;
pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// Length of the authentication tag of all AEAD suites here.
const TAG_BYTES: usize = 16;
/// Length of the explicit part of the GCM nonce, which TLS 1.2 sends with each record.
const EXPLICIT_NONCE_BYTES: usize = 8;
/// Block size of AES.
const BLOCK_BYTES: usize = 16;
const MAX_KEY_BYTES: usize = 32;
const MAX_MAC_BYTES: usize = 48;
const IV_BYTES: usize = 12;

/// A record header: type, version, length.
pub(super) type Head = [u8; HEADER];

/// How one sender's records are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the content type is encrypted with the content.
    Tls13,
    /// TLS 1.2: AEAD, or CBC with MAC-then-encrypt.
    Tls12,
    /// TLS 1.2: CBC with encrypt-then-MAC.
    EncryptThenMac,
}

/// One sender's keys until the next key change. The cipher objects, which are large, are built anew for each record.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    cipher: Cipher,
    form: Form,
    key: [u8; MAX_KEY_BYTES],
    iv: [u8; IV_BYTES],
    mac: [u8; MAX_MAC_BYTES],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys of {:?}", self.cipher)
    }
}

impl Keys {
    /// Derives traffic keys of TLS 1.3 (RFC 8446 7.3). `None` if the secret's length does not fit the suite.
    pub fn tls13(suite: Suite, secret: &Secret) -> Option<Self> {
        let mut keys = Keys {
            cipher: suite.cipher,
            form: Form::Tls13,
            key: [0; MAX_KEY_BYTES],
            iv: [0; IV_BYTES],
            mac: [0; MAX_MAC_BYTES],
        };
        if secret.bytes().len() != suite.hash.len() {
            return None;
        }
        let key = keys.key.get_mut(..suite.cipher.key_len())?;
        expand_label(suite.hash, secret.bytes(), "key", key)?;
        expand_label(suite.hash, secret.bytes(), "iv", &mut keys.iv)?;
        Some(keys)
    }

    /// Derives the keys of client and server in TLS 1.2 (RFC 5246 6.3) from the randoms of their hellos.
    pub fn tls12(
        suite: Suite,
        master: &Secret,
        (client, server): (&[u8], &[u8]),
        encrypt_then_mac: bool,
    ) -> Option<[Self; 2]> {
        let (mac_len, iv_len) = match suite.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => (0, 4),
            Cipher::ChaCha20Poly1305 => (0, IV_BYTES),
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => (mac.len(), 0),
        };
        let mut block = [0; 2 * (MAX_KEY_BYTES + MAX_MAC_BYTES + IV_BYTES)];
        let seed = (server, client);
        prf(suite.hash, master.bytes(), "key expansion", seed, &mut block)?;
        let empty = Keys {
            cipher: suite.cipher,
            form: if encrypt_then_mac && mac_len > 0 {
                Form::EncryptThenMac
            } else {
                Form::Tls12
            },
            key: [0; MAX_KEY_BYTES],
            iv: [0; IV_BYTES],
            mac: [0; MAX_MAC_BYTES],
        };
        let (mut client, mut server) = (empty, empty);
        let mut material = Cursor::new(&block);
        copy(&mut client.mac, material.take(mac_len)?);
        copy(&mut server.mac, material.take(mac_len)?);
        copy(&mut client.key, material.take(suite.cipher.key_len())?);
        copy(&mut server.key, material.take(suite.cipher.key_len())?);
        copy(&mut client.iv, material.take(iv_len)?);
        copy(&mut server.iv, material.take(iv_len)?);
        Some([client, server])
    }

    /// Number of bytes of a record's body that are not content; with CBC the minimum, since the padding varies.
    pub fn overhead(&self) -> usize {
        match (self.cipher, self.form) {
            (Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac), _) => BLOCK_BYTES + mac.len() + 1,
            (_, Form::Tls13) => TAG_BYTES + 1,
            (Cipher::ChaCha20Poly1305, _) => TAG_BYTES,
            _ => EXPLICIT_NONCE_BYTES + TAG_BYTES,
        }
    }

    /// Decrypts the record with number `seq` into `out`, which is cleared first. Returns the content type. `None` if
    /// the record does not authenticate under these keys and this number.
    pub fn decrypt(&self, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        out.clear();
        let kind = self.decrypt_body(seq, head, body, out);
        if kind.is_none() {
            out.clear();
        }
        kind
    }

    fn decrypt_body(&self, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        let [kind, ..] = *head;
        match self.cipher {
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => self.decrypt_cbc(mac, seq, head, body, out)?,
            _ if self.form == Form::Tls13 => {
                out.extend_from_slice(body);
                self.decrypt_aead(&self.nonce(seq), head, out)?;
                let end = out.iter().rposition(|byte| *byte != 0)?;
                let kind = out.get(end).copied();
                out.truncate(end);
                return kind;
            }
            Cipher::ChaCha20Poly1305 => {
                out.extend_from_slice(body);
                self.decrypt_aead(
                    &self.nonce(seq),
                    &additional_data(seq, head, body.len().checked_sub(TAG_BYTES)?),
                    out,
                )?;
            }
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                let (explicit, encrypted) = body.split_at_checked(EXPLICIT_NONCE_BYTES)?;
                out.extend_from_slice(encrypted);
                let mut nonce = self.iv;
                copy(nonce.get_mut(4..)?, explicit);
                self.decrypt_aead(
                    &nonce,
                    &additional_data(seq, head, encrypted.len().checked_sub(TAG_BYTES)?),
                    out,
                )?;
            }
        }
        Some(kind)
    }

    /// Returns the nonce of a record: the IV xor the record's number (RFC 8446 5.3, RFC 7905 2).
    fn nonce(&self, seq: u64) -> [u8; IV_BYTES] {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().skip(IV_BYTES - 8).zip(seq.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    fn decrypt_aead(&self, nonce: &[u8; IV_BYTES], additional: &[u8], data: &mut Vec<u8>) -> Option<()> {
        let key = cursor::upto(&self.key, self.cipher.key_len());
        let nonce = nonce.into();
        match self.cipher {
            Cipher::Aes128Gcm => Aes128Gcm::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, additional, data),
            Cipher::Aes256Gcm => Aes256Gcm::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, additional, data),
            _ => ChaCha20Poly1305::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, additional, data),
        }
        .ok()
    }

    fn decrypt_cbc(&self, mac: Mac, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let body = match self.form {
            Form::EncryptThenMac => {
                let (encrypted, tag) = body.split_at_checked(body.len().checked_sub(mac.len())?)?;
                let expected = self.mac(mac, &additional_data(seq, head, encrypted.len()), encrypted);
                (expected == tag).then_some(encrypted)?
            }
            _ => body,
        };
        let (iv, encrypted) = body.split_at_checked(BLOCK_BYTES)?;
        out.extend_from_slice(encrypted);
        let key = cursor::upto(&self.key, self.cipher.key_len());
        match self.cipher {
            Cipher::Aes128Cbc(_) => {
                decrypt_blocks(cbc::Decryptor::<Aes128>::new_from_slices(key, iv).ok()?, out)?
            }
            _ => decrypt_blocks(cbc::Decryptor::<Aes256>::new_from_slices(key, iv).ok()?, out)?,
        }
        let padding = *out.last()?;
        let len = out.len().checked_sub(usize::from(padding) + 1)?;
        if cursor::from(out, len).iter().any(|byte| *byte != padding) {
            return None;
        }
        out.truncate(len);
        if self.form != Form::EncryptThenMac {
            let len = out.len().checked_sub(mac.len())?;
            let (content, tag) = out.split_at_checked(len)?;
            let expected = self.mac(mac, &additional_data(seq, head, len), content);
            if expected != tag {
                return None;
            }
            out.truncate(len);
        }
        Some(())
    }

    fn mac(&self, mac: Mac, additional: &[u8], data: &[u8]) -> Vec<u8> {
        let key = cursor::upto(&self.mac, mac.len());
        match mac {
            Mac::Sha1 => hmac::<Hmac<Sha1>>(key, additional, data),
            Mac::Sha256 => hmac::<Hmac<Sha256>>(key, additional, data),
            Mac::Sha384 => hmac::<Hmac<Sha384>>(key, additional, data),
        }
    }
}

/// The data that TLS 1.2 authenticates in addition to the content: number, type, version, length (RFC 5246 6.2.3.1).
fn additional_data(seq: u64, head: &Head, len: usize) -> [u8; 13] {
    let [kind, major, minor, ..] = *head;
    let [a, b, c, d, e, f, g, h] = seq.to_be_bytes();
    let [high, low] = (len as u16).to_be_bytes();
    [a, b, c, d, e, f, g, h, kind, major, minor, high, low]
}

fn hmac<M: hmac::Mac + hmac::KeyInit>(key: &[u8], additional: &[u8], data: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = <M as hmac::KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(additional);
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// Decrypts CBC in place. `None` if the data is not a whole number of blocks.
fn decrypt_blocks(
    mut cipher: impl BlockModeDecrypt<BlockSize = aes::cipher::consts::U16>,
    data: &mut [u8],
) -> Option<()> {
    let (blocks, rest) = Array::slice_as_chunks_mut(data);
    cipher.decrypt_blocks(blocks);
    rest.is_empty().then_some(())
}
