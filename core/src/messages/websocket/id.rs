//! Members of a JSON message by which requests and answers are paired: of JSON-RPC 2.0, of GraphQL over WebSocket, and
//! ids of other programs. Reads the outermost object, of which the end may be cut off.

use smol_str::SmolStr;

use crate::messages::text;

/// Names of ids and of references to ids. An answer may use another name than the request.
#[rustfmt::skip]
const NAMES: [&[u8]; 16] = [
    b"id", b"re", b"ref", b"seq", b"reply_to", b"replyTo", b"in_reply_to", b"inReplyTo", b"request_id",
    b"requestId", b"req_id", b"reqId", b"correlation_id", b"correlationId", b"msg_id", b"msgId",
];
/// Upper bound on an id in bytes.
const MAX_ID: usize = 64;

/// Members of a message's outermost object. Values are as written in the JSON text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// The first member with one of `NAMES`.
    pub(super) id: Option<SmolStr>,
    /// The message is JSON-RPC 2.0.
    pub(super) is_rpc: bool,
    pub(super) method: Option<SmolStr>,
    /// The code of an error, "error" where it has none.
    pub(super) error: Option<SmolStr>,
    /// The method subscribes, by its name ("eth_subscribe", "accountSubscribe").
    pub(super) subscribes: bool,
    /// The id of a subscription: the result of a call, or a parameter of a notification.
    pub(super) subscription: Option<SmolStr>,
    /// The message subscribes by GraphQL. The server's messages for it repeat its id.
    pub(super) is_graphql_subscription: bool,
    /// The object's end was read.
    pub(super) is_whole: bool,
}

impl Members {
    pub(super) fn parse(message: &[u8]) -> Members {
        let mut members = Members::default();
        if let Some(object) = message.trim_ascii_start().strip_prefix(b"{") {
            members.is_whole = members.read(object).is_some();
        }
        members
    }

    /// Reads members up to the object's end; `None` if it is cut off.
    fn read(&mut self, mut rest: &[u8]) -> Option<()> {
        loop {
            let name;
            (name, rest) = string(rest.trim_ascii_start())?;
            rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
            let value;
            (value, rest) = value_of(rest)?;
            self.member(name, value);
            rest = rest.trim_ascii_start();
            if rest.starts_with(b"}") {
                return Some(());
            }
            rest = rest.strip_prefix(b",")?;
        }
    }

    fn member(&mut self, name: &[u8], value: &[u8]) {
        let is_scalar = !matches!(value.first(), Some(b'{' | b'[' | b'n' | b't' | b'f') | None);
        if self.id.is_none() && is_scalar && value.len() <= MAX_ID && NAMES.contains(&name) {
            self.id = text_of(value);
        }
        match name {
            b"jsonrpc" => self.is_rpc = value == b"\"2.0\"",
            b"method" => {
                self.method = string(value).map(|(method, _)| text::name_up_to(method, MAX_ID, false));
                let name = value.to_ascii_lowercase();
                self.subscribes = contains(&name, b"subscribe") && !contains(&name, b"unsubscribe");
            }
            b"result" if is_scalar && value.len() <= MAX_ID => self.subscription = text_of(value),
            b"params" => {
                self.subscription = value
                    .strip_prefix(b"{")
                    .and_then(|params| inner(params, b"subscription"));
            }
            // graphql-transport-ws, and graphql-ws before it
            b"payload" => {
                let query = value
                    .strip_prefix(b"{")
                    .and_then(|payload| inner_value(payload, b"query"));
                let query = query.and_then(|query| query.strip_prefix(b"\""));
                self.is_graphql_subscription =
                    query.is_some_and(|query| query.trim_ascii_start().starts_with(b"subscription"));
            }
            b"error" if value != b"null" => {
                let code = value.strip_prefix(b"{").and_then(|error| inner(error, b"code"));
                self.error = Some(code.unwrap_or(SmolStr::new_static("error")));
            }
            _ => {}
        }
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

fn text_of(value: &[u8]) -> Option<SmolStr> {
    std::str::from_utf8(value).ok().map(SmolStr::new)
}

/// Returns the value of a member of an object, if it is short.
fn inner(object: &[u8], wanted: &[u8]) -> Option<SmolStr> {
    inner_value(object, wanted)
        .filter(|value| value.len() <= MAX_ID)
        .and_then(text_of)
}

fn inner_value<'a>(mut rest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    loop {
        let (name, after) = string(rest.trim_ascii_start())?;
        let (value, after) = value_of(after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())?;
        if name == wanted {
            return Some(value);
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// Splits a JSON string off the front: its text without quotes, and the bytes after it.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let mut is_escaped = false;
    let end = inside.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })?;
    Some((inside.get(..end)?, inside.get(end + 1..)?))
}

/// Splits a JSON value off the front: its text, and the bytes after it.
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
        let id = |text: &str| Members::parse(text.as_bytes()).id.map(|id| id.to_string());
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

    #[test]
    fn calls_of_json_rpc() {
        let call =
            Members::parse(br#"{"jsonrpc": "2.0", "method": "eth_call", "params": [{"id": 5}], "id": 7}"#);
        assert!(call.is_rpc && call.is_whole && call.error.is_none());
        assert_eq!(
            (call.method.as_deref(), call.id.as_deref()),
            (Some("eth_call"), Some("7"))
        );
        let error = |text: &str| Members::parse(text.as_bytes()).error.map(|code| code.to_string());
        assert_eq!(
            error(r#"{"id":1,"error":{"message":"no","code":-32601},"jsonrpc":"2.0"}"#),
            Some("-32601".into())
        );
        assert_eq!(error(r#"{"id":1,"error":"no"}"#), Some("error".into()));
        assert_eq!(error(r#"{"id":1,"error":null}"#), None);
        assert!(!Members::parse(br#"{"jsonrpc":"2.0","method":"a","params":["#).is_whole);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in prop::collection::vec(prop::sample::select(b"{}[]\":,id\\ 1".to_vec()), 0..60)) {
            Members::parse(&text);
        }
    }
}
