//! One captured frame: link layer, IP and TCP or ICMP read in one call, `decode`. Reads the bytes of one
//! record, gives one `Packet`; knows nothing of files, other frames or streams. Checksums are not verified
//! (an offloading sender's are wrong before the wire), tunnels are not entered.
//!
//! `link.rs` strips the link layer, `ip.rs` IPv4 and IPv6, `tcp.rs` and `icmp.rs` read what they carry.

mod icmp;
mod ip;
mod link;
mod tcp;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::cursor;
use crate::issue::Kind;
use crate::segment::Segment;

/// What a frame is to latpcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    Tcp(Segment<'a>),
    Icmp(Icmp<'a>),
    /// Understood, and neither TCP nor ICMP: ARP, UDP, ...
    Other,
    /// An IP fragment, first or later, that says nothing alone.
    Fragment,
    Unread(Unread),
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

/// An ICMP or ICMPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub v6: bool,
    pub kind: u8,
    pub code: u8,
    /// Identifier and sequence number of an echo or time stamp message, else 0.
    pub id: u16,
    pub seq: u16,
    pub ttl: u8,
    /// The TCP header that an error quotes, where it is there up to the window field. `len` is the length
    /// of the packet that was quoted, `payload` what the error quotes of it.
    pub quoted: Option<Segment<'a>>,
}

/// Reads one frame of the link type (a LINKTYPE_ number) that was `original_len` bytes long on the wire.
#[inline(never)]
pub fn decode<'a>(link: u32, data: &'a [u8], original_len: u32) -> Packet<'a> {
    // A frame that claims to have been shorter than what was captured of it: believe the bytes.
    let wire = original_len.max(u32::try_from(data.len()).unwrap_or(u32::MAX));
    link::decode(link, View { held: data, wire })
}

/// The bytes of one layer and what it carries: those captured, and how many there were on the wire.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    held: &'a [u8],
    wire: u32,
}

impl<'a> View<'a> {
    #[inline(always)]
    fn skip(self, len: usize) -> Self {
        let wire = self.wire.saturating_sub(u32::try_from(len).unwrap_or(u32::MAX));
        View {
            held: cursor::from(self.held, len),
            wire,
        }
    }

    #[inline(always)]
    fn limit(self, len: u32) -> Self {
        View {
            held: cursor::upto(self.held, len as usize),
            wire: self.wire.min(len),
        }
    }

    /// The layer's own word for its length, also where it goes beyond the frame.
    fn believe(self, len: u32) -> Self {
        View {
            held: cursor::upto(self.held, len as usize),
            wire: len,
        }
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
    Packet::Unread(Unread {
        kind: Kind::Distrusted,
        layer,
        reason,
        needed,
        had,
        detail: 0,
    })
}

#[cold]
fn skipped<'a>(layer: &'static str, reason: &'static str, detail: u32) -> Packet<'a> {
    Packet::Unread(Unread {
        kind: Kind::Skipped,
        layer,
        reason,
        needed: 0,
        had: 0,
        detail,
    })
}
