//! The tables of a capture as plain vectors.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch};
use latpcap_core::engine::Engine;
use latpcap_core::table;

/// A file of sample_pcaps.
pub fn sample(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../sample_pcaps")
            .join(name),
    )
    .unwrap()
}

/// All tables of one capture.
#[derive(Debug, PartialEq)]
pub struct Tables(BTreeMap<&'static str, Vec<RecordBatch>>);

impl Tables {
    pub fn of(bytes: &[u8]) -> Self {
        Tables::in_blocks([bytes])
    }

    pub fn in_blocks<'a>(blocks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Tables::in_files([blocks])
    }

    /// A capture that was rotated: each item is a file.
    pub fn in_files<'a, B: IntoIterator<Item = &'a [u8]>>(files: impl IntoIterator<Item = B>) -> Self {
        Tables::by(Engine::new(), files)
    }

    pub fn by<'a, B: IntoIterator<Item = &'a [u8]>>(
        mut engine: Engine,
        files: impl IntoIterator<Item = B>,
    ) -> Self {
        for (number, blocks) in files.into_iter().enumerate() {
            if number > 0 {
                engine.next_file("");
            }
            blocks.into_iter().for_each(|block| engine.push(block));
        }
        engine.finish();
        let mut take = |name| (name, engine.pipeline().tables.take(name).unwrap().1);
        Tables(table::NAMES.into_iter().map(&mut take).collect())
    }

    pub fn rows(&self, name: &str) -> usize {
        self.0[name].iter().map(RecordBatch::num_rows).sum()
    }

    pub fn column<T>(&self, table: &str, column: &str, values: impl Fn(&dyn Array) -> Vec<T>) -> Vec<T> {
        self.0[table]
            .iter()
            .flat_map(|batch| values(batch.column_by_name(column).unwrap()))
            .collect()
    }

    pub fn words(&self, table: &str, column: &str) -> Vec<String> {
        self.column(table, column, |array| {
            let array = array.as_dictionary::<Int32Type>();
            let words = array.values().as_string::<i32>();
            array
                .keys()
                .iter()
                .map(|key| key.map_or("", |key| words.value(key as usize)).to_string())
                .collect()
        })
    }

    pub fn ids(&self, table: &str, column: &str) -> Vec<u64> {
        self.column(table, column, |array| {
            array.as_primitive::<UInt64Type>().values().to_vec()
        })
    }

    pub fn times(&self, table: &str, column: &str) -> Vec<i64> {
        self.column(table, column, |array| {
            array.as_primitive::<TimestampNanosecondType>().values().to_vec()
        })
    }

    pub fn ms(&self, table: &str, column: &str) -> Vec<f64> {
        self.column(table, column, |array| {
            array.as_primitive::<Float64Type>().iter().flatten().collect()
        })
    }

    pub fn complete(&self) -> usize {
        let complete = |array: &dyn Array| array.as_boolean().iter().map(|c| c == Some(true)).collect();
        self.column("exchanges", "complete", complete)
            .into_iter()
            .filter(|complete| *complete)
            .count()
    }

    /// Kind and reason of every issue.
    pub fn issues(&self) -> Vec<(String, String)> {
        let reasons = self.column("issues", "reason", |array| {
            array
                .as_string::<i32>()
                .iter()
                .map(|reason| reason.unwrap().to_string())
                .collect()
        });
        self.words("issues", "kind").into_iter().zip(reasons).collect()
    }

    /// A column of numbers of which a row may have none.
    fn ids_or_none(&self, table: &str, column: &str) -> Vec<Option<u64>> {
        self.column(table, column, |array| {
            array.as_primitive::<UInt64Type>().iter().collect()
        })
    }

    /// Every exchange's, connect's, push's and gap's rows follow each other to the nanosecond, from its start to its end.
    pub fn assert_partitions(&self) {
        let tables = [
            ("exchange", "exchanges"),
            ("connect", "connects"),
            ("push", "pushes"),
            ("gap", "gaps"),
        ];
        let (start, end) = (self.times("causes", "start"), self.times("causes", "end"));
        let owners = tables.map(|(owner, _)| self.ids_or_none("causes", owner));
        let mut spans = BTreeMap::new();
        for i in 0..start.len() {
            let [id] = owners.iter().filter_map(|of| of[i]).collect::<Vec<_>>()[..] else {
                panic!("row {i} is not of one thing");
            };
            assert!(end[i] > start[i], "row {i} of {id}");
            let span = spans.entry(id).or_insert((start[i], start[i]));
            assert_eq!(span.1, start[i], "{id} has a gap or an overlap");
            span.1 = end[i];
        }
        for (owner, table) in tables {
            let (start, end) = (self.times(table, "start"), self.times(table, "end"));
            for (i, id) in self.ids(table, owner).into_iter().enumerate() {
                let span = spans.remove(&id).unwrap_or((start[i], start[i]));
                assert_eq!(span, (start[i], end[i]), "{owner} {id}");
            }
        }
        assert!(spans.is_empty(), "rows of what has none: {spans:?}");
    }
}
