//! Names of requests as the tables show them: valid UTF-8 of bounded length.

use smol_str::{SmolStr, format_smolstr};

use crate::cursor;

/// Upper bound on a name in bytes; longer ones are truncated, as they only distinguish exchanges.
const MAX_NAME: usize = 2048;

/// Converts bytes to text of at most `MAX_NAME` bytes.
pub(super) fn name(bytes: &[u8]) -> SmolStr {
    name_up_to(bytes, MAX_NAME, false)
}

/// Converts the beginning of a name whose end is not in the capture: `/ind` gives `/ind…`.
pub(super) fn cut_name(bytes: &[u8]) -> SmolStr {
    name_up_to(bytes, MAX_NAME, true)
}

/// Converts bytes to text of at most `max_len` bytes, truncated between characters. The text ends with an ellipsis
/// where it was truncated, or where the bytes are the beginning of a name (`is_cut`).
pub(super) fn name_up_to(bytes: &[u8], max_len: usize, is_cut: bool) -> SmolStr {
    let (mut kept, mut is_cut) = (bytes, is_cut);
    if let Some(first) = bytes.get(..max_len)
        && bytes.len() > max_len
    {
        let is_continuation = |end: usize| bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80);
        let back = (0..4).find(|back| !is_continuation(max_len.saturating_sub(*back)));
        kept = cursor::upto(first, max_len.saturating_sub(back.unwrap_or(0)));
        is_cut = true;
    }
    let text = String::from_utf8_lossy(kept);
    if is_cut {
        format_smolstr!("{text}…")
    } else {
        SmolStr::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters_and_say_so() {
        assert_eq!(name(b"/index"), "/index");
        assert_eq!(name(b"\xff"), "\u{FFFD}");
        assert_eq!(cut_name(b"/ind"), "/ind…");
        assert_eq!(name_up_to("aé".as_bytes(), 2, false), "a…");
        assert_eq!(name_up_to("aé".as_bytes(), 3, false), "aé");
        assert_eq!(name_up_to("aéb".as_bytes(), 3, false), "aé…");
        assert_eq!(name_up_to(b"abc", 0, false), "…");
        assert_eq!(name(&[b'x'; MAX_NAME + 1]).len(), MAX_NAME + "…".len());
    }
}
