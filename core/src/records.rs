//! Reads chosen records of a capture, with the bytes that the tables leave out. Takes blocks of the file as `capture`
//! does, and returns each chosen record once, in file order.

use crate::capture::{CaptureReader, Record, RecordSink};
use crate::issue::Issue;

/// Reader of some frames of a capture.
pub struct Records {
    reader: CaptureReader,
    wanted: Wanted,
}

/// Which frames are returned.
enum Wanted {
    All,
    /// Frame numbers in ascending order, and the index of the next one.
    Some(Vec<u64>, usize),
}

/// Hands on the wanted records. Ignores issues, which the analysis of the file has reported.
struct Picker<'a, F> {
    wanted: &'a mut Wanted,
    give: &'a mut F,
}

impl<F: FnMut(Record<'_>)> RecordSink for Picker<'_, F> {
    fn record(&mut self, record: Record<'_>) {
        if let Wanted::Some(frames, next) = self.wanted {
            if frames.get(*next) != Some(&record.frame) {
                return;
            }
            *next += 1;
        }
        (self.give)(record);
    }

    fn issue(&mut self, _: Issue) {}
}

impl Records {
    /// `frames` in any order, each returned once; None for every record.
    pub fn new(frames: Option<Vec<u64>>) -> Self {
        let wanted = frames.map_or(Wanted::All, |mut frames| {
            frames.sort_unstable();
            frames.dedup();
            let first = frames.iter().take_while(|frame| **frame == 0).count(); // frames count from 1
            Wanted::Some(frames, first)
        });
        Records {
            reader: CaptureReader::new(),
            wanted,
        }
    }

    /// Begins the next file; frame numbers continue.
    pub fn next_file(&mut self) {
        self.reader.next_file();
    }

    /// Reads the next bytes of the file.
    pub fn push(&mut self, block: &[u8], give: &mut impl FnMut(Record<'_>)) {
        if !self.done() {
            let wanted = &mut self.wanted;
            self.reader.push(block, &mut Picker { wanted, give });
        }
    }

    /// Whether every chosen frame has been returned, so that the rest of the file need not be read.
    pub fn done(&self) -> bool {
        matches!(&self.wanted, Wanted::Some(frames, next) if *next >= frames.len())
    }

    /// Number of records read, chosen or not.
    pub fn frames(&self) -> u64 {
        self.reader.frames()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four records of 1 to 4 bytes, microseconds, Ethernet.
    fn file() -> Vec<u8> {
        let mut out = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        out.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        for n in 1..=4u8 {
            out.extend([n, 0, 0, 0, n, 0, 0, 0, n, 0, 0, 0, 60, 0, 0, 0]);
            out.extend((0..n).map(|i| 10 * n + i));
        }
        out
    }

    fn given(frames: Option<Vec<u64>>, cut: usize) -> Vec<(u64, i64, Vec<u8>, u32)> {
        let (mut records, mut out) = (Records::new(frames), Vec::new());
        for block in file().chunks(cut) {
            records.push(block, &mut |r| {
                out.push((r.frame, r.time_ns, r.data.to_vec(), r.original_len));
            });
        }
        out
    }

    #[test]
    fn chosen_records_in_file_order_however_the_file_is_cut() {
        let second = (2, 2_000_002_000, vec![20, 21], 60);
        let fourth = (4, 4_000_004_000, vec![40, 41, 42, 43], 60);
        for cut in [1, 7, 24, 1000] {
            assert_eq!(
                given(Some(vec![4, 2, 4, 0, 99]), cut),
                [second.clone(), fourth.clone()]
            );
            let frames: Vec<u64> = given(None, cut).iter().map(|r| r.0).collect();
            assert_eq!(frames, [1, 2, 3, 4]);
            assert!(given(Some(vec![]), cut).is_empty());
        }
    }

    #[test]
    fn done_when_the_last_chosen_one_was_given() {
        let mut records = Records::new(Some(vec![0, 2]));
        records.push(&file()[..24 + 17], &mut |_| panic!("frame 1 was not chosen"));
        assert!(!records.done());
        records.push(&file()[24 + 17..], &mut |r| assert_eq!(r.frame, 2));
        assert!(records.done());
        assert!(!Records::new(None).done());
    }
}
