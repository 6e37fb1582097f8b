//! The Decryption Secrets Block of pcapng: the text of a TLS key log. Hands the text on and does not read it; passes over
//! secrets of other protocols.

use super::{Position, Sink};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};

/// "TLSK", a TLS key log (draft-ietf-opsawg-pcapng, secrets types).
const TLS: u32 = 0x544c_534b;
/// Type and length of the block, type and length of the secrets.
const HEAD: usize = 16;

/// Hands a block's text on; `body` is without its trailing length.
#[cold]
pub(super) fn hand_on<const BIG: bool>(body: &[u8], place: &Position, sink: &mut impl Sink) {
    let Some((head, rest)) = Header::<HEAD>::split(body) else {
        return;
    };
    if head.u32::<BIG, 8>() != TLS {
        return;
    }
    let needed = head.u32::<BIG, 12>();
    if rest.len() < needed as usize {
        let reason = "decryption secrets are shorter than their length";
        let issue = Issue::new(Kind::Skipped, "pcapng", reason).at(place.offset);
        sink.issue(issue.lengths(needed.into(), rest.len() as u64));
    }
    sink.secrets(cursor::upto(rest, needed as usize));
}

/// A block that is too long to be kept.
#[cold]
pub(super) fn too_long(total: u32, longest: u32, place: &Position, sink: &mut impl Sink) {
    let reason = "decryption secrets are beyond the longest block";
    let issue = Issue::new(Kind::Skipped, "pcapng", reason).at(place.offset);
    sink.issue(issue.lengths(total.into(), longest.into()));
}
