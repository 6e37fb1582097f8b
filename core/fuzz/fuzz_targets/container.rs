//! Reads any bytes as a capture file: the same records and issues for any block size, and no data beyond the input. The
//! first byte is the block size.

#![no_main]

use latpcap_core::capture::{CaptureReader, Record, RecordSink};
use latpcap_core::issue::Issue;
use libfuzzer_sys::fuzz_target;

#[derive(Default, PartialEq, Debug)]
struct Found {
    records: Vec<(u64, i64, u32, u64, usize, u32)>,
    issues: Vec<Issue>,
    bytes: usize,
}

impl RecordSink for Found {
    fn record(&mut self, r: Record<'_>) {
        self.bytes += r.data.len();
        let fields = (r.frame, r.time_ns, r.link, r.offset, r.data.len(), r.original_len);
        self.records.push(fields);
    }

    fn issue(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    fn secrets(&mut self, text: &[u8]) {
        self.bytes += text.len();
    }
}

fn read<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> (Found, u64, &'static str) {
    let (mut reader, mut found) = (CaptureReader::new(), Found::default());
    blocks.for_each(|block| reader.push(block, &mut found));
    reader.finish(&mut found);
    (found, reader.frames(), reader.format())
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else {
        return;
    };
    let whole = read([file].into_iter());
    assert!(whole.0.bytes <= file.len());
    assert!(whole.0.records.len() as u64 == whole.1);
    assert!(whole.0.issues.len() <= 2 + whole.0.records.len() + file.len() / 12);
    assert_eq!(read(file.chunks(usize::from(*cut).max(1))), whole);
});
