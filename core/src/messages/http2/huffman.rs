//! Huffman-coded strings of HPACK (RFC 7541 5.2, Appendix B).
//!
//! The code is canonical: the symbols of one code length have consecutive codes, and longer codes are larger numbers
//! when aligned to the left. So the next 32 bits decide the code's length, and the distance from the first code of this
//! length decides the symbol.

/// The codes of one length.
struct Class {
    bits: u32,
    /// The first code, aligned to the left in 32 bits.
    first: u32,
    /// The index of the first code's symbol in `SYMBOLS`.
    at: usize,
}

const fn class(bits: u32, first: u32, at: usize) -> Class {
    Class {
        bits,
        first: first << (32 - bits),
        at,
    }
}

/// The classes of Appendix B.
const CLASSES: [Class; 21] = [
    class(5, 0x0, 0),
    class(6, 0x14, 10),
    class(7, 0x5c, 36),
    class(8, 0xf8, 68),
    class(10, 0x3f8, 74),
    class(11, 0x7fa, 79),
    class(12, 0xffa, 82),
    class(13, 0x1ff8, 84),
    class(14, 0x3ffc, 90),
    class(15, 0x7ffc, 92),
    class(19, 0x7fff0, 95),
    class(20, 0xfffe6, 98),
    class(21, 0x1fffdc, 106),
    class(22, 0x3fffd2, 119),
    class(23, 0x7fffd8, 145),
    class(24, 0xffffea, 174),
    class(25, 0x1ffffec, 186),
    class(26, 0x3ffffe0, 190),
    class(27, 0x7ffffde, 205),
    class(28, 0xfffffe2, 224),
    class(30, 0x3ffffffc, 253),
];

/// The symbols in the order of their codes. The last code, 30 ones, is the end of the string and has no symbol.
const SYMBOLS: &[u8; 256] =
    b"012aceiost %-./3456789=A_bdfghlmnpru:BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz&*,;XZ!\"()?'+|#>\x00$@[]\
    ~^}<`{\\\xc3\xd0\x80\x82\x83\xa2\xb8\xc2\xe0\xe2\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\
    \xe6\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\
    \xe4\xe8\xe9\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\
    \xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef\t\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed\xc7\xcf\xea\xeb\
    \xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\
    \xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\
    \x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9\n\r\x16";

/// The error for a string with an invalid code or padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong;

/// Decodes a string. Appends its first `max_len` bytes to `text` and returns its whole length.
pub(super) fn decode(coded: &[u8], max_len: usize, text: &mut Vec<u8>) -> Result<usize, Wrong> {
    let (mut coded, mut length) = (coded.iter(), 0);
    let (mut bits, mut have) = (0u64, 0u32);
    loop {
        while have < 32
            && let Some(byte) = coded.next()
        {
            bits = bits << 8 | u64::from(*byte);
            have += 8;
        }
        // the next 32 bits, filled up with ones at the end of the string, as padding is
        let next = if have >= 32 {
            (bits >> (have - 32)) as u32
        } else {
            (bits << (32 - have)) as u32 | u32::MAX >> have
        };
        let class = CLASSES
            .iter()
            .rev()
            .find(|class| class.first <= next)
            .ok_or(Wrong)?;
        if class.bits > have {
            // padding: fewer than 8 bits, all ones
            return if have < 8 && next == u32::MAX {
                Ok(length)
            } else {
                Err(Wrong)
            };
        }
        let index = class.at + ((next - class.first) >> (32 - class.bits)) as usize;
        let symbol = SYMBOLS.get(index).ok_or(Wrong)?;
        if length < max_len {
            text.push(*symbol);
        }
        length += 1;
        have -= class.bits;
        bits &= (1 << have) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Code and bits of a symbol, by the tables above.
    fn code(symbol: u8) -> (u32, u32) {
        let index = SYMBOLS.iter().position(|other| *other == symbol).unwrap();
        let class = CLASSES.iter().rev().find(|class| class.at <= index).unwrap();
        (
            (class.first >> (32 - class.bits)) + (index - class.at) as u32,
            class.bits,
        )
    }

    pub(crate) fn encode(text: &[u8]) -> Vec<u8> {
        let mut ones: Vec<bool> = Vec::new();
        for symbol in text {
            let (code, bits) = code(*symbol);
            ones.extend((0..bits).rev().map(|bit| code >> bit & 1 == 1));
        }
        while !ones.len().is_multiple_of(8) {
            ones.push(true);
        }
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        ones.chunks(8).map(byte).collect()
    }

    fn text(coded: &[u8]) -> Result<String, Wrong> {
        let mut text = Vec::new();
        let length = decode(coded, usize::MAX, &mut text)?;
        assert_eq!(length, text.len());
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_classes_follow_from_each_other() {
        for (class, next) in CLASSES.iter().zip(&CLASSES[1..]) {
            let after = (class.first >> (32 - class.bits)) + (next.at - class.at) as u32;
            assert_eq!(after << (32 - class.bits), next.first, "{} bits", class.bits);
        }
        let mut all = SYMBOLS.to_vec();
        all.sort_unstable();
        assert_eq!(all, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn the_examples_of_rfc_7541_c_4() {
        let coded = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(text(&coded).unwrap(), "www.example.com");
        assert_eq!(text(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]).unwrap(), "no-cache");
        assert_eq!(text(&[]).unwrap(), "");
    }

    #[test]
    fn padding_is_short_and_of_ones_and_no_end_stands_inside() {
        assert_eq!(text(&[0x1f]).unwrap(), "a"); // 00011 and 3 ones
        assert_eq!(text(&[0x18]), Err(Wrong)); // 3 zeros
        assert_eq!(text(&[0x1f, 0xff]), Err(Wrong)); // 11 ones
        assert_eq!(text(&[0xff, 0xff, 0xff, 0xff]), Err(Wrong)); // the end's code
    }

    #[test]
    fn the_limit_bounds_what_is_kept_and_not_what_is_counted() {
        let mut kept = b"before ".to_vec();
        assert_eq!(decode(&encode(&[b'x'; 300]), 4, &mut kept), Ok(300));
        assert_eq!(kept, b"before xxxx");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut back = Vec::new();
            prop_assert_eq!(decode(&encode(&text), usize::MAX, &mut back), Ok(text.len()));
            prop_assert_eq!(back, text);
        }

        #[test]
        fn any_bytes_decode_or_are_wrong(coded in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut text = Vec::new();
            if let Ok(length) = decode(&coded, usize::MAX, &mut text) {
                prop_assert_eq!(length, text.len());
                prop_assert_eq!(encode(&text), coded);
            }
        }
    }
}
