//! What readers keep from one stream to the next.

use std::sync::Arc;

use super::http1;
use crate::decrypt::KeyLog;

/// What the readers of all streams remember together.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) head_cache: Option<Box<http1::HeadCache>>,
    /// One of a stream that is over, for the next.
    pub(super) http: Option<Box<http1::Http1>>,
    /// Of TLS connections, where somebody gave some. Shared, so that a reader has them while it gives notes.
    pub(super) keys: Option<Arc<KeyLog>>,
    /// What is read now lies inside TLS: a connection inside another one stays sealed.
    pub(super) inside: bool,
}

impl Memory {
    /// The keys of TLS connections, for more of them.
    pub fn keys(&mut self) -> &mut KeyLog {
        Arc::make_mut(self.keys.get_or_insert_default())
    }

    /// A handle for another connection of this capture.
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
