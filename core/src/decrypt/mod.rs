//! TLS records to plain text, where somebody gave the keys. Reads a key log and one connection's bytes in order; gives
//! what the programs sent, with the packets that brought it, or the reason why it stays sealed. Knows nothing of
//! what the plain text means, nor of packets beyond `At`.
//!
//! `keylog.rs` reads the text of a key log, `suite.rs` lists the cipher suites, `schedule.rs` derives keys,
//! `cipher.rs` opens one record, `handshake.rs` cuts handshake messages and reads the hellos, `half.rs` is one sender's
//! keys and numbers, `session.rs` both sides' way through the handshake, `connection.rs` cuts the bytes into records and
//! finds the way again behind lost ones, `conversation.rs` gives a whole stream's plaintext.
//!
//! Sources: RFC 8446 (TLS 1.3), RFC 5246 (1.2), RFC 5288 (GCM), RFC 7905 (ChaCha20), RFC 7366 (encrypt-then-MAC),
//! draft-ietf-tls-keylogfile. No secret leaves this module: none of its types prints one.

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
