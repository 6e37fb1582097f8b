//! Both ends of a TLS connection as bytes, sealed with the same primitives and none of the code under test but the
//! schedule, whose values `vectors` holds against RFC 8448.

use aes::cipher::{Array, BlockModeEncrypt, KeyIvInit};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::ChaCha20Poly1305;
use hmac::Hmac;

use crate::base::Side;
use crate::decrypt::schedule::{expand_label, prf};
use crate::decrypt::suite::{Cipher, Hash, Mac, Suite};

pub const RANDOM: [u8; 32] = [7; 32];
pub const SERVER_RANDOM: [u8; 32] = [9; 32];

/// A record as it is.
pub fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 3, 3];
    out.extend((body.len() as u16).to_be_bytes());
    out.extend(body);
    out
}

/// A handshake message.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(&(body.len() as u32).to_be_bytes()[1..]);
    out.extend(body);
    out
}

pub fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut out = kind.to_be_bytes().to_vec();
    out.extend((body.len() as u16).to_be_bytes());
    out.extend(body);
    out
}

fn extensions(all: &[Vec<u8>]) -> Vec<u8> {
    let joined = all.concat();
    let mut out = (joined.len() as u16).to_be_bytes().to_vec();
    out.extend(joined);
    out
}

pub fn client_hello(random: &[u8; 32], more: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend(random);
    body.extend([1, 5, 0, 2, 0x13, 1, 1, 0]);
    body.extend(extensions(more));
    message(1, &body)
}

pub fn server_hello(random: &[u8; 32], suite: u16, more: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend(random);
    body.extend([1, 5]);
    body.extend(suite.to_be_bytes());
    body.push(0);
    body.extend(extensions(more));
    message(2, &body)
}

pub fn tls13() -> Vec<u8> {
    extension(43, &[3, 4])
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One sender's keys and number, for sealing.
#[derive(Clone)]
pub struct Sealer {
    suite: Suite,
    modern: bool,
    mac_last: bool,
    key: Vec<u8>,
    iv: Vec<u8>,
    mac: Vec<u8>,
    pub seq: u64,
}

impl Sealer {
    pub(super) fn modern(suite: Suite, secret: &[u8]) -> Self {
        let (mut key, mut iv) = (vec![0; suite.cipher.key_len()], vec![0; 12]);
        expand_label(suite.hash, secret, "key", &mut key).unwrap();
        expand_label(suite.hash, secret, "iv", &mut iv).unwrap();
        let (modern, mac_last, mac, seq) = (true, false, vec![], 0);
        Sealer {
            suite,
            modern,
            mac_last,
            key,
            iv,
            mac,
            seq,
        }
    }

    pub(super) fn classic(
        suite: Suite,
        master: &[u8],
        client_random: &[u8; 32],
        side: Side,
        mac_last: bool,
    ) -> Self {
        let (mac_len, iv_len) = match suite.cipher {
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => (mac.len(), 0),
            Cipher::ChaCha20Poly1305 => (0, 12),
            _ => (0, 4),
        };
        let key_len = suite.cipher.key_len();
        let mut block = vec![0; 2 * (mac_len + key_len + iv_len)];
        let seed = (SERVER_RANDOM.as_slice(), client_random.as_slice());
        prf(suite.hash, master, "key expansion", seed, &mut block).unwrap();
        let at = side.index();
        let part = |from: usize, len: usize| block[from + at * len..][..len].to_vec();
        Sealer {
            suite,
            modern: false,
            mac_last,
            mac: part(0, mac_len),
            key: part(2 * mac_len, key_len),
            iv: part(2 * (mac_len + key_len), iv_len),
            seq: 0,
        }
    }

    pub fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        self.padded(kind, content, 0)
    }

    /// With so many zeros after the content (TLS 1.3), or more blocks of padding (CBC).
    pub fn padded(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let seq = self.seq.to_be_bytes();
        self.seq += 1;
        let about = |len: usize| {
            let mut about = seq.to_vec();
            about.extend([kind, 3, 3]);
            about.extend((len as u16).to_be_bytes());
            about
        };
        let mut nonce: [u8; 12] = [0; 12];
        nonce[4..].copy_from_slice(&seq);
        if self.modern {
            let mut inner = content.to_vec();
            inner.push(kind);
            inner.extend(vec![0; padding]);
            let head = [23, 3, 3, 0, 0];
            let mut head = head;
            head[3..].copy_from_slice(&((inner.len() + 16) as u16).to_be_bytes());
            self.aead(&self.xored(nonce), &head, &mut inner);
            return record(23, &inner);
        }
        match self.suite.cipher {
            Cipher::ChaCha20Poly1305 => {
                let mut body = content.to_vec();
                self.aead(&self.xored(nonce), &about(content.len()), &mut body);
                record(kind, &body)
            }
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                let mut body = content.to_vec();
                let explicit = [seq[7], 1, 2, 3, 4, 5, 6, 7];
                nonce[..4].copy_from_slice(&self.iv);
                nonce[4..].copy_from_slice(&explicit);
                self.aead(&nonce, &about(content.len()), &mut body);
                record(kind, &[&explicit, body.as_slice()].concat())
            }
            Cipher::Aes128Cbc(mac) | Cipher::Aes256Cbc(mac) => {
                let mut inner = content.to_vec();
                if !self.mac_last {
                    inner.extend(self.proof(mac, &[&about(content.len()), content]));
                }
                let pad = 16 - (inner.len() + 1) % 16 + 16 * padding.min(14);
                let pad = pad % 16 + 16 * padding.min(14);
                inner.extend(vec![pad as u8; pad + 1]);
                let iv = [seq[7]; 16];
                let mut body = iv.to_vec();
                body.extend(self.chained(&iv, inner));
                if self.mac_last {
                    body.extend(self.proof(mac, &[&about(body.len()), &body]));
                }
                record(kind, &body)
            }
        }
    }

    fn xored(&self, mut nonce: [u8; 12]) -> [u8; 12] {
        nonce.iter_mut().zip(&self.iv).for_each(|(byte, iv)| *byte ^= iv);
        nonce
    }

    fn aead(&self, nonce: &[u8; 12], about: &[u8], data: &mut Vec<u8>) {
        let (key, nonce) = (self.key.as_slice(), nonce.into());
        match self.suite.cipher {
            Cipher::Aes128Gcm => Aes128Gcm::new_from_slice(key)
                .unwrap()
                .encrypt_in_place(nonce, about, data),
            Cipher::Aes256Gcm => Aes256Gcm::new_from_slice(key)
                .unwrap()
                .encrypt_in_place(nonce, about, data),
            _ => ChaCha20Poly1305::new_from_slice(key)
                .unwrap()
                .encrypt_in_place(nonce, about, data),
        }
        .unwrap();
    }

    fn chained(&self, iv: &[u8; 16], mut data: Vec<u8>) -> Vec<u8> {
        let (blocks, rest) = Array::slice_as_chunks_mut(&mut data);
        assert!(rest.is_empty());
        if self.key.len() == 16 {
            cbc::Encryptor::<aes::Aes128>::new_from_slices(&self.key, iv)
                .unwrap()
                .encrypt_blocks(blocks);
        } else {
            cbc::Encryptor::<aes::Aes256>::new_from_slices(&self.key, iv)
                .unwrap()
                .encrypt_blocks(blocks);
        }
        data
    }

    fn proof(&self, mac: Mac, parts: &[&[u8]]) -> Vec<u8> {
        fn of<M: hmac::Mac + hmac::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as hmac::KeyInit>::new_from_slice(key).unwrap();
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match mac {
            Mac::Sha1 => of::<Hmac<sha1::Sha1>>(&self.mac, parts),
            Mac::Sha256 => of::<Hmac<sha2::Sha256>>(&self.mac, parts),
            Mac::Sha384 => of::<Hmac<sha2::Sha384>>(&self.mac, parts),
        }
    }
}

/// Secrets of a TLS 1.3 connection: early, client and server handshake, client and server traffic.
pub(super) fn secret(hash: Hash, which: u8) -> Vec<u8> {
    (0..hash.len() as u8).map(|byte| byte ^ which).collect()
}

pub const LABELS: [&str; 5] = [
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The key log of a TLS 1.3 connection, without the labels that begin with one of `without`.
pub(super) fn log13(hash: Hash, without: &[&str]) -> String {
    let labels = LABELS.iter().enumerate();
    let kept = labels.filter(|(_, label)| !without.iter().any(|left| label.starts_with(left)));
    kept.map(|(which, label)| format!("{label} {} {}\n", hex(&RANDOM), hex(&secret(hash, which as u8))))
        .collect()
}

/// The key log of TLS 1.2.
pub fn log12(random: &[u8; 32], master: &[u8; 48]) -> String {
    format!("CLIENT_RANDOM {} {}\n", hex(random), hex(master))
}
