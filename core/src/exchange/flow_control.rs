//! HTTP/2 flow control (RFC 9113 5.2, 6.9): tracks what each side may send, per HTTP/2 stream and per connection.
//! Reads the frames of both sides; returns whether a window was empty after the sender's last frame.
//!
//! A sender knows the WINDOW_UPDATE and SETTINGS frames whose bytes its TCP has acknowledged, so that captures at
//! either end give the same result. A connection whose beginning was not captured is not tracked, nor one whose
//! sender exceeds its windows.

use std::collections::{BTreeMap, VecDeque};

use crate::base::Side;
use crate::messages::FlowEvent;
use crate::observe::transfer::ShutWindow;

/// Size of a window in bytes before SETTINGS and WINDOW_UPDATE (6.9.2).
const INITIAL: i64 = 65_535;
/// Upper bound on the HTTP/2 streams kept per direction; the lowest number is dropped first.
const MAX_STREAMS: usize = 256;
/// Upper bound on the grants kept until the sender acknowledges them; beyond it the oldest takes effect.
const MAX_PENDING: usize = 1024;

/// Bytes that may still be sent, and the largest value of that.
#[derive(Debug, Clone, Copy)]
struct Window {
    available_bytes: i64,
    largest_bytes: i64,
}

impl Window {
    fn new(available: i64) -> Self {
        Window {
            available_bytes: available,
            largest_bytes: available,
        }
    }

    fn add(&mut self, bytes: i64) {
        self.available_bytes += bytes;
        self.largest_bytes = self.largest_bytes.max(self.available_bytes);
    }
}

/// A change of windows by their receiver.
#[derive(Debug, Clone, Copy)]
enum Grant {
    /// WINDOW_UPDATE of a stream, or of the connection (0), in bytes.
    Update(u32, i64),
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    Initial(i64),
}

/// Flow control of the data in one direction.
#[derive(Debug)]
struct Direction {
    connection: Window,
    initial_bytes: i64,
    streams: BTreeMap<u32, Window>,
    /// Grants that the sender has not acknowledged, each with the TCP stream offset after it.
    pending: VecDeque<(i64, Grant)>,
    /// Stream and length of the DATA frame that is being sent.
    frame: (u32, i64),
    /// The window that was empty after the last frame: the stream, or 0 for the connection, and its largest size.
    shut: Option<(u32, i64)>,
}

/// Flow control of a connection, in both directions.
#[derive(Debug, Default)]
pub struct FlowControl([Direction; 2]);

impl Default for Direction {
    fn default() -> Self {
        Direction {
            connection: Window::new(INITIAL),
            initial_bytes: INITIAL,
            streams: BTreeMap::new(),
            pending: VecDeque::new(),
            frame: (0, 0),
            shut: None,
        }
    }
}

impl FlowControl {
    /// Applies a frame of `side`, which ends at `position` of its bytes; `acked` is how far the side has acknowledged
    /// the other one.
    pub fn frame(
        control: &mut Option<Box<FlowControl>>,
        side: Side,
        event: FlowEvent,
        position: i64,
        acked: i64,
    ) {
        if event == FlowEvent::Begins {
            *control = Some(Box::default());
        }
        let Some(windows) = control else {
            return;
        };
        let (own, other) = side.split_mut(&mut windows.0);
        let follows = match event {
            FlowEvent::Begins => true,
            FlowEvent::Sends { stream, bytes } => own.begin_frame(stream, i64::from(bytes), acked),
            FlowEvent::Sent { last } => {
                own.end_frame(last, acked);
                true
            }
            FlowEvent::Grants { stream, bytes } => {
                other.push_grant(position, Grant::Update(stream, i64::from(bytes)));
                true
            }
            FlowEvent::Initial(bytes) => {
                other.push_grant(position, Grant::Initial(i64::from(bytes)));
                true
            }
            FlowEvent::Lost => false,
        };
        if !follows {
            *control = None;
        }
    }

    /// The window that was empty after the last frame of this side, if the grants up to `acked` open it.
    pub fn opened(&self, side: Side, acked: i64) -> Option<ShutWindow> {
        let direction = side.pick(&self.0);
        let (shut, window) = direction.shut?;
        let is_of_stream = shut != 0;
        let opens = |grant: &Grant| match grant {
            Grant::Update(stream, _) => *stream == shut,
            Grant::Initial(_) => is_of_stream,
        };
        let mut arrived = direction
            .pending
            .iter()
            .take_while(|(position, _)| *position <= acked);
        arrived.any(|(_, grant)| opens(grant)).then_some(ShutWindow {
            is_of_stream,
            largest_bytes: window,
        })
    }
}

impl Direction {
    fn push_grant(&mut self, position: i64, grant: Grant) {
        self.pending.push_back((position, grant));
        if self.pending.len() > MAX_PENDING
            && let Some((_, oldest)) = self.pending.pop_front()
        {
            self.grant(oldest);
        }
    }

    fn apply_known(&mut self, acked: i64) {
        while let Some((position, grant)) = self.pending.front().copied()
            && position <= acked
        {
            self.pending.pop_front();
            self.grant(grant);
        }
    }

    fn grant(&mut self, grant: Grant) {
        match grant {
            Grant::Update(0, bytes) => self.connection.add(bytes),
            Grant::Update(stream, bytes) => self.stream(stream).add(bytes),
            Grant::Initial(bytes) => {
                let more = bytes - self.initial_bytes;
                self.initial_bytes = bytes;
                self.streams.values_mut().for_each(|window| window.add(more));
            }
        }
    }

    fn stream(&mut self, stream: u32) -> &mut Window {
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&stream) {
            self.streams.pop_first();
        }
        self.streams
            .entry(stream)
            .or_insert(Window::new(self.initial_bytes))
    }

    /// Begins a DATA frame; returns whether the windows permit it.
    fn begin_frame(&mut self, stream: u32, bytes: i64, acked: i64) -> bool {
        self.shut = None;
        self.apply_known(acked);
        self.frame = (stream, bytes);
        if self.connection.available_bytes < bytes || self.stream(stream).available_bytes < bytes {
            // it knows of a grant: its ACK is missing in the capture
            self.apply_known(i64::MAX);
        }
        self.connection.available_bytes -= bytes;
        self.stream(stream).available_bytes -= bytes;
        self.connection.available_bytes >= 0 && self.stream(stream).available_bytes >= 0
    }

    fn end_frame(&mut self, last: bool, acked: i64) {
        self.apply_known(acked);
        let (stream, bytes) = self.frame;
        let window = *self.stream(stream);
        let empty = |window: Window| window.available_bytes <= 0 || window.available_bytes < bytes;
        self.shut = if empty(self.connection) {
            Some((0, self.connection.largest_bytes))
        } else if !last && empty(window) {
            Some((stream, window.largest_bytes))
        } else {
            None
        };
        if last {
            self.streams.remove(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with DATA frames of the server, and frames of the client of 13 bytes each.
    struct Run {
        control: Option<Box<FlowControl>>,
        given: i64,
    }

    impl Run {
        fn new() -> Self {
            let mut run = Run {
                control: None,
                given: 0,
            };
            run.client(FlowEvent::Begins);
            run
        }

        fn client(&mut self, event: FlowEvent) -> i64 {
            self.given += 13;
            FlowControl::frame(&mut self.control, Side::Client, event, self.given, 0);
            self.given
        }

        fn server(&mut self, stream: u32, bytes: u32, acked: i64) {
            let sends = FlowEvent::Sends { stream, bytes };
            FlowControl::frame(&mut self.control, Side::Server, sends, 0, acked);
            let sent = FlowEvent::Sent { last: false };
            FlowControl::frame(&mut self.control, Side::Server, sent, 0, acked);
        }

        fn opened(&self, acked: i64) -> Option<(bool, i64)> {
            let shut = self.control.as_ref()?.opened(Side::Server, acked)?;
            Some((shut.is_of_stream, shut.largest_bytes))
        }
    }

    fn update(stream: u32, bytes: u32) -> FlowEvent {
        FlowEvent::Grants { stream, bytes }
    }

    #[test]
    fn the_connection_and_the_stream_run_out_each_on_its_own() {
        let mut run = Run::new();
        run.server(1, 65_535, 0);
        assert_eq!(run.opened(i64::MAX), None, "nothing opens it");
        let of_stream = run.client(update(1, 40_000));
        assert_eq!(run.opened(of_stream), None, "the connection is what is empty");
        let of_both = run.client(update(0, 40_000));
        assert_eq!(run.opened(of_stream), None, "not known yet");
        assert_eq!(run.opened(of_both), Some((false, 65_535)));
        let wide = run.client(update(0, 1_000_000));
        run.server(1, 40_000, wide);
        let more = run.client(update(1, 10));
        assert_eq!(run.opened(more), Some((true, 65_535)));
        run.server(3, 100, more);
        assert_eq!(run.opened(more), None, "the newest frame's stream has room");
    }

    #[test]
    fn settings_change_every_stream() {
        let mut run = Run::new();
        let settings = run.client(FlowEvent::Initial(30_000));
        run.server(1, 30_000, settings);
        let wider = run.client(FlowEvent::Initial(50_000));
        assert_eq!(run.opened(wider), Some((true, 30_000)));
        run.server(1, 20_000, wider);
        assert_eq!(run.opened(i64::MAX), None);
        assert!(run.control.is_some());
    }

    #[test]
    fn a_sender_beyond_its_windows_has_no_account() {
        let mut run = Run::new();
        run.client(update(0, 100_000));
        run.server(1, 60_000, 0);
        run.client(update(1, 100_000));
        run.server(1, 60_000, 0);
        assert!(run.control.is_some(), "an ACK is missing in the capture");
        run.server(1, 60_000, 0);
        assert!(run.control.is_none());
        assert_eq!(run.opened(i64::MAX), None);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut run = Run::new();
        for stream in 0..600 {
            run.client(update(0, 10));
            run.client(update(2 * stream + 1, 10));
            run.server(2 * stream + 1, 1, 0);
        }
        for _ in 0..2 * MAX_PENDING {
            run.client(update(0, 1));
        }
        let server = &run.control.expect("it follows").0[1];
        assert!(server.streams.len() <= MAX_STREAMS);
        assert!(server.pending.len() <= MAX_PENDING);
    }
}
