//! Small segments of somebody who types: did an ACK set them free, or the peer's data, or nothing?

use latpcap_core::observe::{Candidate, Wait};

use crate::play::{Play, wait};

/// Someone who types: small segments that wait for ACKs, some of which come along with echoes.
struct Typist {
    play: Play,
    end: i64,
    us: i64,
}

impl Typist {
    fn new() -> Self {
        Typist {
            play: Play::new(),
            end: 1,
            us: 0,
        }
    }

    /// One more small segment, so long after the newest packet.
    fn key(&mut self, after_us: i64, server: bool) -> Option<Box<Candidate>> {
        self.us += after_us;
        let mut d = self.play.data(self.us, self.end, 2);
        d.is_from_server = server;
        self.end += 2;
        wait(self.play.give(&d));
        self.play.sender.take_freed()
    }

    /// An ACK of all keys, by itself or with an echo.
    fn acked(&mut self, echo: bool) {
        self.us += 10_000;
        if echo {
            self.play.echo(self.us, self.end);
        } else {
            self.play.ack(self.us, self.end);
        }
    }
}

/// Each pair: by an echo, and so long after it. Whether the last of them may have been written before.
fn typed(keys: &[(bool, i64)]) -> bool {
    let mut typist = Typist::new();
    typist.key(0, false);
    let (mut last, mut took) = (None, 0);
    for (echo, after_us) in keys {
        typist.acked(*echo);
        (last, took) = (typist.key(*after_us, false), *after_us);
    }
    let held = last.map(|c| (c.ack_lacks_data, c.freed.time_ns - c.small.time_ns));
    assert!(held.is_none_or(|held| held == (false, 10_000_000 + 1_000 * took)));
    held.is_some()
}

#[test]
fn data_that_acknowledge_free_what_a_client_wrote_meanwhile() {
    let (by_ack, by_echo) = ((false, 20), (true, 60));
    assert!(!typed(&[by_ack, by_echo, by_echo, by_echo]));
    assert!(typed(&[by_ack, by_echo, by_echo, by_echo, by_echo]));
    // nothing shows that it writes without waiting for answers
    assert!(!typed(&[by_echo; 12]));
    // later than a kernel: one in ten may be so
    let strays = |n: usize| typed(&[[by_ack, (true, 71)].as_slice(), &[by_echo; 12][..n]].concat());
    assert_eq!([11, 12].map(strays), [false, true]);
    // a message in two parts each: as often by an ACK as by an echo
    assert!(!typed(&[by_ack, by_echo].repeat(8)));
}

#[test]
fn who_sends_small_over_small_is_freed_by_no_data() {
    let mut over = Typist::new();
    over.key(0, false);
    over.acked(false);
    over.key(20, false);
    over.key(3_000, false); // nothing held this one
    for _ in 0..8 {
        over.acked(true);
        assert!(over.key(20, false).is_none());
    }
}

#[test]
fn a_server_that_was_asked_before_waits_for_the_ack_too() {
    // its program answers in `took` us with nothing in flight; what is freed leaves `after` us after the ACK
    for (took, after, asked, held) in [
        (100, 50, true, true),
        (100, 51, true, false), // no sooner than its program may answer
        (300, 100, true, true),
        (300, 101, true, false), // later than a kernel
        (100, 50, false, false), // it answers what it has just been asked
    ] {
        let mut play = Play::new();
        let mut end = 1;
        let mut answer = |play: &mut Play, us: i64| {
            let mut d = play.data(us, end, 2);
            (d.is_from_server, end) = (true, end + 2);
            wait(play.give(&d))
        };
        play.asked(0);
        answer(&mut play, took);
        play.ack(5_000, 3);
        answer(&mut play, 5_020); // small after small, with an ACK: it writes without being asked
        let mut said = Wait::App;
        for n in 1..4 {
            let us = n * 20_000;
            let since = asked.then(|| play.asked(us)); // without an ACK
            play.echo(us + 10_000, 2 * n + 3);
            said = answer(&mut play, us + 10_000 + after);
            if let (Wait::FreedTurn { since: from, .. }, Some(since)) = (&said, since) {
                assert_eq!(*from, since);
            }
        }
        assert_eq!(
            matches!(said, Wait::FreedTurn { .. }),
            held,
            "{took} {after} {asked}"
        );
    }
}
