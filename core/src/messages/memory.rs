//! The state that the readers of all streams share.

use std::sync::Arc;

use super::http1;
use crate::decrypt::KeyLog;

/// Caches, reusable readers and keys, shared by the readers of all streams.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) head_cache: Option<Box<http1::HeadCache>>,
    /// The reader of an ended stream; its allocation is reused for the next.
    pub(super) http: Option<Box<http1::Http1>>,
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

    pub(super) fn http(&mut self) -> Box<http1::Http1> {
        let Some(mut reader) = self.http.take() else {
            return Box::default();
        };
        *reader = http1::Http1::default();
        reader
    }
}
