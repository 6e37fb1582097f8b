//! The pipeline: takes blocks of capture bytes and fills the batches of table rows. The result is the same however
//! the bytes are cut into blocks.
//!
//! - `Engine::push` hands a block to the capture reader, which calls `Pipeline::record` for each record.
//! - `Pipeline::record` decodes the frame. A TCP segment goes to `Pipeline::tcp`, everything else to
//!   `Pipeline::uncommon`.
//! - `Pipeline::tcp` gives the segment to `Streams`. That appends its `events` row, and queues the exchanges that it
//!   ends. `take_issues` and `take_dns` take what else the streams found.
//! - `Pipeline::uncommon` handles DNS, ARP, ICMP and what cannot be decoded. Fragments (`fragment`), foreign layers
//!   (`foreign`, `unwrapped`) and headers with a wrong length (`length_beyond_frame`) may contain a TCP segment, which
//!   goes to `tcp`.
//! - `Pipeline::judge_some` (in `judging`) judges queued exchanges when there are enough, and appends their rows.
//!   Exchanges during which the server made requests of its own are judged together (`nested`).
//! - `Engine::finish` (in `end`) ends all streams, judges the rest and appends the rows of streams.
//!
//! Issues: a lower layer returns an `Issue` to the pipeline, or puts it on a list that the pipeline empties after the
//! packet. `Pipeline` adds file, offset and frame, and `Reasons` counts all of them.

mod end;
mod judging;
mod nested;
mod reasons;
mod until;

use std::hint::black_box;

use crate::base::At;
use crate::capture::{CaptureReader, Record, RecordSink};
use crate::decrypt::Decryption;
use crate::exchange::Exchange;
use crate::frame::{self, Foreign, Fragment, Fragments, Icmp, Packet, SeenFrame, Unread, Unwrapped};
use crate::issue::{Code, Issue, Kind};
use crate::judge::{Row, Senders};
use crate::limits::TICK_NS;
use crate::lookup::Lookups;
use crate::probe::{self, Probes};
use crate::segment::{ACK, SYN, Segment};
use crate::stream::{self, Event, Streams, SynAnswer};
use crate::table::Tables;
use crate::watch::Watch;
use end::Stage;
use reasons::Reasons;
pub use until::End;
use until::Until;

/// Size of an allocation that is made and freed at the start, larger than any batch of rows.
///
/// glibc serves large allocations by mmap and returns them to the kernel when they are freed. Each batch of rows,
/// some hundred KB, would take fresh pages: a quarter of the CPU time without Python, on a virtual machine. Freeing
/// one allocation of this size raises glibc's dynamic mmap threshold (mallopt(3), M_MMAP_THRESHOLD) above the
/// batches.
const MMAP_THRESHOLD_BYTES: usize = 2 << 20;

/// Reads captures: the reader of the file format, and the pipeline behind it.
pub struct Engine {
    reader: CaptureReader,
    pipeline: Pipeline,
    stage: Stage,
}

/// Everything after the capture file's own format.
#[derive(Default)]
pub struct Pipeline {
    streams: Streams,
    pub tables: Tables,
    /// What a second reading collects besides the tables; None in the first reading.
    pub watch: Option<Watch>,
    probes: Probes,
    lookups: Lookups,
    issues: Reasons,
    senders: Senders,
    /// Empty buffer that takes the place of `pending_plain` while that is judged.
    #[allow(clippy::vec_box)] // boxed, as an exchange is moved several times
    spare_pending: Vec<Box<Exchange>>,
    nested: nested::Nested,
    /// Buffer for the rows of one exchange.
    rows: Vec<Row>,
    /// Names of the pushed files, in their order.
    files: Vec<String>,
    fragments: Fragments,
    /// Captured length of the last frame whose valid IP header claims more bytes than the frame has.
    last_cut_len: usize,
    /// Reader of the link layers that the core leaves to plugins; None if there are none.
    pub links: Option<Box<dyn frame::LinkReader>>,
    /// Number of the newest record, from 1.
    frame: u64,
    /// Time of the newest record in ns, if it is the first or an earlier record has a later time; otherwise None.
    late_time: Option<i64>,
    /// Time of frame 1 in ns, from which Wireshark counts; a later frame may have an earlier time.
    pub zero_time: Option<i64>,
    /// Earliest time of any record, in ns since 1970; None before the first record.
    pub first_time: Option<i64>,
    /// Latest time of any record, in ns since 1970; None before the first record.
    pub last_time: Option<i64>,
    /// Sum of the original lengths of all records.
    pub bytes: u64,
    pub tcp_segments: u64,
    /// Where reading stops; None to read all.
    until: Option<Until>,
}

/// Receives the rows of `events`. A struct, not a closure, so that the call is inlined.
struct EventRows<'a> {
    tables: &'a mut Tables,
    watch: Option<&'a mut Watch>,
}

impl stream::Rows for EventRows<'_> {
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        self.tables.event(event);
        if let Some(watch) = &mut self.watch {
            let event = *event; // a copy, so that the event stays in registers where nothing watches
            watch.event(&event);
        }
    }
}

impl RecordSink for Pipeline {
    #[inline(always)]
    fn record(&mut self, record: Record<'_>) {
        let at = At {
            frame: record.frame,
            time_ns: record.time_ns,
        };
        if let Some(until) = &mut self.until
            && until.is_late(record.time_ns, &mut self.zero_time)
        {
            return;
        }
        self.bytes += u64::from(record.original_len);
        self.frame = record.frame;
        match &mut self.last_time {
            Some(last) if *last <= record.time_ns => {
                *last = record.time_ns;
                self.late_time = None;
            }
            _ => self.first_or_late_record(&record),
        }
        match &frame::decode(record.link, record.data, record.original_len) {
            Packet::Tcp(segment) => self.tcp(segment, at, &record),
            Packet::Other => {}
            packet => self.uncommon(packet, at, &record),
        }
    }

    fn issue(&mut self, issue: Issue) {
        let file = self.file();
        self.issues.count(&issue.in_file(file));
    }

    fn secrets(&mut self, text: &[u8]) {
        self.keylog(text);
    }
}

impl Pipeline {
    /// Leaves out the frames at this instant and later. Must be called before the first block.
    pub fn end_at(&mut self, end: End) {
        self.until = Some(Until::new(end));
    }

    /// Adds keys of TLS connections from the text of a key log. They apply to the frames that are read after this
    /// call.
    pub fn keylog(&mut self, text: &[u8]) {
        let (file, issues) = (self.file(), &mut self.issues);
        let keys = self.streams.context.memory.keys();
        keys.read(text, |issue| issues.count(&issue.in_file(file)));
    }

    /// Returns decryption for another connection of this capture, with the keys known so far; None if no keys were
    /// given.
    pub fn decryption(&self) -> Option<Decryption> {
        self.streams.context.memory.shared_keys().map(Decryption::new)
    }

    /// Handles the first record, and each record with an earlier time than one before it.
    #[cold]
    fn first_or_late_record(&mut self, record: &Record<'_>) {
        let now = record.time_ns;
        let before = self.late_time.replace(now).or(self.last_time);
        if let Some(before) = before.filter(|before| *before > now) {
            self.report_clock_step(before.saturating_sub(now), record);
        }
        self.zero_time.get_or_insert(now);
        self.first_time = Some(self.first_time.map_or(now, |first| first.min(now)));
        self.last_time = Some(self.last_time.map_or(now, |last| last.max(now)));
    }

    /// Reports that the record's time is `ns` before the time of the previous record.
    #[cold]
    fn report_clock_step(&mut self, ns: i64, record: &Record<'_>) {
        let issue = if ns < TICK_NS {
            let reason = "frames stand in another order than their time stamps, by less than 1 ms";
            Issue::new(Kind::Distrusted, "capture", reason)
        } else {
            Issue::new(Kind::Distrusted, "capture", "time stamps go back").coded(Code::ClockBack)
        };
        self.report(issue, record);
    }

    /// Gives a TCP segment to its stream, then takes what the stream found: issues, DNS messages, ended exchanges.
    #[inline(always)]
    fn tcp(&mut self, segment: &Segment<'_>, at: At, record: &Record<'_>) {
        self.tcp_segments += 1;
        if segment.flags & (SYN | ACK) == SYN && self.lookups.has_answers() {
            self.lookups.connect(segment.src, segment.dst, at);
            self.streams.set_has_lookups();
        }
        let mut rows = EventRows {
            tables: &mut self.tables,
            watch: self.watch.as_mut(),
        };
        self.streams.segment(segment, at, record.original_len, &mut rows);
        if !self.streams.context.issues.is_empty() {
            self.take_issues(record.offset);
        }
        if !self.streams.context.dns.is_empty() {
            self.take_dns(record.offset);
        }
        self.judge_some();
    }

    /// Counts the issues that the streams found in the packet at `offset`; 0 at the end of the capture.
    fn take_issues(&mut self, offset: u64) {
        let file = self.file();
        for issue in &mut self.streams.context.issues {
            issue.file = file;
            issue.offset = (offset > 0).then_some(offset).or(issue.offset);
            self.issues.count(issue);
        }
        self.streams.context.issues.clear();
    }

    /// Gives the DNS messages over TCP that end in the packet at `offset` to `lookups`.
    #[cold]
    fn take_dns(&mut self, offset: u64) {
        for message in std::mem::take(&mut self.streams.context.dns) {
            let ends = self.streams.ends(message.stream);
            let issue = ends.and_then(|(client, server)| self.lookups.over_tcp(client, server, &message));
            if let Some(issue) = issue {
                self.issue(issue.at(offset).in_frame(message.at.frame));
            }
        }
        self.write_lookups();
    }

    /// Handles every packet that is not a plain TCP segment. Calls itself for the packet inside a tunnel, a
    /// fragmented datagram or a foreign layer; `frame` bounds the depth.
    #[cold]
    fn uncommon(&mut self, packet: &Packet<'_>, at: At, record: &Record<'_>) {
        match packet {
            Packet::Tcp(segment) => self.uncommon_tcp(segment, at, record),
            Packet::LengthBeyondFrame(segment, claim) => {
                self.length_beyond_frame(segment, *claim, at, record)
            }
            Packet::BadTunnelChecksum(segment) => {
                let reason = "outer UDP checksum of a tunnel is wrong on a SYN";
                let issue = Issue::new(Kind::Distrusted, "udp", reason).coded(Code::TunnelChecksum);
                self.report(issue, record);
                self.uncommon_tcp(segment, at, record);
            }
            Packet::Neighbour(neighbour) => {
                self.lookups.neighbour(neighbour, at);
                self.write_lookups();
            }
            Packet::Icmp(icmp) => self.icmp(icmp, at, record),
            Packet::Udp(udp) => {
                if let Some(issue) = self.lookups.datagram(udp, at) {
                    self.report(issue, record);
                }
                self.write_lookups();
            }
            Packet::Other => {}
            Packet::Fragment(fragment) => self.fragment(fragment, at, record),
            Packet::Foreign(foreign) => self.foreign(foreign, at, record),
            Packet::Malformed(segment, why) => {
                self.report_unread(why, record);
                self.tcp_segments += 1;
                let mut rows = EventRows {
                    tables: &mut self.tables,
                    watch: None,
                };
                self.streams.malformed(segment, at, &mut rows);
            }
            Packet::BadDataOffset(segment, why) => {
                self.report_unread(why, record);
                self.streams.unreadable_header(segment, at);
            }
            Packet::Unread(unread) => self.report_unread(unread, record),
        }
    }

    /// `tcp`, not inlined into the uncommon cases.
    #[cold]
    #[inline(never)]
    fn uncommon_tcp(&mut self, segment: &Segment<'_>, at: At, record: &Record<'_>) {
        self.tcp(segment, at, record);
    }

    /// Takes a segment whose IP header gives a length beyond the frame: `claim`, if that header can be trusted.
    fn length_beyond_frame(
        &mut self,
        segment: &Segment<'_>,
        claim: Option<u32>,
        at: At,
        record: &Record<'_>,
    ) {
        // A tool that cuts frames without recording it cuts all of them at the same length. Hence two frames of equal
        // length in a row: trust the IP header. Otherwise: trust the frame.
        let size = record.data.len();
        let (len, reason) = match claim {
            Some(claim) if std::mem::replace(&mut self.last_cut_len, size) == size => {
                (claim, "frames are cut and do not say so: the total length counts")
            }
            _ => (
                segment.len,
                "total length is beyond the frame, which counts instead",
            ),
        };
        self.report(Issue::new(Kind::Distrusted, "ipv4", reason), record);
        self.uncommon_tcp(&Segment { len, ..*segment }, at, record);
    }

    /// Takes an ICMP message: an answer to a SYN or an echo request, or a smaller MTU on a stream's path.
    fn icmp(&mut self, icmp: &Icmp<'_>, at: At, record: &Record<'_>) {
        if let Some(segment) = &icmp.quoted {
            self.streams.quoted(segment, at);
        }
        let head = icmp.quoted.or(icmp.brief);
        if let (Some(kind), Some(head)) = (probe::icmp_answer_kind(icmp), head) {
            let from = icmp.src;
            self.streams.answered(&head, SynAnswer { kind, from, at });
        }
        if let (Some(mtu), Some(head)) = (icmp.next_mtu, head) {
            self.streams.too_big(&head, mtu);
        }
        if let Some(issue) = self.probes.icmp(icmp, at) {
            self.report(issue, record);
        }
        for probe in self.probes.take_finished() {
            self.tables.probe(probe);
        }
    }

    /// Takes a fragment, and reads the packet that it completes.
    fn fragment(&mut self, fragment: &Fragment<'_>, at: At, record: &Record<'_>) {
        let seen_frame = SeenFrame {
            time_ns: at.time_ns,
            file: self.file(),
            frame: record.frame,
            offset: record.offset,
        };
        let datagram = self.fragments.add(fragment, seen_frame);
        self.fragment_issues();
        if let Some(datagram) = datagram {
            self.uncommon(&datagram.decode(), at, record);
        }
    }

    fn fragment_issues(&mut self) {
        for issue in std::mem::take(&mut self.fragments.issues) {
            self.issues.count(&issue);
        }
    }

    /// Gives a layer that the core does not read to the plugins' reader.
    fn foreign(&mut self, foreign: &Foreign<'_>, at: At, record: &Record<'_>) {
        let unwrapped = self.links.as_mut().map_or(Unwrapped::Unknown, |links| {
            links.unwrap(foreign.layer, foreign.number, foreign.data)
        });
        match &unwrapped {
            Unwrapped::Several(packets) => {
                (packets.iter()).for_each(|inner| self.unwrapped(foreign, inner, at, record));
            }
            single => self.unwrapped(foreign, single, at, record),
        }
    }

    /// Continues with the result of a plugin's reader for one layer.
    fn unwrapped(&mut self, foreign: &Foreign<'_>, unwrapped: &Unwrapped, at: At, record: &Record<'_>) {
        match unwrapped {
            Unwrapped::Packet(inner) => self.uncommon(&foreign.decode(inner), at, record),
            Unwrapped::Layer(layer, number, inner) => {
                self.uncommon(&foreign.layer(layer, *number, inner), at, record);
            }
            Unwrapped::Empty => {}
            other => self.report_unread(&foreign.unread(other), record),
        }
    }

    /// Reports a packet that could not be decoded.
    fn report_unread(&mut self, unread: &Unread, record: &Record<'_>) {
        let mut issue = Issue::new(unread.kind, unread.layer, unread.reason);
        if unread.needed != 0 {
            issue = issue.lengths(unread.needed, unread.had);
        }
        if unread.detail != 0 {
            issue = issue.grouped(unread.detail);
        }
        self.report(issue, record);
    }

    fn write_lookups(&mut self) {
        for lookup in self.lookups.take_finished() {
            self.tables.lookup(lookup);
        }
    }

    /// Counts an issue that was found in this record.
    fn report(&mut self, issue: Issue, record: &Record<'_>) {
        self.issue(issue.at(record.offset).in_frame(record.frame));
    }

    /// The newest record's frame, with the latest time so far.
    fn now(&self) -> At {
        At {
            frame: self.frame,
            time_ns: self.last_time.unwrap_or(0),
        }
    }

    /// Index of the file that is being read.
    fn file(&self) -> u32 {
        self.files.len().saturating_sub(1) as u32
    }
}

impl Engine {
    #[allow(clippy::new_without_default)] // a value with side effects is no default
    pub fn new() -> Self {
        drop(black_box(Vec::<u8>::with_capacity(MMAP_THRESHOLD_BYTES)));
        Engine {
            reader: CaptureReader::default(),
            pipeline: Pipeline::default(),
            stage: Stage::default(),
        }
    }

    /// Begins the next file; the current one, if any, has ended.
    ///
    /// Frame numbers and streams continue as if the files were one. The offsets of issues start at 0 in each file.
    pub fn next_file(&mut self, name: &str) {
        if !matches!(self.stage, Stage::Reading) {
            return;
        }
        if !self.pipeline.files.is_empty() {
            self.end_file();
            self.reader.next_file();
        }
        self.pipeline.files.push(name.to_string());
        if let Some(until) = &mut self.pipeline.until {
            until.next_file();
        }
    }

    /// Reports what the file lacks at its end. Nothing is known of that if reading stopped before it.
    fn end_file(&mut self) {
        if !self.pipeline.until.as_ref().is_some_and(Until::is_file_done) {
            self.reader.finish(&mut self.pipeline);
        }
    }

    /// Reads the next bytes of the capture file.
    pub fn push(&mut self, block: &[u8]) {
        if self.pipeline.files.is_empty() {
            self.next_file("");
        }
        if matches!(self.stage, Stage::Reading) {
            self.reader.push(block, &mut self.pipeline);
        }
    }

    /// Ends the capture: judges what is open and appends the rows of streams. Further calls do nothing.
    pub fn finish(&mut self) {
        while self.finish_some() {}
    }

    /// Does a part of `finish`, for callers that take the rows in between; returns whether there is more to do.
    pub fn finish_some(&mut self) -> bool {
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::Reading => {
                self.end_file();
                if !self
                    .pipeline
                    .until
                    .as_ref()
                    .is_some_and(|until| until.has_left_out)
                {
                    self.pipeline.fragments.finish();
                    self.pipeline.fragment_issues();
                }
                self.pipeline.end_some(0)
            }
            Stage::Ending(next) => self.pipeline.end_some(next),
            Stage::Writing(next, probes) => self.pipeline.write_streams(next, probes),
            Stage::Finished => Stage::Finished,
        };
        !matches!(self.stage, Stage::Finished)
    }

    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Number of frames that were read. If reading stops at an instant: the number of the newest frame before it.
    pub fn frames(&self) -> u64 {
        match self.pipeline.until {
            None => self.reader.frames(),
            Some(_) => self.pipeline.frame,
        }
    }

    pub fn format(&self) -> &'static str {
        self.reader.format()
    }

    pub fn digits(&self) -> u8 {
        self.reader.digits()
    }

    pub fn stream_count(&self) -> usize {
        self.pipeline.streams.len()
    }

    /// Whether the rest of this file need not be pushed.
    pub fn halted(&self) -> bool {
        self.reader.is_halted() || self.pipeline.until.as_ref().is_some_and(Until::is_file_done)
    }

    /// Returns the first file's name and issue, if no file could be read at all.
    pub fn refused(&self) -> Option<(&str, &Issue)> {
        let mut refused = (self.pipeline.issues.counted())
            .map(|counted| &counted.issue)
            .filter(|issue| issue.kind == Kind::Refused);
        let (first, files) = (refused.next()?, &self.pipeline.files);
        let name = files.get(first.file as usize).map_or("", String::as_str);
        (refused.count() + 1 >= files.len().max(1)).then_some((name, first))
    }
}
