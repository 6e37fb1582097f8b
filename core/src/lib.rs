//! latpcap's engine: capture bytes in, Arrow tables of TCP facts, exchanges and causes of delay out.
//!
//! One layer per file or folder. A layer reads those in the lines above its own, and of its own line those to its left:
//!
//! | layers | what they know |
//! | --- | --- |
//! | `base`, `issue`, `pattern`, `seq`, `segment`, `cursor`, `queue`, `limits` | values, and the numbers of verdicts |
//! | `capture`, `frame`, `decrypt`, `records` | bytes of files, frames and TLS |
//! | `messages`, `assemble`, `lookup` | bytes in order, and where messages begin and end |
//! | `facts`, `observe`, `evidence` | TCP's facts, why each segment left when it did, and what was seen of senders |
//! | `exchange`, `judge` | requests with their time in steps, and the causes of it |
//! | `stream`, `watch`, `probe` | connections, second readings, pings and lone SYNs |
//! | `table`, `engine`, `python` | Arrow tables, the pipeline, the boundary to Python |

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
