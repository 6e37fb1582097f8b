//! The addresses of a batch as words.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::{ArrayRef, StringArray};

/// Each word once, by two and two that belong together: these remember theirs, so that a row costs no look-up.
#[derive(Default)]
pub struct Addresses {
    known: AHashMap<IpAddr, i32>,
    words: Vec<String>,
    /// By the number of the two: the batch that the keys belong to, and the keys.
    both: Vec<(u32, i32, i32)>,
    /// The newest ones of this batch: many have an address in common with the ones before.
    newest: Option<[(IpAddr, i32); 2]>,
    batch: u32,
}

impl Addresses {
    /// Keys of the row's two addresses. Their number stands for both orders: `turned` is the one that was not the first.
    #[inline(always)]
    pub fn keys(&mut self, number: u32, turned: bool, ends: impl FnOnce() -> [IpAddr; 2]) -> (i32, i32) {
        match self.both.get(number as usize) {
            Some(&(batch, one, other)) if batch == self.batch => {
                if turned {
                    (other, one)
                } else {
                    (one, other)
                }
            }
            _ => self.new_keys(number, turned, ends()),
        }
    }

    /// Of the first row in this batch that has them.
    #[cold]
    #[inline(never)]
    fn new_keys(&mut self, number: u32, turned: bool, [first, second]: [IpAddr; 2]) -> (i32, i32) {
        let index = number as usize;
        if self.both.len() <= index {
            self.both.resize(index + 1, (u32::MAX, 0, 0));
        }
        let (first_key, second_key) = (self.key(first), self.key(second));
        self.newest = Some([(first, first_key), (second, second_key)]);
        if let Some(slot) = self.both.get_mut(index) {
            *slot = if turned {
                (self.batch, second_key, first_key)
            } else {
                (self.batch, first_key, second_key)
            };
        }
        (first_key, second_key)
    }

    fn key(&mut self, address: IpAddr) -> i32 {
        let near = self.newest.iter().flatten().find(|(known, _)| *known == address);
        if let Some((_, key)) = near {
            return *key;
        }
        let words = &mut self.words;
        *self.known.entry(address).or_insert_with(|| {
            words.push(address.to_string());
            words.len() as i32 - 1
        })
    }

    pub fn take(&mut self) -> ArrayRef {
        self.known.clear();
        self.newest = None;
        self.batch = (self.batch + 1) % u32::MAX;
        Arc::new(StringArray::from(std::mem::take(&mut self.words)))
    }
}
