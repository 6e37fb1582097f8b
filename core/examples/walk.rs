//! Reads the records of a capture and keeps an index of their offsets and times; prints their number. `benchmarks/run`
//! compares its cost with `capinfos -c`, which does the same work.

use std::fs::File;
use std::io::{self, Read, Write};

use latpcap_core::capture::{CaptureReader, Record, RecordSink};
use latpcap_core::issue::Issue;

/// Block size, as in latpcap.
const BLOCK_BYTES: usize = 1 << 17;

/// Offset and time of each record, and the issues.
#[derive(Default)]
struct Index {
    records: Vec<(u64, i64)>,
    issues: Vec<Issue>,
}

impl RecordSink for Index {
    fn record(&mut self, record: Record<'_>) {
        self.records.push((record.offset, record.time_ns));
    }

    fn issue(&mut self, issue: Issue) {
        self.issues.push(issue);
    }
}

fn main() -> io::Result<()> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "usage: walk CAPTURE");
    let mut file = File::open(std::env::args_os().nth(1).ok_or_else(usage)?)?;
    let (mut reader, mut index) = (CaptureReader::new(), Index::default());
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let len = file.read(&mut block)?;
        if len == 0 {
            break;
        }
        reader.push(block.get(..len).unwrap_or_default(), &mut index);
    }
    reader.finish(&mut index);
    writeln!(
        io::stdout(),
        "frames {} issues {}",
        index.records.len(),
        index.issues.len()
    )
}
