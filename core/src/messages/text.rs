//! Names as the tables show them: short, readable, never more than a cap. Knows no protocol.

use smol_str::{SmolStr, format_smolstr};

/// Longer names are cut: they only tell exchanges apart.
const MAX_NAME: usize = 2048;

/// The bytes as text.
pub(super) fn name(bytes: &[u8]) -> SmolStr {
    name_up_to(bytes, MAX_NAME, false)
}

/// Shortens a name whose end is not in the capture.
pub(super) fn cut_name(bytes: &[u8]) -> SmolStr {
    name_up_to(bytes, MAX_NAME, true)
}

/// At most `most` bytes, cut between characters; an ellipsis stands for what is not there, and after a name that
/// was `cut` before.
pub(super) fn name_up_to(bytes: &[u8], most: usize, mut cut: bool) -> SmolStr {
    let mut kept = bytes;
    if let Some(first) = bytes.get(..most)
        && bytes.len() > most
    {
        let behind = |end: usize| bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80);
        let back = (0..4).find(|back| !behind(most.saturating_sub(*back)));
        kept = first
            .get(..most.saturating_sub(back.unwrap_or(0)))
            .unwrap_or(first);
        cut = true;
    }
    let text = String::from_utf8_lossy(kept);
    if cut {
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
