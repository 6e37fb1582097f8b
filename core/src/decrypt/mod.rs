//! Decryption of TLS with a key log. Takes the key log and the bytes of a connection in order. Returns the plaintext
//! with the packets that carried it, or the reason why it stays encrypted.
//!
//! - `keylog.rs` parses key logs.
//! - `suite.rs` lists the supported cipher suites.
//! - `schedule.rs` derives keys from secrets.
//! - `cipher.rs` decrypts one record.
//! - `handshake.rs` splits handshake messages and reads the hellos.
//! - `half.rs` has the keys and record number of one direction.
//! - `session.rs` follows both directions through the handshake.
//! - `connection.rs` splits the bytes into records and resynchronises after lost bytes.
//! - `conversation.rs` decrypts a whole stream, for callers outside the analysis.
//!
//! Sources: RFC 8446 (TLS 1.3), RFC 5246 (1.2), RFC 5288 (GCM), RFC 7905 (ChaCha20), RFC 7366 (encrypt-then-MAC),
//! draft-ietf-tls-keylogfile. No type of this module prints a secret.

mod cipher;
mod connection;
mod conversation;
mod half;
pub(crate) mod handshake;
mod keylog;
mod schedule;
mod session;
mod suite;
#[cfg(test)]
pub(crate) mod tests;

pub use connection::{Connection, Taker};
pub use conversation::{Decryption, Part};
pub use keylog::KeyLog;
pub use session::Sealed;
