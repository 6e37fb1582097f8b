//! Hosts that are server and client at once (proxies, application servers). Only there can a request wait for another
//! one.

use std::net::IpAddr;

use ahash::AHashMap;

use super::Key;

/// Upper bound on hosts of each role; further ones count as unknown.
const MAX_HOSTS: usize = 1024;

type Endpoint = (IpAddr, u16);

/// The first server endpoint of a host, and whether there are others.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: Endpoint,
    has_more: bool,
}

impl Ends {
    fn has_other_than(self, end: Endpoint) -> bool {
        self.has_more || self.first != end
    }
}

/// Roles of hosts.
#[derive(Debug, Default)]
pub struct Hosts {
    /// Endpoints that a host serves, by its address; endpoints that a host sends requests to, by its address.
    serving: AHashMap<IpAddr, Ends>,
    asking: AHashMap<IpAddr, Ends>,
    /// There are requests on loopback, and others: then the capture's own host may be both, under two addresses.
    has_loopback: bool,
    has_others: bool,
    /// A host may be server and client.
    has_relay: bool,
}

impl Hosts {
    pub(super) fn add(&mut self, key: &Key) {
        let end = (key.server, key.server_port);
        self.has_loopback |= key.client.is_loopback();
        self.has_others |= !key.server.is_loopback();
        put(&mut self.serving, key.server, end);
        put(&mut self.asking, key.client, end);
        self.has_relay |= self.has_loopback && self.has_others || self.serves(key) || self.asks(key);
    }

    /// Whether any host may be server and client.
    pub fn have_relay(&self) -> bool {
        self.has_relay
    }

    /// Whether the client of this sender's key is the host of another server.
    pub fn serves(&self, back: &Key) -> bool {
        let servers = self.serving.get(&back.client);
        servers.is_some_and(|ends| ends.has_other_than((back.server, back.server_port)))
            || back.client.is_loopback() && self.has_others
            || !back.server.is_loopback() && self.has_loopback
    }

    /// Whether the server of this sender's key sends requests to another server.
    pub fn asks(&self, front: &Key) -> bool {
        let servers = self.asking.get(&front.server);
        servers.is_some_and(|ends| ends.has_other_than((front.server, front.server_port)))
            || !front.server.is_loopback() && self.has_loopback
            || front.server.is_loopback() && self.has_others
    }
}

fn put(hosts: &mut AHashMap<IpAddr, Ends>, host: IpAddr, end: Endpoint) {
    if let Some(ends) = hosts.get_mut(&host) {
        ends.has_more |= ends.first != end;
    } else if hosts.len() < MAX_HOSTS {
        let ends = Ends {
            first: end,
            has_more: false,
        };
        hosts.insert(host, ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;

    fn key(client: [u8; 4], server: [u8; 4], server_port: u16) -> Key {
        Key {
            server: server.into(),
            server_port,
            client: client.into(),
            sender: Side::Client,
        }
    }

    fn relays(keys: &[Key]) -> bool {
        let mut hosts = Hosts::default();
        keys.iter().for_each(|key| hosts.add(key));
        hosts.have_relay()
    }

    #[test]
    fn a_relay_is_asked_and_asks() {
        let (client, proxy, server, local) = ([10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3], [127, 0, 0, 1]);
        let (front, back) = (key(client, proxy, 80), key(proxy, server, 8080));
        assert!(relays(&[front, back]) && relays(&[back, front]));
        assert!(!relays(&[front]));
        assert!(
            !relays(&[front, key(client, server, 8080)]),
            "one client of two servers"
        );
        assert!(
            relays(&[front, key(local, local, 8080)]),
            "it may be client or server on loopback"
        );
        assert!(
            !relays(&[key(local, local, 80)]),
            "one server that its own host asks"
        );
        assert!(relays(&[key(local, local, 80), key(local, local, 81)]));
    }
}
