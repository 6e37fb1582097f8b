//! What real programs sent (the captures of `tests/cases`), read whole, byte by byte, in halves and with changed bytes:
//! of every reader at once, so that a new one is held to it by its first capture.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use super::super::readers::KNOWN;
use super::cases::FIN;
use super::random::check;
use super::{
    C, FirstBytes, Guess, Memory, Messages, Note, Protocol, S, Side, Stretch, heard, heard_by, short,
};
use crate::capture::{CaptureReader, Record, RecordSink};
use crate::frame::{self, Packet};
use crate::issue::Issue;
use crate::segment::{ACK, SYN};

/// So much of a stream is read here; the readers know no larger unit that matters.
const LONGEST: usize = 20_000;
/// Reading a stream cut at every place of its packets costs their length squared.
const PLACES: usize = 48;
/// Names of a stream that tell whether it is read on.
const MIN_SAMPLES: usize = 9;
/// Changed bytes of each stream.
const CHANGES: usize = 60;
/// No case has a whole stream of them in the clear that is not compressed; they have tests of their own. Of `ftp-data`
/// the bytes alone tell nothing.
const NO_CASE: [&str; 12] = [
    "ssh", "vnc", "rdp", "telnet", "openvpn", "rtsp", "smtp", "ftp", "ftp-data", "pop3", "imap", "dns",
];

/// What both sides said, packet by packet.
type Spoken = Vec<(Side, Vec<u8>)>;

#[derive(Default)]
struct Stream {
    /// Of who sent the SYN.
    client: Option<(IpAddr, u16)>,
    next: [Option<u32>; 2],
    packets: Spoken,
    bytes: usize,
    /// Some bytes are not in the capture, or in another order.
    torn: bool,
}

/// One capture's streams.
#[derive(Default)]
struct Streams(BTreeMap<[(IpAddr, u16); 2], Stream>);

impl RecordSink for Streams {
    fn record(&mut self, record: Record<'_>) {
        let Packet::Tcp(segment) = frame::decode(record.link, record.data, record.original_len) else {
            return;
        };
        let mut ends = [(segment.src, segment.sport), (segment.dst, segment.dport)];
        ends.sort();
        let stream = self.0.entry(ends).or_default();
        let source = (segment.src, segment.sport);
        if segment.has(SYN) {
            let client = if segment.has(ACK) {
                (segment.dst, segment.dport)
            } else {
                source
            };
            // the same ports again are another connection, which is left out here
            stream.torn |= stream.client.is_some_and(|before| before != client) || stream.bytes > 0;
            stream.client = Some(client);
            stream.next[usize::from(client != source)] = Some(segment.seq.wrapping_add(1));
        }
        let Some(client) = stream.client else {
            return; // begun before the capture
        };
        let side = if source == client { C } else { S };
        if segment.payload.is_empty() || stream.torn {
            return;
        }
        let next = stream.next[side.index()].get_or_insert(segment.seq);
        let before = next.wrapping_sub(segment.seq) as i32;
        if before < 0 || segment.payload.len() < segment.len as usize {
            stream.torn = true;
            return;
        }
        let fresh = segment.payload.get(before as usize..).unwrap_or_default();
        if fresh.is_empty() || stream.bytes > LONGEST {
            return;
        }
        *next = next.wrapping_add(fresh.len() as u32);
        stream.bytes += fresh.len();
        stream.packets.push((side, fresh.to_vec()));
    }

    fn issue(&mut self, _: Issue) {}
}

/// Name of the case and what was said, of each stream that begins in its capture.
fn recorded() -> Vec<(String, Spoken)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|case| case.path())
        .collect();
    cases.sort();
    let mut recordings = Vec::new();
    for case in cases {
        for name in ["capture.pcap", "capture.pcapng"] {
            let Ok(bytes) = fs::read(case.join(name)) else {
                continue;
            };
            let (mut reader, mut streams) = (CaptureReader::new(), Streams::default());
            reader.push(&bytes, &mut streams);
            reader.finish(&mut streams);
            let name = case
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // of many alike the first tell as much
            recordings.extend(
                streams
                    .0
                    .into_values()
                    .take(12)
                    .map(|stream| (name.clone(), stream.packets)),
            );
        }
    }
    recordings.retain(|(_, packets)| !packets.is_empty());
    recordings
}

fn pieces<'a>(
    packets: &'a [(Side, Vec<u8>)],
    cut: impl Fn(&'a [u8]) -> Vec<&'a [u8]>,
) -> impl Iterator<Item = (Side, Stretch<'a>)> {
    packets.iter().flat_map(move |(side, bytes)| {
        let cut = cut(bytes).into_iter().filter(|piece| !piece.is_empty());
        cut.map(|piece| (*side, Stretch::Bytes(piece)))
    })
}

fn halves(bytes: &[u8], at: usize) -> Vec<&[u8]> {
    let (first, last) = bytes.split_at(at);
    vec![first, last]
}

#[test]
fn recorded_streams_read_the_same_however_they_are_cut() {
    let mut spoken = Vec::new();
    for (name, packets) in recorded() {
        let uncut = heard(pieces(&packets, |bytes| vec![bytes]), FIN);
        check(&uncut.list);
        // turns are what one packet brings, and say no more
        if uncut.protocols.contains(&Protocol::Turns) {
            continue;
        }
        spoken.extend(uncut.protocols.iter().map(|protocol| protocol.word()));
        let wanted = short(&uncut.list);
        let single = heard(pieces(&packets, |bytes| bytes.chunks(1).collect()), FIN);
        assert_eq!(short(&single.list), wanted, "{name}, byte by byte");
        for offset in 1..PLACES {
            let begins = heard(
                pieces(&packets, |bytes| halves(bytes, offset.min(bytes.len()))),
                FIN,
            );
            assert_eq!(short(&begins.list), wanted, "{name}, cut at {offset}");
            let ends = pieces(&packets, |bytes| {
                halves(bytes, bytes.len().saturating_sub(offset))
            });
            let ends = heard(ends, FIN);
            assert_eq!(short(&ends.list), wanted, "{name}, cut {offset} before each end");
        }
    }
    let words = KNOWN.iter().map(|entry| entry.protocol.word());
    let silent: Vec<_> = words
        .filter(|word| !spoken.contains(word) && !NO_CASE.contains(word))
        .collect();
    assert_eq!(silent, [""; 0], "protocols that are read, and have no case");
}

/// Counts the requests and pushes that have a name.
fn count_names(notes: &[Note]) -> usize {
    let is_named = |note: &&Note| {
        matches!(
            note,
            Note::Request { .. }
                | Note::Keyed {
                    event: super::ExchangeEvent::RequestName(_),
                    ..
                }
                | Note::Push(_)
        )
    };
    notes.iter().filter(is_named).count()
}

#[test]
fn recorded_streams_are_read_on_behind_a_hole() {
    let mut given_up = Vec::new();
    for (name, packets) in recorded() {
        let uncut = heard(pieces(&packets, |bytes| vec![bytes]), FIN);
        let name_count = count_names(&uncut.list);
        if name_count < MIN_SAMPLES || uncut.protocols.contains(&Protocol::Turns) {
            continue;
        }
        for side in [C, S] {
            let hole = (packets.len() / 3..packets.len()).find(|at| packets[*at].0 == side);
            let torn = pieces(&packets, |bytes| vec![bytes])
                .enumerate()
                .map(|(at, (side, piece))| {
                    let missing = Stretch::Missing(piece.len());
                    (side, if Some(at) == hole { missing } else { piece })
                });
            let torn = heard(torn, FIN);
            check(&torn.list);
            let torn_count = count_names(&torn.list);
            if torn_count * 3 < name_count * 2 {
                given_up.push(format!("{name} {side:?} {torn_count} of {name_count}"));
            }
        }
    }
    assert_eq!(given_up, [""; 0], "names told with one packet missing");
}

#[test]
fn recorded_streams_with_a_changed_byte_keep_the_grammar() {
    for (_, mut packets) in recorded() {
        let total = packets.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        for change in 0..CHANGES {
            let offset = change * 7919 % total;
            let before = replace_byte(&mut packets, offset, (change * 37) as u8);
            check(&heard(pieces(&packets, |bytes| vec![bytes]), FIN).list);
            replace_byte(&mut packets, offset, before);
        }
    }
}

/// Sets the byte at this offset of all bytes of a stream. Returns the byte before.
fn replace_byte(packets: &mut Spoken, offset: usize, byte: u8) -> u8 {
    let mut all_bytes = packets.iter_mut().flat_map(|(_, bytes)| bytes);
    let changed = all_bytes.nth(offset).expect("an offset within the stream");
    std::mem::replace(changed, byte)
}

/// What a client and a server sent first, as far as a reader looks.
const LOOKED: usize = 512;

#[test]
fn no_reader_takes_what_another_protocol_said() {
    let mut taken = Vec::new();
    for (name, packets) in recorded() {
        let protocols = heard(pieces(&packets, |bytes| vec![bytes]), FIN).protocols;
        let first = |side| packets.iter().find(|(whose, _)| *whose == side);
        let [Some((_, client)), Some((_, server))] = [C, S].map(first) else {
            continue;
        };
        let cut = |bytes: &'_ Vec<u8>| bytes[..bytes.len().min(LOOKED)].to_vec();
        let (client, server, began) = (cut(client), cut(server), packets[0].0);
        let (opening, answer) = if began == C {
            (&client, &server)
        } else {
            (&server, &client)
        };
        let mut takers = sure(began, opening, b"", began);
        // what the first words settle is not asked again
        if takers.is_empty() {
            takers = sure(began.other(), answer, opening, began);
        }
        let others = takers.into_iter().filter(|taker| !protocols.contains(taker));
        taken.extend(others.map(|other| format!("{name}: {protocols:?} as {}", other.word())));
    }
    assert_eq!(taken, [""; 0]);
}

/// What the two sides of a recorded stream said first, and what it is.
type Opening = (String, Vec<Protocol>, Side, [Vec<u8>; 2]);

/// One of each set of protocols.
fn openings() -> Vec<Opening> {
    let mut openings: Vec<Opening> = Vec::new();
    for (name, packets) in recorded() {
        let protocols = heard(pieces(&packets, |bytes| vec![bytes]), FIN).protocols;
        let first = [C, S].map(|side| {
            let bytes = packets
                .iter()
                .find(|(whose, _)| *whose == side)
                .map(|(_, bytes)| bytes);
            bytes
                .map(|bytes| bytes[..bytes.len().min(LOOKED)].to_vec())
                .unwrap_or_default()
        });
        let is_new = !openings
            .iter()
            .any(|(_, of_before, began, _)| (of_before, *began) == (&protocols, packets[0].0));
        // a file on a data connection may look like anything
        let tells = ![Protocol::Turns, Protocol::FtpData]
            .iter()
            .any(|other| protocols.contains(other));
        if tells && is_new && first.iter().all(|bytes| !bytes.is_empty()) {
            openings.push((name, protocols, packets[0].0, first));
        }
    }
    openings
}

/// Who is sure of these bytes, `side` speaking last.
fn sure(side: Side, input: &[u8], other: &[u8], began: Side) -> Vec<Protocol> {
    let first = FirstBytes {
        side,
        input,
        other,
        began,
    };
    KNOWN
        .iter()
        .filter(|entry| (entry.sniff)(&first) == Guess::Yes)
        .map(|entry| entry.protocol)
        .collect()
}

#[test]
fn no_reader_is_sure_of_the_beginning_of_another_protocol_s_bytes() {
    let mut taken = Vec::new();
    for (name, protocols, began, first) in openings() {
        let (opening, answer) = (&first[began.index()], &first[began.other().index()]);
        for end in 1..=opening.len() {
            taken.extend(
                sure(began, &opening[..end], b"", began)
                    .into_iter()
                    .map(|taker| (taker, end)),
            );
        }
        if taken.is_empty() {
            for end in 1..=answer.len() {
                taken.extend(
                    sure(began.other(), &answer[..end], opening, began)
                        .into_iter()
                        .map(|taker| (taker, end)),
                );
            }
        }
        taken.retain(|(taker, _)| !protocols.contains(taker));
        assert_eq!(taken, [], "{name}: {protocols:?}");
    }
}

#[test]
fn of_two_protocols_that_meet_no_third_is_recognised() {
    let openings = openings();
    for (name, protocols, began, first) in &openings {
        let opening = &first[began.index()];
        if !sure(*began, opening, b"", *began).is_empty() {
            continue; // it is one of theirs
        }
        for (other, other_protocols, speaks, second) in &openings {
            let answer = &second[began.other().index()];
            let taken: Vec<_> = sure(began.other(), answer, opening, *began)
                .into_iter()
                .filter(|taker| !protocols.contains(taker) && !other_protocols.contains(taker))
                .collect();
            assert_eq!(taken, [], "{name} answered as {other} ({speaks:?} began)");
        }
    }
}

/// Of a stream of another protocol a reader has so many names at most before it gives up.
const FEW: usize = 3;
/// Any bytes may follow in the first six; the others take any line for a command, and are known by both sides' first
/// ones.
const TAKES_ALL: [&str; 12] = [
    "ssh",
    "vnc",
    "rdp",
    "telnet",
    "openvpn",
    "ftp-data",
    "memcached",
    "pop3",
    "ftp",
    "smtp",
    "imap",
    "redis",
];

#[test]
fn every_reader_gives_back_what_is_none_of_its_protocol() {
    let mut kept = Vec::new();
    let recordings: Vec<_> = recorded()
        .into_iter()
        .map(|(name, packets)| {
            (
                name,
                heard(pieces(&packets, |bytes| vec![bytes]), FIN).protocols,
                packets,
            )
        })
        .filter(|(_, protocols, _)| !protocols.contains(&Protocol::Turns))
        .collect();
    // one reader has both
    let is_iso = |protocol: &Protocol| matches!(protocol, Protocol::S7 | Protocol::Mms);
    for (number, entry) in KNOWN.iter().enumerate() {
        let word = entry.protocol.word();
        for (name, protocols, packets) in &recordings {
            let is_own = protocols.contains(&entry.protocol)
                || is_iso(&entry.protocol) && protocols.iter().any(is_iso);
            if is_own || TAKES_ALL.contains(&word) {
                continue;
            }
            let messages = Messages::with_protocol_number(number, &mut Memory::default());
            let notes = heard_by(messages, pieces(packets, |bytes| vec![bytes]), FIN);
            if notes.protocols.iter().any(|read| protocols.contains(read)) {
                continue; // what does not begin as a tunnel is read as what it is
            }
            let notes = notes.list;
            let given_back = notes.iter().position(|note| matches!(note, Note::Lost { .. }));
            let named = count_names(&notes[..given_back.unwrap_or(notes.len())]);
            if named > FEW {
                kept.push(format!("{name} {protocols:?} as {word}: {named}, {given_back:?}"));
            }
        }
    }
    assert_eq!(kept, [""; 0]);
}
