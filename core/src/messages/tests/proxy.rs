//! The PROXY protocol, SOCKS and CONNECT: what follows is read as at a stream's beginning, however the bytes are cut.

use super::frames::*;
use super::*;

const GET: &[u8] = b"GET /a HTTP/1.1\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const READ: &str = "C( GET./a C)19 S( 200 S)38";

fn binary(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let len = (addresses.len() as u16).to_be_bytes();
    let head = [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x20 | command, family]].concat();
    [head, len.to_vec(), addresses.to_vec()].concat()
}

fn behind(head: &[u8]) -> String {
    let (notes, protocols) = transcript(&[(C, [head, GET].concat()), (S, OK.to_vec())]);
    assert_eq!(protocols, [Protocol::Proxy, Protocol::Http], "{notes}");
    notes
}

#[test]
fn the_client_of_a_proxy_is_read() {
    let tagged = |client: &str| format!("#//{client} {READ}");
    assert_eq!(
        behind(b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 80\r\n"),
        tagged("203.0.113.7")
    );
    assert_eq!(
        behind(b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n"),
        tagged("2001:db8::7")
    );
    assert_eq!(behind(b"PROXY UNKNOWN\r\n"), READ);
    let four = [203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x67, 0, 80];
    assert_eq!(behind(&binary(1, 0x11, &four)), tagged("203.0.113.7"));
    // fields behind the addresses are counted, and a health check of the proxy names nobody
    assert_eq!(
        behind(&binary(1, 0x11, &[&four[..], &[4; 300]].concat())),
        tagged("203.0.113.7")
    );
    assert_eq!(behind(&binary(0, 0, &[])), READ);
}

#[test]
fn what_only_begins_like_a_proxy_s_head_is_none() {
    for client in [&b"PROXY IPX 1 2 3 4\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x51\x11\0\0"] {
        let (notes, protocols) = transcript(&[(C, client.to_vec()), (S, b"no\r\n".to_vec())]);
        assert!(!protocols.contains(&Protocol::Proxy), "{notes}");
    }
    let long = [&b"PROXY TCP4 "[..], &[b'1'; 200], b"\r\n", GET].concat();
    let mut heard = Notes::default();
    Messages::new().feed(C, At::default(), Stretch::Bytes(&long), &mut heard);
    let notes = short(&heard.list);
    assert!(
        notes.starts_with("C?not_the_head_of_the_PROXY_protocol"),
        "{notes}"
    );
}

#[test]
fn tunnels_in_tunnels_end() {
    let heads = b"PROXY UNKNOWN\r\n".repeat(50_000);
    let (mut messages, mut notes) = (Messages::new(), Notes::default());
    messages.feed(C, At::default(), Stretch::Bytes(&heads), &mut notes);
    assert_eq!(messages.protocol(), Some(Protocol::Turns));
}

fn asks(to: &[u8]) -> Vec<u8> {
    [&[5, 1, 0], to, &[0, 80]].concat()
}

#[test]
fn socks_leads_to_what_it_carries() {
    let log_in = b"\x01\x03joe\x04pass".to_vec();
    let script = [
        (C, vec![5, 2, 0, 2]),
        (S, vec![5, 2]),
        (C, log_in),
        (S, vec![1, 0]),
        (C, asks(b"\x03\x04host")),
        (S, vec![5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        (C, GET.to_vec()),
        (S, OK.to_vec()),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::Socks, Protocol::Http], "{notes}");
    let made = "C( CONNECT.host:80 C)11 S( =ok S)10";
    assert!(notes.ends_with(&format!("{made} {READ}")), "{notes}");
    assert!(!notes.contains("joe") && !notes.contains("pass"), "{notes}");
    assert_eq!(notes.matches("Setup").count(), 2, "{notes}");
}

#[test]
fn a_server_that_greets_is_read_behind_socks_too() {
    let script = [
        (C, [&[4, 1, 0, 25, 0, 0, 0, 1][..], b"me\0mail\0"].concat()),
        (S, vec![0, 0x5A, 0, 0, 0, 0, 0, 0]),
        (S, b"220 mail ESMTP\r\n".to_vec()),
        (C, b"EHLO a\r\n".to_vec()),
        (S, b"250 mail\r\n".to_vec()),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::Socks, Protocol::Smtp], "{notes}");
    assert!(notes.starts_with("C( CONNECT.mail:25 C)16 S( =ok S)8"), "{notes}");
}

#[test]
fn a_refusal_of_socks_is_an_error() {
    let (notes, protocols) = transcript(&[
        (C, vec![5, 1, 0]),
        (S, vec![5, 0]),
        (C, asks(&[1, 10, 0, 0, 1])),
        (S, vec![5, 5, 0, 1, 0, 0, 0, 0, 0, 0]),
    ]);
    assert_eq!(protocols, [Protocol::Socks]);
    assert!(
        notes.ends_with("CONNECT.10.0.0.1:80 C)10 S( =connection refused/error S)10"),
        "{notes}"
    );
}

#[test]
fn short_binary_messages_are_no_socks() {
    for (client, server) in [
        (&[5, 1, 0][..], &[5, 2][..]), // a method that was not offered
        (&[5, 1, 0], &[6, 0]),
        (&[5, 200, 0], &[5, 0]),
        (&[4, 9, 0, 80, 1, 2, 3, 4, 0], &[0, 0x5A, 0, 0, 0, 0, 0, 0]),
        (&[4, 1, 0, 80, 1, 2, 3, 4, 0], &[0, 0x70, 0, 0, 0, 0, 0, 0]),
    ] {
        let (notes, protocols) = transcript(&[(C, client.to_vec()), (S, server.to_vec())]);
        assert!(!protocols.contains(&Protocol::Socks), "{notes}");
    }
}

#[test]
fn a_granted_connect_carries_what_it_carries() {
    let script = [
        (C, b"CONNECT mail:25 HTTP/1.1\r\n\r\n".to_vec()),
        (S, b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        (S, b"220 mail ESMTP\r\n".to_vec()),
        (C, b"EHLO a\r\n".to_vec()),
        (S, b"250 mail\r\n".to_vec()),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::Http, Protocol::Smtp], "{notes}");
}

#[test]
fn heads_name_their_trace() {
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let asks = format!("GET /a HTTP/1.1\r\n{trace}X-Request-ID: r-1\r\n\r\n");
    let answers = "HTTP/1.1 200 OK\r\nX-Request-Id: r-2\r\nContent-Length: 0\r\n\r\n";
    let notes = notes(&[(C, asks.into_bytes()), (S, answers.into())]);
    assert!(
        notes.contains("GET./a #4bf92f3577b34da6a3ce929d0e0e4736/r-1/ C)"),
        "{notes}"
    );
    assert!(notes.contains("200 #/r-2/ S)"), "{notes}");
}
