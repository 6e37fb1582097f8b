//! latpcap's engine: reads the bytes of a capture and returns Arrow tables of TCP facts, exchanges and causes of
//! delay.
//!
//! The way of one packet, from the capture file to the tables:
//!
//! 1. `capture` splits the bytes of the file into records: frame number, time, bytes.
//! 2. `frame` decodes the link layer, tunnels and IP of a record. It returns a TCP segment (`segment`) or another
//!    packet.
//! 3. `stream` finds the connection of the segment. `facts` computes its TCP facts: retransmission, RTT, duplicate
//!    ACK.
//! 4. `observe` finds why the segment left when it did; `evidence` collects what that shows about its sender.
//! 5. `assemble` orders the payload, `decrypt` decrypts TLS, and `messages` finds where requests and responses begin
//!    and end.
//! 6. `exchange` pairs requests with responses, and cuts the time of each exchange into steps.
//! 7. `judge` gives every step its causes of delay: at once where round trips suffice, else at the end of the capture
//!    or when many exchanges wait.
//! 8. `table` appends rows to the Arrow tables.
//!
//! DNS, ARP and ICMP leave this way after step 2, for `lookup` and `probe`. `engine` is the pipeline that calls the
//! layers, and `python` the boundary to Python.
//!
//! One layer per file or folder. A layer uses only the layers in the lines above its own, and those to its left in
//! the same line:
//!
//! | layers | contents |
//! | --- | --- |
//! | `base`, `issue`, `pattern`, `seq`, `segment`, `cursor`, `queue`, `limits` | values, and thresholds of verdicts |
//! | `capture`, `frame`, `decrypt`, `records` | bytes of files, frames and TLS |
//! | `messages`, `assemble`, `lookup` | payload in order, and the boundaries of messages |
//! | `facts`, `observe`, `evidence` | TCP facts, why each segment left when it did, observations of senders |
//! | `exchange`, `judge` | requests with their time in steps, and the causes of these steps |
//! | `stream`, `watch`, `probe` | connections, second readings, pings and unanswered SYNs |
//! | `table`, `engine`, `python` | Arrow tables, the pipeline, the boundary to Python |
//!
//! Every packet passes some hundred functions. `#[inline(always)]` marks those whose call would cost more than their
//! work; `#[cold]` and `#[inline(never)]` mark what few packets need, so that the frequent path stays short and its
//! values in registers. None of them changes a result. `benchmarks/instructions` counts the instructions of a packet:
//! an attribute may go if the count stays without it, and a new one needs a count that falls.

#![forbid(unsafe_code)]

pub mod assemble;
pub mod base;
pub mod capture;
pub mod cursor;
pub mod decrypt;
pub mod engine;
pub mod evidence;
pub mod exchange;
pub mod facts;
pub mod frame;
pub mod issue;
pub mod judge;
pub mod limits;
pub mod lookup;
pub mod messages;
pub mod observe;
pub mod pattern;
pub mod probe;
#[cfg(feature = "python")]
mod python;
pub mod queue;
pub mod records;
pub mod segment;
pub mod seq;
pub mod stream;
pub mod table;
pub mod watch;
