//! Headers of distributed tracing and of proxies: the request's trace id, its own id, and the address of the client
//! behind a proxy. Values of another form are ignored.

use std::net::{IpAddr, SocketAddr};

use smol_str::{SmolStr, ToSmolStr};

/// Upper bound on the length of a request id.
const MAX_ID: usize = 128;

/// The tags of one request; "" where its head has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tags {
    /// Hexadecimal digits of W3C Trace Context, B3 or Jaeger.
    pub trace_id: SmolStr,
    /// The request's id of a proxy or a cloud's balancer.
    pub request_id: SmolStr,
    /// The address of the client behind a proxy.
    pub forwarded_for: SmolStr,
}

/// A header that has a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagName {
    /// W3C Trace Context 3.2.
    TraceParent,
    /// B3 in one header.
    B3,
    /// `X-B3-TraceId`.
    B3TraceId,
    /// The header of Jaeger's clients.
    UberTraceId,
    RequestId,
    /// RFC 7239.
    Forwarded,
    ForwardedFor,
}

impl TagName {
    /// Returns the tag of the header with this name, in any case.
    pub(super) fn of(name: &[u8]) -> Option<TagName> {
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        // by length first: most headers are compared with no name
        Some(match name.len() {
            2 if is(b"b3") => TagName::B3,
            9 if is(b"forwarded") => TagName::Forwarded,
            11 if is(b"traceparent") => TagName::TraceParent,
            12 if is(b"x-request-id") => TagName::RequestId,
            12 if is(b"x-b3-traceid") => TagName::B3TraceId,
            13 if is(b"uber-trace-id") => TagName::UberTraceId,
            15 if is(b"x-forwarded-for") => TagName::ForwardedFor,
            16 if is(b"x-correlation-id") => TagName::RequestId,
            _ => return None,
        })
    }
}

impl Tags {
    pub(super) fn is_empty(&self) -> bool {
        self.trace_id.is_empty() && self.request_id.is_empty() && self.forwarded_for.is_empty()
    }

    /// Adds the tag in a header's value. The first tag of a kind stays.
    pub(super) fn add(&mut self, name: TagName, value: &[u8]) {
        let Ok(value) = std::str::from_utf8(value) else {
            return;
        };
        let value = value.trim();
        let (slot, tag) = match name {
            TagName::TraceParent => (&mut self.trace_id, trace_parent(value)),
            TagName::B3 => (&mut self.trace_id, value.split('-').next().and_then(b3)),
            TagName::B3TraceId => (&mut self.trace_id, b3(value)),
            TagName::UberTraceId => (&mut self.trace_id, uber(value)),
            TagName::RequestId => (&mut self.request_id, request_id(value)),
            TagName::Forwarded => (&mut self.forwarded_for, forwarded(value)),
            TagName::ForwardedFor => (&mut self.forwarded_for, value.split(',').next().and_then(address)),
        };
        if slot.is_empty()
            && let Some(tag) = tag
        {
            *slot = tag;
        }
    }

    /// Fills empty tags from `other`.
    pub fn join(&mut self, other: &Tags) {
        let slots = [
            (&mut self.trace_id, &other.trace_id),
            (&mut self.request_id, &other.request_id),
            (&mut self.forwarded_for, &other.forwarded_for),
        ];
        for (slot, text) in slots {
            if slot.is_empty() {
                slot.clone_from(text);
            }
        }
    }
}

/// Whether a text is hexadecimal digits that are not all zero.
fn is_trace_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.bytes().any(|byte| byte != b'0')
}

fn trace_parent(value: &str) -> Option<SmolStr> {
    let mut parts = value.split('-');
    let (version, id) = (parts.next()?, parts.next()?);
    let fits = version.len() == 2 && id.len() == 32 && parts.next().is_some_and(|span| span.len() == 16);
    (fits && is_trace_id(id)).then(|| id.into())
}

fn b3(id: &str) -> Option<SmolStr> {
    (matches!(id.len(), 16 | 32) && is_trace_id(id)).then(|| id.into())
}

/// `trace:span:parent:flags`, in which some clients escape the colons as `%3A`.
fn uber(value: &str) -> Option<SmolStr> {
    let end = value.find(':').or_else(|| value.find("%3A"))?;
    let id = value.get(..end)?;
    ((1..=32).contains(&id.len()) && is_trace_id(id)).then(|| id.into())
}

fn request_id(value: &str) -> Option<SmolStr> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(&byte);
    ((1..=MAX_ID).contains(&value.len()) && value.bytes().all(plain)).then(|| value.into())
}

/// The first `for` parameter, which the proxy nearest to the client added.
fn forwarded(value: &str) -> Option<SmolStr> {
    let first = value.split(',').next()?;
    first.split(';').find_map(|pair| {
        let (name, node) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for")
            .then(|| address(node.trim_matches('"')))?
    })
}

/// An IP address, without the port after it.
fn address(text: &str) -> Option<SmolStr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let alone = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = alone.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_smolstr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(headers: &[(&str, &str)]) -> [String; 3] {
        let mut tags = Tags::default();
        for (name, value) in headers {
            if let Some(name) = TagName::of(name.as_bytes()) {
                tags.add(name, value.as_bytes());
            }
        }
        [tags.trace_id, tags.request_id, tags.forwarded_for].map(|tag| tag.to_string())
    }

    #[test]
    fn each_form_of_a_trace_gives_its_id() {
        let long = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (name, value, id) in [
            (
                "Traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                long,
            ),
            ("b3", "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1", long),
            ("X-B3-TraceId", "a3ce929d0e0e4736", "a3ce929d0e0e4736"),
            ("uber-trace-id", "a3ce929d0e0e4736:1:0:1", "a3ce929d0e0e4736"),
            ("uber-trace-id", "a3ce%3A1%3A0%3A1", "a3ce"),
            // not of their form: zeros, too short, a word, a decision to sample nothing
            (
                "traceparent",
                "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                "",
            ),
            ("traceparent", "00-4bf92f35-00f067aa0ba902b7-01", ""),
            ("uber-trace-id", "secret:1", ""),
            ("b3", "0", ""),
        ] {
            assert_eq!(tags(&[(name, value)]), [id, "", ""], "{name} {value}");
        }
    }

    #[test]
    fn the_client_behind_proxies_is_the_first_address() {
        for (name, value, client) in [
            ("X-Forwarded-For", "203.0.113.7, 10.0.0.1", "203.0.113.7"),
            ("X-Forwarded-For", "203.0.113.7:4711", "203.0.113.7"),
            ("X-Forwarded-For", "2001:db8::1", "2001:db8::1"),
            (
                "Forwarded",
                "proto=https; For=\"[2001:db8::1]:4711\", for=10.0.0.1",
                "2001:db8::1",
            ),
            ("Forwarded", "for=unknown", ""),
            ("X-Forwarded-For", "localhost", ""),
        ] {
            assert_eq!(tags(&[(name, value)]), ["", "", client], "{name} {value}");
        }
    }

    #[test]
    fn the_first_id_stays_and_odd_ones_are_left_out() {
        let ids = [("X-Request-ID", "a-1"), ("X-Correlation-Id", "b-2")];
        assert_eq!(tags(&ids), ["", "a-1", ""]);
        assert_eq!(tags(&[("X-Request-ID", "a b")]), ["", "", ""]);
        assert_eq!(tags(&[("X-Request-ID", &"a".repeat(MAX_ID + 1))]), ["", "", ""]);
    }
}
