//! The state of a TLS connection: takes whole records of both sides, follows the handshake, and changes keys. Returns
//! the plaintext of application data, or the reason why it stays encrypted.

use smol_str::SmolStr;

use super::cipher::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, Head, Keys};
use super::half::{Decrypted, Epoch, Half, Stage};
use super::handshake::{
    CLIENT_HELLO, ENCRYPTED_EXTENSIONS, END_OF_EARLY_DATA, FINISHED, KEY_UPDATE, SERVER_HELLO, ServerHello,
    TLS13, client_random, encrypted_extensions, offers_early_data, server_hello,
};
use super::keylog::{KeyLog, Label, Random};
use super::suite;
use crate::base::Side;

const TLS12: u16 = 0x0303;

/// The reason why records stay encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// The hellos are not in the capture.
    Middle,
    /// Bytes of the hellos are missing.
    Hellos,
    NoSecret,
    /// SSL 3.0, TLS 1.0 and 1.1, or a draft.
    Version(u16),
    Suite(u16),
    /// There are keys, but they decrypt nothing.
    Wrong,
    /// Records were lost or changed, and none after them decrypts.
    Lost,
    /// Bytes that are not a TLS record.
    NotTls,
}

impl Sealed {
    /// Returns the reason of the issue.
    pub fn reason(self) -> &'static str {
        match self {
            Sealed::Middle => "TLS stays sealed: its handshake is not in the capture",
            Sealed::Hellos => "TLS stays sealed: bytes of its handshake are not in the capture",
            Sealed::NoSecret => "TLS stays sealed: the key log has no key for this connection",
            Sealed::Version(_) => "TLS stays sealed: only versions 1.2 and 1.3 are decrypted",
            Sealed::Suite(_) => "TLS stays sealed: the cipher suite is not supported",
            Sealed::Wrong => "TLS stays sealed: the key log's key does not open its records",
            Sealed::Lost => "TLS is sealed from here on: records behind missing bytes do not open",
            Sealed::NotTls => "TLS is sealed from here on: bytes are no record",
        }
    }

    /// Returns the number of the version or suite, which the issue shows; else 0.
    pub fn number(self) -> u32 {
        match self {
            Sealed::Version(number) | Sealed::Suite(number) => number.into(),
            _ => 0,
        }
    }
}

/// The kind of content in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// No application data: handshake, alert, change of keys, or early data that the server rejected.
    None,
    /// Application data.
    Plaintext,
    /// Early data, which is discarded unless the server accepts it.
    EarlyPlaintext,
    /// The record did not decrypt.
    Undecrypted,
    /// The record did not decrypt and may be early data, whose key is not in the log or which the server rejected.
    UndecryptedEarly,
}

/// Whether the server accepts early data (RFC 8446 4.2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Early {
    #[default]
    Undecided,
    Accepted,
    Rejected,
}

/// Both directions of a connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Random of the ClientHello.
    random: Option<Random>,
    /// Whether the ServerHello was read (not only a HelloRetryRequest).
    has_server_hello: bool,
    is_tls13: bool,
    /// TLS 1.2: the keys that each side uses after ChangeCipherSpec.
    pending: Option<[Keys; 2]>,
    halves: [Half; 2],
    /// Whether the ClientHello announced early data.
    offers_early_data: bool,
    pub early: Early,
    /// The application protocol in the encrypted extensions of the server.
    pub alpn: Option<SmolStr>,
    pub sealed: Option<Sealed>,
}

impl Session {
    pub fn half(&mut self, side: Side) -> &mut Half {
        let [client, server] = &mut self.halves;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    pub fn finished(&self) -> bool {
        self.halves.iter().all(|half| half.finished)
    }

    /// Whether the ServerHello was read and the keys are known.
    pub fn keyed(&self) -> bool {
        self.has_server_hello && self.sealed.is_none()
    }

    /// Reads the next record of `side`. Its content is written to `out`.
    pub fn record(
        &mut self,
        side: Side,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
    ) -> Content {
        let [kind, ..] = *head;
        let is_encrypted = self.is_encrypted(side);
        if kind == CHANGE_CIPHER_SPEC && (self.is_tls13 || !is_encrypted) {
            self.change(side);
            return Content::None;
        }
        if !is_encrypted || self.is_tls13 && kind != APPLICATION_DATA {
            return self.plain_record(side, kind, head, body, log, out);
        }
        match self.half(side).decrypt(head, body, out) {
            Some(decrypted) => self.decrypted(side, decrypted, log, out),
            None => self.undecrypted(side),
        }
    }

    /// Tries to decrypt a candidate for the next record after lost ones. Returns its content, and the number of records
    /// lost, if known.
    pub fn find(
        &mut self,
        side: Side,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
    ) -> Option<(Content, Option<u64>)> {
        self.change_if_pending(side);
        let stage = self.half(side).current().map(|epoch| epoch.stage);
        let decrypted = self.half(side).find(head, body, out)?;
        let is_counted = stage == Some(decrypted.stage) && decrypted.stage == Stage::Application;
        let content = self.decrypted(side, decrypted, log, out);
        Some((content, is_counted.then_some(decrypted.skipped)))
    }

    /// Takes notice that one record of `side` is lost. Returns the length of its content if it was application data,
    /// else 0.
    pub fn lose_one(&mut self, side: Side, body: usize) -> usize {
        self.lose_some(side);
        self.half(side).lose_one();
        match self.half(side).current() {
            Some(epoch) if epoch.stage == Stage::Application => body.saturating_sub(epoch.keys.overhead()),
            _ => 0,
        }
    }

    /// Takes notice that bytes of `side` are not in the capture.
    pub fn lose_some(&mut self, side: Side) {
        if side == Side::Server && !self.has_server_hello || self.random.is_none() {
            self.sealed.get_or_insert(Sealed::Hellos);
        }
        self.half(side).lose_some();
    }

    /// Whether records of `side` are encrypted now.
    pub fn is_encrypted(&mut self, side: Side) -> bool {
        self.half(side).current().is_some()
    }

    /// Number of bytes of each record that are not content, with its header. `None` before application data.
    pub fn overhead(&mut self, side: Side) -> Option<usize> {
        let epoch = self.half(side).current()?;
        let is_application = epoch.stage == Stage::Application;
        is_application.then(|| epoch.keys.overhead() + super::cipher::HEADER)
    }

    /// Changes to the pending keys if `side` has none: its ChangeCipherSpec may be among the lost records.
    fn change_if_pending(&mut self, side: Side) {
        if self.half(side).current().is_none() {
            self.change(side);
        }
    }

    /// Changes keys after a ChangeCipherSpec. In TLS 1.3 no keys are pending and it has no effect (RFC 8446 D.4).
    fn change(&mut self, side: Side) {
        let Some([client, server]) = self.pending else {
            return;
        };
        let keys = match side {
            Side::Client => client,
            Side::Server => server,
        };
        self.half(side).change(Epoch {
            stage: Stage::Application,
            keys,
            secret: None,
        });
    }

    /// Reads a record that is not encrypted.
    fn plain_record(
        &mut self,
        side: Side,
        kind: u8,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
    ) -> Content {
        match kind {
            HANDSHAKE => self.handshake(side, body, log),
            APPLICATION_DATA if self.random.is_none() => {
                self.sealed.get_or_insert(Sealed::Middle);
            }
            APPLICATION_DATA if side == Side::Client && !self.has_server_hello => match self.early {
                _ if !self.offers_early_data => {
                    self.sealed.get_or_insert(Sealed::Hellos); // the ServerHello is missing
                }
                Early::Undecided => return self.early_data(head, body, log, out),
                Early::Accepted | Early::Rejected => {}
            },
            APPLICATION_DATA => return self.undecrypted(side),
            _ => {}
        }
        Content::None
    }

    /// Decrypts early data. The suite is not known yet, so all suites that fit the secret's length are tried.
    fn early_data(&mut self, head: &Head, body: &[u8], log: &KeyLog, out: &mut Vec<u8>) -> Content {
        let secret = self
            .random
            .and_then(|random| log.get(&random, Label::ClientEarly));
        let half = self.half(Side::Client);
        if let Some(secret) = secret {
            let suites = suite::TLS13.iter().map(|(_, suite)| *suite);
            let epochs = suites.filter_map(|suite| Epoch::tls13(Stage::Early, suite, secret));
            epochs.for_each(|epoch| half.add(epoch));
        }
        match half.decrypt(head, body, out) {
            Some(decrypted) => self.decrypted(Side::Client, decrypted, log, out),
            None => Content::UndecryptedEarly,
        }
    }

    /// Handles the content of a decrypted record.
    fn decrypted(&mut self, side: Side, decrypted: Decrypted, log: &KeyLog, out: &[u8]) -> Content {
        if side == Side::Client && decrypted.stage != Stage::Early && self.early == Early::Undecided {
            self.early = Early::Rejected; // EndOfEarlyData would have preceded it
        }
        match decrypted.kind {
            APPLICATION_DATA if decrypted.stage == Stage::Early => match self.early {
                Early::Rejected => return Content::None,
                Early::Accepted => return Content::Plaintext,
                Early::Undecided => return Content::EarlyPlaintext,
            },
            APPLICATION_DATA => return Content::Plaintext,
            HANDSHAKE => self.handshake(side, out, log),
            CHANGE_CIPHER_SPEC => self.change(side),
            _ => {} // an alert
        }
        Content::None
    }

    /// Classifies a record that did not decrypt, and gives up if nothing more will.
    fn undecrypted(&mut self, side: Side) -> Content {
        let may_be_early = side == Side::Client && self.offers_early_data;
        let half = self.half(side);
        if half.is_hopeless() {
            let why = if half.has_decrypted {
                Sealed::Lost
            } else {
                Sealed::Wrong
            };
            self.sealed.get_or_insert(why);
        } else if !half.has_decrypted && may_be_early {
            return Content::UndecryptedEarly;
        } else if !half.has_decrypted && !half.is_seq_uncertain() {
            self.sealed.get_or_insert(Sealed::Wrong);
        }
        Content::Undecrypted
    }

    /// Reads the content of a handshake record.
    fn handshake(&mut self, side: Side, content: &[u8], log: &KeyLog) {
        let mut messages = std::mem::take(&mut self.half(side).messages);
        messages.feed(content, |kind, body| self.message(side, kind, body, log));
        self.half(side).messages = messages;
    }

    fn message(&mut self, side: Side, kind: u8, body: &[u8], log: &KeyLog) {
        match (side, kind) {
            (Side::Client, CLIENT_HELLO) => {
                self.random = client_random(body);
                self.offers_early_data |= offers_early_data(body);
            }
            (Side::Server, SERVER_HELLO) => match server_hello(body) {
                Some(hello) => self.choose_keys(hello, log),
                None => {
                    self.sealed.get_or_insert(Sealed::NotTls);
                }
            },
            (Side::Server, ENCRYPTED_EXTENSIONS) => {
                let (accepts, alpn) = encrypted_extensions(body);
                self.alpn = alpn;
                if self.early == Early::Undecided {
                    self.early = if accepts { Early::Accepted } else { Early::Rejected };
                }
            }
            (Side::Client, END_OF_EARLY_DATA) => {
                self.early = Early::Accepted;
                self.half(side).leave(Stage::Early);
            }
            (_, FINISHED) => {
                self.half(side).finished = true;
                self.half(side).leave(Stage::Handshake);
            }
            (_, KEY_UPDATE) => self.half(side).update(),
            _ => {}
        }
    }

    /// Derives the keys for the version and suite that the ServerHello chose.
    fn choose_keys(&mut self, hello: ServerHello, log: &KeyLog) {
        if hello.is_retry {
            self.early = Early::Rejected;
            return;
        }
        let Some(random) = self.random else {
            self.sealed.get_or_insert(Sealed::Middle);
            return;
        };
        self.has_server_hello = true;
        let result = match hello.version {
            TLS13 => self.tls13_keys(&random, hello.suite, log),
            TLS12 => self.tls12_keys(&random, &hello, log),
            other => Err(Sealed::Version(other)),
        };
        if let Err(why) = result {
            self.sealed.get_or_insert(why);
        }
    }

    fn tls13_keys(&mut self, random: &Random, number: u16, log: &KeyLog) -> Result<(), Sealed> {
        let suite = suite::tls13(number).ok_or(Sealed::Suite(number))?;
        self.is_tls13 = true;
        let steps = [
            (Side::Client, Stage::Handshake, Label::ClientHandshake),
            (Side::Server, Stage::Handshake, Label::ServerHandshake),
            (Side::Client, Stage::Application, Label::ClientTraffic),
            (Side::Server, Stage::Application, Label::ServerTraffic),
        ];
        for (side, stage, label) in steps {
            match log.get(random, label) {
                Some(secret) => {
                    let epoch = Epoch::tls13(stage, suite, secret).ok_or(Sealed::Wrong)?;
                    self.half(side).add(epoch);
                }
                // without handshake keys, the first record of application data is found by trying
                None if stage == Stage::Handshake => self.half(side).lose_some(),
                None => return Err(Sealed::NoSecret),
            }
        }
        Ok(())
    }

    fn tls12_keys(&mut self, random: &Random, hello: &ServerHello, log: &KeyLog) -> Result<(), Sealed> {
        let suite = suite::tls12(hello.suite).ok_or(Sealed::Suite(hello.suite))?;
        let master = log.get(random, Label::Master).ok_or(Sealed::NoSecret)?;
        let randoms = (random.as_slice(), hello.random.as_slice());
        self.pending = Keys::tls12(suite, master, randoms, hello.encrypt_then_mac);
        Ok(())
    }
}
