//! How a reader of packets ends: in TLS, or lost.

use super::readers::AnyReader;
use super::sink::MessageSink;
use super::{Listener, Read, Stretch, tls};

/// Why it does not go on, and what is not read.
pub(super) enum Left<'a> {
    /// `None`: nothing of the stretch was read.
    Lost(&'static str, Option<&'a [u8]>),
    /// TLS follows, from both sides.
    Encrypted(&'a [u8]),
}

/// What a reader says of this stretch.
pub(super) fn read<'a>(
    read: Result<(), Left<'a>>,
    sink: &mut MessageSink<'_, impl Listener>,
    stretch: Stretch<'a>,
) -> Read<'a> {
    match read {
        Ok(()) => Read::All,
        Err(Left::Encrypted(rest)) => {
            Read::Switch(AnyReader::Tls(Box::<tls::Tls>::default()), Stretch::Bytes(rest))
        }
        Err(Left::Lost(reason, rest)) => {
            sink.lost(reason);
            Read::Lost(rest.map_or(stretch, Stretch::Bytes))
        }
    }
}
