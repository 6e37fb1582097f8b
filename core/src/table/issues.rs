//! `issues`: one row per reason why something could not be read or trusted, with its first place and count.

use super::Column;
use super::cells::{Text, optional, required};
use crate::issue::{Code, Counted};

pub fn columns(files: &[String], rows: &[&Counted]) -> Vec<Column> {
    let file = |row: &&Counted| files.get(row.issue.file as usize).cloned().unwrap_or_default();
    vec![
        optional("file", rows, |r| Some(Text(file(r)))),
        required("kind", rows, |r| r.issue.kind.word()),
        optional("offset", rows, |r| r.issue.offset),
        optional("frame", rows, |r| r.issue.frame),
        required("layer", rows, |r| r.issue.layer),
        required("reason", rows, |r| Text(r.issue.sentence())),
        required("count", rows, |r| r.count),
        optional("last_frame", rows, |r| r.last_frame),
        optional("code", rows, |r| r.issue.code.map(Code::word)),
        optional("number", rows, |r| (r.issue.group > 0).then_some(r.issue.group)),
    ]
}
