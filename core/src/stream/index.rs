//! Finds the current stream between two endpoints. Holds ids only; the endpoints are stored with the streams.

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::store::{Ends, Store};
use super::tuple::FourTuple;

/// Hash table of half a hash and a stream id: nine bytes per stream, whatever the addresses.
#[derive(Default)]
pub(super) struct Index {
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
}

/// A 64-bit hash from the stored half. The table takes seven bits from one end and the slot from the other, so both
/// ends get the 32 bits.
fn full_hash(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

impl Index {
    /// Hash of a key.
    pub(super) fn half(&self, key: &FourTuple) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    /// The stream between these endpoints, and its fields that are known without restoring it. `half` is the hash of
    /// the key.
    pub(super) fn get(&self, half: u32, key: &FourTuple, store: &Store) -> Option<(u32, Ends)> {
        let mut ends = None;
        let entry = self.table.find(full_hash(half), |(entry_half, id)| {
            ends = (*entry_half == half).then(|| store.head(*id)).flatten();
            ends.as_ref().is_some_and(|head| head.key() == *key)
        });
        Some((entry?.1, ends?))
    }

    /// Adds the newest stream between its endpoints, in the place of the stream `before`, if any.
    pub(super) fn insert(&mut self, half: u32, id: u32, before: Option<u32>) {
        let entry = self.table.entry(
            full_hash(half),
            |(_, entry_id)| Some(*entry_id) == before,
            |(half, _)| full_hash(*half),
        );
        match entry {
            Entry::Occupied(mut entry) => entry.get_mut().1 = id,
            Entry::Vacant(entry) => {
                entry.insert((half, id));
            }
        }
    }
}
