//! Requests that wait for their answers, where answers come in the order of the requests. Gives each its key for the
//! sink; knows no protocol.

use std::collections::VecDeque;

/// Requests of one stream that may wait. Beyond it nobody can tell what an answer belongs to.
const MAX_WAITING: usize = 16_384;

/// What is remembered of each request until its answer is over.
#[derive(Debug)]
pub(super) struct PendingQueue<T> {
    list: VecDeque<T>,
    /// The next request's key. Keys only rise.
    next: u64,
}

impl<T> Default for PendingQueue<T> {
    fn default() -> Self {
        PendingQueue {
            list: VecDeque::new(),
            next: 0,
        }
    }
}

impl<T> PendingQueue<T> {
    /// Another request waits; its key. None where too many do.
    pub(super) fn push(&mut self, what: T) -> Option<u64> {
        if self.list.len() >= MAX_WAITING {
            return None;
        }
        self.list.push_back(what);
        self.next += 1;
        Some(self.next - 1)
    }

    /// The oldest request that waits.
    pub(super) fn first(&mut self) -> Option<(u64, &mut T)> {
        let key = self.next - self.list.len() as u64;
        self.list.front_mut().map(|what| (key, what))
    }

    /// The newest request.
    pub(super) fn last(&mut self) -> Option<(u64, &mut T)> {
        let key = self.next.saturating_sub(1);
        self.list.back_mut().map(|what| (key, what))
    }

    /// The oldest request's answer is over.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.list.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Nobody knows what the next answer belongs to.
    pub(super) fn clear(&mut self) {
        self.list = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_rise_and_the_number_of_requests_is_bounded() {
        let mut waiting = PendingQueue::default();
        for key in 0..MAX_WAITING as u64 {
            assert_eq!(waiting.push(key), Some(key));
        }
        assert_eq!(waiting.push(0), None);
        assert_eq!(waiting.pop(), Some(0));
        assert_eq!(waiting.first(), Some((1, &mut 1)));
        assert_eq!(waiting.push(7), Some(MAX_WAITING as u64));
        waiting.clear();
        assert!(waiting.is_empty() && waiting.first().is_none());
        assert_eq!(waiting.push(8), Some(MAX_WAITING as u64 + 1));
    }
}
