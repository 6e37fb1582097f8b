//! The one thing that a ClientHello tells a reader: which server the client wants (RFC 6066 3).

/// Longest name of a host (RFC 1035 2.3.4).
const LONGEST: usize = 253;

/// The server's name, where the hello holds one as printable ASCII.
pub(super) fn server_name(hello: &[u8]) -> Option<String> {
    // type, length, version, random
    let rest = skip(hello, 1 + 3 + 2 + 32)?;
    let (_session, rest) = vector(rest, 1)?;
    let (_ciphers, rest) = vector(rest, 2)?;
    let (_compressions, rest) = vector(rest, 1)?;
    let mut extensions = skip(rest, 2)?;
    while let Some(([high, low], rest)) = extensions.split_first_chunk() {
        let (body, rest) = vector(rest, 2)?;
        if (*high, *low) == (0, 0) {
            let (list, _) = vector(body, 2)?;
            let (name, _) = vector(skip(list, 1)?, 2)?;
            let printable = name.len() <= LONGEST && name.iter().all(u8::is_ascii_graphic);
            return printable.then(|| String::from_utf8_lossy(name).into_owned());
        }
        extensions = rest;
    }
    None
}

fn skip(bytes: &[u8], len: usize) -> Option<&[u8]> {
    bytes.get(len..)
}

/// A length of `width` bytes and so many bytes behind it; and the rest.
fn vector(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let len = length.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    rest.split_at_checked(len)
}
