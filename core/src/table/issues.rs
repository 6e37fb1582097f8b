//! `issues`: one row per reason why something could not be read or trusted, with its first place and count.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_array::types::{UInt32Type, UInt64Type};

use super::{Column, column, fixed_words, nullable, option, plain};
use crate::issue::{Code, Counted};

pub fn columns(files: &[String], rows: &[&Counted]) -> Vec<Column> {
    type Row<'a> = &'a Counted;
    let file = |row: &Row<'_>| files.get(row.issue.file as usize).map_or("", String::as_str);
    vec![
        nullable(
            "file",
            Arc::new(StringArray::from_iter_values(rows.iter().map(file))),
        ),
        column("kind", fixed_words(rows, |r| Some(r.issue.kind.word()))),
        nullable("offset", option::<UInt64Type, Row<'_>>(rows, |r| r.issue.offset)),
        nullable("frame", option::<UInt64Type, Row<'_>>(rows, |r| r.issue.frame)),
        column("layer", fixed_words(rows, |r| Some(r.issue.layer))),
        column(
            "reason",
            Arc::new(StringArray::from_iter_values(
                rows.iter().map(|r| r.issue.sentence()),
            )),
        ),
        column("count", plain::<UInt64Type, Row<'_>>(rows, |r| r.count)),
        nullable(
            "last_frame",
            option::<UInt64Type, Row<'_>>(rows, |r| r.last_frame),
        ),
        nullable("code", fixed_words(rows, |r| r.issue.code.map(Code::word))),
        nullable(
            "number",
            option::<UInt32Type, Row<'_>>(rows, |r| (r.issue.group > 0).then_some(r.issue.group)),
        ),
    ]
}
