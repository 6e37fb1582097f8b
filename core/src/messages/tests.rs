//! smoke
use super::*;
#[test]
fn smoke() {
    let mut m = Messages::new();
    let mut n = Vec::new();
    let at = |f| At { frame: f, time_ns: 0 };
    m.feed(
        Side::Client,
        at(1),
        Piece::Bytes(b"GET /a HTTP/1.1\r\nA: b\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n"),
        &mut n,
    );
    m.feed(Side::Server, at(2), Piece::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nHTTP/1.1 408 T\r\nTransfer-encoding: chunked\r\n\r\n5;a\r\nabcde\r\n0\r\nx: y\r\n\r\n"), &mut n);
    for n in &n {
        eprintln!("{n:?}");
    }
    assert_eq!(m.protocol(), "http");
    assert_eq!(n.len(), 15);
    assert!(size_of::<Messages>() <= 160, "{}", size_of::<Messages>());
}
