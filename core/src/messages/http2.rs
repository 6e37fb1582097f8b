//! HTTP/2 (RFC 9113): its frames and its compressed headers.

mod frames;
mod hpack;
mod huffman;
mod statics;
