//! The whole road: blocks of bytes in, batches of table rows out. The result is the same however the
//! bytes are cut into blocks.

use std::collections::BTreeMap;

use crate::capture::{Reader, Record, Sink};
use crate::cause::{self, Legs};
use crate::frame::{self, Packet};
use crate::issue::{Counted, Issue, Kind};
use crate::messages::At;
use crate::pool::Judged;
use crate::stream::Streams;
use crate::table::Tables;

/// Finished exchanges wait for the evidence of the others; beyond this many they are judged with what
/// is known by then.
const MAX_PENDING: usize = 8192;
/// Different reasons that are counted apart; later ones share a row.
const MAX_REASONS: usize = 4096;

#[derive(Default)]
pub struct Engine {
    reader: Reader,
    analysis: Analysis,
    finished: bool,
}

/// Everything after the capture file's own format.
#[derive(Default)]
pub struct Analysis {
    streams: Streams,
    pub tables: Tables,
    issues: BTreeMap<(Kind, &'static str, &'static str), Counted>,
    at: At,
    clock_back: bool,
    /// Of frame 1, from which Wireshark counts; a later frame may be earlier.
    pub zero_time: Option<i64>,
    pub first_time: Option<i64>,
    pub last_time: Option<i64>,
    pub bytes: u64,
    pub tcp_segments: u64,
}

impl Sink for Analysis {
    fn record(&mut self, record: Record<'_>) {
        let at = At {
            frame: record.frame,
            time_ns: record.time_ns,
        };
        self.bytes += u64::from(record.original_len);
        if self.last_time.is_some_and(|last| last > record.time_ns) && !self.clock_back {
            self.clock_back = true;
            let note = Issue::new(Kind::Distrusted, "capture", "time stamps go back");
            self.issue(note.at(record.offset).in_frame(record.frame));
        }
        self.zero_time.get_or_insert(record.time_ns);
        self.first_time = Some(self.first_time.map_or(record.time_ns, |t| t.min(record.time_ns)));
        self.last_time = Some(self.last_time.map_or(record.time_ns, |t| t.max(record.time_ns)));
        self.at = At {
            frame: at.frame,
            time_ns: self.last_time.unwrap_or(at.time_ns),
        };
        match &frame::decode(record.link, record.data, record.original_len) {
            Packet::Tcp(segment) => {
                self.tcp_segments += 1;
                let tables = &mut self.tables;
                self.streams
                    .segment(segment, at, record.original_len, &mut |event| tables.event(event));
                if !self.streams.ledger.issues.is_empty() {
                    self.take_issues(record.offset);
                }
                if self.streams.ledger.settled.len() >= MAX_PENDING {
                    self.settle(false);
                }
            }
            Packet::Icmp(icmp) => {
                if let Some(segment) = &icmp.quoted {
                    self.streams.quoted(segment, at);
                }
            }
            Packet::Other => {}
            Packet::Fragment => {
                let note = Issue::new(Kind::Skipped, "ip", "fragment, not put together");
                self.issue(note.at(record.offset).in_frame(record.frame));
            }
            Packet::Unread(u) => {
                let mut note = Issue::new(u.kind, u.layer, u.reason)
                    .at(record.offset)
                    .in_frame(record.frame);
                if u.needed != 0 {
                    note = note.lengths(u.needed, u.had);
                }
                if u.detail != 0 {
                    note = note.detail(u.detail.to_string());
                }
                self.issue(note);
            }
        }
    }

    fn issue(&mut self, issue: Issue) {
        let mut key = (issue.kind, issue.layer, issue.reason);
        if !self.issues.contains_key(&key) && self.issues.len() >= MAX_REASONS {
            key = (issue.kind, "capture", "further reasons");
        }
        let frame = issue.frame;
        let counted = self.issues.entry(key).or_insert(Counted {
            issue,
            count: 0,
            last_frame: None,
        });
        counted.count += 1;
        counted.last_frame = frame.or(counted.last_frame);
    }
}

impl Analysis {
    /// What the streams had to say about the packet at `offset`.
    fn take_issues(&mut self, offset: u64) {
        for issue in std::mem::take(&mut self.streams.ledger.issues) {
            self.issue(if offset == 0 { issue } else { issue.at(offset) });
        }
    }

    /// Judges what is pending with the evidence there is.
    fn settle(&mut self, last: bool) -> Vec<Judged> {
        let mut pending = std::mem::take(&mut self.streams.ledger.settled);
        pending.sort_unstable_by_key(|e| e.id);
        let judged = self.streams.ledger.pools.judge(&self.streams.pairs, last);
        let mut rows = Vec::new();
        for exchange in pending {
            let min = [0, 1].map(|side| self.streams.pairs.min(exchange.pair, side));
            let legs = Legs { min };
            rows.clear();
            cause::partition(&exchange.pieces, &legs, &judged, &mut rows);
            self.tables.settled(&exchange, &rows, &legs);
            self.streams.ledger.spare.push(exchange);
        }
        judged
    }

    fn finish(&mut self) {
        self.streams.finish(self.at);
        let judged = self.settle(true);
        self.take_issues(0);
        self.tables.finish(&self.streams, &judged, self.issues.values());
    }
}

impl Engine {
    pub fn new() -> Self {
        Engine::default()
    }

    /// The next bytes of the capture file.
    pub fn push(&mut self, block: &[u8]) {
        if !self.finished {
            self.reader.push(block, &mut self.analysis);
        }
    }

    /// The next bytes begin another file of the same capture.
    pub fn next_file(&mut self) {
        if !self.finished {
            self.reader.next_file(&mut self.analysis);
        }
    }

    /// The file ended: settles what is open. Further calls do nothing.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            self.reader.finish(&mut self.analysis);
            self.analysis.finish();
        }
    }

    pub fn analysis(&mut self) -> &mut Analysis {
        &mut self.analysis
    }

    pub fn frames(&self) -> u64 {
        self.reader.frames()
    }

    pub fn format(&self) -> &'static str {
        self.reader.format()
    }

    pub fn digits(&self) -> u8 {
        self.reader.digits()
    }

    pub fn streams(&self) -> usize {
        self.analysis.streams.len()
    }

    /// The issue that kept the file from being read at all.
    pub fn refused(&self) -> Option<&Issue> {
        if self.frames() > 0 {
            return None; // a later file of the same capture
        }
        self.analysis
            .issues
            .values()
            .map(|c| &c.issue)
            .find(|i| i.kind == Kind::Refused)
    }
}
