//! The state that the readers of all streams share.

use std::sync::Arc;

use super::http1;
use super::readers::AnyReader;
use crate::decrypt::KeyLog;

/// Caches, reusable readers and keys, shared by the readers of all streams.
#[derive(Debug, Default)]
pub struct Memory {
    /// Heads of HTTP/1 read before, on any stream.
    pub(super) head_cache: Option<Box<http1::HeadCache>>,
    /// The HTTP/1 reader of an ended stream, for the next such stream.
    http: Option<Box<http1::Http1>>,
    /// The TLS key log, if there is one. Reference-counted, so that a reader can hold it while it borrows the sink.
    pub(super) keys: Option<Arc<KeyLog>>,
    /// The bytes being read were decrypted. TLS inside them is not decrypted again.
    pub(super) inside_tls: bool,
}

impl Memory {
    /// The TLS key log, to add keys.
    pub fn keys(&mut self) -> &mut KeyLog {
        Arc::make_mut(self.keys.get_or_insert_default())
    }

    /// The TLS key log, for a reader outside this module.
    pub fn shared_keys(&self) -> Option<Arc<KeyLog>> {
        self.keys.clone()
    }

    /// Takes back the reader of an ended stream: the box of an HTTP/1 reader is used again.
    pub(super) fn recycle(&mut self, reader: AnyReader) {
        if let AnyReader::Http(reader) = reader {
            self.http = Some(reader);
        }
    }

    /// A new HTTP/1 reader, in a recycled box if there is one.
    pub(super) fn http(&mut self) -> Box<http1::Http1> {
        let Some(mut reader) = self.http.take() else {
            return Box::default();
        };
        *reader = http1::Http1::default();
        reader
    }
}
