//! What a TLS handshake shows in clear text: version, round trips, resumption, server name and ALPN (RFC 8446 4,
//! RFC 5246 7.3, RFC 6066 3, RFC 7301).

use smol_str::SmolStr;

use super::super::{BySide, Side, TlsSetup};
use super::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE};
use crate::decrypt::handshake::{self as hello, TLS13};
use crate::messages::{text, url};

/// Upper bound on the bytes kept of a hello. Hellos with post-quantum key shares have about 2 KB.
const MAX_HELLO: usize = 4096;
/// Upper bound on a host name (RFC 1035 2.3.4).
const MAX_HOST_NAME_BYTES: usize = 253;
/// Upper bound on the text of the offered protocols.
const MAX_OFFERED: usize = 255;
/// Bytes of a handshake message before its body: type and length.
const HEAD: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// Per `Side`, the beginning of its hello.
    hellos: BySide<Hello>,
    setup: TlsSetup,
    /// The sender of the newest handshake record.
    last_sender: Option<Side>,
    /// Up to TLS 1.2, how often the server answered before the client sent data.
    round_trips: u8,
    client_sent_data: bool,
    /// TLS 1.3: the server requested another hello (HelloRetryRequest).
    has_retried: bool,
    /// The side that sent ChangeCipherSpec first.
    first_change: Option<Side>,
    /// The ServerHello accepts a pre-shared key (RFC 8446 4.2.11).
    by_key: bool,
}

#[derive(Debug, Default)]
struct Hello {
    bytes: Vec<u8>,
    /// The hello was read, or cannot be read because of a hole.
    is_over: bool,
}

impl Handshake {
    /// Takes bytes of a handshake record in clear text.
    pub(super) fn feed(&mut self, side: Side, bytes: &[u8]) {
        let hello = &mut self.hellos[side];
        if hello.is_over {
            return;
        }
        let room = MAX_HELLO.saturating_sub(hello.bytes.len());
        hello.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Notes a hole in a record.
    pub(super) fn skip_hole(&mut self, side: Side) {
        self.hellos[side] = Hello {
            bytes: Vec::new(),
            is_over: true,
        };
    }

    /// Takes the end of a record of this type.
    pub(super) fn record(&mut self, side: Side, kind: u8) {
        match kind {
            CHANGE_CIPHER_SPEC => _ = self.first_change.get_or_insert(side),
            HANDSHAKE => {
                self.read(side);
                if side == Side::Server && self.last_sender == Some(Side::Client) && !self.client_sent_data {
                    self.round_trips = self.round_trips.saturating_add(1);
                }
                self.last_sender = Some(side);
            }
            // data before the server's Finished (RFC 7918), but not before its hello (early data)
            APPLICATION_DATA if side == Side::Client => self.client_sent_data |= self.round_trips > 0,
            _ => {}
        }
    }

    /// Reads the hello of `side` once it is whole.
    fn read(&mut self, side: Side) {
        let hello = &mut self.hellos[side];
        if hello.is_over {
            return;
        }
        let [kind, high, middle, low, body @ ..] = hello.bytes.as_slice() else {
            return;
        };
        let len = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let server = match (side, *kind) {
            // a hello longer than the bound lacks some extensions
            (Side::Client, hello::CLIENT_HELLO) => {
                read_client(body.get(..len).unwrap_or(body), &mut self.setup);
                None
            }
            (Side::Server, hello::SERVER_HELLO) => match body.get(..len) {
                None if hello.bytes.len() < MAX_HELLO => return, // the next record continues it
                body => body.and_then(hello::server_hello),
            },
            _ => None,
        };
        if let Some(server) = server {
            self.setup.version = Some(server.version);
            if server.is_retry {
                self.has_retried = true;
                hello.bytes.drain(..HEAD + len);
                return;
            }
            (self.by_key, self.setup.alpn) = (server.by_key, server.alpn);
        }
        *hello = Hello {
            bytes: Vec::new(),
            is_over: true,
        };
    }

    /// Whether the server agreed to TLS 1.3, where ChangeCipherSpec has no meaning (RFC 8446 D.4).
    pub(super) fn is_tls13(&self) -> bool {
        self.setup.version == Some(TLS13)
    }

    pub(super) fn server_name(&self) -> Option<SmolStr> {
        self.setup.server_name.clone()
    }

    /// Returns what the handshake showed. `hidden_alpn` is the protocol in the decrypted part, for TLS 1.3.
    pub(super) fn setup(&self, is_finished: bool, hidden_alpn: Option<&SmolStr>) -> Option<TlsSetup> {
        let version = self.setup.version;
        let resumed = match version {
            Some(TLS13) => Some(self.by_key),
            // in a resumed session the server changes first (RFC 5246 7.3)
            Some(_) => self.first_change.map(|side| side == Side::Server),
            None => None,
        };
        let round_trips = match version {
            _ if !is_finished => None,
            Some(TLS13) => Some(1 + u8::from(self.has_retried)),
            Some(_) => Some(self.round_trips).filter(|round_trips| *round_trips > 0),
            None => None,
        };
        let setup = TlsSetup {
            round_trips,
            resumed,
            alpn: self.setup.alpn.clone().or(hidden_alpn.cloned()),
            ..self.setup.clone()
        };
        (setup != TlsSetup::default()).then_some(setup)
    }
}

/// Reads server name and offered protocols in the body of a ClientHello.
fn read_client(body: &[u8], setup: &mut TlsSetup) {
    hello::each_extension(hello::of_client(body), |kind, body| match kind {
        hello::SERVER_NAME => setup.server_name = server_name(body),
        hello::ALPN => setup.offered = offered(body),
        _ => {}
    });
}

/// Returns the name in a server_name extension, if it is printable ASCII.
fn server_name(body: &[u8]) -> Option<SmolStr> {
    let [_, _, 0, high, low, name @ ..] = body else {
        return None;
    };
    let name = name.get(..u16::from_be_bytes([*high, *low]).into())?;
    let is_printable = name.len() <= MAX_HOST_NAME_BYTES && name.iter().all(u8::is_ascii_graphic);
    let shown = std::str::from_utf8(name).ok().filter(|_| is_printable)?;
    Some(text::name(url::host(shown).as_bytes()))
}

fn offered(body: &[u8]) -> Option<SmolStr> {
    let names: Vec<&[u8]> = hello::protocols(body).collect();
    (!names.is_empty()).then(|| text::name_up_to(&names.join(&b","[..]), MAX_OFFERED, false))
}
