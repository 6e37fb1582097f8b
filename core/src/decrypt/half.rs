//! The keys of one direction and the number of its next record. Decrypts records in order. After lost records it tries
//! the numbers that follow: a record authenticates only under its own number.

use super::cipher::{Head, Keys};
use super::handshake::HandshakeMessages;
use super::schedule::Secret;
use super::suite::Suite;

/// Upper bound on records lost in a row; the number of the next one is searched no further.
const MAX_LOST_RECORDS: u64 = 64;
/// Upper bound on failed attempts to decrypt, counted since the last success. After it the direction is given up.
const MAX_TRIES: u32 = 4096;
/// Upper bound on records in a row that do not decrypt, such as early data that the server rejected.
const MAX_FAILED_RECORDS: u32 = 64;

/// The phase of a connection that a set of keys is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Early data of TLS 1.3, sent before the ServerHello.
    Early,
    /// The handshake of TLS 1.3 up to Finished.
    Handshake,
    /// Application data; in TLS 1.2 everything after ChangeCipherSpec.
    Application,
}

/// The keys of one stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    pub stage: Stage,
    pub keys: Keys,
    /// In TLS 1.3: suite and secret, to derive the keys after a KeyUpdate.
    pub secret: Option<(Suite, Secret)>,
}

impl Epoch {
    /// Derives the keys of a stage of TLS 1.3.
    pub fn tls13(stage: Stage, suite: Suite, secret: &Secret) -> Option<Self> {
        Some(Epoch {
            stage,
            keys: Keys::tls13(suite, secret)?,
            secret: Some((suite, *secret)),
        })
    }

    /// Derives the keys after a KeyUpdate (RFC 8446 7.2).
    fn updated(&self) -> Option<Self> {
        let (suite, secret) = self.secret.filter(|_| self.stage == Stage::Application)?;
        Epoch::tls13(self.stage, suite, &secret.next(suite.hash)?)
    }
}

/// A record that was decrypted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decrypted {
    pub kind: u8,
    pub stage: Stage,
    /// Number of records of the same keys that were lost right before it.
    pub skipped: u64,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Half {
    /// The keys in the order of their use, beginning with the current ones.
    epochs: Vec<Epoch>,
    /// Number of the next record under the current keys.
    seq: u64,
    /// Whether records may have been lost, so that `seq` is a guess.
    is_seq_uncertain: bool,
    /// Whether any record was decrypted.
    pub has_decrypted: bool,
    /// Number of records in a row that did not decrypt.
    failed_records: u32,
    /// Attempts that are left of `MAX_TRIES`.
    tries: u32,
    pub messages: HandshakeMessages,
    /// Whether its Finished was read, or a record that can only follow it.
    pub finished: bool,
}

impl Default for Half {
    fn default() -> Self {
        Half {
            epochs: Vec::new(),
            seq: 0,
            is_seq_uncertain: false,
            has_decrypted: false,
            failed_records: 0,
            tries: MAX_TRIES,
            messages: HandshakeMessages::default(),
            finished: false,
        }
    }
}

impl Half {
    /// Adds keys that are used after all others.
    pub fn add(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
    }

    /// Changes to these keys now.
    pub fn change(&mut self, epoch: Epoch) {
        self.epochs.clear();
        self.epochs.push(epoch);
        self.seq = 0;
    }

    /// The current keys. `None` while records are not encrypted.
    pub fn current(&self) -> Option<&Epoch> {
        self.epochs.first()
    }

    /// Ends the use of the keys of `stage`.
    pub fn leave(&mut self, stage: Stage) {
        if self.current().is_some_and(|epoch| epoch.stage == stage) {
            self.epochs.retain(|epoch| epoch.stage != stage);
            self.seq = 0;
        }
    }

    /// Changes keys after a KeyUpdate.
    pub fn update(&mut self) {
        if let Some(updated) = self.current().and_then(Epoch::updated) {
            self.change(updated);
        }
    }

    /// Takes notice that exactly one record is lost.
    pub fn lose_one(&mut self) {
        self.is_seq_uncertain = true;
        if self.seq > 0 {
            self.seq += 1; // not before the first decrypted record: `find` tries the numbers from 0 on
        }
    }

    /// Takes notice that any number of records may be lost.
    pub fn lose_some(&mut self) {
        self.is_seq_uncertain = true;
    }

    /// Whether records may have been lost.
    pub fn is_seq_uncertain(&self) -> bool {
        self.is_seq_uncertain
    }

    /// Whether so many records failed that nothing more will decrypt.
    pub fn is_hopeless(&self) -> bool {
        self.failed_records > MAX_FAILED_RECORDS || self.tries == 0
    }

    /// Decrypts the next record into `out`. `None` if that fails.
    pub fn decrypt(&mut self, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<Decrypted> {
        let decrypted = self.find(head, body, out);
        if decrypted.is_none() {
            self.failed_records += 1;
        }
        decrypted
    }

    /// As `decrypt`, for bytes that may not be a record at all: a failure is not counted as a failed record.
    pub fn find(&mut self, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<Decrypted> {
        let updated = self
            .current()
            .filter(|_| self.is_seq_uncertain)
            .and_then(Epoch::updated);
        let max_skipped = if self.is_seq_uncertain {
            MAX_LOST_RECORDS
        } else {
            0
        };
        for (index, epoch) in self.epochs.iter().chain(&updated).enumerate() {
            let first = if index == 0 { self.seq } else { 0 };
            for skipped in 0..=max_skipped {
                self.tries = self.tries.checked_sub(1)?;
                let Some(seq) = first.checked_add(skipped) else {
                    break;
                };
                if let Some(kind) = epoch.keys.decrypt(seq, head, body, out) {
                    let (epoch, stage) = (*epoch, epoch.stage);
                    self.advance(index, epoch, seq);
                    return Some(Decrypted { kind, stage, skipped });
                }
            }
        }
        None
    }

    /// Sets the state after a decrypted record. `index` is that of its keys; beyond the end, they came from a
    /// KeyUpdate.
    fn advance(&mut self, index: usize, epoch: Epoch, seq: u64) {
        if index >= self.epochs.len() {
            self.epochs = vec![epoch];
        } else {
            self.epochs.drain(..index);
        }
        self.finished |= epoch.stage == Stage::Application;
        self.seq = seq.saturating_add(1);
        (
            self.is_seq_uncertain,
            self.has_decrypted,
            self.failed_records,
            self.tries,
        ) = (false, true, 0, MAX_TRIES);
    }
}
