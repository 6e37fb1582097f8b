//! ONC RPC over TCP (RFC 5531) and NFS in it (RFC 1813, RFC 8881). Records of fragments, paired by xid.
//! Reads program and procedure, how a call ended, and NFS' own status; no argument. A server that calls its client
//! (NFSv4.1 callbacks) pushes.

mod programs;

use std::collections::VecDeque;

use smol_str::{SmolStr, format_smolstr};

use super::framed::{self, Fit, Framed, Head, Length, PushedMessage, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::{BySide, Kind, Listener, RequestName, Side, Status};
use crate::cursor::{self, Cursor};
use programs::NFS;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Rpc,
    sniff: |first| framed::sniff_by_id::<Rpc>(first, |_, head| cursor::be32_at(head, 4).map(u64::from)),
    begins_message: |side, first| {
        speaker(first) == Some(side) && framed::fit::<Rpc>(side, first) == Fit::Whole
    },
    begins_inside_turn: |side, first| framed::fit::<Rpc>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Rpc(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Rpc>;

/// A fragment's length, and the bit of its record's last fragment (11).
const MARK: u64 = 4;
const LAST: u32 = 1 << 31;
/// The longest fragment: the most that NFS reads or writes at once, and a head.
const MAX_FRAGMENT: u32 = 1 << 24;
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Callbacks have programs from here on (RFC 5531 13.1: transient).
const TRANSIENT: u32 = 0x4000_0000;
/// The longest credential or verifier (8.2).
const MAX_AUTH: u32 = 400;
/// Calls that may wait; beyond it the oldest is forgotten. Linux has up to 65,536 slots and uses some hundred.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Rpc {
    /// Calls that wait: xid, and whether its answer begins with a status of NFS.
    waiting: VecDeque<(u32, bool)>,
    sides: BySide<Half>,
}

/// One side: the record that goes on in the next fragment.
#[derive(Debug, Default)]
struct Half {
    inside: bool,
    of: Option<u64>,
}

/// The head of a call.
struct Call<'a> {
    program: u32,
    version: u32,
    procedure: u32,
    arguments: Option<Cursor<'a>>,
}

impl<'a> Call<'a> {
    /// Behind xid and direction.
    fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
        let (rpc, program, version, procedure) =
            (cursor.u32be()?, cursor.u32be()?, cursor.u32be()?, cursor.u32be()?);
        let fits = rpc == 2 && version < 256 && procedure < 1024 && program >= 100;
        let mut behind = *cursor;
        let flavour = cursor.u32be();
        fits.then_some(())?;
        flavour.is_none_or(|flavour| flavour < 1 << 20).then_some(())?;
        Some(Call {
            program,
            version,
            procedure,
            arguments: skip_auth(&mut behind)
                .and_then(|()| skip_auth(&mut behind))
                .map(|()| behind),
        })
    }

    fn name(&self) -> (SmolStr, SmolStr) {
        let method = programs::word(self.program, self.version, self.procedure, self.arguments);
        let target = format_smolstr!("{} v{}", self.program, self.version);
        (method, target)
    }
}

/// A credential or verifier.
fn skip_auth(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.u32be()?;
    let len = cursor.u32be().filter(|len| *len <= MAX_AUTH)?;
    cursor.take(len.next_multiple_of(4) as usize).map(drop)
}

/// The sender, by the message's direction.
fn speaker(first: &[u8]) -> Option<Side> {
    let mut cursor = Cursor::new(first);
    cursor.u64be()?;
    match cursor.u32be()? {
        CALL => Call::read(&mut cursor)
            .filter(|call| call.program < TRANSIENT)
            .map(|_| Side::Client),
        REPLY => Some(Side::Server),
        _ => None,
    }
}

impl WireFormat for Rpc {
    const MAX_HEAD: usize = 1024;
    const MIN_PROOF: usize = 28;
    const LOST_REASON: &'static str = "not a record of RPC";

    fn length(&self, _side: Side, first: &[u8]) -> Length {
        match cursor::be32_at(first, 0) {
            None if first
                .first()
                .is_some_and(|first| !matches!(first, 0 | 1 | 0x80 | 0x81)) =>
            {
                Length::Wrong
            }
            None => Length::More,
            Some(mark) if (4..=MAX_FRAGMENT).contains(&(mark & !LAST)) => {
                Length::Is(u64::from(mark & !LAST) + MARK)
            }
            Some(_) => Length::Wrong,
        }
    }

    fn fits(_side: Side, head: Head<'_>) -> bool {
        let mut cursor = Cursor::new(head.bytes);
        let is_last = cursor.u32be().is_none_or(|mark| mark & LAST != 0);
        let long = is_last || head.len > 1024; // nobody cuts small records
        cursor.u32be();
        let is_cut = (head.bytes.len() as u64) < head.len.min(28);
        long && match cursor.u32be() {
            Some(CALL) => head.len >= 44 && (is_cut || Call::read(&mut cursor).is_some()),
            Some(REPLY) => match (cursor.u32be(), cursor.u32be(), cursor.u32be()) {
                (Some(0), Some(flavour), Some(len)) => flavour < 1 << 20 && len <= MAX_AUTH && head.len >= 28,
                (Some(1), Some(why), _) => why <= 1,
                (Some(0..=1) | None, ..) => true,
                _ => false,
            },
            Some(_) => false,
            None => is_cut,
        }
    }

    fn has_magic(_side: Side) -> bool {
        true
    }

    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role {
        let is_last = cursor::be32_at(head.bytes, 0).is_some_and(|mark| mark & LAST != 0);
        let side = sink.side();
        let half = &mut self.sides[side];
        let begins = !std::mem::replace(&mut half.inside, !is_last);
        if begins {
            let role = self
                .record(sink, Cursor::new(cursor::from(head.bytes, 4)))
                .unwrap_or_default();
            let half = &mut self.sides[side];
            half.of = match role {
                Role::Last(key) => Some(key),
                other if is_last => return other,
                _ => None,
            };
        }
        let half = &mut self.sides[side];
        match half.of {
            Some(key) if is_last => Role::Last(key),
            Some(key) => Role::Part(key),
            None => Role::Ignored,
        }
    }

    fn lost(&mut self, side: Side) {
        self.sides[side] = Half::default();
    }
}

impl Rpc {
    fn record(&mut self, sink: &mut MessageSink<'_, impl Listener>, mut record: Cursor<'_>) -> Option<Role> {
        let (xid, direction) = (record.u32be()?, record.u32be()?);
        match (sink.side(), direction) {
            (Side::Client, CALL) => self.asks(sink, xid, &Call::read(&mut record)?),
            (Side::Server, CALL) => {
                let (_, target) = Call::read(&mut record)?.name();
                Some(Role::Push(PushedMessage {
                    method: "callback",
                    target,
                    ..PushedMessage::default()
                }))
            }
            (Side::Server, REPLY) => self.answers(sink, xid, record),
            _ => None,
        }
    }

    fn asks(&mut self, sink: &mut MessageSink<'_, impl Listener>, xid: u32, call: &Call<'_>) -> Option<Role> {
        if self.waiting.iter().any(|(waits, _)| *waits == xid) {
            return None; // the same call again
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting
            .push_back((xid, call.program == NFS && call.procedure > 0));
        let (method, target) = call.name();
        let mut exchange = sink.exchange(u64::from(xid));
        exchange.begin_request(Kind::Request);
        exchange.name(RequestName {
            method: &method,
            target: &target,
            host: "",
        });
        Some(Role::Last(u64::from(xid)))
    }

    fn answers(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        xid: u32,
        mut reply: Cursor<'_>,
    ) -> Option<Role> {
        let place = self.waiting.iter().position(|(waits, _)| *waits == xid)?;
        let (_, is_nfs) = self.waiting.remove(place)?;
        let (code, text) = programs::ends(&mut reply, is_nfs)?;
        let mut exchange = sink.exchange(u64::from(xid));
        exchange.begin_answer();
        exchange.status(Status {
            code: u16::try_from(code).ok(),
            text,
            error: code > 0 || text.is_some(),
        });
        Some(Role::Last(u64::from(xid)))
    }
}
