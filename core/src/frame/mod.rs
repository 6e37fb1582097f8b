//! One captured frame: `decode` reads link layer, tunnels, IP, and TCP or ICMP, and returns one `Packet`. It needs no
//! knowledge of files or streams. TCP checksums are not verified: at a sender that offloads them, the capture shows
//! packets before the network card fills them in.
//!
//! `link.rs` strips the link layer; `ethertype.rs` tags, labels and PPP; `ip.rs` IPv4 and IPv6. `tunnel.rs` enters
//! tunnels over IP and UDP, and `tcp.rs` and `icmp.rs` read the innermost packet. Only `fragment.rs` keeps state
//! between frames: it reassembles IP fragments.

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

/// Upper bound on nested tunnels. Each level takes stack, and real networks use only a few.
const MAX_DEPTH: u8 = 16;

/// The innermost packet of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    Tcp(Segment<'a>),
    Icmp(Icmp<'a>),
    /// A UDP datagram that is not a known tunnel.
    Udp(Udp<'a>),
    /// Address resolution: ARP, or IPv6 neighbour discovery.
    Neighbour(Neighbour),
    /// Understood, but of no use to the analysis: routing protocols, spanning tree, and so on.
    Other,
    /// A segment whose IP header claims more bytes than the frame had on the wire. Its length is that of the frame, as
    /// in Wireshark. The second field is the length by the IP header, if that header's checksum is right and no tunnel
    /// can have cut the packet.
    LengthBeyondFrame(Segment<'a>, Option<u32>),
    /// A SYN in a tunnel whose outer UDP checksum is wrong. If it was sent like this, the end of the tunnel drops it.
    BadTunnelChecksum(Segment<'a>),
    /// A segment whose header is longer than its packet. Wireshark shows it without analysis.
    Malformed(Segment<'a>, Unread),
    /// A segment whose data offset is below 20 bytes. Wireshark assigns it to a stream and reads no further.
    BadDataOffset(Segment<'a>, Unread),
    /// An IP fragment. `Fragments` reassembles the packet.
    Fragment(Fragment<'a>),
    /// A layer that this module does not read, but a `LinkReader` may.
    Foreign(Foreign<'a>),
    Unread(Unread),
}

/// A request for the link-layer address of a host, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The host that sent the request.
    pub asker: IpAddr,
    /// The address whose host is wanted.
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

/// The bytes of a layer that is left to a `LinkReader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The kind of `number`: "link", "ethertype", "ip" or "capwap" (its binding).
    pub layer: &'static str,
    pub number: u32,
    pub data: &'a [u8],
    /// Length on the wire in bytes.
    pub wire: u32,
    depth: u8,
}

/// The result of a `LinkReader`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwrapped {
    /// The IP packet inside.
    Packet(Vec<u8>),
    /// An inner layer: "link" or "ethertype", its number, and its bytes. Read by this module or by the reader again.
    Layer(&'static str, u32, Vec<u8>),
    /// Several packets or layers in one frame.
    Several(Vec<Unwrapped>),
    /// Understood, and it holds no IP packet.
    Empty,
    /// Not understood.
    Unknown,
    /// Understood, but encrypted.
    Encrypted,
    /// A fragment of a frame. Such fragments are not reassembled.
    Fragment,
    /// Its headers are cut or invalid.
    Cut,
}

/// A reader of rare layers outside this module: takes a frame, returns the IP packet in it or a layer that holds one.
pub trait LinkReader: Send + Sync {
    fn unwrap(&mut self, layer: &'static str, number: u32, data: &[u8]) -> Unwrapped;
}

impl Foreign<'_> {
    /// Reads the IP packet that a `LinkReader` found.
    pub fn decode<'a>(&self, packet: &'a [u8]) -> Packet<'a> {
        self.inner(packet).enter(ip::any)
    }

    /// Reads the layer that a `LinkReader` found.
    pub fn layer<'a>(&self, layer: &'static str, number: u32, data: &'a [u8]) -> Packet<'a> {
        self.inner(data)
            .enter(|view| match (layer, u16::try_from(number)) {
                ("ethertype", Ok(kind)) => ethertype::ethertype(kind, view),
                ("link", _) => link::decode(number, view),
                _ => Packet::Other,
            })
    }

    /// Returns the view of an inner layer. Its length on the wire is that of this layer without the headers before it.
    fn inner<'a>(&self, data: &'a [u8]) -> View<'a> {
        let header = self.data.len().saturating_sub(data.len()) as u32;
        let wire = self.wire.saturating_sub(header).max(data.len() as u32);
        View {
            depth: self.depth,
            ..View::new(data, wire)
        }
    }

    /// Returns the reason why no packet was found in this layer.
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
    /// Bytes needed; 0 if the reason is not a length.
    pub needed: u64,
    /// Bytes present; 0 if the reason is not a length.
    pub had: u64,
    /// The value that was not understood (link type, ethertype, IP protocol), else 0.
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
    /// MTU of the next hop in bytes, in "fragmentation needed" (RFC 1191) and "packet too big" (RFC 4443). 0 from
    /// routers older than RFC 1191.
    pub next_mtu: Option<u32>,
    /// Identifier of an echo or time stamp message, else 0.
    pub id: u16,
    /// Sequence number of an echo or time stamp message, else 0.
    pub seq: u16,
    pub ttl: u8,
    /// The TCP segment that an error quotes, if it is quoted at least up to the window field. `len` is the length of
    /// the original segment, `payload` the quoted part of its payload.
    pub quoted: Option<Segment<'a>>,
    /// A TCP header of which only 8 bytes are quoted (RFC 792): ports and sequence number. All other fields are 0.
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
    /// Returns the request that an echo reply with these fields answers.
    pub fn back(self) -> Echo {
        Echo {
            src: self.dst,
            dst: self.src,
            ..self
        }
    }
}

/// Reads one frame. `link` is a LINKTYPE_ number, `original_len` the length on the wire in bytes.
#[inline(always)]
pub fn decode<'a>(link: u32, data: &'a [u8], original_len: u32) -> Packet<'a> {
    // if the original length is below the captured length, believe the captured bytes
    let wire = original_len.max(u32::try_from(data.len()).unwrap_or(u32::MAX));
    link::decode(link, View::new(data, wire))
}

/// The bytes of one layer with its payload.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    /// The captured bytes.
    captured: &'a [u8],
    /// Length on the wire in bytes.
    wire: u32,
    /// Number of tunnels entered.
    depth: u8,
    /// Inside the quote of an ICMP error. Quotes in quotes are not read.
    is_quoted: bool,
}

impl<'a> View<'a> {
    #[inline(always)]
    fn new(captured: &'a [u8], wire: u32) -> Self {
        View {
            captured,
            wire,
            depth: 0,
            is_quoted: false,
        }
    }

    /// Returns the view without its first `len` bytes.
    #[inline(always)]
    fn skip(self, len: usize) -> Self {
        let wire = self.wire.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
        View {
            captured: cursor::from(self.captured, len),
            wire,
            ..self
        }
    }

    /// Returns the view of at most the first `len` bytes.
    #[inline(always)]
    fn limit(self, len: u32) -> Self {
        View {
            captured: cursor::upto(self.captured, len as usize),
            wire: self.wire.min(len),
            ..self
        }
    }

    /// Reads a layer that may contain itself. All recursion goes through this method, which bounds its depth.
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
            data: self.captured,
            wire: self.wire,
            depth: self.depth,
        })
    }

    /// Returns the packet for a header of `needed` bytes that is not completely captured.
    #[inline(always)]
    fn cut(self, layer: &'static str, needed: u32) -> Packet<'a> {
        cut(layer, needed, self.captured.len(), self.wire)
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
