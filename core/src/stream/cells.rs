//! Where streams at rest lie: those that are over in cells of large blocks, which others take over. Short connections come to
//! rest and leave by the thousand, and the system's memory would have to be asked twice for each.

use std::ops::Range;

/// Cells have so many bytes, or a multiple of it.
const UNIT: usize = 16;
/// What is longer has a block of its own.
const MOST_UNITS: usize = 128;
const BLOCK_BYTES: usize = 1 << 16;
/// A cell that is longer than needed by one part in so many is as good as a new one.
const SLACK: usize = 8;

/// A place with something in it: whoever has it gives it back.
#[derive(Debug)]
pub struct Cell {
    block: u32,
    /// In units, from the block's first.
    start: u16,
    /// Its length; 0 is all of the block.
    units: u16,
}

#[derive(Debug)]
pub(super) struct Cells {
    blocks: Vec<Box<[u8]>>,
    /// By their length, the first that nobody needs (`Cell::named`); the others follow it: each holds the name of the next.
    free: [u64; MOST_UNITS + 1],
    /// Numbers of blocks that had one thing in them, and are gone.
    gone: Vec<u32>,
    /// What new cells are cut from.
    rest: Cell,
}

impl Default for Cells {
    fn default() -> Self {
        Cells {
            blocks: Vec::new(),
            free: [NONE; MOST_UNITS + 1],
            gone: Vec::new(),
            rest: Cell {
                block: 0,
                start: 0,
                units: 0,
            },
        }
    }
}

impl Cells {
    /// Zeros may follow it there.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Cell {
        let units = bytes.len().div_ceil(UNIT).max(1);
        if units > MOST_UNITS {
            return self.keep_apart(bytes);
        }
        let free = (units..=units + units / SLACK).find_map(|units| self.take_free(units));
        let cell = free.unwrap_or_else(|| self.cut(units));
        let place = self.place(&cell);
        if let Some((place, behind)) = place.split_at_mut_checked(bytes.len()) {
            place.copy_from_slice(bytes);
            behind.fill(0);
        }
        cell
    }

    /// In memory that goes back when it leaves: for what is long, and for what will all leave at the end.
    pub(super) fn keep_apart(&mut self, bytes: &[u8]) -> Cell {
        Cell {
            block: self.number(bytes.into()),
            start: 0,
            units: 0,
        }
    }

    pub(super) fn get(&self, cell: &Cell) -> &[u8] {
        let block = self.blocks.get(cell.block as usize);
        let block = block.map_or(&[][..], |block| block);
        if cell.units == 0 {
            return block;
        }
        block.get(cell.range()).unwrap_or_default()
    }

    /// What lies there is needed no more.
    pub(super) fn free(&mut self, cell: Cell) {
        if cell.units > 0 {
            self.put_back(&cell);
        } else if let Some(block) = self.blocks.get_mut(cell.block as usize) {
            *block = Box::default();
            self.gone.push(cell.block);
        }
    }

    fn place(&mut self, cell: &Cell) -> &mut [u8] {
        let block = self.blocks.get_mut(cell.block as usize);
        block
            .and_then(|block| block.get_mut(cell.range()))
            .unwrap_or_default()
    }

    fn put_back(&mut self, cell: &Cell) {
        if let Some(first) = self.free.get_mut(usize::from(cell.units)) {
            let next = std::mem::replace(first, cell.name());
            if let Some(place) = self.place(cell).first_chunk_mut() {
                *place = next.to_le_bytes();
            }
        }
    }

    fn take_free(&mut self, units: usize) -> Option<Cell> {
        let first = self.free.get(units).copied().filter(|first| *first != NONE)?;
        let cell = Cell::named(first, units as u16);
        let next = self.get(&cell).first_chunk().copied();
        if let Some(first) = self.free.get_mut(units) {
            *first = next.map_or(NONE, u64::from_le_bytes);
        }
        Some(cell)
    }

    /// A new cell; of a longer one that nobody needs rather than of a new block.
    #[cold]
    fn cut(&mut self, units: usize) -> Cell {
        if usize::from(self.rest.units) < units {
            let longer = (units + 1..=MOST_UNITS)
                .rev()
                .find_map(|units| self.take_free(units));
            let next = longer.unwrap_or_else(|| Cell {
                block: self.number(vec![0; BLOCK_BYTES].into()),
                start: 0,
                units: (BLOCK_BYTES / UNIT) as u16,
            });
            let left = std::mem::replace(&mut self.rest, next);
            if left.units > 0 {
                self.put_back(&left);
            }
        }
        self.rest.split(units)
    }

    fn number(&mut self, block: Box<[u8]>) -> u32 {
        let number = self.gone.pop().unwrap_or(self.blocks.len() as u32);
        match self.blocks.get_mut(number as usize) {
            Some(place) => *place = block,
            None => self.blocks.push(block),
        }
        number
    }
}

/// No cell's name.
const NONE: u64 = u64::MAX;

impl Cell {
    /// Where it is.
    fn name(&self) -> u64 {
        u64::from(self.block) << 16 | u64::from(self.start)
    }

    fn named(name: u64, units: u16) -> Self {
        Cell {
            block: (name >> 16) as u32,
            start: name as u16,
            units,
        }
    }

    fn range(&self) -> Range<usize> {
        let start = usize::from(self.start) * UNIT;
        start..start + usize::from(self.units) * UNIT
    }

    /// The first part of it, which leaves the rest.
    fn split(&mut self, units: usize) -> Cell {
        let units = (units as u16).min(self.units);
        let first = Cell { units, ..*self };
        self.start += units;
        self.units -= units;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_whatever_came_and_left_before() {
        let mut cells = Cells::default();
        let text = |number: usize| vec![number as u8 | 1; number * 37 % 2500];
        let mut kept: Vec<(usize, Cell)> = Vec::new();
        for number in 0..20_000 {
            kept.push((number, cells.keep(&text(number))));
            if number % 3 > 0 {
                let (_, cell) = kept.swap_remove(number * 7919 % kept.len());
                cells.free(cell);
            }
        }
        for (number, cell) in kept {
            let (text, got) = (text(number), cells.get(&cell));
            let (whole, behind) = got.split_at(text.len());
            assert_eq!(whole, text);
            assert!(behind.iter().all(|byte| *byte == 0));
            cells.free(cell);
        }
        let blocks = cells.blocks.len();
        for number in 0..1_000 {
            cells.keep(&text(number % 50));
        }
        assert_eq!(cells.blocks.len(), blocks);
    }
}
