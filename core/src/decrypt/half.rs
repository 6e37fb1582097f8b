//! One sender's keys and the number of its next record. Opens its records in order, and finds the number again where
//! records were lost: the cipher itself shows which one fits.

use super::cipher::{Head, Keys};
use super::handshake::HandshakeMessages;
use super::schedule::Secret;
use super::suite::Suite;

/// So many records may be lost in a row before the number of the next is given up.
const WINDOW: u64 = 64;
/// So many openings may be tried in vain before the rest is given up; each success renews them.
const MAX_TRIES: u32 = 4096;
/// So many records in a row may stay closed: early data that the server refused, a damaged packet.
const MAX_CLOSED: u32 = 64;

/// What a set of keys is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// TLS 1.3, from the client, before the server spoke.
    Early,
    /// TLS 1.3, up to the Finished.
    Handshake,
    /// Whatever programs say, and all of TLS 1.2 behind the ChangeCipherSpec.
    Application,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    pub stage: Stage,
    pub keys: Keys,
    /// Of TLS 1.3, for what follows a KeyUpdate.
    pub secret: Option<(Suite, Secret)>,
}

impl Epoch {
    /// Keys of TLS 1.3.
    pub fn modern(stage: Stage, suite: Suite, secret: &Secret) -> Option<Self> {
        Some(Epoch {
            stage,
            keys: Keys::modern(suite, secret)?,
            secret: Some((suite, *secret)),
        })
    }

    /// What follows a KeyUpdate (RFC 8446 7.2).
    fn updated(&self) -> Option<Self> {
        let (suite, secret) = self.secret.filter(|_| self.stage == Stage::Application)?;
        Epoch::modern(self.stage, suite, &secret.next(suite.hash)?)
    }
}

/// A record that was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened {
    pub kind: u8,
    pub stage: Stage,
    /// So many records of the same keys were lost right before it.
    pub skipped: u64,
}

#[derive(Debug)]
pub(super) struct Half {
    /// The keys in the order in which this sender takes them: those in use first.
    epochs: Vec<Epoch>,
    /// Of the next record under the first keys.
    seq: u64,
    /// Records may have been lost: the number is a guess.
    doubt: bool,
    /// Some record was opened.
    pub opened: bool,
    closed: u32,
    tries: u32,
    pub messages: HandshakeMessages,
    /// Its Finished was read, or what can only follow it.
    pub finished: bool,
}

impl Default for Half {
    fn default() -> Self {
        Half {
            epochs: Vec::new(),
            seq: 0,
            doubt: false,
            opened: false,
            closed: 0,
            tries: MAX_TRIES,
            messages: HandshakeMessages::default(),
            finished: false,
        }
    }
}

impl Half {
    /// Keys that follow all others.
    pub fn then(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
    }

    /// The sender changes to these keys now.
    pub fn change(&mut self, epoch: Epoch) {
        self.epochs.clear();
        self.epochs.push(epoch);
        self.seq = 0;
    }

    /// What this sender's next record is hidden with.
    pub fn current(&self) -> Option<&Epoch> {
        self.epochs.first()
    }

    /// This sender's keys of `stage` are over.
    pub fn leave(&mut self, stage: Stage) {
        if self.current().is_some_and(|epoch| epoch.stage == stage) {
            self.epochs.retain(|epoch| epoch.stage != stage);
            self.seq = 0;
        }
    }

    /// The sender sent KeyUpdate.
    pub fn update(&mut self) {
        if let Some(updated) = self.current().and_then(Epoch::updated) {
            self.change(updated);
        }
    }

    /// A record is lost whose length is known.
    pub fn lose_one(&mut self) {
        self.doubt = true;
        if self.seq > 0 {
            self.seq += 1; // before the first that opens, the window decides
        }
    }

    /// Any number of records may be lost.
    pub fn lose_some(&mut self) {
        self.doubt = true;
    }

    /// Records may have been lost.
    pub fn doubted(&self) -> bool {
        self.doubt
    }

    /// Neither this record nor so many before it could be opened: nothing more will be.
    pub fn hopeless(&self) -> bool {
        self.closed > MAX_CLOSED || self.tries == 0
    }

    /// Opens the next record: its content is in `out`. None where it stays closed.
    pub fn open(&mut self, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<Opened> {
        let opened = self.find(head, body, out);
        if opened.is_none() {
            self.closed += 1;
        }
        opened
    }

    /// As `open`, for a record whose place in the order is a guess.
    pub fn find(&mut self, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Option<Opened> {
        let updated = self.current().filter(|_| self.doubt).and_then(Epoch::updated);
        let window = if self.doubt { WINDOW } else { 0 };
        for (place, epoch) in self.epochs.iter().chain(&updated).enumerate() {
            let first = if place == 0 { self.seq } else { 0 };
            for skipped in 0..=window {
                self.tries = self.tries.checked_sub(1)?;
                let Some(seq) = first.checked_add(skipped) else {
                    break;
                };
                if let Some(kind) = epoch.keys.open(seq, head, body, out) {
                    let (epoch, stage) = (*epoch, epoch.stage);
                    self.follow(place, epoch, seq);
                    return Some(Opened { kind, stage, skipped });
                }
            }
        }
        None
    }

    /// A record was opened with the keys at `place`, or with those behind the last.
    fn follow(&mut self, place: usize, epoch: Epoch, seq: u64) {
        if place >= self.epochs.len() {
            self.epochs = vec![epoch];
        } else {
            self.epochs.drain(..place);
        }
        self.finished |= epoch.stage == Stage::Application;
        self.seq = seq.saturating_add(1);
        (self.doubt, self.opened, self.closed, self.tries) = (false, true, 0, MAX_TRIES);
    }
}
