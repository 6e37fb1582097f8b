//! One captured frame: link layer, tunnels, IP and TCP or ICMP read in one call, `decode`. Reads the bytes of
//! one record, gives one `Packet`; knows nothing of files or streams. Checksums are not verified (an
//! offloading sender's are wrong before the wire).
//!
//! `link.rs` strips the link layer, `ethertype.rs` tags, labels and PPP, `ip.rs` IPv4 and IPv6, `tunnel.rs`
//! enters what IP and UDP carry; `tcp.rs` and `icmp.rs` read the innermost packet. `fragment.rs` alone has a
//! memory: it puts IP fragments together.

mod ethertype;
mod fragment;
mod icmp;
mod ip;
mod link;
mod neighbour;
mod tcp;
#[cfg(test)]
mod tests;
mod tunnel;

use std::net::IpAddr;

use crate::cursor;
use crate::issue::Kind;
use crate::segment::Segment;

pub use fragment::{Datagram, Fragment, Fragments, SeenFrame};

/// Tunnels in tunnels are entered so deep. Each level takes stack, and no network needs more than a few.
const MAX_DEPTH: u8 = 16;

/// What a frame is to latpcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    Tcp(Segment<'a>),
    Icmp(Icmp<'a>),
    /// A datagram to or from the port of name servers.
    Udp(Udp<'a>),
    /// Who has this address, and who it is: ARP, and IPv6's neighbour discovery.
    Neighbour(Neighbour),
    /// Understood, and nothing of these: other UDP, other neighbours' talk, ...
    Other,
    /// A segment whose IP header claims more bytes than its frame had: its length is the frame's, as in
    /// Wireshark. With what it would be by that header, where the header's checksum stands for it
    /// and the frame alone can have cut it.
    LengthBeyondFrame(Segment<'a>, Option<u32>),
    /// A SYN in a tunnel whose outer UDP checksum is wrong: the tunnel's other end drops it, if it left like this.
    BadTunnelChecksum(Segment<'a>),
    /// A segment whose header is beyond its packet: Wireshark shows it, but analyses nothing.
    Malformed(Segment<'a>, Unread),
    /// A segment that denies to have a header: Wireshark gives it a stream, and reads no further.
    BadDataOffset(Segment<'a>, Unread),
    /// An IP fragment: unreadable until `Fragments` has the others.
    Fragment(Fragment<'a>),
    /// A layer that the core does not read, but a `LinkReader` may.
    Foreign(Foreign<'a>),
    Unread(Unread),
}

/// A question for the host that has an address on this link, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Who asks.
    pub asker: IpAddr,
    /// The address that is requested.
    pub target: IpAddr,
    pub is_answer: bool,
}

/// A UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub sport: u16,
    pub dport: u16,
    pub payload: &'a [u8],
}

/// The bytes of a layer that is left to a reader outside the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// "link", "ethertype", "ip" or "capwap" (its binding): what kind of number `number` is.
    pub layer: &'static str,
    pub number: u32,
    pub data: &'a [u8],
    /// How many bytes it had on the wire.
    pub wire: u32,
    depth: u8,
}

/// What a reader outside the core makes of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwrapped {
    /// The IP packet inside.
    Packet(Vec<u8>),
    /// The bytes of a layer that the core, or the reader again, goes on with: "link" or "ethertype", and its number.
    Layer(&'static str, u32, Vec<u8>),
    /// One frame that holds several, each of them one of the others here.
    Several(Vec<Unwrapped>),
    /// Understood, and there is no IP packet.
    Empty,
    /// Not understood.
    Unknown,
    /// Understood, but closed to us.
    Encrypted,
    /// A part of a frame, and what it is a part of is not put together.
    Fragment,
    /// Its headers are not all there, or cannot be true.
    Cut,
}

/// Reads rare layers: a frame in, an IP packet or a layer that holds it out.
pub trait LinkReader: Send + Sync {
    fn unwrap(&mut self, layer: &'static str, number: u32, data: &[u8]) -> Unwrapped;
}

impl Foreign<'_> {
    /// Reads the IP packet that a `LinkReader` found.
    pub fn decode<'a>(&self, packet: &'a [u8]) -> Packet<'a> {
        self.inside(packet).enter(ip::any)
    }

    /// Reads the layer that a `LinkReader` found.
    pub fn layer<'a>(&self, layer: &'static str, number: u32, data: &'a [u8]) -> Packet<'a> {
        self.inside(data)
            .enter(|view| match (layer, u16::try_from(number)) {
                ("ethertype", Ok(kind)) => ethertype::ethertype(kind, view),
                ("link", _) => link::decode(number, view),
                _ => Packet::Other,
            })
    }

    fn inside<'a>(&self, data: &'a [u8]) -> View<'a> {
        let header = self.data.len().saturating_sub(data.len()) as u32;
        let wire = self.wire.saturating_sub(header).max(data.len() as u32);
        View {
            depth: self.depth,
            ..View::new(data, wire)
        }
    }

    /// What to say where no packet came out of it.
    pub fn unread(&self, unwrapped: &Unwrapped) -> Unread {
        let reason = match (unwrapped, self.layer) {
            (Unwrapped::Encrypted, _) => "payload is encrypted",
            (Unwrapped::Fragment, _) => "fragments are not put together",
            (Unwrapped::Cut, _) => "frame is cut or damaged",
            (_, "link") => "link type is not read",
            (_, "ethertype") => "ethertype is not read",
            _ => "tunnel is not entered",
        };
        Unread::skipped(self.layer, reason, self.number)
    }
}

/// Why a frame that may hold TCP was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// `Skipped` (not understood, or not captured far enough) or `Distrusted` (its fields cannot be true).
    pub kind: Kind,
    pub layer: &'static str,
    pub reason: &'static str,
    /// Bytes, both 0 where the reason is not a length.
    pub needed: u64,
    pub had: u64,
    /// The field's value that was not understood (link type, ethertype, IP protocol), else 0.
    pub detail: u32,
}

impl Unread {
    fn distrusted(layer: &'static str, reason: &'static str, needed: u64, had: u64) -> Self {
        Unread {
            kind: Kind::Distrusted,
            layer,
            reason,
            needed,
            had,
            detail: 0,
        }
    }

    fn skipped(layer: &'static str, reason: &'static str, detail: u32) -> Self {
        Unread {
            kind: Kind::Skipped,
            layer,
            reason,
            needed: 0,
            had: 0,
            detail,
        }
    }
}

/// An ICMP or ICMPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub v6: bool,
    pub kind: u8,
    pub code: u8,
    /// The MTU of the next hop, of "fragmentation needed" (RFC 1191) and "packet too big" (RFC 4443); routers older
    /// than that say 0.
    pub next_mtu: Option<u32>,
    /// Identifier and sequence number of an echo or time stamp message, else 0.
    pub id: u16,
    pub seq: u16,
    pub ttl: u8,
    /// The TCP header that an error quotes, where it is there up to the window field. `len` is the length
    /// of the packet that was quoted, `payload` what the error quotes of it.
    pub quoted: Option<Segment<'a>>,
    /// A header of which 8 bytes are quoted (RFC 792): ports and number, the rest is 0.
    pub brief: Option<Segment<'a>>,
    /// The echo request that an error quotes.
    pub echo: Option<Echo>,
}

/// Identifies an echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Echo {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub id: u16,
    pub seq: u16,
}

impl Echo {
    /// The request that this one answers.
    pub fn back(self) -> Echo {
        Echo {
            src: self.dst,
            dst: self.src,
            ..self
        }
    }
}

/// Reads one frame of the link type (a LINKTYPE_ number) that was `original_len` bytes long on the wire.
#[inline(always)]
pub fn decode<'a>(link: u32, data: &'a [u8], original_len: u32) -> Packet<'a> {
    // A frame that claims to have been shorter than what was captured of it: believe the bytes.
    let wire = original_len.max(u32::try_from(data.len()).unwrap_or(u32::MAX));
    link::decode(link, View::new(data, wire))
}

/// The bytes of one layer and what it carries: those captured, and how many there were on the wire.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    held: &'a [u8],
    wire: u32,
    /// How many tunnels were entered.
    depth: u8,
    /// Inside an ICMP error: quotes in quotes are not followed.
    quoted: bool,
}

impl<'a> View<'a> {
    #[inline(always)]
    fn new(held: &'a [u8], wire: u32) -> Self {
        View {
            held,
            wire,
            depth: 0,
            quoted: false,
        }
    }

    #[inline(always)]
    fn skip(self, len: usize) -> Self {
        let wire = self.wire.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
        View {
            held: cursor::from(self.held, len),
            wire,
            ..self
        }
    }

    #[inline(always)]
    fn limit(self, len: u32) -> Self {
        View {
            held: cursor::upto(self.held, len as usize),
            wire: self.wire.min(len),
            ..self
        }
    }

    /// A layer that may hold itself again: everything that calls back up the list of layers comes through here.
    fn enter(mut self, read: impl FnOnce(View<'a>) -> Packet<'a>) -> Packet<'a> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH {
            return distrusted("ip", "tunnels are nested too deep", 0, 0);
        }
        read(self)
    }

    fn foreign(self, layer: &'static str, number: u32) -> Packet<'a> {
        Packet::Foreign(Foreign {
            layer,
            number,
            data: self.held,
            wire: self.wire,
            depth: self.depth,
        })
    }

    /// A header of `needed` bytes is not there.
    #[inline(always)]
    fn cut(self, layer: &'static str, needed: u32) -> Packet<'a> {
        cut(layer, needed, self.held.len(), self.wire)
    }
}

#[cold]
fn cut<'a>(layer: &'static str, needed: u32, had: usize, wire: u32) -> Packet<'a> {
    if wire < needed {
        return distrusted(
            layer,
            "header does not fit its packet",
            needed.into(),
            wire.into(),
        );
    }
    let reason = "header is cut by the snap length";
    let (needed, had) = (needed.into(), had as u64);
    Packet::Unread(Unread {
        kind: Kind::Skipped,
        layer,
        reason,
        needed,
        had,
        detail: 0,
    })
}

#[cold]
fn distrusted<'a>(layer: &'static str, reason: &'static str, needed: u64, had: u64) -> Packet<'a> {
    Packet::Unread(Unread::distrusted(layer, reason, needed, had))
}

#[cold]
fn skipped<'a>(layer: &'static str, reason: &'static str, detail: u32) -> Packet<'a> {
    Packet::Unread(Unread::skipped(layer, reason, detail))
}
