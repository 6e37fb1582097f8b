//! How long the first segments of a sender's messages waited, over all its streams: what timers are looked for in.

/// Waits remembered of each kind; later ones say the same.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
pub struct Starts {
    /// Small messages that began sooner than a cork's timer, counted for as long as `late` had room: a ratio of the two
    /// has to cover the same messages.
    pub prompt: u64,
    /// Wait and its end, of those that may have waited for it.
    pub late: Vec<(i64, i64)>,
    /// Wait and its end, of those that may have waited for a held ACK on another connection.
    pub timed: Vec<(i64, i64)>,
}

impl Starts {
    pub(super) fn add_prompt(&mut self) {
        self.prompt += u64::from(self.late.len() < KEPT);
    }

    /// False where there are too many.
    pub(super) fn add_late(&mut self, waited: i64, end: i64) -> bool {
        add(&mut self.late, (waited, end))
    }

    pub(super) fn add_timed(&mut self, waited: i64, end: i64) -> bool {
        add(&mut self.timed, (waited, end))
    }

    pub fn count(&self) -> u64 {
        (self.late.len() + self.timed.len()) as u64
    }
}

fn add(waits: &mut Vec<(i64, i64)>, wait: (i64, i64)) -> bool {
    let room = waits.len() < KEPT;
    if room {
        waits.push(wait);
    }
    room
}
