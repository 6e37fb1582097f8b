//! The supported cipher suites by their IANA number: cipher and hash. Key exchange and certificates do not matter,
//! since the key log has the secrets. CCM, RC4, DES and NULL are not supported.

/// The cipher of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
    Aes128Cbc(Mac),
    Aes256Cbc(Mac),
}

/// The hash of the key schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
}

/// The HMAC that protects a record of a CBC suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mac {
    Sha1,
    Sha256,
    Sha384,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suite {
    pub cipher: Cipher,
    pub hash: Hash,
}

impl Suite {
    const fn new(cipher: Cipher, hash: Hash) -> Self {
        Suite { cipher, hash }
    }
}

impl Cipher {
    pub fn key_len(self) -> usize {
        match self {
            Cipher::Aes128Gcm | Cipher::Aes128Cbc(_) => 16,
            Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 | Cipher::Aes256Cbc(_) => 32,
        }
    }
}

impl Mac {
    pub fn len(self) -> usize {
        match self {
            Mac::Sha1 => 20,
            Mac::Sha256 => 32,
            Mac::Sha384 => 48,
        }
    }
}

impl Hash {
    pub fn len(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
        }
    }
}

/// The suites of TLS 1.3 (RFC 8446 B.4).
pub(super) const TLS13: [(u16, Suite); 3] = [
    (0x1301, Suite::new(Cipher::Aes128Gcm, Hash::Sha256)),
    (0x1302, Suite::new(Cipher::Aes256Gcm, Hash::Sha384)),
    (0x1303, Suite::new(Cipher::ChaCha20Poly1305, Hash::Sha256)),
];

/// Returns a suite of TLS 1.3.
pub(super) fn tls13(number: u16) -> Option<Suite> {
    let entry = TLS13.iter().find(|(entry_number, _)| *entry_number == number);
    entry.map(|(_, suite)| *suite)
}

/// Returns a suite of TLS 1.2.
pub(super) fn tls12(number: u16) -> Option<Suite> {
    let (cipher, hash) = match number {
        // RFC 5288, 5289, 5487, 8442
        0x009c | 0x009e | 0x00a0 | 0x00a2 | 0x00a4 | 0x00a6 | 0x00a8 | 0x00aa | 0x00ac | 0xc02b | 0xc02d
        | 0xc02f | 0xc031 | 0xd001 => (Cipher::Aes128Gcm, Hash::Sha256),
        0x009d | 0x009f | 0x00a1 | 0x00a3 | 0x00a5 | 0x00a7 | 0x00a9 | 0x00ab | 0x00ad | 0xc02c | 0xc02e
        | 0xc030 | 0xc032 | 0xd002 => (Cipher::Aes256Gcm, Hash::Sha384),
        // RFC 7905
        0xcca8..=0xccae => (Cipher::ChaCha20Poly1305, Hash::Sha256),
        // RFC 5246 A.5, 8422, 4279, 5489: AES with SHA-1
        0x002f..=0x0034 | 0x008c | 0x0090 | 0x0094 | 0xc004 | 0xc009 | 0xc00e | 0xc013 | 0xc018 | 0xc035 => {
            (Cipher::Aes128Cbc(Mac::Sha1), Hash::Sha256)
        }
        0x0035..=0x003a | 0x008d | 0x0091 | 0x0095 | 0xc005 | 0xc00a | 0xc00f | 0xc014 | 0xc019 | 0xc036 => {
            (Cipher::Aes256Cbc(Mac::Sha1), Hash::Sha256)
        }
        // RFC 5246 A.5, 5289, 5487, 5489: AES with SHA-2
        0x003c
        | 0x003e..=0x0040
        | 0x0067
        | 0x006c
        | 0x00ae
        | 0x00b2
        | 0x00b6
        | 0xc023
        | 0xc025
        | 0xc027
        | 0xc029
        | 0xc037 => (Cipher::Aes128Cbc(Mac::Sha256), Hash::Sha256),
        0x003d | 0x0068..=0x006b | 0x006d => (Cipher::Aes256Cbc(Mac::Sha256), Hash::Sha256),
        0x00af | 0x00b3 | 0x00b7 | 0xc024 | 0xc026 | 0xc028 | 0xc02a | 0xc038 => {
            (Cipher::Aes256Cbc(Mac::Sha384), Hash::Sha384)
        }
        _ => return None,
    };
    Some(Suite { cipher, hash })
}
