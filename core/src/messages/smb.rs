//! SMB 1, 2 and 3 over TCP (MS-CIFS, MS-SMB2), also after the session request of port 139. Each message begins with a
//! zero and a 3-byte length, and holds one command or several compounded ones. One exchange is a command and the
//! response with its message id. STATUS_PENDING is an interim response, and a change notification is a long poll.
//! Command, share or file and NT status are read. From the first encrypted or compressed message on the stream is read
//! in turns.

mod packet;

use std::collections::VecDeque;

use smol_str::{SmolStr, format_smolstr};

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{FirstBytes, Guess, Kind, Listener, Side, Status};
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

/// Upper bound on the entries of each list of `Smb`; beyond it the oldest is dropped.
const MAX_ENTRIES: usize = 256;
/// Upper bound on the commands read of one message; clients compound three or four.
const MAX_COMMANDS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Smb {
    /// Files that are being opened, oldest first: message id of the CREATE, and name.
    opening: VecDeque<(u64, SmolStr)>,
    /// Open files, oldest first: the server's file id, and name.
    files: VecDeque<(u128, SmolStr)>,
    /// Compounded requests, oldest first: message id of their message's first request, and their own.
    compounded: VecDeque<(u64, u64)>,
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match framed::fit::<Smb>(first.side, first.input) {
        Fit::No => Guess::No,
        Fit::Cut if first.input.len() < packet::MIN_PACKET_BYTES => Guess::More,
        _ => Guess::Yes,
    }
}

/// Whether these bytes begin a message of this side.
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

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let packets: Vec<_> = Packet::all(head.bytes).take(MAX_COMMANDS).collect();
        let (mut role, mut file) = (Role::Ignored, None);
        for (index, packet) in packets.iter().enumerate() {
            role = match sink.side() {
                Side::Client => self.read_request(sink, packet, &mut file),
                Side::Server => self.read_response(sink, packet),
            }
            .unwrap_or_default();
            if index + 1 == packets.len() {
                break;
            }
            // `Framed` counts the bytes of the last command, whose role is returned
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
        self.read_compound(sink, &packets);
        role
    }
}

impl Smb {
    /// Keeps which requests were compounded, and ends the exchanges whose responses were not read. The responses are
    /// compounded, too, and those after a long one (READ) stand beyond the bytes that are kept of a message.
    fn read_compound(&mut self, sink: &mut Sink<'_, impl Listener>, packets: &[Packet<'_>]) {
        let [first, others @ ..] = packets else {
            return;
        };
        if sink.side() == Side::Client {
            for other in others {
                push_dropping_oldest(&mut self.compounded, MAX_ENTRIES, (first.number, other.number));
            }
            return;
        }
        if first.is_pending() {
            return;
        }
        let has_more = packets.last().is_some_and(Packet::has_next);
        let mut unread: Vec<u64> = Vec::new();
        self.compounded.retain(|(leader, other)| {
            let is_answered = *leader == first.number;
            if is_answered && has_more && !others.iter().any(|read| read.number == *other) {
                unread.push(*other);
            }
            !is_answered
        });
        if let [other] = unread[..] {
            sink.exchange(other).begin_answer();
            sink.exchange(other).end_answer();
        } else {
            // some of the responses may be in messages of their own
            unread.iter().for_each(|other| sink.exchange(*other).give_up());
        }
    }

    fn read_request(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        packet: &Packet<'_>,
        file: &mut Option<SmolStr>,
    ) -> Option<Role> {
        let (key, method) = (packet.number, packet.command.name(packet)?);
        if key == u64::MAX {
            return None; // a response to the server's own request
        }
        let target = match packet.command {
            Command::CREATE | Command::TREE_CONNECT => packet.name().unwrap_or_default(),
            command if command.is_smb1() => packet.name().unwrap_or_default(),
            _ => self.file(packet, file.as_ref()).unwrap_or_default(),
        };
        if packet.command == Command::CREATE {
            *file = Some(target.clone());
            push_dropping_oldest(&mut self.opening, MAX_ENTRIES, (key, target.clone()));
        }
        let waits = packet.is_long_poll();
        let kind = if waits { Kind::LongPoll } else { Kind::Request };
        sink.exchange(key).request(kind, method, &target);
        Some(Role::Last(key))
    }

    /// Returns the name of the file that a request is about. A file id of all ones stands for the file that the same
    /// message opens.
    fn file(&self, packet: &Packet<'_>, opened: Option<&SmolStr>) -> Option<SmolStr> {
        let id = packet.requested_file()?;
        if id == u128::MAX {
            return opened.cloned();
        }
        let entry = self.files.iter().rev().find(|(file, _)| *file == id);
        entry.map(|(_, name)| name.clone())
    }

    fn read_response(&mut self, sink: &mut Sink<'_, impl Listener>, packet: &Packet<'_>) -> Option<Role> {
        let key = packet.number;
        if key == u64::MAX {
            return Some(Role::push(packet.command.name(packet)?, ""));
        }
        if packet.is_pending() {
            return Some(Role::Interim(key));
        }
        if let Some((_, name)) = take_first(&mut self.opening, |(request, _)| *request == key)
            && packet.status == 0
            && let Some(id) = packet.opened_file()
        {
            push_dropping_oldest(&mut self.files, MAX_ENTRIES, (id, name));
        }
        let text = format_smolstr!("{:#010x}", packet.status);
        let code = u16::try_from(packet.status).ok();
        let status = Status::new(code, Some(&text), packet.is_error());
        sink.exchange(key).answer(status);
        Some(Role::Last(key))
    }
}
