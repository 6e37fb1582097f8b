//! Line ends between and inside heads.

use memchr::memchr_iter;

/// Returns how many of `bytes`, which follow `before`, are of the head: up to and with its first empty line.
pub(super) fn end_of_head(before: &[u8], bytes: &[u8]) -> Option<usize> {
    let ends = |at: &usize| match bytes.get(..*at).unwrap_or_default() {
        [.., b'\n'] | [.., b'\n', b'\r'] => true,
        [b'\r'] => before.ends_with(b"\n"),
        [] => before.ends_with(b"\n") || before.ends_with(b"\n\r"),
        _ => false,
    };
    memchr_iter(b'\n', bytes).find(ends).map(|at| at + 1)
}

/// Skips line ends at the beginning.
#[inline(always)]
pub(super) fn skip_line_ends(bytes: &[u8]) -> &[u8] {
    match bytes.first() {
        Some(b'\r' | b'\n') => skip_some(bytes),
        _ => bytes,
    }
}

#[cold]
fn skip_some(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    bytes.get(first.unwrap_or(bytes.len())..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The first line end that only a CR may stand between it and another, however the bytes are cut.
        #[test]
        fn a_head_ends_with_its_first_empty_line(bytes in "[a\r\n]{0,12}", cut in 0usize..13) {
            let bytes = bytes.as_bytes();
            let empty = |at: usize| {
                let line = bytes.get(..at).unwrap_or_default();
                bytes.get(at) == Some(&b'\n') && (line.ends_with(b"\n") || line.ends_with(b"\n\r"))
            };
            let (before, after) = bytes.split_at_checked(cut).unwrap_or((&[], bytes));
            let want = (before.len()..bytes.len()).find(|at| empty(*at)).map(|at| at + 1 - before.len());
            prop_assert_eq!(end_of_head(before, after), want);
        }
    }
}
