//! Why did this segment leave? Scripted senders, one case per answer.
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;
mod play;

mod clocked;
mod repairs;
mod small;
mod turns;
mod typing;
