//! One TCP segment, as `frame` decodes it and all later layers read it.

use std::net::IpAddr;

pub const FIN: u16 = 0x001;
pub const SYN: u16 = 0x002;
pub const RST: u16 = 0x004;
pub const PSH: u16 = 0x008;
pub const ACK: u16 = 0x010;
pub const URG: u16 = 0x020;
pub const ECE: u16 = 0x040;
pub const CWR: u16 = 0x080;
pub const AE: u16 = 0x100;

/// The SACK option's blocks, raw sequence numbers, in the order of the option (at most four fit).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sack {
    pub count: u8,
    pub blocks: [(u32, u32); 4],
}

impl Sack {
    pub fn blocks(&self) -> &[(u32, u32)] {
        self.blocks.get(..self.count as usize).unwrap_or(&[])
    }
}

/// Multipath TCP option of a SYN (RFC 8684).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Multipath {
    #[default]
    Nothing,
    /// MP_CAPABLE: further subflows may be added.
    Capable,
    /// MP_JOIN: a further subflow of an existing connection.
    Joins,
}

/// TCP options that latpcap uses (RFC 9293 3.2, RFC 7323, RFC 2018, RFC 8684).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub mss: Option<u16>,
    pub wscale: Option<u8>,
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    pub sack: Sack,
    pub multipath: Multipath,
    /// The captured bytes end within the options, so that an option which is None may have been sent.
    pub cut: bool,
}

/// One TCP segment with the raw numbers of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub sport: u16,
    pub dport: u16,
    pub seq: u32,
    pub ack: u32,
    /// The nine flag bits, FIN = 1 ... AE = 0x100 (Wireshark's tcp.flags without the reserved bits).
    pub flags: u16,
    pub window: u16,
    /// Payload bytes by the IP header's length, not by what was captured (tcp.len).
    pub len: u32,
    /// Captured payload bytes; fewer than `len` if the snap length cut the frame.
    pub payload: &'a [u8],
    pub options: Options,
    /// IPv4 identification; None for IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit of IPv6.
    pub ttl: u8,
    /// Type of service, or traffic class of IPv6: DSCP and ECN.
    pub tos: u8,
}

impl Segment<'_> {
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
