//! ONC RPC over TCP (RFC 5531) and NFS in it (RFC 1813, RFC 8881). A message is a record of fragments, each after a
//! 4-byte length. One exchange is a call and the reply with its xid. The reader takes program, procedure and status,
//! also NFS' own, but no arguments. Calls of a server (NFSv4.1 callbacks) are pushes.

mod programs;

use std::collections::VecDeque;

use smol_str::{SmolStr, format_smolstr};

use super::framed::{self, Fit, Framed, Head, Length, Role, WireFormat};
use super::pending_queue::{push_dropping_oldest, take_first};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Kind, Listener, Side, Status};
use crate::cursor::{self, Cursor};
use programs::NFS;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Rpc,
    sniff: |first| framed::sniff_by_id::<Rpc>(first, |_, head| cursor::be32_at(head, 4).map(u64::from)),
    begins_message: |side, first| {
        sender(first) == Some(side) && framed::fit::<Rpc>(side, first) == Fit::Whole
    },
    begins_inside_turn: |side, first| framed::fit::<Rpc>(side, first) == Fit::Whole,
    reader: |_| AnyReader::Rpc(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<Rpc>;

/// Bytes of the record mark, a fragment's length (RFC 5531 11).
const MARK: u64 = 4;
/// Bit of the record mark: the fragment is its record's last.
const LAST: u32 = 1 << 31;
/// Upper bound on a fragment: well above the 1 MiB that NFS reads or writes at once.
const MAX_FRAGMENT: u32 = 1 << 24;
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Lowest transient program number (RFC 5531 13.1), as callbacks have.
const TRANSIENT: u32 = 0x4000_0000;
/// Upper bound on a credential or verifier (RFC 5531 8.2).
const MAX_AUTH: u32 = 400;
/// Upper bound on calls without a reply; beyond it the oldest is dropped. Linux has up to 65,536 slots and uses some
/// hundred.
const MAX_WAITING: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Rpc {
    /// Calls without a reply, oldest first: xid, and whether the reply will have a status of NFS.
    waiting: VecDeque<(u32, bool)>,
    sides: BySide<Half>,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    /// The next fragment continues a record.
    is_inside_record: bool,
    /// Key of that record's exchange; None if it is none.
    key: Option<u64>,
}

/// The header of a call.
struct Call<'a> {
    program: u32,
    version: u32,
    procedure: u32,
    /// None if the header is cut before them.
    arguments: Option<Cursor<'a>>,
}

impl<'a> Call<'a> {
    /// Reads a call after its xid and message type.
    fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
        let (rpc, program, version, procedure) =
            (cursor.u32be()?, cursor.u32be()?, cursor.u32be()?, cursor.u32be()?);
        let fits = rpc == 2 && version < 256 && procedure < 1024 && program >= 100;
        let mut arguments = *cursor;
        let flavour = cursor.u32be();
        (fits && flavour.is_none_or(|flavour| flavour < 1 << 20)).then_some(())?;
        // credential and verifier precede the arguments
        let skipped = skip_auth(&mut arguments).and_then(|()| skip_auth(&mut arguments));
        Some(Call {
            program,
            version,
            procedure,
            arguments: skipped.map(|()| arguments),
        })
    }

    /// The procedure, and the program with its version.
    fn method_and_target(&self) -> (SmolStr, SmolStr) {
        let method = programs::procedure(self.program, self.version, self.procedure, self.arguments);
        let target = format_smolstr!("{} v{}", self.program, self.version);
        (method, target)
    }
}

/// Skips a credential or a verifier.
fn skip_auth(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.u32be()?;
    let len = cursor.u32be().filter(|len| *len <= MAX_AUTH)?;
    cursor.take(len.next_multiple_of(4) as usize).map(drop)
}

/// Returns the sender of a message, by its type.
fn sender(first: &[u8]) -> Option<Side> {
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
        let is_large = is_last || head.len > 1024; // only large records are sent in fragments
        cursor.u32be();
        let is_cut = (head.bytes.len() as u64) < head.len.min(28);
        if !is_large {
            return false;
        }
        match cursor.u32be() {
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

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let is_last = cursor::be32_at(head.bytes, 0).is_some_and(|mark| mark & LAST != 0);
        let side = sink.side();
        let half = &mut self.sides[side];
        let is_first = !std::mem::replace(&mut half.is_inside_record, !is_last);
        if is_first {
            let role = self
                .record(sink, Cursor::new(cursor::from(head.bytes, 4)))
                .unwrap_or_default();
            let half = &mut self.sides[side];
            half.key = match role {
                Role::Last(key) => Some(key),
                other if is_last => return other,
                _ => None,
            };
        }
        let half = &mut self.sides[side];
        match half.key {
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
    /// Reads a record's first fragment.
    fn record(&mut self, sink: &mut Sink<'_, impl Listener>, mut record: Cursor<'_>) -> Option<Role> {
        let (xid, direction) = (record.u32be()?, record.u32be()?);
        match (sink.side(), direction) {
            (Side::Client, CALL) => self.read_call(sink, xid, &Call::read(&mut record)?),
            (Side::Server, CALL) => {
                let (_, target) = Call::read(&mut record)?.method_and_target();
                Some(Role::push("callback", target))
            }
            (Side::Server, REPLY) => self.read_reply(sink, xid, record),
            _ => None,
        }
    }

    fn read_call(&mut self, sink: &mut Sink<'_, impl Listener>, xid: u32, call: &Call<'_>) -> Option<Role> {
        if self.waiting.iter().any(|(waiting, _)| *waiting == xid) {
            return None; // the client repeats the call
        }
        let is_nfs = call.program == NFS && call.procedure > 0;
        push_dropping_oldest(&mut self.waiting, MAX_WAITING, (xid, is_nfs));
        let (method, target) = call.method_and_target();
        sink.exchange(u64::from(xid))
            .request(Kind::Request, &method, &target);
        Some(Role::Last(u64::from(xid)))
    }

    fn read_reply(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        xid: u32,
        mut reply: Cursor<'_>,
    ) -> Option<Role> {
        let (_, is_nfs) = take_first(&mut self.waiting, |(waiting, _)| *waiting == xid)?;
        let (code, text) = programs::status(&mut reply, is_nfs)?;
        let status = Status::new(u16::try_from(code).ok(), text, code > 0 || text.is_some());
        sink.exchange(u64::from(xid)).answer(status);
        Some(Role::Last(u64::from(xid)))
    }
}
