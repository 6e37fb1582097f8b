//! TLS 1.3.

use super::talk::{
    LABELS, RANDOM, SERVER_RANDOM, Sealer, client_hello, extension, log13, message, record, secret,
    server_hello, tls13,
};
use super::{Bytes, Client, Part, Sealed, Server, listen};
use crate::decrypt::schedule::Secret;
use crate::decrypt::suite::{Hash, Suite, TLS13};

/// A connection's sealers, by label.
pub struct Keyed {
    pub(super) suite: Suite,
    pub number: u16,
    pub early: Sealer,
    pub client_handshake: Sealer,
    pub server_handshake: Sealer,
    pub client: Sealer,
    pub server: Sealer,
}

pub fn keyed(which: usize) -> Keyed {
    let (number, suite) = TLS13[which];
    let sealer = |label: u8| Sealer::modern(suite, &secret(suite.hash, label));
    Keyed {
        suite,
        number,
        early: sealer(0),
        client_handshake: sealer(1),
        server_handshake: sealer(2),
        client: sealer(3),
        server: sealer(4),
    }
}

impl Keyed {
    /// The key log, without the labels that begin with one of `without`.
    pub fn log(&self, without: &[&str]) -> String {
        log13(self.suite.hash, without)
    }

    /// The key log with another secret of the server's handshake.
    pub fn wrong_log(&self) -> String {
        let right = super::talk::hex(&secret(self.suite.hash, 2));
        self.log(&[]).replace(&right, &"ab".repeat(self.suite.hash.len()))
    }

    pub fn hello(&self) -> Part {
        Bytes(Client, record(22, &client_hello(&RANDOM, &[])))
    }

    /// The server's flight up to its Finished, in records of one message, two, and a part.
    pub fn server_flight(&mut self, accepts_early: bool) -> Part {
        let extensions = if accepts_early { extension(42, &[]) } else { vec![] };
        let mut list = (extensions.len() as u16).to_be_bytes().to_vec();
        list.extend(extensions);
        let certificate = message(11, &[5; 9000]);
        let (first, second) = certificate.split_at(2000);
        let flight = [
            record(22, &server_hello(&SERVER_RANDOM, self.number, &[tls13()])),
            record(20, &[1]),
            self.server_handshake
                .seal(22, &[&message(8, &list), first].concat()),
            self.server_handshake.padded(22, second, 3),
            self.server_handshake.seal(22, &message(20, &[1; 32])),
        ];
        Bytes(Server, flight.concat())
    }

    pub fn client_finished(&mut self) -> Part {
        let finished = self.client_handshake.seal(22, &message(20, &[2; 32]));
        Bytes(Client, [record(20, &[1]), finished].concat())
    }

    pub fn handshake(&mut self) -> Vec<Part> {
        vec![self.hello(), self.server_flight(false), self.client_finished()]
    }

    pub fn update(&mut self, side: super::Side) -> Part {
        let (sealer, label) = match side {
            Client => (&mut self.client, 3),
            Server => (&mut self.server, 4),
        };
        let record = sealer.seal(22, &message(24, &[0]));
        let next = Secret::new(&secret(self.suite.hash, label))
            .unwrap()
            .next(self.suite.hash);
        *sealer = Sealer::modern(self.suite, next.unwrap().bytes());
        Bytes(side, record)
    }
}

#[test]
fn every_suite_opens_with_padding_tickets_alerts_and_key_updates() {
    for which in 0..TLS13.len() {
        let mut talk = keyed(which);
        let mut parts = talk.handshake();
        parts.push(Bytes(Server, talk.server.seal(22, &message(4, &[3; 100]))));
        parts.push(Bytes(Client, talk.client.padded(23, b"GET ", 300)));
        parts.push(Bytes(Client, talk.client.seal(23, b"")));
        parts.push(Bytes(Client, talk.client.seal(23, b"/ ")));
        parts.push(Bytes(Server, talk.server.seal(23, &[b'x'; 16384])));
        parts.push(talk.update(Client));
        parts.push(Bytes(Client, talk.client.seal(23, b"HTTP/1.1")));
        parts.push(talk.update(Server));
        parts.push(Bytes(Server, talk.server.seal(23, b"end")));
        parts.push(Bytes(Server, talk.server.seal(21, &[1, 0])));
        let (heard, sealed) = listen(&parts, &log13(talk.suite.hash, &[]));
        assert_eq!((sealed, heard.missing), (None, vec![]));
        assert_eq!(heard.client, b"GET / HTTP/1.1");
        assert_eq!((heard.server.len(), &heard.server[16384..]), (16387, &b"end"[..]));
    }
}

#[test]
fn a_log_without_handshake_secrets_opens_what_programs_say() {
    let mut talk = keyed(1);
    let mut parts = talk.handshake();
    parts.push(Bytes(Client, talk.client.seal(23, b"ask")));
    parts.push(Bytes(Server, talk.server.seal(23, b"answer")));
    let (heard, sealed) = listen(&parts, &log13(Hash::Sha384, &[LABELS[1], LABELS[2]]));
    assert_eq!(
        (sealed, heard.client, heard.server),
        (None, b"ask".to_vec(), b"answer".to_vec())
    );
}

#[test]
fn a_retry_asks_for_a_second_hello() {
    let mut talk = keyed(0);
    let retry = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
        0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];
    let again = [
        Bytes(Client, record(22, &client_hello(&RANDOM, &[extension(42, &[])]))),
        Bytes(Client, talk.early.seal(23, b"refused")),
        Bytes(Server, record(22, &server_hello(&retry, talk.number, &[tls13()]))),
        Bytes(Server, record(20, &[1])),
        Bytes(Client, talk.early.seal(23, b"refused too")),
    ];
    let mut parts = again.to_vec();
    parts.extend(talk.handshake());
    parts.push(Bytes(Client, talk.client.seal(23, b"ask")));
    let (heard, sealed) = listen(&parts, &log13(Hash::Sha256, &[]));
    assert_eq!((sealed, heard.client), (None, b"ask".to_vec()));
}

#[test]
fn early_data_count_where_the_server_accepts_them() {
    for which in 0..TLS13.len() {
        for accepted in [true, false] {
            let mut talk = keyed(which);
            let mut parts = vec![
                Bytes(Client, record(22, &client_hello(&RANDOM, &[extension(42, &[])]))),
                Bytes(
                    Client,
                    [record(20, &[1]), talk.early.seal(23, b"early ")].concat(),
                ),
                Bytes(Client, talk.early.seal(23, b"and more ")),
                talk.server_flight(accepted),
                Bytes(Server, talk.server.seal(23, b"answer")),
                Bytes(Client, talk.early.seal(23, b"on its way ")),
            ];
            if accepted {
                parts.push(Bytes(Client, talk.early.seal(22, &message(5, &[]))));
            }
            parts.push(talk.client_finished());
            parts.push(Bytes(Client, talk.client.seal(23, b"late")));
            let expected = if accepted {
                "early and more on its way late"
            } else {
                "late"
            };
            let (heard, sealed) = listen(&parts, &log13(talk.suite.hash, &[]));
            assert_eq!((sealed, heard.missing), (None, vec![]));
            assert_eq!(
                (
                    String::from_utf8(heard.client).unwrap().as_str(),
                    heard.server.as_slice()
                ),
                (expected, &b"answer"[..])
            );

            // without the early secret what follows opens all the same
            let (heard, sealed) = listen(&parts, &log13(talk.suite.hash, &["CLIENT_EARLY"]));
            let missing = if accepted {
                vec![(Client, 6), (Client, 9), (Client, 11)]
            } else {
                vec![]
            };
            let without_its_end: Vec<_> = heard.missing.iter().take(3).copied().collect();
            assert_eq!(
                (sealed, heard.client, without_its_end),
                (None, b"late".to_vec(), missing)
            );
        }
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let mut talk = keyed(1);
    let mut parts = talk.handshake();
    parts.push(Bytes(Client, talk.client.seal(23, b"ask")));
    parts.push(Bytes(Server, talk.server.seal(23, b"answer")));
    let log = log13(Hash::Sha384, &[]);
    let sealed = |parts: &[Part], log: &str| {
        let (heard, sealed) = listen(parts, log);
        assert_eq!(heard, super::Heard::default());
        sealed.unwrap()
    };
    assert_eq!(
        sealed(&parts, &log13(Hash::Sha384, &["CLIENT_TRAFFIC"])),
        Sealed::NoSecret
    );
    assert_eq!(sealed(&parts, ""), Sealed::NoSecret);
    assert_eq!(sealed(&parts[3..], &log), Sealed::Middle);
    assert_eq!(sealed(&parts[1..], &log), Sealed::Middle);
    // the secrets of another connection under this random, of the same length and of another
    let turned = log.replace(&super::talk::hex(&secret(Hash::Sha384, 2)), &"ab".repeat(48));
    assert_eq!(sealed(&parts, &turned), Sealed::Wrong);
    let turned = log13(Hash::Sha256, &[]);
    assert_eq!(sealed(&parts, &turned), Sealed::Wrong);

    for (suite, version, why) in [
        (0x1304, 0x0304_u16, Sealed::Suite(0x1304)),
        (0x1301, 0x7f1c, Sealed::Version(0x7f1c)),
        (0xc0ac, 0x0303, Sealed::Suite(0xc0ac)),
        (0xc02f, 0x0302, Sealed::Version(0x0302)),
    ] {
        let hello = server_hello(&SERVER_RANDOM, suite, &[extension(43, &version.to_be_bytes())]);
        let parts = [talk.hello(), Bytes(Server, record(22, &hello))];
        assert_eq!(sealed(&parts, &log), why);
    }
    let parts = [talk.hello(), Bytes(Server, b"HTTP/1.1 400 Bad Request".to_vec())];
    assert_eq!(sealed(&parts, &log), Sealed::NotTls);
}
