//! Reassembly of IP fragments (RFC 791 3.2, RFC 8200 4.5). Takes fragments and returns a packet when it is complete.
//! Memory is bounded by `MAX_BYTES`. Where fragments overlap, the one with the lower offset counts; of equal
//! offsets, the one received first.

use std::collections::VecDeque;
use std::net::IpAddr;

use ahash::AHashMap;

use super::ip;
use super::tcp::Ends;
use super::{Packet, View};
use crate::issue::{Issue, Kind};

/// Upper bound on the memory of incomplete packets, bookkeeping included: the default of Linux
/// (net.ipv4.ipfrag_high_thresh).
const MAX_BYTES: usize = 4 << 20;
/// Memory of a fragment in addition to its bytes.
const FRAGMENT_OVERHEAD: usize = 48;
/// Memory of an incomplete packet in addition to its fragments.
const PACKET_OVERHEAD: usize = 256;
/// Upper bound on the fragments of a packet: 64 KiB in fragments of 64 bytes.
const MAX_FRAGMENTS: usize = 1024;
/// Upper bound on the payload of an IP packet.
const MAX_PACKET_BYTES: u32 = 65_535;
/// Time limit for a packet to be completed (RFC 8200 4.5). Later fragments with the same number belong to another
/// packet.
const TIMEOUT_NS: i64 = 60_000_000_000;

/// Identifies the packet that a fragment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub id: u32,
    pub protocol: u8,
}

/// One fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    key: Key,
    /// Offset in the packet's payload, in bytes.
    start: u32,
    /// The "more fragments" flag.
    has_more: bool,
    /// Protocol of the packet's payload. In IPv6 that of the first fragment counts.
    protocol: u8,
    bytes: &'a [u8],
    /// Length by the IP header, in bytes.
    len: u32,
    carrier: Ends,
    depth: u8,
}

impl<'a> Fragment<'a> {
    pub(super) fn of(
        key: Key,
        start: u32,
        has_more: bool,
        protocol: u8,
        view: View<'a>,
        carrier: Ends,
    ) -> Packet<'a> {
        Packet::Fragment(Fragment {
            key,
            start,
            has_more,
            protocol,
            bytes: view.captured,
            len: view.wire,
            carrier,
            depth: view.depth,
        })
    }
}

impl Fragment<'_> {
    /// Offset after the last byte.
    fn end(&self) -> u32 {
        self.start.saturating_add(self.len)
    }

    /// Returns why the fragment cannot be used, if so.
    fn flaw(&self, seen_frame: SeenFrame) -> Option<Issue> {
        if (self.bytes.len() as u64) < u64::from(self.len) {
            let issue = seen_frame.issue(Kind::Skipped, "fragment is cut by the snap length");
            return Some(issue.lengths(self.len.into(), self.bytes.len() as u64));
        }
        let fits = self.end() <= MAX_PACKET_BYTES && self.len > 0;
        let is_aligned = !self.has_more || self.len.is_multiple_of(8);
        let reason = "fragment does not fit any packet";
        (!fits || !is_aligned).then(|| seen_frame.issue(Kind::Distrusted, reason))
    }
}

/// The payload of a reassembled packet.
#[derive(Debug)]
pub struct Datagram {
    protocol: u8,
    bytes: Vec<u8>,
    carrier: Ends,
    depth: u8,
}

impl Datagram {
    /// Reads the payload.
    pub fn decode(&self) -> Packet<'_> {
        let view = View {
            depth: self.depth,
            ..View::new(&self.bytes, self.bytes.len() as u32)
        };
        view.enter(|view| ip::upper(self.protocol, view, self.carrier))
    }
}

/// A packet of which fragments are missing.
#[derive(Debug)]
struct Incomplete {
    /// Offset and bytes of each fragment, in the order of the offsets.
    fragments: Vec<(u32, Vec<u8>)>,
    /// Bookkeeping included.
    memory_bytes: usize,
    /// Length of the payload. `None` until the last fragment has arrived.
    end: Option<u32>,
    protocol: u8,
    /// Distinguishes this packet from earlier ones with the same key in `Fragments::order`.
    serial: u64,
    first: SeenFrame,
}

/// Time and position of a frame, for issues.
#[derive(Debug, Clone, Copy)]
pub struct SeenFrame {
    pub time_ns: i64,
    pub file: u32,
    pub frame: u64,
    pub offset: u64,
}

impl SeenFrame {
    fn issue(&self, kind: Kind, reason: &'static str) -> Issue {
        Issue::new(kind, "ip", reason)
            .at(self.offset)
            .in_file(self.file)
            .in_frame(self.frame)
    }
}

/// All incomplete packets.
#[derive(Debug, Default)]
pub struct Fragments {
    incomplete: AHashMap<Key, Incomplete>,
    /// Key and serial of each incomplete packet, the oldest first. May also have entries of packets that are gone.
    order: VecDeque<(Key, u64)>,
    /// Number of fragments added.
    serial: u64,
    /// Memory of all incomplete packets, bookkeeping included.
    memory_bytes: usize,
    /// Packets and fragments that could not be used. The caller takes them.
    pub issues: Vec<Issue>,
}

impl Fragments {
    /// Adds a fragment. Returns the packet if it is now complete.
    #[cold]
    pub fn add(&mut self, fragment: &Fragment<'_>, seen_frame: SeenFrame) -> Option<Datagram> {
        if let Some(issue) = fragment.flaw(seen_frame) {
            self.issues.push(issue);
            return None;
        }
        let is_stale =
            |packet: &Incomplete| seen_frame.time_ns.saturating_sub(packet.first.time_ns) > TIMEOUT_NS;
        if self.incomplete.get(&fragment.key).is_some_and(is_stale) {
            self.give_up(fragment.key, "fragments of a packet are missing");
        }
        self.serial += 1;
        let serial = self.serial;
        let packet = self.incomplete.entry(fragment.key).or_insert_with(|| {
            self.order.push_back((fragment.key, serial));
            self.memory_bytes += PACKET_OVERHEAD;
            Incomplete {
                fragments: Vec::new(),
                memory_bytes: PACKET_OVERHEAD,
                end: None,
                protocol: fragment.protocol,
                serial,
                first: seen_frame,
            }
        });
        let cost = fragment.bytes.len() + FRAGMENT_OVERHEAD;
        if packet.add(fragment) {
            packet.memory_bytes += cost;
            self.memory_bytes += cost;
        }
        if packet.fragments.len() > MAX_FRAGMENTS {
            self.give_up(fragment.key, "packet has too many fragments");
            return None;
        }
        if let Some(bytes) = packet.reassembled() {
            let protocol = packet.protocol;
            self.remove(fragment.key);
            return Some(Datagram {
                protocol,
                bytes,
                carrier: fragment.carrier,
                depth: fragment.depth,
            });
        }
        self.evict();
        None
    }

    /// Gives up the oldest packets while all take more than `MAX_BYTES`.
    fn evict(&mut self) {
        while self.memory_bytes > MAX_BYTES
            && let Some((key, serial)) = self.order.pop_front()
        {
            if self
                .incomplete
                .get(&key)
                .is_some_and(|oldest| oldest.serial == serial)
            {
                self.give_up(key, "too many fragments wait for the rest of their packets");
            }
        }
        if self.order.len() > self.incomplete.len() * 2 + 16 {
            let incomplete = &self.incomplete;
            self.order
                .retain(|(key, serial)| incomplete.get(key).is_some_and(|packet| packet.serial == *serial));
        }
    }

    /// Reports all incomplete packets at the end of the capture.
    pub fn finish(&mut self) {
        let mut incomplete: Vec<_> = self
            .incomplete
            .iter()
            .map(|(key, packet)| (packet.first.frame, *key))
            .collect();
        incomplete.sort_unstable_by_key(|(frame, _)| *frame);
        for (_, key) in incomplete {
            self.give_up(key, "fragments of a packet are missing");
        }
        self.order.clear();
    }

    fn remove(&mut self, key: Key) -> Option<Incomplete> {
        let packet = self.incomplete.remove(&key)?;
        self.memory_bytes = self.memory_bytes.saturating_sub(packet.memory_bytes);
        Some(packet)
    }

    fn give_up(&mut self, key: Key, reason: &'static str) {
        if let Some(packet) = self.remove(key) {
            self.issues.push(packet.first.issue(Kind::Skipped, reason));
        }
    }
}

impl Incomplete {
    /// Stores a fragment in order; returns false for a copy of one that is there.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        if fragment.start == 0 {
            self.protocol = fragment.protocol;
        }
        if !fragment.has_more && self.end.is_none() {
            self.end = Some(fragment.end());
        }
        let at = self
            .fragments
            .partition_point(|(start, _)| *start <= fragment.start);
        let is_same = |(start, bytes): &(u32, Vec<u8>)| *start == fragment.start && bytes == fragment.bytes;
        let is_new = !at
            .checked_sub(1)
            .and_then(|before| self.fragments.get(before))
            .is_some_and(is_same);
        if is_new {
            self.fragments
                .insert(at, (fragment.start, fragment.bytes.to_vec()));
        }
        is_new
    }

    /// Returns the payload, if no byte is missing.
    fn reassembled(&self) -> Option<Vec<u8>> {
        let end = self.end?;
        let mut covered = 0u32;
        for (start, bytes) in &self.fragments {
            if *start > covered {
                return None;
            }
            covered = covered.max(start.saturating_add(bytes.len() as u32));
        }
        if covered < end {
            return None;
        }
        let mut packet = Vec::with_capacity(end as usize);
        for (start, bytes) in &self.fragments {
            let covered = packet.len().saturating_sub(*start as usize);
            packet.extend_from_slice(bytes.get(covered..).unwrap_or_default());
        }
        packet.truncate(end as usize);
        Some(packet)
    }
}
