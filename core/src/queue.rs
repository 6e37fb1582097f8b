//! A queue that nearly always holds one element: the first is stored inline, only further ones on the heap.

use std::cmp::Ordering;
use std::collections::{VecDeque, vec_deque};
use std::iter::Chain;
use std::option;

/// FIFO queue. `others` is empty if `first` is None.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    first: Option<T>,
    others: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            first: None,
            others: VecDeque::new(),
        }
    }
}

impl<T> Queue<T> {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Allocated capacity for elements after the first.
    pub fn capacity(&self) -> usize {
        self.others.capacity()
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    #[inline(always)]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// The element after the first.
    pub fn second(&self) -> Option<&T> {
        self.others.front()
    }

    #[inline(always)]
    pub fn back(&self) -> Option<&T> {
        if self.others.is_empty() {
            self.first.as_ref()
        } else {
            self.others.back()
        }
    }

    #[inline(always)]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        if self.others.is_empty() {
            self.first.as_mut()
        } else {
            self.others.back_mut()
        }
    }

    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        if self.first.is_none() {
            self.first = Some(value);
        } else {
            self.others.push_back(value);
        }
    }

    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.others.is_empty() {
            self.first = self.others.pop_front();
        }
        first
    }

    pub fn pop_back(&mut self) -> Option<T> {
        self.others.pop_back().or_else(|| self.first.take())
    }

    /// Removes and returns the first element for which `wanted` is true.
    pub fn take(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        if self.first.as_ref().is_some_and(&wanted) {
            return self.pop_front();
        }
        let index = self.others.iter().position(wanted)?;
        self.others.remove(index)
    }

    /// Index in `others` of the element that compares equal; the queue must be sorted.
    fn sorted_index(&self, order: impl Fn(&T) -> Ordering) -> Option<usize> {
        self.others.binary_search_by(order).ok()
    }

    /// Like `take`, by binary search; the queue must be sorted.
    pub fn take_sorted(&mut self, order: impl Fn(&T) -> Ordering) -> Option<T> {
        if self.first.as_ref().is_some_and(|first| order(first).is_eq()) {
            return self.pop_front();
        }
        let index = self.sorted_index(order)?;
        self.others.remove(index)
    }

    /// Finds an element after the first by binary search; the queue must be sorted.
    pub fn find_sorted(&mut self, order: impl Fn(&T) -> Ordering) -> Option<&mut T> {
        let index = self.sorted_index(order)?;
        self.others.get_mut(index)
    }

    /// Skips the elements for which `before` is true and iterates over the rest. No element for which it is true may
    /// follow one for which it is false.
    pub fn iter_skipping(&mut self, before: impl Fn(&T) -> bool) -> impl Iterator<Item = &mut T> {
        let index = self.others.partition_point(&before);
        let first = self.first.as_mut().filter(|first| !before(first));
        first.into_iter().chain(self.others.range_mut(index..))
    }

    /// Removes all elements; keeps the allocation.
    pub fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.others.retain(&mut keep);
        if self.first.as_ref().is_some_and(|first| !keep(first)) {
            self.first = self.others.pop_front();
        }
    }

    /// Shrinks the allocation to at most this many elements after the first.
    pub fn shrink_to(&mut self, others: usize) {
        self.others.shrink_to(others);
    }

    pub fn iter(&self) -> Chain<option::Iter<'_, T>, vec_deque::Iter<'_, T>> {
        self.first.iter().chain(&self.others)
    }

    pub fn iter_mut(&mut self) -> Chain<option::IterMut<'_, T>, vec_deque::IterMut<'_, T>> {
        self.first.iter_mut().chain(&mut self.others)
    }
}

impl<'a, T> IntoIterator for &'a Queue<T> {
    type Item = &'a T;
    type IntoIter = Chain<option::Iter<'a, T>, vec_deque::Iter<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Queue<T> {
    type Item = &'a mut T;
    type IntoIter = Chain<option::IterMut<'a, T>, vec_deque::IterMut<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As the standard library's, whatever is done with it.
        #[test]
        fn is_a_queue(steps in prop::collection::vec(0u8..6, 0..60)) {
            let (mut queue, mut known) = (Queue::default(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0..3 => {
                        queue.push_back(number);
                        known.push_back(number);
                    }
                    3 => prop_assert_eq!(queue.pop_back(), known.pop_back()),
                    _ => prop_assert_eq!(queue.pop_front(), known.pop_front()),
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (known.len(), known.is_empty()));
                prop_assert_eq!((queue.front(), queue.second()), (known.front(), known.get(1)));
                prop_assert_eq!(queue.front_mut(), known.front_mut());
                prop_assert_eq!(queue.back(), known.back());
                prop_assert_eq!(queue.back_mut(), known.back_mut());
                prop_assert!(queue.iter().eq(&known));
                prop_assert!(queue.iter_mut().rev().eq(known.iter_mut().rev()));
            }
            let wanted = |number: &usize| number % 5 == 4;
            let index = known.iter().position(wanted);
            prop_assert_eq!(queue.take(wanted), index.and_then(|index| known.remove(index)));
            prop_assert!(queue.iter().eq(&known));
            let kept = |number: &usize| !number.is_multiple_of(3);
            queue.retain(kept);
            known.retain(kept);
            prop_assert!(queue.iter().eq(&known));
            queue.clear();
            prop_assert!(queue.is_empty() && queue.back_mut().is_none());
        }
    }
}
