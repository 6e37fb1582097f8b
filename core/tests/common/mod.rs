//! What the integration tests share: segments written as lines of text, captures built byte by byte, and a
//! random source that gives the same numbers on every run.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

pub mod tables;

use std::net::{IpAddr, Ipv4Addr};

use latpcap_core::base::At;
use latpcap_core::facts::{Analysis, Facts, Flow, Shared, flag};
use latpcap_core::segment::{ACK, FIN, Options, PSH, RST, SYN, Sack, Segment};

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const MS: i64 = 1_000_000;

/// Knuth's MMIX generator.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// 0 to `limit` - 1.
    pub fn below(&mut self, limit: i64) -> i64 {
        self.next() as i64 % limit
    }
}

/// One segment of a script, and what is expected of it.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    pub client: bool,
    pub segment: Segment<'static>,
    pub time_ns: i64,
    pub want: &'a str,
}

/// Reads lines `c PA seq ack len window ms [ws=7] [sack=1-5,9-12] | wanted`; `seq` and `ack` count from
/// the initial numbers of the client and the server.
pub fn script(text: &str, isn: [u32; 2]) -> Vec<Line<'_>> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| read_line(line, isn))
        .collect()
}

fn read_line(line: &str, isn: [u32; 2]) -> Line<'_> {
    let (left, want) = line.split_once('|').unwrap();
    let words: Vec<&str> = left.split_whitespace().collect();
    let client = words[0] == "c";
    let (own, peer) = if client {
        (isn[0], isn[1])
    } else {
        (isn[1], isn[0])
    };
    let flags = words[1].chars().fold(0, |flags, letter| {
        flags
            | match letter {
                'S' => SYN,
                'A' => ACK,
                'F' => FIN,
                'P' => PSH,
                'R' => RST,
                _ => 0,
            }
    });
    let number = |i: usize| words[i].parse::<u32>().unwrap();
    let ack = if flags & ACK == 0 {
        number(3)
    } else {
        peer.wrapping_add(number(3))
    };
    let mut segment = segment(
        client,
        flags,
        own.wrapping_add(number(2)),
        ack,
        number(4),
        number(5) as u16,
    );
    for option in &words[7..] {
        let (name, value) = option.split_once('=').unwrap();
        match name {
            "ws" => segment.options.wscale = Some(value.parse().unwrap()),
            "cut" => segment.options.cut = value == "1",
            _ => segment.options.sack = sack(value, peer),
        }
    }
    let time_ns = (words[6].parse::<f64>().unwrap() * 1e6).round() as i64;
    Line {
        client,
        segment,
        time_ns,
        want: want.trim(),
    }
}

fn sack(value: &str, base: u32) -> Sack {
    let mut sack = Sack::default();
    for block in value.split(',') {
        let (left, right) = block.split_once('-').unwrap();
        let edge = |text: &str| base.wrapping_add(text.parse().unwrap());
        sack.blocks[usize::from(sack.count)] = (edge(left), edge(right));
        sack.count += 1;
    }
    sack
}

pub fn segment(client: bool, flags: u16, seq: u32, ack: u32, len: u32, window: u16) -> Segment<'static> {
    let ends = [(IpAddr::V4(CLIENT), 40_000), (IpAddr::V4(SERVER), 80)];
    let [(src, sport), (dst, dport)] = if client { ends } else { [ends[1], ends[0]] };
    let (options, ip_id) = (Options::default(), Some(1));
    Segment {
        src,
        dst,
        sport,
        dport,
        seq,
        ack,
        flags,
        window,
        len,
        payload: &[],
        options,
        ip_id,
        ttl: 64,
        tos: 0,
    }
}

/// One stream's two directions under analysis.
#[derive(Default)]
pub struct Wire {
    pub client: Flow,
    pub server: Flow,
    pub shared: Shared,
    pub frame: u64,
}

impl Wire {
    pub fn push(&mut self, line: &Line<'_>, reused: bool) -> Facts {
        self.frame += 1;
        let (fwd, rev) = match line.client {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        };
        let mut facts = Facts::default();
        let at = At {
            frame: self.frame,
            time_ns: line.time_ns,
        };
        let mut analysis = Analysis {
            fwd,
            rev,
            shared: &mut self.shared,
            is_reuse: reused,
        };
        analysis.segment(&line.segment, at, &mut facts);
        facts
    }
}

/// Plays a script and compares its facts; the flags that a line wants are complete.
pub fn check(text: &str) {
    check_from([1000, 5000], text);
}

pub fn check_from(isn: [u32; 2], text: &str) {
    let lines = script(text, isn);
    let mut wire = Wire::default();
    for line in &lines {
        let facts = wire.push(line, false);
        let names = flag::NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| facts.flags & 1 << bit != 0);
        let mut got: Vec<String> = names.map(|(_, name)| name.to_string()).collect();
        let (values, flags): (Vec<&str>, Vec<&str>) =
            line.want.split_whitespace().partition(|word| word.contains('='));
        got.extend(values.iter().map(|value| shown(value, &facts)));
        got.sort_unstable();
        let mut want = [flags, values].concat();
        want.sort_unstable();
        assert_eq!(
            got,
            want,
            "frame {} of {} after {isn:?}: {line:?}",
            wire.frame,
            lines.len()
        );
    }
}

/// `name=value` as the facts have it; "-" for none.
fn shown(wanted: &str, facts: &Facts) -> String {
    let or_dash = |value: Option<u64>| value.map_or("-".to_string(), |v| v.to_string());
    let name = wanted.split('=').next().unwrap();
    let value = match name {
        "acks" => or_dash(facts.acks.map(|a| a.0)),
        "rtt" => facts
            .acks
            .map_or("-".to_string(), |a| (a.1 as f64 / 1e6).to_string()),
        "flight" => or_dash(facts.bytes_in_flight.map(u64::from)),
        "push" => or_dash(facts.push_bytes_sent.map(u64::from)),
        "window" => facts.window.to_string(),
        "seq" => facts.seq.to_string(),
        "ack" => facts.ack.to_string(),
        "next" => facts.next_seq.to_string(),
        _ => panic!("no fact is called {name}"),
    };
    format!("{name}={value}")
}

pub const ETHERNET: u32 = 1;

/// A capture file in the making: pcap, little-endian, nanoseconds.
pub struct Capture {
    pub bytes: Vec<u8>,
    ids: [u16; 2],
}

impl Capture {
    pub fn new(link: u32) -> Self {
        let mut bytes = Vec::new();
        for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, link] {
            bytes.extend(word.to_le_bytes());
        }
        Capture { bytes, ids: [0, 0] }
    }

    pub fn record(&mut self, time_ns: i64, frame: &[u8]) {
        let (seconds, nanos) = (
            time_ns.div_euclid(1_000_000_000),
            time_ns.rem_euclid(1_000_000_000),
        );
        for word in [
            seconds as u32,
            nanos as u32,
            frame.len() as u32,
            frame.len() as u32,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(frame);
    }

    /// An Ethernet frame with a TCP segment of the client or the server; `ends` are their ports.
    pub fn tcp(&mut self, time_ns: i64, client: bool, port: u16, numbers: (u16, u32, u32), payload: &[u8]) {
        let id = &mut self.ids[usize::from(client)];
        *id = id.wrapping_add(1);
        let ends = [(CLIENT, port), (SERVER, 80)];
        let (from, to) = if client {
            (ends[0], ends[1])
        } else {
            (ends[1], ends[0])
        };
        let frame = frame(from, to, *id, numbers, payload);
        self.record(time_ns, &frame);
    }
}

type End = (Ipv4Addr, u16);

/// Ethernet, IPv4 and TCP; `numbers` are flags, seq and ack.
pub fn frame(from: End, to: End, id: u16, numbers: (u16, u32, u32), payload: &[u8]) -> Vec<u8> {
    let (flags, seq, ack) = numbers;
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    bytes.extend((40 + payload.len() as u16).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend([0x40, 0, 64, 6, 0, 0]);
    bytes.extend(from.0.octets());
    bytes.extend(to.0.octets());
    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([0x50, flags as u8, 0xfa, 0xf0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}
