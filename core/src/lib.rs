//! latpcap's engine: capture bytes in, Arrow tables of TCP facts, exchanges and causes of delay out.
//!
//! One layer per file or folder; a layer reads the ones before it in this list and none behind it:
//! `base`, `issue`, `pattern`, `seq`, `segment`, `cursor`, `queue`, `limits` -> `capture`, `frame`, `decrypt` -> `records` ->
//! `messages`, `assemble` -> `lookup` -> `facts` -> `observe` -> `evidence` -> `exchange` -> `judge` -> `stream` -> `watch` ->
//! `probe` -> `table` -> `engine` -> `python`.

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
