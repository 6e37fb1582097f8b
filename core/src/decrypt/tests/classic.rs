//! TLS 1.2.

use super::talk::{
    RANDOM, SERVER_RANDOM, Sealer, client_hello, extension, log12, message, record, server_hello,
};
use super::{Bytes, Client, Part, Sealed, Server, Side, listen};
use crate::decrypt::suite::tls12;

/// One of each kind of suite.
const SUITES: [u16; 8] = [0xc02f, 0xc030, 0xcca8, 0xc013, 0xc014, 0xc027, 0x003d, 0xc028];
const MASTER: [u8; 48] = [0x42; 48];

pub struct Keyed {
    pub client: Sealer,
    pub server: Sealer,
}

/// Handshake from the ClientHello to both Finished; `resumed`: the server's comes first.
pub fn talk(number: u16, mac_last: bool, resumed: bool) -> (Keyed, Vec<Part>) {
    let suite = tls12(number).unwrap();
    let sealer = |side: Side| Sealer::classic(suite, &MASTER, &RANDOM, side, mac_last);
    let mut keyed = Keyed {
        client: sealer(Client),
        server: sealer(Server),
    };
    let extensions = if mac_last {
        vec![extension(22, &[])]
    } else {
        vec![]
    };
    let hello = server_hello(&SERVER_RANDOM, number, &extensions);
    let client = Bytes(
        Client,
        [record(20, &[1]), keyed.client.seal(22, &message(20, &[1; 12]))].concat(),
    );
    let server = Bytes(
        Server,
        [record(20, &[1]), keyed.server.seal(22, &message(20, &[2; 12]))].concat(),
    );
    let exchange = Bytes(Client, record(22, &message(16, &[4; 33])));
    let mut parts = vec![Bytes(Client, record(22, &client_hello(&RANDOM, &[])))];
    if resumed {
        parts.extend([Bytes(Server, record(22, &hello)), server, client]);
    } else {
        let flight = [hello, message(11, &[8; 3000]), message(14, &[])].concat();
        parts.extend([Bytes(Server, record(22, &flight)), exchange, client, server]);
    }
    (keyed, parts)
}

#[test]
fn every_kind_of_suite_opens() {
    for number in SUITES {
        for (mac_last, resumed) in [(false, false), (true, false), (false, true), (true, true)] {
            let (mut keyed, mut parts) = talk(number, mac_last, resumed);
            parts.push(Bytes(Client, keyed.client.seal(23, b"GET ")));
            parts.push(Bytes(Client, keyed.client.padded(23, b"/ HTTP/1.1", 3)));
            parts.push(Bytes(Client, keyed.client.seal(23, b"")));
            parts.push(Bytes(Server, keyed.server.seal(23, &[b'x'; 16384])));
            parts.push(Bytes(Server, keyed.server.seal(21, &[1, 0])));
            let (heard, sealed) = listen(&parts, &log12(&RANDOM, &MASTER));
            assert_eq!((sealed, heard.missing), (None, vec![]), "{number:#x}");
            assert_eq!(
                (heard.client, heard.server.len()),
                (b"GET / HTTP/1.1".to_vec(), 16384)
            );
        }
    }
}

#[test]
fn a_renegotiation_changes_the_keys() {
    let (mut keyed, mut parts) = talk(0xc02f, false, false);
    let (random, master) = ([0x21; 32], [0x55; 48]);
    parts.push(Bytes(Client, keyed.client.seal(23, b"before ")));
    parts.push(Bytes(Server, keyed.server.seal(22, &message(0, &[]))));
    parts.push(Bytes(Client, keyed.client.seal(22, &client_hello(&random, &[]))));
    let hello = server_hello(&SERVER_RANDOM, 0xc014, &[]);
    parts.push(Bytes(Server, keyed.server.seal(22, &hello)));
    parts.push(Bytes(Client, keyed.client.seal(23, b"between ")));
    let sealer = |side| Sealer::classic(tls12(0xc014).unwrap(), &master, &random, side, false);
    let (mut client, mut server) = (sealer(Client), sealer(Server));
    parts.push(Bytes(Client, keyed.client.seal(20, &[1])));
    parts.push(Bytes(Client, client.seal(22, &message(20, &[1; 12]))));
    parts.push(Bytes(Server, keyed.server.seal(20, &[1])));
    parts.push(Bytes(Server, server.seal(22, &message(20, &[1; 12]))));
    parts.push(Bytes(Client, client.seal(23, b"after")));
    parts.push(Bytes(Server, server.seal(23, b"yes")));
    let log = log12(&RANDOM, &MASTER) + &log12(&random, &master);
    let (heard, sealed) = listen(&parts, &log);
    assert_eq!(
        (sealed, heard.client, heard.server),
        (None, b"before between after".to_vec(), b"yes".to_vec())
    );
}

#[test]
fn a_wrong_master_secret_opens_nothing() {
    for number in SUITES {
        let (mut keyed, mut parts) = talk(number, false, false);
        parts.push(Bytes(Client, keyed.client.seal(23, b"ask")));
        let (heard, sealed) = listen(&parts, &log12(&RANDOM, &[0x43; 48]));
        assert_eq!(
            (sealed, heard),
            (Some(Sealed::Wrong), super::Heard::default()),
            "{number:#x}"
        );
        let (_, sealed) = listen(&parts, &log12(&[0x43; 32], &MASTER));
        assert_eq!(sealed, Some(Sealed::NoSecret));
    }
}
