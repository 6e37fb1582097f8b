//! The key of a TCP connection.

use std::net::IpAddr;

use super::Endpoint;

/// A 4-tuple, the smaller endpoint first, packed so that it hashes fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FourTuple {
    V4(u64, u32),
    V6(u128, u128, u32),
}

impl FourTuple {
    pub(super) fn of(low: Endpoint, high: Endpoint) -> Self {
        let ports = u32::from(low.1) << 16 | u32::from(high.1);
        match (low.0, high.0) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                FourTuple::V4(u64::from(a.to_bits()) << 32 | u64::from(b.to_bits()), ports)
            }
            (a, b) => FourTuple::V6(wide(a), wide(b), ports),
        }
    }
}

fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
