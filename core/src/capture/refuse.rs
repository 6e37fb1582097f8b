//! Files that are not captures: turns their first bytes into a `Refused` issue with the format that they look like.

use std::fmt::Write;

use super::{netmon, pcap, pcapng};
use crate::cursor;
use crate::issue::{Issue, Kind};

/// Number of bytes read before a file of unknown format is refused.
pub(super) const SNIFF_BYTES: usize = 16;

/// Magic numbers of other file formats, from their specifications.
const MAGICS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "it looks like gzip"),
    (b"\x28\xb5\x2f\xfd", "it looks like zstd"),
    (b"\x04\x22\x4d\x18", "it looks like lz4"),
    (b"BZh", "it looks like bzip2"),
    (b"\xfd7zXZ\0", "it looks like xz"),
    (b"PK\x03\x04", "it looks like zip"),
    (b"TRSNIFF data", "it looks like a Sniffer capture"),
    (b"PAR1", "it looks like parquet"),
    (b"\x1c\x00\x01\xac", "it looks like an Ixia lcap capture"),
    (b"\xac\x01\x00\x1c", "it looks like an Ixia lcap capture"),
    (b"\x1c\x00\x01\xab", "it looks like an Ixia lcap capture"),
    (b"\xab\x01\x00\x1c", "it looks like an Ixia lcap capture"),
];

/// Describes a file whose format is not readable.
pub(super) fn unknown(bytes: &[u8]) -> Issue {
    let bytes = cursor::upto(bytes, SNIFF_BYTES);
    let text = |byte: &u8| matches!(byte, 0x20..=0x7e | b'\t' | b'\r' | b'\n');
    let magic = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic));
    let detail = match magic {
        Some((_, format)) => String::from(*format),
        None if bytes.iter().all(text) => {
            format!(
                "it looks like text: \"{}\"",
                String::from_utf8_lossy(bytes).escape_debug()
            )
        }
        None => bytes
            .iter()
            .fold(String::from("its first bytes are"), |mut line, byte| {
                let _ = write!(line, " {byte:02x}");
                line
            }),
    };
    Issue::new(Kind::Refused, "capture", "not a pcap or pcapng file")
        .at(0)
        .detail(detail)
}

/// Describes a file that ended before its format was recognised, or inside its file header.
pub(super) fn short(bytes: &[u8]) -> Issue {
    let cut = |layer, needed: usize| {
        Issue::new(Kind::Refused, layer, "file header is cut")
            .at(0)
            .lengths(needed as u64, bytes.len() as u64)
    };
    if bytes.is_empty() {
        Issue::new(Kind::Refused, "capture", "file is empty").at(0)
    } else if pcapng::MAGIC.starts_with(cursor::upto(bytes, 4)) && bytes.len() < pcapng::SECTION_HEADER {
        cut("pcapng", pcapng::SECTION_HEADER)
    } else if pcap::Magic::may_begin(bytes) {
        cut("pcap", pcap::FILE_HEADER)
    } else if netmon::has_magic(bytes) {
        cut("netmon", netmon::FILE_HEADER)
    } else {
        unknown(bytes)
    }
}
