use super::*;
use proptest::prelude::*;

/// What one block tells, as `Name=value`, `?` for what is not known.
fn block(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<String>, Wrong> {
    let mut lines = Vec::new();
    decoder.block(bytes, |name, value| {
        lines.push(format!("{name:?}={}", value.unwrap_or("?")))
    })?;
    Ok(lines)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn sizes(decoder: &Decoder) -> Vec<u32> {
    decoder.table.iter().map(|entry| entry.size).collect()
}

#[test]
fn the_requests_of_rfc_7541_c_4() {
    let mut decoder = Decoder::new();
    let first = ["Method=GET", "Path=/", "Authority=www.example.com"];
    assert_eq!(
        block(&mut decoder, &hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")).unwrap(),
        first
    );
    assert_eq!(
        block(&mut decoder, &hex("8286 84be 5886 a8eb 1064 9cbf")).unwrap(),
        first
    );
    let third = hex("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
    let input = ["Method=GET", "Path=/index.html", "Authority=www.example.com"];
    assert_eq!(block(&mut decoder, &third).unwrap(), input);
    assert_eq!((decoder.size, sizes(&decoder)), (164, vec![54, 53, 57]));
}

#[test]
fn the_answers_of_rfc_7541_c_6_evict() {
    let mut decoder = Decoder::new();
    decoder.resize(256);
    let first = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d \
                 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
    assert_eq!(block(&mut decoder, &hex(first)).unwrap(), ["Status=302"]);
    assert_eq!((decoder.size, sizes(&decoder)), (222, vec![63, 65, 52, 42]));
    assert_eq!(
        block(&mut decoder, &hex("4883 640e ffc1 c0bf")).unwrap(),
        ["Status=307"]
    );
    let third = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d \
                 d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 \
                 3d50 07";
    assert_eq!(
        block(&mut decoder, &hex(third)).unwrap(),
        ["Status=200", "ContentEncoding=gzip"]
    );
    assert_eq!((decoder.size, sizes(&decoder)), (215, vec![98, 52, 65]));
}

#[test]
fn what_the_capture_does_not_show_is_unknown_and_read_over() {
    let mut decoder = Decoder::joined();
    // an entry from before the capture, a path under a name from there, and a path under a name that is known
    let lines = block(&mut decoder, b"\x82\xbf\x7f\x04\x02/x\x44\x02/y\x88").unwrap();
    assert_eq!(
        lines,
        ["Method=GET", "Unknown=?", "Unknown=?", "Path=/y", "Status=200"]
    );
    // the newest is at its place, the one before it has no name, what lies behind is unknown
    assert_eq!(
        block(&mut decoder, &[0xbe, 0xbf, 0xc0]).unwrap(),
        ["Path=/y", "Unknown=?", "Unknown=?"]
    );
    decoder.forget();
    assert_eq!(block(&mut decoder, &[0xbe]).unwrap(), ["Unknown=?"]);
    // an encoder that empties its table begins anew
    assert_eq!(block(&mut decoder, &[0x20, 0x3f, 0xe1, 0x1f]).unwrap(), [""; 0]);
    assert!(block(&mut decoder, &[0xbe]).is_err());
}

#[test]
fn a_block_that_is_wrong_makes_the_table_unknown() {
    let wrong: [&[u8]; 8] = [
        b"\x80",                         // index 0
        b"\xbf",                         // behind the table
        b"\x44",                         // no value
        b"\x44\x05abc",                  // a short value
        b"\x44\x81\x00",                 // padding of zeros
        b"\xff\xff\xff\xff\xff\xff\x01", // an integer without end
        b"\xff\xff\xff\xff\xff\x0f",     // and one that is too large
        b"\x3f",                         // the size update that other decoders fall over
    ];
    for bytes in wrong {
        let mut decoder = Decoder::new();
        block(&mut decoder, b"\x44\x02/y").unwrap();
        assert!(block(&mut decoder, bytes).is_err(), "{bytes:x?}");
        assert_eq!(block(&mut decoder, &[0xbe]).unwrap(), ["Unknown=?"], "{bytes:x?}");
    }
}

#[test]
fn long_values_are_cut_and_counted_whole() {
    let mut decoder = Decoder::new();
    let path = [b"\x44\x7f\xb1\x17".to_vec(), "é".repeat(1560).into_bytes()].concat();
    let lines = block(&mut decoder, &path).unwrap();
    assert_eq!(lines, [format!("Path={}…", "é".repeat(1024))]);
    assert_eq!(decoder.size, 5 + 3120 + 32);
    // an entry larger than the table empties it
    let large = [b"\x44\x7f\x81\x1f".to_vec(), vec![b'x'; 4096]].concat();
    block(&mut decoder, &large).unwrap();
    assert_eq!((decoder.size, decoder.table.len()), (0, 0));
}

proptest! {
    #[test]
    fn any_blocks_are_read_or_wrong_and_the_table_keeps_its_limit(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12),
        joined in any::<bool>(),
    ) {
        let mut decoder = if joined { Decoder::joined() } else { Decoder::new() };
        for bytes in &blocks {
            let _ = decoder.block(bytes, |name, value| assert!(name != Name::Unknown || value.is_none()));
            let sum: usize = decoder.table.iter().map(|entry| entry.size as usize).sum();
            prop_assert_eq!(decoder.size, sum);
            prop_assert!(sum <= decoder.limit && decoder.limit <= MAX_TABLE);
        }
    }
}
