//! The fields of a header block that an exchange needs.

use smol_str::SmolStr;

use super::hpack::Name;
use crate::messages::pieces::BodySplitter;
use crate::messages::tags::Tags;
use crate::messages::{RequestName, Status, url};

/// The fields of one block; empty where absent or unknown.
#[derive(Debug, Default)]
pub(super) struct Fields {
    method: SmolStr,
    path: SmolStr,
    authority: SmolStr,
    pub(super) status: Option<u16>,
    /// An extended CONNECT (RFC 8441).
    protocol: bool,
    pub(super) grpc: bool,
    pub(super) grpc_status: Option<u16>,
    pub(super) pieces: Option<BodySplitter>,
    pub(super) is_encoded: bool,
    pub(super) server: Option<SmolStr>,
    pub(super) tags: Tags,
    /// Some fields are in a part of the header table that the capture does not show.
    pub(super) has_unknown: bool,
}

impl Fields {
    pub(super) fn add(&mut self, name: Name, value: Option<&str>) {
        let text = value.unwrap_or_default();
        match name {
            Name::Method => self.method = text.into(),
            Name::Path => self.path = String::from_utf8_lossy(&url::shown(text.as_bytes())).into(),
            Name::Authority => self.authority = url::host(text).into_owned().into(),
            Name::Status => self.status = text.parse().ok().filter(|status| (100..1000).contains(status)),
            Name::Protocol => self.protocol = true,
            Name::ContentType => {
                self.grpc = text.starts_with("application/grpc");
                self.pieces = BodySplitter::of(text);
            }
            Name::ContentEncoding => self.is_encoded = text != "identity",
            Name::GrpcStatus => {
                self.grpc = true;
                self.grpc_status = text.parse().ok();
            }
            Name::Server => self.server = value.map(SmolStr::new),
            Name::Tag(name) => self.tags.add(name, text.as_bytes()),
            Name::Unknown => self.has_unknown = true,
            Name::Other => {}
        }
    }

    pub(super) fn is_interim(&self) -> bool {
        self.status.is_some_and(|status| status < 200)
    }

    /// Whether the stream becomes a tunnel with the answer.
    pub(super) fn connects(&self) -> bool {
        self.method == "CONNECT"
    }

    pub(super) fn named(&self) -> RequestName<'_> {
        let is_plain = self.connects() && !self.protocol;
        RequestName {
            method: &self.method,
            target: if is_plain { &self.authority } else { &self.path },
            host: &self.authority,
        }
    }

    /// The answer's status, from its head or trailers. A call of gRPC has status 200 whatever its result, which is in
    /// the trailers.
    pub(super) fn final_status(&self, grpc: bool) -> Option<Status<'static>> {
        match (self.grpc_status, self.status) {
            (Some(code), _) => Some(grpc_status(code)),
            (None, Some(200)) if grpc => None,
            (None, status) => status.map(Status::reply_code),
        }
    }
}

/// The status of a call of gRPC with this code.
pub(in crate::messages) fn grpc_status(code: u16) -> Status<'static> {
    Status::new(Some(code), grpc_word(code), code != 0)
}

/// The names of gRPC's status codes.
fn grpc_word(code: u16) -> Option<&'static str> {
    #[rustfmt::skip]
    const WORDS: [&str; 17] = [
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
        "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    ];
    WORDS.get(usize::from(code)).copied()
}
