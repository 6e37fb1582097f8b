//! Types that every layer uses: the two sides of a connection, instants, and enums with words.

use std::ops::{Index, IndexMut};

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Client, Side::Server];

    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    pub fn index(self) -> usize {
        self as usize
    }

    /// This side's element of an array by side.
    #[inline(always)]
    pub fn pick<T>(self, [client, server]: &[T; 2]) -> &T {
        if self == Side::Client { client } else { server }
    }

    #[inline(always)]
    pub fn pick_mut<T>(self, both: &mut [T; 2]) -> &mut T {
        self.split_mut(both).0
    }

    /// This side's element and the other side's.
    #[inline(always)]
    pub fn split_mut<T>(self, [client, server]: &mut [T; 2]) -> (&mut T, &mut T) {
        match self {
            Side::Client => (client, server),
            Side::Server => (server, client),
        }
    }
}

/// One value for each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BySide<T> {
    pub client: T,
    pub server: T,
}

impl<T> Index<Side> for BySide<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, side: Side) -> &T {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

impl<T> IndexMut<Side> for BySide<T> {
    #[inline(always)]
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// A packet: its frame number, from 1 as Wireshark counts, and its time in ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    pub frame: u64,
    pub time_ns: i64,
}

/// Defines an enum whose variants have a word for the tables, and its meaning.
macro_rules! word_enum {
    ($(#[$doc:meta])* $list:ident: $($word:literal $variant:ident $meaning:literal)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $list {
            $(#[doc = $meaning] $variant,)+
        }

        impl $list {
            pub const COUNT: usize = [$($word),+].len();
            /// In the order of the list.
            pub const ALL: [$list; Self::COUNT] = [$($list::$variant),+];
            pub const WORDS: [&'static str; Self::COUNT] = [$($word),+];

            /// The word at this index of the list.
            pub fn word_at(index: usize) -> &'static str {
                Self::WORDS.get(index).copied().unwrap_or_default()
            }

            pub fn word(self) -> &'static str {
                Self::word_at(self as usize)
            }

            pub fn meaning(self) -> &'static str {
                match self {
                    $($list::$variant => $meaning,)+
                }
            }
        }
    };
}

pub(crate) use word_enum;
