//! IP addresses in columns: as dictionary keys in the long tables, as texts in the others.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, StringArray};

/// The dictionary of addresses of one batch.
///
/// Rows name their two addresses by the number of the pair (a stream, or a pair of hosts). The keys of a pair are
/// remembered, so only its first row in a batch hashes its addresses.
#[derive(Default)]
pub struct Addresses {
    keys: AHashMap<IpAddr, i32>,
    texts: Vec<String>,
    /// By number of the pair: the batch that the keys belong to, and the two keys.
    pairs: Vec<(u32, i32, i32)>,
    /// The pair added last in this batch. The next pair often shares an address with it, which saves a hash.
    last_pair: Option<[(IpAddr, i32); 2]>,
    batch: u32,
}

impl Addresses {
    /// Returns the keys of a row's two addresses. `swapped` is true if the row has them in the reverse of the pair's
    /// order. `ends` returns the addresses in the row's order; only the first row of a pair calls it.
    #[inline(always)]
    pub fn keys(&mut self, pair: u32, is_swapped: bool, ends: impl FnOnce() -> [IpAddr; 2]) -> (i32, i32) {
        match self.pairs.get(pair as usize) {
            Some(&(batch, first, second)) if batch == self.batch => {
                if is_swapped {
                    (second, first)
                } else {
                    (first, second)
                }
            }
            _ => self.add_pair(pair, is_swapped, ends()),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_pair(&mut self, pair: u32, is_swapped: bool, [first, second]: [IpAddr; 2]) -> (i32, i32) {
        let index = pair as usize;
        if self.pairs.len() <= index {
            self.pairs.resize(index + 1, (u32::MAX, 0, 0));
        }
        let (first_key, second_key) = (self.key(first), self.key(second));
        self.last_pair = Some([(first, first_key), (second, second_key)]);
        if let Some(slot) = self.pairs.get_mut(index) {
            *slot = if is_swapped {
                (self.batch, second_key, first_key)
            } else {
                (self.batch, first_key, second_key)
            };
        }
        (first_key, second_key)
    }

    fn key(&mut self, address: IpAddr) -> i32 {
        let recent = self
            .last_pair
            .iter()
            .flatten()
            .find(|(recent, _)| *recent == address);
        if let Some((_, key)) = recent {
            return *key;
        }
        let texts = &mut self.texts;
        *self.keys.entry(address).or_insert_with(|| {
            texts.push(address.to_string());
            texts.len() as i32 - 1
        })
    }

    /// Returns the dictionary of the batch and begins the next one.
    pub fn take(&mut self) -> ArrayRef {
        self.keys.clear();
        self.last_pair = None;
        self.batch = (self.batch + 1) % u32::MAX;
        Arc::new(StringArray::from(std::mem::take(&mut self.texts)))
    }
}

/// Longest IPv4 address as text, in bytes.
const IPV4_TEXT_BYTES: usize = 15;

/// Builds a string column of addresses. An address that repeats in consecutive rows is formatted once.
pub fn address_texts(addresses: impl ExactSizeIterator<Item = Option<IpAddr>>) -> ArrayRef {
    let mut texts = StringBuilder::with_capacity(addresses.len(), IPV4_TEXT_BYTES * addresses.len());
    let mut text = String::with_capacity(40);
    let (mut last, mut times) = (None, 0);
    let mut append = |address: Option<IpAddr>, times| match address {
        None => texts.append_nulls(times),
        Some(address) => {
            text.clear();
            write_address(address, &mut text);
            texts.append_value_n(&text, times);
        }
    };
    for address in addresses {
        if address != last {
            append(last, times);
            (last, times) = (address, 0);
        }
        times += 1;
    }
    append(last, times);
    Arc::new(texts.finish())
}

/// Appends an address to `text`. For IPv4 this takes a tenth of the time of the standard library's formatting.
fn write_address(address: IpAddr, text: &mut String) {
    let IpAddr::V4(v4) = address else {
        return text.push_str(&address.to_string());
    };
    for (index, octet) in v4.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        for (min_octet, unit) in [(100, 100), (10, 10), (0, 1)] {
            if octet >= min_octet {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
}
