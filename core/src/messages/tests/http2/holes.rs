//! What the capture lacks, and connections that begin in the middle.

use super::*;

/// One packet each.
fn packets(script: &[(Side, Vec<u8>)]) -> String {
    let packets: Vec<_> = script
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    short(&stretches(&packets))
}

#[test]
fn what_is_no_frame_is_lost_and_found_again() {
    let script = after_opening(vec![
        (C, get(1, "/a")),
        (
            S,
            [status(1, WHOLE, "200"), b"This is no frame.".to_vec()].concat(),
        ),
    ]);
    let lost = packets(&script);
    assert!(lost.ends_with("S1:) S?not_a_frame_of_HTTP/2 S( S)17"), "{lost}");
    // one frame inside the block of another
    let wrong = after_opening(vec![(C, [frame(1, 1, 1, &[0x82]), get(3, "/")].concat())]);
    assert!(packets(&wrong).contains("C?not_a_frame"));
    let again = [
        script,
        vec![(C, frame(1, 5, 3, &[0x82, 0x84])), (S, frame(1, 5, 3, &[0x88]))],
    ]
    .concat();
    let found = packets(&again);
    assert!(
        found.ends_with("C3:( C3:GET./@ C3:11) S3:( S3:10=200 S3:)"),
        "{found}"
    );
}

#[test]
fn a_hole_in_a_body_is_counted_and_any_other_is_searched_over() {
    let body = data(1, END_STREAM, &[b'x'; 100]);
    let (opened, packets) = (
        opening(),
        [get(1, "/a"), status(1, END_HEADERS, "200"), get(3, "/b")],
    );
    let mut script: Vec<_> = opened
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    let [a, ok, b] = &packets;
    script.extend([(C, Stretch::Bytes(a)), (S, Stretch::Bytes(ok))]);
    let (more, last) = (data(3, 1, b"more"), status(3, END_HEADERS, "200"));
    let hole = [
        (S, Stretch::Bytes(&body[..20])),
        (S, Stretch::Missing(80)),
        (S, Stretch::Bytes(&body[100..])),
    ];
    let after = [
        (C, Stretch::Bytes(&b[..])),
        (S, Stretch::Bytes(&last)),
        (S, Stretch::Bytes(&more)),
    ];
    let counted = short(&stretches(&[&script[..], &hole, &after].concat()));
    assert!(
        counted.contains("S1:109)") && counted.ends_with("S3:22=200 S3:13)"),
        "{counted}"
    );
    // the hole takes the next frame's header with it: the other side is read on, and this one from a sure beginning
    let wide = [hole[0], (S, Stretch::Missing(101))];
    let inside = [b"xxxx", &last[..], &more[..]].concat();
    let found = [
        (C, Stretch::Bytes(&b[..])),
        (S, Stretch::Bytes(b"xxxxxxxxx")),
        (S, Stretch::Bytes(&inside)),
    ];
    let searched = short(&stretches(&[&script[..], &wide, &found].concat()));
    assert!(
        searched.ends_with("C3:( C3:GET./b@h C3:46) S3:( S3:22=200 S3:13)"),
        "{searched}"
    );
}

#[test]
fn a_head_that_is_not_whole_leaves_names_unknown_and_the_rest_right() {
    // the path is inserted into the table, and requested again by its index
    let insert = [vec![0x82, 0x44, 2], b"/a".to_vec()].concat();
    let (first, again) = (frame(1, 5, 1, &insert), frame(1, 5, 3, &[0x82, 0xbe]));
    let lost = frame(1, 5, 5, &[0x82, 0x44, 2, b'/', b'x', 0xbe]);
    let third = frame(1, 5, 7, &[0x82, 0xbe]);
    let opened = opening();
    let mut script: Vec<_> = opened
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    script.extend([
        (C, Stretch::Bytes(&first[..])),
        (C, Stretch::Bytes(&again)),
        (C, Stretch::Bytes(&lost[..12])),
    ]);
    script.extend([
        (C, Stretch::Missing(2)),
        (C, Stretch::Bytes(&lost[14..])),
        (C, Stretch::Bytes(&third)),
    ]);
    assert_eq!(
        short(&stretches(&script)),
        "C1:( C1:GET./a@ C1:14) C3:( C3:GET./a@ C3:11) C5:( C5:.@ C5:15) C7:( C7:GET.@ C7:11)"
    );
}

#[test]
fn a_connection_is_joined_in_the_middle() {
    let (ask, tail) = (
        frame(1, 5, 21, &[0x82, 0xc0, 0x84]),
        data(19, 1, b"the end of another"),
    );
    let (answer, body) = (frame(1, 4, 21, &[0x88, 0xc1]), data(21, 1, b"x"));
    let script = [
        (S, Stretch::Bytes(&tail[..])),
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Bytes(&answer)),
        (S, Stretch::Bytes(&body)),
    ];
    let notes = stretches(&script);
    assert_eq!(short(&notes), "C21:( C21:GET./@ C21:12) S21:( S21:11=200 S21:10)");
    // from within a body, once one that is sure begins
    let mut within = script;
    within[0].1 = Stretch::Bytes(b"the end of another");
    within.swap(0, 1);
    assert_eq!(short(&stretches(&within)), short(&notes));
    assert_eq!((likely_sender(&ask), likely_sender(&answer)), (Some(C), Some(S)));
    // a header may come in parts there too
    let single: Vec<_> = script[1..]
        .iter()
        .flat_map(|(side, stretch)| {
            let Stretch::Bytes(bytes) = stretch else {
                unreachable!()
            };
            bytes.chunks(1).map(|piece| (*side, Stretch::Bytes(piece)))
        })
        .collect();
    assert_eq!(short(&stretches(&single)), short(&notes));
}
