//! Decryption Secrets Blocks: handed on whole, in both byte orders, however the file is cut.

use super::*;

const TLS: u32 = 0x544c_534b;

fn block(order: Order, kind: u32, len: u32, text: &[u8]) -> Vec<u8> {
    order.block(10, &[&order.u32s(&[kind, len]), text].concat())
}

#[test]
fn the_text_of_tls_secrets_is_handed_on() {
    for order in [LITTLE, BIG] {
        let file = [
            order.section(),
            block(order, TLS, 5, b"first"),
            order.interface(1, 0, &[]),
            block(order, 0x5353_4b4b, 3, b"ssh"),
            order.packet(0, 5, b"data", 4),
            block(order, TLS, 6, b"second"),
            order.packet(0, 6, b"data", 4),
        ];
        let found = whole(&file.concat());
        assert_eq!((found.frames, found.issues.len()), (2, 0));
        assert_eq!(found.secrets, [b"first".to_vec(), b"second".to_vec()]);
    }
}

#[test]
fn secrets_that_do_not_fit_their_block() {
    let section = LITTLE.section();
    let (at, packet) = (section.len() as u64, LITTLE.packet(0, 5, b"", 0));
    let interface = LITTLE.interface(1, 0, &[]);
    let found = whole(
        &[
            &section[..],
            &block(LITTLE, TLS, 99, b"text"),
            &interface,
            &packet,
        ]
        .concat(),
    );
    is(
        only(&found),
        Kind::Skipped,
        at,
        None,
        "decryption secrets are shorter than their length",
    );
    assert_eq!((found.frames, found.secrets), (1, vec![b"text".to_vec()]));

    let found = whole(&[&section[..], &LITTLE.block(10, &[1; 7]), &interface, &packet].concat());
    assert_eq!((found.frames, found.issues.len(), found.secrets.len()), (1, 0, 0));

    let longest = pcapng::MAX_BLOCK_BYTES as usize;
    let long = block(LITTLE, TLS, 1, &vec![b'x'; longest]);
    let found = whole(&[&section[..], &long, &interface, &packet].concat());
    let reason = "decryption secrets are beyond the longest block";
    is(only(&found), Kind::Skipped, at, None, reason);
    assert_eq!((found.frames, found.secrets.len()), (1, 0));
}
