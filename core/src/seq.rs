//! Sequence numbers: comparison that wraps (RFC 9293 3.4) and unwrapping to 64 bits.

/// `a` is before `b` on the 32-bit circle.
#[inline]
pub fn lt(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// `a` is `b` or before it.
#[inline]
pub fn le(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) <= 0
}

/// A 32-bit relative number as the 64-bit number that lies nearest to `near`.
///
/// Streams longer than 4 GiB wrap; the highest number seen so far decides the wrap.
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
