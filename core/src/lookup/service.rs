//! Requests over UDP other than DNS, and their responses: DHCP, NTP, SNMP, RADIUS, TFTP, SIP, STUN and Kerberos. They
//! are read as far as pairing requires; `status.rs` reads how they ended. Each request is a row of `lookups`, with
//! its retransmissions.

use std::net::IpAddr;

use super::{Lookup, Lookups, MAX_WAITING, status};
use crate::base::At;
use crate::cursor::{self, Header};
use crate::frame::Udp;
use crate::limits::SERVICE_ANEW_NS;

/// Upper bound on the transmit timestamps of one NTP client that a response may echo.
const MAX_STAMPS: usize = 16;
/// Port of the DHCP server (RFC 2131 4.1).
const BOOTPS: u16 = 67;
const DHCP: &str = "DHCP";

/// Identifies a request: protocol, client, server, and the token that its response echoes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    protocol: &'static str,
    client: Option<(IpAddr, u16)>,
    server: Option<IpAddr>,
    token: Vec<u8>,
}

/// A request without a response.
#[derive(Debug)]
pub struct Waiting {
    pub(super) lookup: Lookup,
    /// Transmit timestamps of an NTP request and its retransmissions.
    stamps: Vec<[u8; 8]>,
}

/// The protocol of a server's port, by IANA's registry.
fn service(port: u16) -> Option<&'static str> {
    Some(match port {
        BOOTPS => DHCP,
        69 => "TFTP",
        88 => "Kerberos",
        123 => "NTP",
        161 => "SNMP",
        547 => "DHCPv6",
        1645 | 1812 | 1813 => "RADIUS",
        3478 => "STUN",
        5060 => "SIP",
        _ => return None,
    })
}

/// Whether a message is a request, and the token that pairs it; None if it is neither request nor response.
fn kind(protocol: &str, data: &[u8], to_server: bool) -> Option<(bool, Vec<u8>)> {
    match protocol {
        "NTP" => match (Header::<48>::of(data)?.u8::<0>()) & 7 {
            3 => Some((true, Vec::new())), // RFC 5905 7.3: client, server
            4 => Some((false, Vec::new())),
            _ => None,
        },
        "RADIUS" => Some((to_server, vec![cursor::u8_at(data, 1)?])),
        "DHCPv6" => match cursor::u8_at(data, 0)? {
            1 | 3 | 5 | 6 | 11 => Some((true, cursor::from(cursor::upto(data, 4), 1).to_vec())), // RFC 8415 7.3
            2 | 7 => Some((false, cursor::from(cursor::upto(data, 4), 1).to_vec())),
            _ => None,
        },
        "STUN" => {
            let head = Header::<20>::of(data)?; // RFC 8489 5
            let class = head.u8::<0>();
            (class < 2).then(|| (class == 0, head.bytes::<8, 12>().to_vec()))
        }
        "SIP" => {
            if data.starts_with(b"ACK ") {
                return None;
            }
            let mut token = header(data, &[b"call-id:", b"i:"])?;
            token.extend(header(data, &[b"cseq:"])?); // RFC 3261 8.1.1
            Some((!data.starts_with(b"SIP/2.0 "), token))
        }
        _ => Some((to_server, Vec::new())),
    }
}

/// The value of the first header line with one of these names, which are in lower case.
fn header(data: &[u8], names: &[&[u8]]) -> Option<Vec<u8>> {
    data.split(|byte| *byte == b'\n').find_map(|line| {
        let value = names.iter().find_map(|name| {
            let (head, value) = line.split_at_checked(name.len())?;
            head.eq_ignore_ascii_case(name).then_some(value)
        })?;
        Some(value.trim_ascii().to_vec())
    })
}

impl Lookups {
    /// Reads a datagram of one of these protocols; ignores others.
    #[cold]
    pub(super) fn service(&mut self, udp: &Udp<'_>, at: At) {
        if udp.sport == BOOTPS || udp.dport == BOOTPS {
            self.dhcp(udp, at);
            return;
        }
        let (from, to) = ((udp.src, udp.sport), (udp.dst, udp.dport));
        let Some(protocol) = service(udp.dport).or_else(|| service(udp.sport)) else {
            // a TFTP server responds from a port of its own (RFC 1350 4)
            let key = Key {
                protocol: "TFTP",
                client: Some(to),
                server: Some(udp.src),
                token: Vec::new(),
            };
            self.answered(&key, udp.payload, at);
            return;
        };
        let Some((asks, token)) = kind(protocol, udp.payload, service(udp.dport).is_some()) else {
            return;
        };
        let (client, server) = if asks { (from, to) } else { (to, from) };
        // NTP clients often use another port for a retransmission
        let port = if matches!(protocol, "NTP" | "SIP") {
            0
        } else {
            client.1
        };
        let key = Key {
            protocol,
            client: Some((client.0, port)),
            server: Some(server.0),
            token,
        };
        let stamp = |offset| {
            cursor::from(udp.payload, offset)
                .first_chunk::<8>()
                .copied()
                .unwrap_or_default()
        };
        if asks {
            self.requested(key.clone(), client, server, at);
            if let (Some(waiting), "NTP") = (self.services.get_mut(&key), protocol)
                && waiting.stamps.len() < MAX_STAMPS
            {
                waiting.stamps.push(stamp(40));
            }
        } else if protocol != "NTP"
            || self
                .services
                .get(&key)
                .is_some_and(|waiting| waiting.stamps.contains(&stamp(24)))
        {
            self.answered(&key, udp.payload, at);
        }
    }

    /// DHCP uses broadcasts, so the transaction id and the hardware address pair a request with its offer (RFC 2131
    /// 2).
    fn dhcp(&mut self, udp: &Udp<'_>, at: At) {
        let Some(head) = Header::<34>::of(udp.payload) else {
            return;
        };
        let token = [&head.bytes::<4, 4>()[..], &head.bytes::<28, 6>()[..]].concat();
        let key = Key {
            protocol: DHCP,
            client: None,
            server: None,
            token,
        };
        if head.u8::<0>() == 1 {
            self.requested(key, (udp.src, udp.sport), (udp.dst, udp.dport), at);
            return;
        }
        if let Some(waiting) = self.services.get_mut(&key) {
            waiting.lookup.server = (udp.src, udp.sport);
            waiting.lookup.name = IpAddr::from(head.bytes::<16, 4>()).to_string().into();
        }
        self.answered(&key, udp.payload, at);
    }

    fn requested(&mut self, key: Key, client: (IpAddr, u16), server: (IpAddr, u16), at: At) {
        if let Some(waiting) = self.services.get_mut(&key) {
            if at.time_ns.saturating_sub(waiting.lookup.last_ns) <= SERVICE_ANEW_NS.get() {
                waiting.lookup.retransmit(at.time_ns);
                return;
            }
            self.done.extend(self.services.remove(&key).map(|old| old.lookup));
        }
        if self.services.len() >= MAX_WAITING {
            return;
        }
        let number = self.next;
        self.next += 1;
        let lookup = Lookup::new(number, key.protocol, client, server, at);
        let waiting = Waiting {
            lookup,
            stamps: Vec::new(),
        };
        self.services.insert(key, waiting);
    }

    /// Pairs a response with its request. A provisional SIP response (RFC 3261 21.1) ends the client's wait if it is
    /// more than "100 Trying"; the request stays open for its final status.
    fn answered(&mut self, key: &Key, data: &[u8], at: At) {
        let provisional = (key.protocol == "SIP").then(|| status::sip(data).unwrap_or(0));
        if let Some(code @ 100..200) = provisional {
            if let (101.., Some(waiting)) = (code, self.services.get_mut(key)) {
                waiting.lookup.answered.get_or_insert(at);
            }
            return;
        }
        if let Some(mut waiting) = self.services.remove(key) {
            waiting.lookup.answered.get_or_insert(at);
            waiting.lookup.status = status::of(key.protocol, data);
            self.done.push(waiting.lookup);
        }
    }
}
