//! What a TLS handshake shows without keys: version, round trips, whether a session goes on, the server's name and ALPN
//! (RFC 8446 4, RFC 5246 7.3, RFC 6066 3, RFC 7301). Takes the handshake's records; nothing behind them.

use smol_str::SmolStr;

use super::super::{Side, TlsSetup};
use super::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE};
use crate::decrypt::handshake::{self as hello, TLS13};
use crate::messages::{text, url};

/// So much of a hello is kept. Those with the key shares of their time have 2 KB.
const MAX_HELLO: usize = 4096;
/// Longest name of a host (RFC 1035 2.3.4).
const MAX_HOST_NAME_BYTES: usize = 253;
/// So much is shown of the protocols that a client offers.
const MAX_OFFERED: usize = 255;
/// Type and length of a handshake message.
const HEAD: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// By `Side`: the beginning of its clear text, until its hello is read or lost.
    hellos: [Hello; 2],
    secured: TlsSetup,
    /// Who sent the newest record of the handshake.
    turn: Option<Side>,
    /// Of TLS 1.2 and before: so often the server answered before the client sent data.
    turns: u8,
    client_spoke: bool,
    /// Of TLS 1.3: the server requested another hello.
    retried: bool,
    /// Who changed to its keys first.
    first_keys: Option<Side>,
    /// The ServerHello names a key of before (RFC 8446 4.2.11).
    by_key: bool,
}

#[derive(Debug, Default)]
struct Hello {
    bytes: Vec<u8>,
    over: bool,
}

impl Handshake {
    /// So much of a handshake record in the clear.
    pub(super) fn feed(&mut self, side: Side, bytes: &[u8]) {
        let Some(hello) = self.hellos.get_mut(side.index()).filter(|hello| !hello.over) else {
            return;
        };
        let room = MAX_HELLO.saturating_sub(hello.bytes.len());
        hello.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Bytes of a record are not in the capture.
    pub(super) fn misses(&mut self, side: Side) {
        if let Some(hello) = self.hellos.get_mut(side.index()) {
            *hello = Hello {
                bytes: Vec::new(),
                over: true,
            };
        }
    }

    /// A record of this kind is whole.
    pub(super) fn record(&mut self, side: Side, kind: u8) {
        match kind {
            CHANGE_CIPHER_SPEC => _ = self.first_keys.get_or_insert(side),
            HANDSHAKE => {
                self.read(side);
                self.takes_turn(side);
            }
            // what a client sends before the server's Finished (RFC 7918), or before its hello (early data)
            APPLICATION_DATA if side == Side::Client => self.client_spoke |= self.turns > 0,
            _ => {}
        }
    }

    fn takes_turn(&mut self, side: Side) {
        if side == Side::Server && self.turn == Some(Side::Client) && !self.client_spoke {
            self.turns = self.turns.saturating_add(1);
        }
        self.turn = Some(side);
    }

    /// Reads a hello once it is whole. Another may follow where the server asks for one.
    fn read(&mut self, side: Side) {
        let Some(hello) = self.hellos.get_mut(side.index()).filter(|hello| !hello.over) else {
            return;
        };
        let [kind, high, middle, low, body @ ..] = hello.bytes.as_slice() else {
            return;
        };
        let len = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let server = match (side, *kind) {
            // what of a long one is not here hides extensions, no more
            (Side::Client, hello::CLIENT_HELLO) => {
                read_client(body.get(..len).unwrap_or(body), &mut self.secured);
                None
            }
            (Side::Server, hello::SERVER_HELLO) => match body.get(..len) {
                None if hello.bytes.len() < MAX_HELLO => return, // the next record goes on with it
                body => body.and_then(hello::server_hello),
            },
            _ => None,
        };
        if let Some(server) = server {
            self.secured.version = Some(server.version);
            if server.retry {
                self.retried = true;
                hello.bytes.drain(..HEAD + len);
                return;
            }
            (self.by_key, self.secured.alpn) = (server.by_key, server.alpn);
        }
        *hello = Hello {
            bytes: Vec::new(),
            over: true,
        };
    }

    /// The server has agreed to TLS 1.3, or asks for another hello of it: ChangeCipherSpec means nothing then (RFC 8446 D.4).
    pub(super) fn is_modern(&self) -> bool {
        self.secured.version == Some(TLS13)
    }

    pub(super) fn server_name(&self) -> Option<SmolStr> {
        self.secured.server_name.clone()
    }

    /// What it showed; `whole` where it is over. `hidden` is the protocol that the server chose under its keys.
    pub(super) fn secured(&self, whole: bool, hidden: Option<&SmolStr>) -> Option<TlsSetup> {
        let version = self.secured.version;
        let resumed = match version {
            Some(TLS13) => Some(self.by_key),
            // who changes to old keys needs nothing of the client's (RFC 5246 7.3)
            Some(_) => self.first_keys.map(|side| side == Side::Server),
            None => None,
        };
        let round_trips = match version {
            _ if !whole => None,
            Some(TLS13) => Some(1 + u8::from(self.retried)),
            Some(_) => Some(self.turns).filter(|turns| *turns > 0),
            None => None,
        };
        let secured = TlsSetup {
            round_trips,
            resumed,
            alpn: self.secured.alpn.clone().or(hidden.cloned()),
            ..self.secured.clone()
        };
        (secured != TlsSetup::default()).then_some(secured)
    }
}

/// Reads server name and protocols of a ClientHello, without type and length.
fn read_client(body: &[u8], secured: &mut TlsSetup) {
    hello::each_extension(hello::of_client(body), |kind, body| match kind {
        hello::SERVER_NAME => secured.server_name = server_name(body),
        hello::ALPN => secured.offered = offered(body),
        _ => {}
    });
}

/// The server's name, where it is printable ASCII.
fn server_name(body: &[u8]) -> Option<SmolStr> {
    let [_, _, 0, high, low, name @ ..] = body else {
        return None;
    };
    let name = name.get(..u16::from_be_bytes([*high, *low]).into())?;
    let printable = name.len() <= MAX_HOST_NAME_BYTES && name.iter().all(u8::is_ascii_graphic);
    let shown = std::str::from_utf8(name).ok().filter(|_| printable)?;
    Some(text::name(url::host(shown).as_bytes()))
}

fn offered(body: &[u8]) -> Option<SmolStr> {
    let names: Vec<&[u8]> = hello::protocols(body).collect();
    (!names.is_empty()).then(|| text::name_up_to(&names.join(&b","[..]), MAX_OFFERED, false))
}
