//! Values of RFC 8448 section 3, computed a second time with Python's hmac module, and of the PRF likewise.

use super::talk::hex;
use crate::decrypt::keylog::{KeyLog, Label};
use crate::decrypt::schedule::{Secret, expand_label, prf};
use crate::decrypt::suite::Hash;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn expanded(hash: Hash, secret: &[u8], label: &str, len: usize) -> String {
    let mut out = vec![0; len];
    expand_label(hash, secret, label, &mut out).unwrap();
    hex(&out)
}

#[test]
fn traffic_keys_are_those_of_the_published_trace() {
    let cases = [
        (
            "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21",
            "dbfaa693d1762c5b666af5d950258d01",
            "5bd3c71b836e0b76bb73265f",
        ),
        (
            "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38",
            "3fce516009c21727d0f2e4e86ee403bc",
            "5d313eb2671276ee13000b30",
        ),
        (
            "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
            "9f02283b6c9c07efc26bb9f2ac92e356",
            "cf782b88dd83549aadf1e984",
        ),
        (
            "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
            "17422dda596ed5d9acd890e3c63f5051",
            "5b78923dee08579033e523d9",
        ),
    ];
    for (secret, key, iv) in cases {
        let secret = unhex(secret);
        assert_eq!(expanded(Hash::Sha256, &secret, "key", 16), key);
        assert_eq!(expanded(Hash::Sha256, &secret, "iv", 12), iv);
    }
    let secret: Vec<u8> = (0..48).collect();
    assert_eq!(
        expanded(Hash::Sha384, &secret, "key", 32),
        "6877d022f1c61d24ebb7487c16752d9a4798e40431c75b39320e537c90e23225"
    );
    let mut short = [0; 4];
    assert!(expand_label(Hash::Sha384, &secret[..32], "key", &mut short).is_none());
}

#[test]
fn a_key_update_goes_on_from_the_secret_before() {
    let secret = unhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643");
    let next = Secret::new(&secret).unwrap().next(Hash::Sha256).unwrap();
    assert_eq!(
        hex(next.bytes()),
        "51921b8aa3001976eb401d0a4319a8516416a6c56001a357e5d162031e84f916"
    );
}

#[test]
fn the_prf_of_both_hashes() {
    let (master, seed): (Vec<u8>, Vec<u8>) = ((0..48).collect(), (0..64).collect());
    let of = |hash| {
        let mut out = [0; 104];
        prf(
            hash,
            &master,
            "key expansion",
            (&seed[..32], &seed[32..]),
            &mut out,
        )
        .unwrap();
        hex(&out)
    };
    let long = "724152abe2fd4f3af374fb9420892f7f596f6d7ca573a31a50fb435dfd0c431ed62e5d92aa135958dbf9035cf97c343b\
                cdf6f744378ff8bd58030551645fe8cabcfa300b6c3ba5e6cbe2718d56ee796eb18a5cd89c1f9873e2fc2eacf024b93d\
                c650ed911ab6e913";
    let short = "4ac38c4d46e5ff44538c63cd6644009fd1aa1b19a81b76452615cb3f94ce61ea9f2477bd23b09dfa855a5d720e91e4b2\
                 0588e7d3c8a7ea09ee756866999714e82ec648155182727f19c882dbc6845bd4b682147c403e2560e81a33443f6cc12a\
                 75afcd5bcfcc3dbd";
    assert_eq!(of(Hash::Sha384), long);
    assert_eq!(of(Hash::Sha256), short);
}

#[test]
fn a_key_log_is_read_line_by_line() {
    let (random, master, traffic) = ("ab".repeat(32), "cd".repeat(48), "EF".repeat(32));
    let text = format!(
        "# a comment\r\nCLIENT_RANDOM {random} {master}\r\n\r\nSERVER_TRAFFIC_SECRET_0  {random}\t{traffic}\n\
         EXPORTER_SECRET {random} {traffic}\nQUIC_CLIENT_TRAFFIC_SECRET_0 {random} {traffic}\n\
         CLIENT_TRAFFIC_SECRET_N {random} {traffic}\nSERVER_TRAFFIC_SECRET_N {random} {traffic}"
    );
    let mut log = KeyLog::default();
    log.read(text.as_bytes(), |issue| panic!("{issue:?}"));
    assert_eq!(log.len(), 2);
    let random = [0xab; 32];
    assert_eq!(log.get(&random, Label::Master).unwrap().bytes(), [0xcd; 48]);
    assert_eq!(
        log.get(&random, Label::ServerTraffic).unwrap().bytes(),
        [0xef; 32]
    );
    assert!(log.get(&[0; 32], Label::Master).is_none());
}

#[test]
fn lines_that_cannot_be_used_are_counted_and_not_repeated() {
    let (random, master, short) = ("ab".repeat(32), "cd".repeat(48), "ef".repeat(20));
    let told = |text: &str| {
        let (mut log, mut told) = (KeyLog::default(), Vec::new());
        log.read(text.as_bytes(), |issue| told.push(issue.sentence()));
        (log.len(), told)
    };
    let malformed = "lines of a key log are malformed (the first is line 1)";
    for line in [
        format!("CLIENT_RANDOM {random}"),
        format!("CLIENT_RANDOM {random} {short}"),
        format!("CLIENT_RANDOM {random} {master} {master}"),
        format!("CLIENT_RANDOM {short} {master}"),
        format!("CLIENT_RANDOM {random} {}zz", &master[2..]),
        format!("CLIENT_RANDOM {random} {}", &random),
        format!("CLIENT_TRAFFIC_SECRET_0 {random} {}", "ab".repeat(99)),
    ] {
        assert_eq!(
            told(&format!("{line}\nCLIENT_RANDOM {random} {master}")),
            (1, vec![malformed.into()])
        );
    }
    let (kept, issues) = told(&format!("RSA {} {master}", &random[..16]));
    assert_eq!((kept, issues.len()), (0, 2));
    assert!(issues[0].starts_with("lines with premaster secrets are not used"));
    assert_eq!(issues[1], "key log holds no line that can be used");
    let (kept, issues) = told("\x00\x01garbage\nmore\n\n");
    assert_eq!((kept, issues.len()), (0, 3));
    assert_eq!(told(""), (0, vec![]));
    assert!(issues.iter().all(|issue| !issue.contains("garbage")));
}

#[test]
fn a_key_log_ends_at_its_caps() {
    let mut log = KeyLog::default();
    let mut told = Vec::new();
    for _ in 0..11 {
        log.read("QUIC_\n".repeat(100_000).as_bytes(), |issue| {
            told.push(issue.reason)
        });
    }
    assert_eq!(
        told,
        ["key log is longer than 64 MiB or 1,000,000 lines: the rest is not read"]
    );
}

#[test]
fn nothing_prints_a_secret() {
    let mut log = KeyLog::default();
    let line = format!("CLIENT_RANDOM {} {}", "ab".repeat(32), "cd".repeat(48));
    log.read(line.as_bytes(), |issue| panic!("{issue:?}"));
    let secret = log.get(&[0xab; 32], Label::Master).unwrap();
    let printed = format!("{log:?} {secret:?}");
    assert_eq!(printed, "KeyLog of 1 secrets Secret");
}
