//! Line ends between and inside heads.

/// How many of `bytes`, which follow `before`, still belong to the head: up to its first empty line.
pub(super) fn end_of_head(before: &[u8], bytes: &[u8]) -> Option<usize> {
    let mut line_end = before.ends_with(b"\n") || before.ends_with(b"\n\r");
    let mut previous = before.last().copied();
    for (index, byte) in bytes.iter().enumerate() {
        line_end = match byte {
            b'\n' if line_end => return Some(index + 1),
            b'\n' => true,
            b'\r' => line_end && previous == Some(b'\n'),
            _ => false,
        };
        previous = Some(*byte);
    }
    None
}

/// `bytes` from the first that is no line end on.
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
