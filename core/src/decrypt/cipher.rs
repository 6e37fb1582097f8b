//! One record, opened: AEAD of TLS 1.3 (RFC 8446 5.2) and 1.2 (RFC 5246 6.2.3.3, RFC 5288, RFC 7905), and CBC with
//! its MAC before or after the encryption (RFC 5246 6.2.3.2, RFC 7366). What does not prove to be whole is not given.

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

pub(super) const HEADER: usize = 5;
pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// Authentication tag of all AEAD suites here.
const TAG: usize = 16;
/// GCM's part of the nonce that TLS 1.2 sends with each record.
const EXPLICIT: usize = 8;
const BLOCK: usize = 16;
const LONGEST_KEY: usize = 32;
const LONGEST_MAC: usize = 48;
const IV: usize = 12;

/// A record's header.
pub(super) type Head = [u8; HEADER];

/// How one sender's records are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the content's type is inside.
    Modern,
    Classic,
    /// TLS 1.2 with a CBC suite and encrypt-then-MAC.
    MacLast,
}

/// One sender's keys, until they change. The ciphers are made of them for each record: a stream at rest is small.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    cipher: Cipher,
    form: Form,
    key: [u8; LONGEST_KEY],
    iv: [u8; IV],
    mac: [u8; LONGEST_MAC],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys of {:?}", self.cipher)
    }
}

impl Keys {
    /// Traffic keys of TLS 1.3 (RFC 8446 7.3). None where the secret is not of this suite.
    pub fn modern(suite: Suite, secret: &Secret) -> Option<Self> {
        let mut keys = Keys {
            cipher: suite.cipher,
            form: Form::Modern,
            key: [0; LONGEST_KEY],
            iv: [0; IV],
            mac: [0; LONGEST_MAC],
        };
        if secret.bytes().len() != suite.hash.len() {
            return None;
        }
        let key = keys.key.get_mut(..suite.cipher.key_len())?;
        expand_label(suite.hash, secret.bytes(), "key", key)?;
        expand_label(suite.hash, secret.bytes(), "iv", &mut keys.iv)?;
        Some(keys)
    }

    /// The client's and the server's keys of TLS 1.2 (RFC 5246 6.3), by the randoms of their hellos.
    pub fn classic(
        suite: Suite,
        master: &Secret,
        (client, server): (&[u8], &[u8]),
        mac_last: bool,
    ) -> Option<[Self; 2]> {
        let (mac_len, iv_len) = match suite.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => (0, 4),
            Cipher::ChaCha20Poly1305 => (0, IV),
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => (mac.len(), 0),
        };
        let mut block = [0; 2 * (LONGEST_KEY + LONGEST_MAC + IV)];
        let seed = (server, client);
        prf(suite.hash, master.bytes(), "key expansion", seed, &mut block)?;
        let empty = Keys {
            cipher: suite.cipher,
            form: if mac_last && mac_len > 0 {
                Form::MacLast
            } else {
                Form::Classic
            },
            key: [0; LONGEST_KEY],
            iv: [0; IV],
            mac: [0; LONGEST_MAC],
        };
        let (mut client, mut server) = (empty, empty);
        let mut left = Cursor::new(&block);
        copy(&mut client.mac, left.take(mac_len)?);
        copy(&mut server.mac, left.take(mac_len)?);
        copy(&mut client.key, left.take(suite.cipher.key_len())?);
        copy(&mut server.key, left.take(suite.cipher.key_len())?);
        copy(&mut client.iv, left.take(iv_len)?);
        copy(&mut server.iv, left.take(iv_len)?);
        Some([client, server])
    }

    /// So many bytes of a record's body are no content; with CBC at least so many.
    pub fn overhead(&self) -> usize {
        match (self.cipher, self.form) {
            (Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac), _) => BLOCK + mac.len() + 1,
            (_, Form::Modern) => TAG + 1,
            (Cipher::ChaCha20Poly1305, _) => TAG,
            _ => EXPLICIT + TAG,
        }
    }

    /// Opens the record with this number: its content goes to `out`, which is emptied first, and its type is given.
    /// None where it does not prove to be that record under these keys.
    pub fn open(&self, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        out.clear();
        let opened = self.content(seq, head, body, out);
        if opened.is_none() {
            out.clear();
        }
        opened
    }

    fn content(&self, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        let [kind, ..] = *head;
        match self.cipher {
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => self.block_mode(mac, seq, head, body, out)?,
            _ if self.form == Form::Modern => {
                out.extend_from_slice(body);
                self.aead(&self.nonce(seq), head, out)?;
                let end = out.iter().rposition(|byte| *byte != 0)?;
                let kind = out.get(end).copied();
                out.truncate(end);
                return kind;
            }
            Cipher::ChaCha20Poly1305 => {
                out.extend_from_slice(body);
                self.aead(
                    &self.nonce(seq),
                    &about(seq, head, body.len().checked_sub(TAG)?),
                    out,
                )?;
            }
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                let (explicit, sealed) = body.split_at_checked(EXPLICIT)?;
                out.extend_from_slice(sealed);
                let mut nonce = self.iv;
                copy(nonce.get_mut(4..)?, explicit);
                self.aead(&nonce, &about(seq, head, sealed.len().checked_sub(TAG)?), out)?;
            }
        }
        Some(kind)
    }

    /// RFC 8446 5.3, RFC 7905 2.
    fn nonce(&self, seq: u64) -> [u8; IV] {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().skip(IV - 8).zip(seq.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    fn aead(&self, nonce: &[u8; IV], about: &[u8], sealed: &mut Vec<u8>) -> Option<()> {
        let key = cursor::upto(&self.key, self.cipher.key_len());
        let nonce = nonce.into();
        match self.cipher {
            Cipher::Aes128Gcm => Aes128Gcm::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, about, sealed),
            Cipher::Aes256Gcm => Aes256Gcm::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, about, sealed),
            _ => ChaCha20Poly1305::new_from_slice(key)
                .ok()?
                .decrypt_in_place(nonce, about, sealed),
        }
        .ok()
    }

    fn block_mode(&self, mac: Mac, seq: u64, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let body = match self.form {
            Form::MacLast => {
                let (sealed, tag) = body.split_at_checked(body.len().checked_sub(mac.len())?)?;
                let proof = self.mac(mac, &about(seq, head, sealed.len()), sealed);
                (proof == tag).then_some(sealed)?
            }
            _ => body,
        };
        let (iv, sealed) = body.split_at_checked(BLOCK)?;
        out.extend_from_slice(sealed);
        let key = cursor::upto(&self.key, self.cipher.key_len());
        match self.cipher {
            Cipher::Aes128Cbc(_) => unchain(cbc::Decryptor::<Aes128>::new_from_slices(key, iv).ok()?, out)?,
            _ => unchain(cbc::Decryptor::<Aes256>::new_from_slices(key, iv).ok()?, out)?,
        }
        let padding = *out.last()?;
        let len = out.len().checked_sub(usize::from(padding) + 1)?;
        if cursor::from(out, len).iter().any(|byte| *byte != padding) {
            return None;
        }
        out.truncate(len);
        if self.form != Form::MacLast {
            let len = out.len().checked_sub(mac.len())?;
            let (content, tag) = out.split_at_checked(len)?;
            let proof = self.mac(mac, &about(seq, head, len), content);
            if proof != tag {
                return None;
            }
            out.truncate(len);
        }
        Some(())
    }

    fn mac(&self, mac: Mac, about: &[u8], data: &[u8]) -> Vec<u8> {
        let key = cursor::upto(&self.mac, mac.len());
        match mac {
            Mac::Sha1 => hmac::<Hmac<Sha1>>(key, about, data),
            Mac::Sha256 => hmac::<Hmac<Sha256>>(key, about, data),
            Mac::Sha384 => hmac::<Hmac<Sha384>>(key, about, data),
        }
    }
}

/// What TLS 1.2 authenticates beside the content: number, type, version, length (RFC 5246 6.2.3.1).
fn about(seq: u64, head: &Head, len: usize) -> [u8; 13] {
    let [kind, major, minor, ..] = *head;
    let [a, b, c, d, e, f, g, h] = seq.to_be_bytes();
    let [high, low] = (len as u16).to_be_bytes();
    [a, b, c, d, e, f, g, h, kind, major, minor, high, low]
}

fn hmac<M: hmac::Mac + hmac::KeyInit>(key: &[u8], about: &[u8], data: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = <M as hmac::KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(about);
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// Whole blocks, in place.
fn unchain(
    mut cipher: impl BlockModeDecrypt<BlockSize = aes::cipher::consts::U16>,
    data: &mut [u8],
) -> Option<()> {
    let (blocks, rest) = Array::slice_as_chunks_mut(data);
    cipher.decrypt_blocks(blocks);
    rest.is_empty().then_some(())
}
