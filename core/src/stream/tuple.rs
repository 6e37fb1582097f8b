//! The endpoints of a TCP connection, as a key and in compact form.

use std::net::{IpAddr, SocketAddrV4};

use super::Endpoint;
use crate::segment::Segment;

/// A 4-tuple, the smaller endpoint first, packed so that it compares and hashes fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FourTuple {
    V4(u64, u64),
    V6((u128, u16), (u128, u16)),
}

impl FourTuple {
    /// The connection's key, and whether the segment comes from the smaller endpoint.
    #[inline]
    pub(super) fn of(segment: &Segment<'_>) -> (Self, bool) {
        let Segment {
            src,
            dst,
            sport,
            dport,
            ..
        } = *segment;
        Self::ordered((src, sport), (dst, dport))
    }

    /// The key of the connection between these endpoints.
    pub(super) fn between(a: Endpoint, b: Endpoint) -> Self {
        Self::ordered(a, b).0
    }

    #[inline(always)]
    fn ordered((src, sport): Endpoint, (dst, dport): Endpoint) -> (Self, bool) {
        match (src, dst) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let a = u64::from(a.to_bits()) << 16 | u64::from(sport);
                let b = u64::from(b.to_bits()) << 16 | u64::from(dport);
                (FourTuple::V4(a.min(b), a.max(b)), a <= b)
            }
            (a, b) => {
                let (a, b) = ((wide(a), sport), (wide(b), dport));
                (FourTuple::V6(a.min(b), a.max(b)), a <= b)
            }
        }
    }

    /// A hash of the ports, cheap enough for each packet. Connections of the same hosts rarely collide.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        let (a, b) = match *self {
            FourTuple::V4(a, b) => (a as u16, b as u16),
            FourTuple::V6(a, b) => (a.1, b.1),
        };
        usize::from(a ^ b.rotate_left(3))
    }
}

fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The endpoints of a connection in compact form: those of IPv4 inline, others boxed.
#[derive(Debug)]
pub(super) enum CompactEnds {
    V4(SocketAddrV4, SocketAddrV4),
    Any(Box<(Endpoint, Endpoint)>),
}

impl CompactEnds {
    pub(super) fn of(low: Endpoint, high: Endpoint) -> Self {
        match (low.0, high.0) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                CompactEnds::V4(SocketAddrV4::new(a, low.1), SocketAddrV4::new(b, high.1))
            }
            _ => CompactEnds::Any(Box::new((low, high))),
        }
    }

    pub(super) fn both(&self) -> (Endpoint, Endpoint) {
        let end = |v4: &SocketAddrV4| (IpAddr::V4(*v4.ip()), v4.port());
        match self {
            CompactEnds::V4(low, high) => (end(low), end(high)),
            CompactEnds::Any(both) => **both,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_pair_gives_the_ends_that_it_was_made_of() {
        let v4 = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
        let mapped = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        for (low, high) in [(v4, v4), (v6, v6), (v4, v6), (mapped, v4)] {
            let ends = ((low, 80), (high, 40_000));
            assert_eq!(CompactEnds::of(ends.0, ends.1).both(), ends);
        }
    }
}
