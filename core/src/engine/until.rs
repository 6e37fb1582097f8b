//! Stops reading a capture at a given instant, and reports when nothing more of a file is needed.

/// Largest disorder of frames that is expected, as several interfaces in one file may cause. A file is left when a
/// frame is this much after the end.
const LATE_NS: i64 = 1_000_000_000;

/// The instant at which reading stops; a frame at this instant is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In ns since 1970.
    At(i64),
    /// In ns after frame 1.
    After(i64),
}

/// Applies an `End` to the records of all files.
#[derive(Debug)]
pub(super) struct Until {
    end: End,
    /// No more frames of this file are wanted.
    is_file_done: bool,
    /// Some frame was left out. Fragments that are incomplete now may be complete in the file, and are not reported.
    pub has_left_out: bool,
}

impl Until {
    pub fn new(end: End) -> Self {
        Until {
            end,
            is_file_done: false,
            has_left_out: false,
        }
    }

    pub fn next_file(&mut self) {
        self.is_file_done = false;
    }

    pub fn is_file_done(&self) -> bool {
        self.is_file_done
    }

    /// Whether a record of this time is left out. `zero` is the time of frame 1, set by the first call.
    #[cold]
    pub fn is_late(&mut self, time_ns: i64, zero: &mut Option<i64>) -> bool {
        let zero = *zero.get_or_insert(time_ns);
        let end = match self.end {
            End::At(ns) => ns,
            End::After(ns) => zero.saturating_add(ns),
        };
        self.is_file_done |= time_ns >= end.saturating_add(LATE_NS);
        let is_left_out = self.is_file_done || time_ns >= end;
        self.has_left_out |= is_left_out;
        is_left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_left_out_and_a_second_more_ends_the_file() {
        for (end, at) in [(End::At(1_000), 1_000), (End::After(400), 1_000)] {
            let (mut until, mut zero) = (Until::new(end), None);
            assert!(!until.is_late(600, &mut zero));
            assert!(!until.is_late(at - 1, &mut zero));
            assert!(until.is_late(at, &mut zero));
            assert!(until.is_late(at + LATE_NS - 1, &mut zero) && !until.is_file_done());
            assert!(!until.is_late(at - 1, &mut zero), "frames out of order count");
            assert!(until.is_late(at + LATE_NS, &mut zero) && until.is_file_done());
            assert!(until.is_late(at - 1, &mut zero), "whatever stands behind it");
            until.next_file();
            assert!(!until.is_late(at - 1, &mut zero));
            assert_eq!(zero, Some(600));
        }
    }

    #[test]
    fn no_instant_is_too_large() {
        let (mut until, mut zero) = (Until::new(End::After(i64::MAX)), Some(i64::MAX));
        assert!(until.is_late(i64::MAX, &mut zero));
    }
}
