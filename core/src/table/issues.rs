//! `issues`: one row per reason why something could not be read or trusted, with its first place and count.

use super::Column;
use super::cells::{Text, optional, required};
use crate::issue::{Code, Counted};

pub fn columns(files: &[String], rows: &[&Counted]) -> Vec<Column> {
    let file = |row: &&Counted| files.get(row.issue.file as usize).cloned().unwrap_or_default();
    vec![
        optional("file", rows, |row| Some(Text(file(row)))),
        required("kind", rows, |row| row.issue.kind.word()),
        optional("offset", rows, |row| row.issue.offset),
        optional("frame", rows, |row| row.issue.frame),
        required("layer", rows, |row| row.issue.layer),
        required("reason", rows, |row| Text(row.issue.sentence())),
        required("count", rows, |row| row.count),
        optional("last_frame", rows, |row| row.last_frame),
        optional("code", rows, |row| row.issue.code.map(Code::word)),
        optional("number", rows, |row| {
            (row.issue.group > 0).then_some(row.issue.group)
        }),
    ]
}
