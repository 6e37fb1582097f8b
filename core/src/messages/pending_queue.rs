//! The unanswered requests of a stream whose answers come in the order of the requests. Gives each request the key
//! under which the sink reports it. Readers whose answers come in any order keep their requests in a `VecDeque`, which
//! `push_dropping_oldest` bounds and `take_first` searches.

use std::collections::VecDeque;

/// Upper bound on unanswered requests. Beyond it answers cannot be matched any more.
const MAX_WAITING: usize = 16_384;

/// A queue with the reader's state `T` for each request, until its answer ends.
#[derive(Debug)]
pub(super) struct PendingQueue<T> {
    list: VecDeque<T>,
    /// The next request's key. Keys are consecutive.
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
    /// Adds a request and returns its key. `None` if the queue is full.
    pub(super) fn push(&mut self, request: T) -> Option<u64> {
        if self.list.len() >= MAX_WAITING {
            return None;
        }
        self.list.push_back(request);
        self.next += 1;
        Some(self.next - 1)
    }

    /// The oldest unanswered request, with its key.
    pub(super) fn first(&mut self) -> Option<(u64, &mut T)> {
        let key = self.next - self.list.len() as u64;
        self.list.front_mut().map(|request| (key, request))
    }

    /// The newest request, with its key.
    pub(super) fn last(&mut self) -> Option<(u64, &mut T)> {
        let key = self.next.saturating_sub(1);
        self.list.back_mut().map(|request| (key, request))
    }

    /// Removes the oldest request, because its answer has ended.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.list.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all requests, because the next answer cannot be matched with one.
    pub(super) fn clear(&mut self) {
        self.list = VecDeque::new();
    }
}

/// Appends an entry. Drops the oldest one first if the list has `max` entries.
pub(super) fn push_dropping_oldest<T>(list: &mut VecDeque<T>, max: usize, entry: T) {
    if list.len() >= max {
        list.pop_front();
    }
    list.push_back(entry);
}

/// Removes and returns the oldest entry that matches.
pub(super) fn take_first<T>(list: &mut VecDeque<T>, matches: impl Fn(&T) -> bool) -> Option<T> {
    list.remove(list.iter().position(matches)?)
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
