//! The id of a JSON message, by which its sender knows the answer: JSON-RPC 2.0, GraphQL over WebSocket, and many
//! programs' own. Reads a message's first bytes; knows no schema.

use smol_str::SmolStr;

/// Names of ids and of references to them. An answer need not use the name that the request used.
const NAMES: [&[u8]; 16] = [
    b"id",
    b"re",
    b"ref",
    b"seq",
    b"reply_to",
    b"replyTo",
    b"in_reply_to",
    b"inReplyTo",
    b"request_id",
    b"requestId",
    b"req_id",
    b"reqId",
    b"correlation_id",
    b"correlationId",
    b"msg_id",
    b"msgId",
];
/// Longer values are no ids.
const MAX_ID: usize = 64;

/// The value of the first such member of the outermost object, as it is written.
pub(super) fn of(message: &[u8]) -> Option<SmolStr> {
    let mut rest = message.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let name;
        (name, rest) = string(rest.trim_ascii_start())?;
        rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let value;
        (value, rest) = value_of(rest)?;
        let scalar = !matches!(value.first(), Some(b'{' | b'[' | b'n' | b't' | b'f') | None);
        if scalar && value.len() <= MAX_ID && NAMES.contains(&name) {
            return std::str::from_utf8(value).ok().map(SmolStr::new);
        }
        rest = rest.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The inside of the string that begins here, and what stands behind it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inside.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((inside.get(..end)?, inside.get(end + 1..)?))
}

/// The value that begins here, as it is written, and what stands behind it.
fn value_of(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut rest, mut depth) = (bytes, 0u32);
    loop {
        rest = match rest.first()? {
            b'"' => string(rest)?.1,
            b'{' | b'[' => {
                depth += 1;
                rest.get(1..)?
            }
            b'}' | b']' | b',' if depth == 0 => break,
            b'}' | b']' => {
                depth -= 1;
                rest.get(1..)?
            }
            _ => rest.get(1..)?,
        };
    }
    let value = bytes.get(..bytes.len() - rest.len())?;
    Some((value.trim_ascii_end(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_the_outermost_object() {
        let id = |text: &str| of(text.as_bytes()).map(|id| id.to_string());
        assert_eq!(
            id(r#"{"jsonrpc": "2.0", "method": "add", "params": [1, {"id": 5}], "id": 7}"#),
            Some("7".into())
        );
        assert_eq!(
            id(r#" { "type" : "next" , "id" : "a\"b" }"#),
            Some(r#""a\"b""#.into())
        );
        assert_eq!(id(r#"{"re":12,"pad":"yy"#), Some("12".into()), "cut behind it");
        for none in [
            "",
            "{}",
            "[1]",
            "hello",
            r#"{"id": null}"#,
            r#"{"id": {"x": 1}}"#,
            r#"{"id": 1"#,
            r#"{"ID": 1}"#,
        ] {
            assert_eq!(id(none), None, "{none}");
        }
        assert_eq!(id(&format!(r#"{{"id": "{}"}}"#, "x".repeat(MAX_ID))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in prop::collection::vec(prop::sample::select(b"{}[]\":,id\\ 1".to_vec()), 0..60)) {
            of(&text);
        }
    }
}
