//! WebSocket (RFC 6455): its frames, and the ids of JSON messages.

mod frames;
mod id;
