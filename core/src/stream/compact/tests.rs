//! A stream that rested gives the same rows as one that did not, and takes little memory.

use std::mem::size_of;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::base::Side;
use crate::segment::{ACK, FIN, PSH};
use crate::stream::{Event, Rows, Streams};

const MOST_CLOSED: usize = 714;
/// What the allocator takes beside each piece of memory.
const PIECE: usize = 16;
/// A stream's place in the table of all streams, and that of its ends in the index, both half empty.
const PLACES: usize = 2 * (16 + 9);

#[test]
fn streams_without_data_and_closed_ones_are_small() {
    let syns =
        |packets: usize| size_of::<SynsOnly>() + PIECE + packets * size_of::<SynPacket>() + PIECE + PLACES;
    assert!(syns(1) <= 256, "{}", syns(1));
    assert!(syns(4) <= 512, "{}", syns(4));
    let closed = size_of::<Closed>() + PIECE + PLACES;
    assert!(closed <= MOST_CLOSED, "{closed}");
}

#[test]
fn streams_with_data_leave_half_of_their_room_to_their_messages() {
    let live = size_of::<Stream>() + size_of::<crate::exchange::Tracker>();
    assert!(live <= 3584, "{live}");
}

/// A packet to come: who sends it, what, and how long after the one before.
type Drawn = (bool, u8, u8, bool);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((any::<bool>(), 0u8..24, 0u8..4, any::<bool>()), 1..40)
}

#[derive(Default)]
struct Told(Vec<String>);

impl Rows for Told {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(format!("{event:?}"));
    }
}

/// Returns what a capture of these packets gives. `rests`: streams may rest; `cut`: a RST ends them at once.
fn read(packets: &[Drawn], rests: bool, cut: bool) -> Vec<String> {
    let host = |last: u8| IpAddr::from([10, 0, 0, last]);
    let (mut streams, mut read) = (Streams::default(), Told::default());
    streams.store.max_compactable = if rests { 0 } else { usize::MAX };
    streams.store.max_cut = if cut { 0 } else { usize::MAX };
    let mut next = [1000u32, 5000];
    let mut sent: Vec<Segment<'static>> = Vec::new();
    for (number, (from_client, kind, wait, stamped)) in packets.iter().enumerate() {
        let at = At {
            frame: number as u64 + 1,
            time_ns: number as i64 * 30_000_000 * i64::from(*wait),
        };
        let [client, server] = next;
        let (own, peer) = if *from_client {
            (client, server)
        } else {
            (server, client)
        };
        let payload: &'static [u8] = b"GET / HTTP/1.1\r\n\r\n";
        let (flags, len) = match kind {
            0..4 => (SYN, 0),
            4..7 => (SYN | ACK, 0),
            7..10 => (ACK, 0),
            10..13 => (ACK | PSH, payload.len()),
            13..16 => (ACK | FIN, 0),
            16 => (RST, 0),
            17 => (RST | ACK, 0),
            _ => (0, 0),
        };
        let (src, dst) = if *from_client { (1, 2) } else { (2, 1) };
        let mut segment = Segment {
            src: host(src),
            dst: host(dst),
            sport: if *from_client { 40_000 } else { 80 },
            dport: if *from_client { 80 } else { 40_000 },
            seq: own,
            ack: if flags & ACK != 0 { peer } else { 0 },
            flags,
            window: 1000,
            len: len as u32,
            payload: payload.get(..len).unwrap_or_default(),
            options: Options {
                timestamps: stamped.then_some((number as u32, 7)),
                mss: (flags & SYN != 0).then_some(1400),
                ..Options::default()
            },
            ip_id: Some(number as u16),
            ttl: number as u8,
            tos: 0,
        };
        match kind {
            18 => segment.flags = SYN, // of another connection on the same ports
            19 => {
                streams.quoted(&segment, at);
                continue;
            }
            _ if flags == 0 => match sent.get(usize::from(*wait) * 7 % sent.len().max(1)) {
                Some(before) => segment = *before, // late
                None => continue,
            },
            _ => {}
        }
        if *kind == 18 {
            segment.seq = segment.seq.wrapping_add(100_000);
        }
        sent.push(segment);
        let taken = segment.len + u32::from(segment.flags & (SYN | FIN) != 0);
        let [client, server] = &mut next;
        let own = if segment.sport == 80 { server } else { client };
        *own = segment.seq.wrapping_add(taken);
        streams.segment(&segment, at, 60, &mut read);
    }
    let end = At {
        frame: 1000,
        time_ns: 1 << 40,
    };
    let mut all = std::mem::take(&mut streams.retired);
    for id in 0..streams.len() as u32 {
        streams.end(id, end);
        all.extend(streams.take(id).map(|stream| (id, stream)));
    }
    for (id, stream) in all {
        let setup = streams
            .setup(id, &stream, None)
            .map(|(exchange, paths)| format!("{exchange:?} {paths:?}"));
        let windows = Side::BOTH.map(|side| stream.window_min(side));
        let told_of = (
            stream.completeness(),
            stream.initial_rtt(),
            stream.ending(),
            windows,
        );
        let who = (
            stream.client(),
            stream.roles_by,
            stream.closed_by,
            stream.first,
            stream.last,
        );
        let rest = (
            &stream.counts,
            stream.rtts_ns,
            stream.timestamps,
            stream.reused,
            &stream.syns,
        );
        let mut so_far = stream.tracking.read_so_far();
        so_far.is_cut = false;
        if stream.closed_by.is_some() {
            so_far.begun.greeted = None; // what a server had begun to say may be a greeting whose end a RST has cut
        }
        read.0
            .push(format!("{id} {told_of:?} {who:?} {rest:?} {so_far:?} {setup:?}"));
    }
    read.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn streams_that_rest_tell_what_others_tell(packets in drawn()) {
        prop_assert_eq!(read(&packets, true, false), read(&packets, false, false));
    }

    /// Behind the first RST come no data, and no FIN, which would end what the RST has cut.
    #[test]
    fn streams_that_a_rst_ended_tell_what_others_tell(packets in drawn(), more in drawn()) {
        let reset = (true, 17, 1, true);
        let bare = more.into_iter().filter(|(_, kind, ..)| !(10..16).contains(kind) && *kind < 18);
        let packets: Vec<Drawn> = packets.into_iter().filter(|(_, kind, ..)| !(16..18).contains(kind))
            .chain([reset]).chain(bare).collect();
        prop_assert_eq!(read(&packets, true, true), read(&packets, false, false));
    }
}

/// A whole connection, then each of its packets again, late.
#[test]
fn late_packets_of_a_closed_stream_tell_what_they_would_have_told() {
    let connection = [
        (true, 0, 1, true),
        (false, 4, 1, true),
        (true, 7, 1, true),
        (true, 10, 1, true),
        (false, 10, 1, true),
        (true, 7, 1, true),
        (false, 13, 1, true),
        (true, 13, 1, true),
        (false, 7, 1, true),
    ];
    let late = (0..12).map(|wait| (true, 23, wait % 4, true));
    let packets: Vec<Drawn> = connection.into_iter().chain(late).collect();
    let with_rest = read(&packets, true, false);
    assert_eq!(with_rest, read(&packets, false, false));
    assert!(
        with_rest.iter().any(|row| row.contains("software")),
        "the stream's row is there"
    );
}

/// A request, its answer, a RST; then a request and its answer again, of programs that did not accept the RST.
#[test]
fn a_stream_that_goes_on_behind_a_rst_is_read_on() {
    let turn = [(true, 10, 1, true), (false, 10, 1, true), (true, 7, 1, true)];
    let shake = [(true, 0, 1, true), (false, 4, 1, true), (true, 7, 1, true)];
    let reset = [(false, 17, 1, true)];
    let packets: Vec<Drawn> = [&shake[..], &turn, &reset, &turn].concat();
    let rows = read(&packets, true, true);
    assert!(
        rows.iter().any(|row| row.contains("exchange_count: 2,")),
        "{:?}",
        rows.last()
    );
}

/// Of the streams that a RST ended the newest are kept whole: what was on its way comes yet.
#[test]
fn a_stream_is_let_go_when_enough_others_were_reset() {
    let (mut streams, mut read) = (Streams::default(), Told::default());
    let payload: &'static [u8] = b"GET / HTTP/1.1\r\n\r\n";
    let many = 1030u16;
    for port in 0..many {
        for (flags, seq, from_client) in [
            (SYN, 0u32, true),
            (SYN | ACK, 0, false),
            (ACK | PSH, 1, true),
            (ACK, 1, false),
            (RST | ACK, 1, false),
        ] {
            let data = if flags & PSH != 0 { payload } else { &[] };
            let mut segment = Segment {
                src: IpAddr::from([10, 0, 0, 1]),
                dst: IpAddr::from([10, 0, 0, 2]),
                sport: 20_000 + port,
                dport: 80,
                seq,
                ack: if from_client { 1 } else { 1 + payload.len() as u32 },
                flags,
                window: 1000,
                len: data.len() as u32,
                payload: data,
                options: Options::default(),
                ip_id: None,
                ttl: 0,
                tos: 0,
            };
            if !from_client {
                std::mem::swap(&mut segment.src, &mut segment.dst);
                std::mem::swap(&mut segment.sport, &mut segment.dport);
            }
            let at = At {
                frame: u64::from(port) + 1,
                time_ns: i64::from(port),
            };
            streams.segment(&segment, at, 60, &mut read);
        }
    }
    let live = |id: u32| streams.store.is_followed(id);
    assert!(
        !live(0) && live(u32::from(many) - 1),
        "the oldest rests, the newest does not"
    );
    assert_eq!((0..u32::from(many)).filter(|id| live(*id)).count(), 1024);
}
