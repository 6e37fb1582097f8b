//! SMB1, 2 and 3 over TCP (MS-CIFS, MS-SMB2), also behind a session's request on port 139. Several commands in one message, each with its
//! number; "pending" is no answer, a change notification waits for an event. Reads command, share or file, and the
//! NT status. What is sealed or compressed cannot be read: from there on the stream is turns.

mod packet;

use smol_str::{SmolStr, format_smolstr};

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status};
use packet::{Command, Packet};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Smb,
    sniff,
    begins_message: fits,
    begins_inside_turn: fits,
    reader: |_| AnyReader::Smb(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Smb>;

/// Files whose names are remembered while they are open, and while they are opened.
const MAX_FILES: usize = 256;
/// Commands in one message that get notes; clients join three or four.
const MAX_COMMANDS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Smb {
    /// By number of the request: what is being opened, oldest first.
    opening: Vec<(u64, SmolStr)>,
    /// By the server's number for them: what is open, oldest first.
    files: Vec<(u128, SmolStr)>,
    /// Requests behind the first of their message, with that one's number, oldest first.
    joined: Vec<(u64, u64)>,
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Smb>(first.side, first.input) {
        Fit::No => Guess::No,
        Fit::Cut if first.input.len() < packet::MIN_PACKET_BYTES => Guess::More,
        _ => Guess::Yes,
    }
}

/// Bytes with the mark of a message, and its sender.
fn fits(side: Side, first: &[u8]) -> bool {
    first.len() >= packet::MIN_PACKET_BYTES && framed::fit::<Smb>(side, first) != Fit::No
}

impl WireFormat for Smb {
    const MAX_HEAD: usize = 2048;
    const MIN_PROOF: usize = packet::MIN_PACKET_BYTES;
    const LOST_REASON: &'static str = "not a message of SMB, or one that is sealed";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        packet::length(first)
    }

    fn fits(side: Side, head: Head<'_>) -> bool {
        packet::fits(side, head.bytes)
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let packets: Vec<_> = Packet::all(head.bytes).take(MAX_COMMANDS).collect();
        let (mut role, mut file) = (Role::Ignored, None);
        for (place, packet) in packets.iter().enumerate() {
            role = match sink.side() {
                Side::Client => self.asks(sink, packet, &mut file),
                Side::Server => self.answers(sink, packet),
            }
            .unwrap_or_default();
            if place + 1 == packets.len() {
                break;
            }
            // the last command's bytes are counted by who reads them
            let bytes = packet.bytes.len() as u64;
            match role {
                Role::Last(key) if sink.side() == Side::Client => {
                    sink.exchange(key).count(bytes);
                    sink.exchange(key).end_request();
                }
                Role::Last(key) => {
                    sink.exchange(key).piece(bytes);
                    sink.exchange(key).end_answer();
                }
                Role::Interim(key) => sink.exchange(key).interim(),
                _ => {}
            }
        }
        self.joins(sink, &packets);
        role
    }

    fn lost(&mut self, _side: Side) {}
}

impl Smb {
    /// Remembers which requests came in one message. Their answers come in one, too: what stands behind a long one
    /// is not read, but it is there.
    fn joins(&mut self, sink: &mut MessageSink<'_, impl Listener>, packets: &[Packet<'_>]) {
        let [first, others @ ..] = packets else {
            return;
        };
        if sink.side() == Side::Client {
            (others.iter()).for_each(|other| remember(&mut self.joined, (first.number, other.number)));
            return;
        }
        if first.is_pending() {
            return;
        }
        let more = packets.last().is_some_and(Packet::is_joined);
        let mut unread: Vec<u64> = Vec::new();
        self.joined.retain(|(of, other)| {
            let mine = *of == first.number;
            if mine && more && !others.iter().any(|read| read.number == *other) {
                unread.push(*other);
            }
            !mine
        });
        if let [other] = unread[..] {
            sink.exchange(other).begin_answer();
            sink.exchange(other).end_answer();
        } else {
            // some may come in a message of their own
            (unread.iter()).for_each(|other| sink.exchange(*other).give_up());
        }
    }

    fn asks(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        packet: &Packet<'_>,
        file: &mut Option<SmolStr>,
    ) -> Option<Role> {
        let (key, method) = (packet.number, packet.command.word(packet)?);
        if key == u64::MAX {
            return None; // agrees to the server's request
        }
        let target = match packet.command {
            Command::CREATE | Command::TREE_CONNECT => packet.name().unwrap_or_default(),
            command if command.is_old() => packet.name().unwrap_or_default(),
            _ => self.file(packet, file.as_ref()).unwrap_or_default(),
        };
        if packet.command == Command::CREATE {
            *file = Some(target.clone());
            remember(&mut self.opening, (key, target.clone()));
        }
        let mut exchange = sink.exchange(key);
        exchange.begin_request(if packet.waits() {
            Kind::LongPoll
        } else {
            Kind::Request
        });
        exchange.name(RequestName {
            method,
            target: &target,
            host: "",
        });
        Some(Role::Last(key))
    }

    /// The name of the file that a request is about; a number of ones stands for the file that the same message opens.
    fn file(&self, packet: &Packet<'_>, opened: Option<&SmolStr>) -> Option<SmolStr> {
        let id = packet.requested_file()?;
        if id == u128::MAX {
            return opened.cloned();
        }
        let known = self.files.iter().rev().find(|(of, _)| *of == id);
        known.map(|(_, name)| name.clone())
    }

    fn answers(&mut self, sink: &mut MessageSink<'_, impl Listener>, packet: &Packet<'_>) -> Option<Role> {
        let key = packet.number;
        if key == u64::MAX {
            return Some(Role::Push(PushedMessage {
                method: packet.command.word(packet)?,
                ..PushedMessage::default()
            }));
        }
        if packet.is_pending() {
            return Some(Role::Interim(key));
        }
        if let Some(place) = self.opening.iter().position(|(of, _)| *of == key) {
            let (_, name) = self.opening.remove(place);
            let file = packet.opened_file().filter(|_| packet.status == 0);
            file.into_iter()
                .for_each(|id| remember(&mut self.files, (id, name.clone())));
        }
        let text = format_smolstr!("{:#010x}", packet.status);
        let mut exchange = sink.exchange(key);
        exchange.begin_answer();
        exchange.status(Status {
            code: u16::try_from(packet.status).ok(),
            text: Some(&text),
            error: packet.failed(),
        });
        Some(Role::Last(key))
    }
}

fn remember<T>(list: &mut Vec<T>, entry: T) {
    if list.len() >= MAX_FILES {
        list.remove(0);
    }
    list.push(entry);
}
