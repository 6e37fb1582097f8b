//! Both sides' way through one TLS connection, record by record: from the hellos to the keys, from one set of keys to
//! the next. Gives what programs sent, or why it stays sealed. Knows nothing of where records begin.

use smol_str::SmolStr;

use super::cipher::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, Head, Keys};
use super::half::{Epoch, Half, Opened, Stage};
use super::handshake::{
    CLIENT_HELLO, ENCRYPTED_EXTENSIONS, END_OF_EARLY_DATA, FINISHED, KEY_UPDATE, SERVER_HELLO, ServerHello,
    client_random, encrypted_extensions, offers_early_data, server_hello,
};
use super::keylog::{KeyLog, Label, Random};
use super::suite;
use crate::base::Side;

const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;

/// Why records stay closed.
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
    /// There are keys, but they open nothing.
    Wrong,
    /// Records were lost, or changed, and none behind them opens.
    Lost,
    /// Bytes that are no TLS record.
    NotTls,
}

impl Sealed {
    /// Lower-case phrase for an issue.
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

    /// The number of the version or the suite, which the issue names.
    pub fn number(self) -> u32 {
        match self {
            Sealed::Version(number) | Sealed::Suite(number) => number.into(),
            _ => 0,
        }
    }
}

/// What a record was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing that a program sent: handshake, alert, change of keys, early data that nobody read.
    Aside,
    /// Application data.
    Plaintext,
    /// Application data that counts only if the server accepts it.
    EarlyPlaintext,
    /// It stayed closed.
    Closed,
    /// May be early data, whose key the log lacks or the server refused.
    ClosedEarly,
}

/// Whether early data count (RFC 8446 4.2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Early {
    #[default]
    Open,
    Accepted,
    Rejected,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    random: Option<Random>,
    /// The server's hello was read, and it requested no retry.
    settled: bool,
    modern: bool,
    /// TLS 1.2: what each side changes to.
    pending: Option<[Keys; 2]>,
    halves: [Half; 2],
    /// The client may send early data.
    offered: bool,
    pub early: Early,
    /// The protocol that the server chose under its keys.
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

    /// The server's hello was read, and the key log has what this connection needs.
    pub fn keyed(&self) -> bool {
        self.settled && self.sealed.is_none()
    }

    /// The next record of `side`, whole. Its content is in `out`.
    pub fn record(
        &mut self,
        side: Side,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
    ) -> Content {
        let [kind, ..] = *head;
        let hidden = self.hidden(side);
        if kind == CHANGE_CIPHER_SPEC && (self.modern || !hidden) {
            self.change(side);
            return Content::Aside;
        }
        if !hidden || self.modern && kind != APPLICATION_DATA {
            return self.plain_record(side, kind, head, body, log, out);
        }
        match self.half(side).open(head, body, out) {
            Some(opened) => self.opened(side, opened, log, out),
            None => self.closed(side),
        }
    }

    /// The next record behind lost ones, if that is what it is: its content, and how many were lost.
    pub fn find(
        &mut self,
        side: Side,
        head: &Head,
        body: &[u8],
        log: &KeyLog,
        out: &mut Vec<u8>,
    ) -> Option<(Content, Option<u64>)> {
        self.expect(side);
        let stage = self.half(side).current().map(|epoch| epoch.stage);
        let opened = self.half(side).find(head, body, out)?;
        let counted = stage == Some(opened.stage) && opened.stage == Stage::Application;
        let content = self.opened(side, opened, log, out);
        Some((content, counted.then_some(opened.skipped)))
    }

    /// A record of `side` is not whole in the capture. Gives how much of its body was content, where programs spoke.
    pub fn lose_one(&mut self, side: Side, body: usize) -> usize {
        self.lose_some(side);
        self.half(side).lose_one();
        match self.half(side).current() {
            Some(epoch) if epoch.stage == Stage::Application => body.saturating_sub(epoch.keys.overhead()),
            _ => 0,
        }
    }

    /// Bytes of `side` are not in the capture.
    pub fn lose_some(&mut self, side: Side) {
        if side == Side::Server && !self.settled || self.random.is_none() {
            self.sealed.get_or_insert(Sealed::Hellos);
        }
        self.half(side).lose_some();
    }

    /// Whether `side` has changed to keys.
    pub fn hidden(&mut self, side: Side) -> bool {
        self.half(side).current().is_some()
    }

    /// So many bytes of each record are no content, with its header. None where programs do not speak yet.
    pub fn overhead(&mut self, side: Side) -> Option<usize> {
        let epoch = self.half(side).current()?;
        let applies = epoch.stage == Stage::Application;
        applies.then(|| epoch.keys.overhead() + super::cipher::HEADER)
    }

    /// Records were lost before the sender changed its keys: it may have done so.
    fn expect(&mut self, side: Side) {
        if self.half(side).current().is_none() {
            self.change(side);
        }
    }

    /// ChangeCipherSpec. In TLS 1.3 it means nothing (RFC 8446 D.4).
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

    /// A record that is not hidden, or should not be.
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
            APPLICATION_DATA if side == Side::Client && !self.settled => match self.early {
                _ if !self.offered => {
                    self.sealed.get_or_insert(Sealed::Hellos); // the server's is not here
                }
                Early::Open => return self.early_data(head, body, log, out),
                Early::Accepted | Early::Rejected => {}
            },
            APPLICATION_DATA => return self.closed(side),
            _ => {}
        }
        Content::Aside
    }

    /// The client speaks before the server did: the suite is one of those that go with its secret.
    fn early_data(&mut self, head: &Head, body: &[u8], log: &KeyLog, out: &mut Vec<u8>) -> Content {
        let secret = self
            .random
            .and_then(|random| log.get(&random, Label::ClientEarly));
        let half = self.half(Side::Client);
        if let Some(secret) = secret {
            let suites = suite::MODERN.iter().map(|(_, suite)| *suite);
            let epochs = suites.filter_map(|suite| Epoch::modern(Stage::Early, suite, secret));
            epochs.for_each(|epoch| half.then(epoch));
        }
        match half.open(head, body, out) {
            Some(opened) => self.opened(Side::Client, opened, log, out),
            None => Content::ClosedEarly,
        }
    }

    fn opened(&mut self, side: Side, opened: Opened, log: &KeyLog, out: &[u8]) -> Content {
        if side == Side::Client && opened.stage != Stage::Early && self.early == Early::Open {
            self.early = Early::Rejected; // EndOfEarlyData would have come first
        }
        match opened.kind {
            APPLICATION_DATA if opened.stage == Stage::Early => match self.early {
                Early::Rejected => return Content::Aside,
                Early::Accepted => return Content::Plaintext,
                Early::Open => return Content::EarlyPlaintext,
            },
            APPLICATION_DATA => return Content::Plaintext,
            HANDSHAKE => self.handshake(side, out, log),
            CHANGE_CIPHER_SPEC => self.change(side),
            _ => {} // an alert
        }
        Content::Aside
    }

    fn closed(&mut self, side: Side) -> Content {
        let early = side == Side::Client && self.offered;
        let half = self.half(side);
        if half.hopeless() {
            let why = if half.opened { Sealed::Lost } else { Sealed::Wrong };
            self.sealed.get_or_insert(why);
        } else if !half.opened && early {
            return Content::ClosedEarly;
        } else if !half.opened && !half.doubted() {
            self.sealed.get_or_insert(Sealed::Wrong);
        }
        Content::Closed
    }

    /// The content of handshake records, hidden or not.
    fn handshake(&mut self, side: Side, content: &[u8], log: &KeyLog) {
        let mut messages = std::mem::take(&mut self.half(side).messages);
        messages.feed(content, |kind, body| self.message(side, kind, body, log));
        self.half(side).messages = messages;
    }

    fn message(&mut self, side: Side, kind: u8, body: &[u8], log: &KeyLog) {
        match (side, kind) {
            (Side::Client, CLIENT_HELLO) => {
                self.random = client_random(body);
                self.offered |= offers_early_data(body);
            }
            (Side::Server, SERVER_HELLO) => match server_hello(body) {
                Some(hello) => self.settle(hello, log),
                None => {
                    self.sealed.get_or_insert(Sealed::NotTls);
                }
            },
            (Side::Server, ENCRYPTED_EXTENSIONS) => {
                let (accepts, alpn) = encrypted_extensions(body);
                self.alpn = alpn;
                if self.early == Early::Open {
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

    /// The server has chosen.
    fn settle(&mut self, hello: ServerHello, log: &KeyLog) {
        if hello.retry {
            self.early = Early::Rejected;
            return;
        }
        let Some(random) = self.random else {
            self.sealed.get_or_insert(Sealed::Middle);
            return;
        };
        self.settled = true;
        let settled = match hello.version {
            TLS13 => self.modern_keys(&random, hello.suite, log),
            TLS12 => self.classic_keys(&random, &hello, log),
            other => Err(Sealed::Version(other)),
        };
        if let Err(why) = settled {
            self.sealed.get_or_insert(why);
        }
    }

    fn modern_keys(&mut self, random: &Random, number: u16, log: &KeyLog) -> Result<(), Sealed> {
        let suite = suite::modern(number).ok_or(Sealed::Suite(number))?;
        self.modern = true;
        let steps = [
            (Side::Client, Stage::Handshake, Label::ClientHandshake),
            (Side::Server, Stage::Handshake, Label::ServerHandshake),
            (Side::Client, Stage::Application, Label::ClientTraffic),
            (Side::Server, Stage::Application, Label::ServerTraffic),
        ];
        for (side, stage, label) in steps {
            match log.get(random, label) {
                Some(secret) => {
                    let epoch = Epoch::modern(stage, suite, secret).ok_or(Sealed::Wrong)?;
                    self.half(side).then(epoch);
                }
                // without them the first record of a program is found by trying
                None if stage == Stage::Handshake => self.half(side).lose_some(),
                None => return Err(Sealed::NoSecret),
            }
        }
        Ok(())
    }

    fn classic_keys(&mut self, random: &Random, hello: &ServerHello, log: &KeyLog) -> Result<(), Sealed> {
        let suite = suite::classic(hello.suite).ok_or(Sealed::Suite(hello.suite))?;
        let master = log.get(random, Label::Master).ok_or(Sealed::NoSecret)?;
        let randoms = (random.as_slice(), hello.random.as_slice());
        self.pending = Keys::classic(suite, master, randoms, hello.mac_last);
        Ok(())
    }
}
