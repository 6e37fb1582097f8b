//! Sequence numbers: wrapping comparison (RFC 9293 3.4), and extension to 64 bits.

/// Whether `a` is before `b` in sequence space, modulo 2^32.
#[inline]
pub fn lt(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` is `b` or before it.
#[inline]
pub fn le(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) <= 0
}

/// Extends a relative 32-bit number to the 64-bit number nearest to `near`, the highest number seen so far.
///
/// Streams longer than 4 GiB wrap: `unwrap_near(2, 0xffff_fffc)` is `0x1_0000_0002`.
#[inline]
pub fn unwrap_near(relative: u32, near: i64) -> i64 {
    near.wrapping_add(i64::from(relative.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_wraps() {
        assert!(lt(u32::MAX, 0) && lt(0, 1) && !lt(1, u32::MAX) && le(7, 7));
    }

    #[test]
    fn unwrapping_follows_the_turns() {
        assert_eq!(unwrap_near(5, 0), 5);
        assert_eq!(unwrap_near(u32::MAX, 3), -1);
        assert_eq!(unwrap_near(2, (1 << 32) - 4), (1 << 32) + 2);
        assert_eq!(unwrap_near(u32::MAX - 1, (1 << 32) + 7), (1 << 32) - 2);
    }
}
