//! Nagle or a program's pause? Synthetic endpoints at three vantages, judged by `judge::sender`
//! (docs/verdicts.md).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "../common/mod.rs"]
mod common;
mod endpoint;

mod connections;
mod controls;
mod holds;
mod pauses;
mod releases;
