use super::*;
use crate::base::Side;

const MS: i64 = 1_000_000;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const PROXY: [u8; 4] = [10, 0, 0, 2];
const ORIGIN: [u8; 4] = [10, 0, 0, 3];
const LOCAL: [u8; 4] = [127, 0, 0, 1];

/// A request of `took` microseconds, answered when it ends.
fn span(client: [u8; 4], server: [u8; 4], server_port: u16, start: i64, took: i64) -> Span {
    let end = (start + took) * 1000;
    Span {
        key: Key {
            server: server.into(),
            server_port,
            client: client.into(),
            sender: Side::Client,
        },
        start_ns: start * 1000,
        request_end_ns: start * 1000,
        answered_ns: end,
        end_ns: end,
        is_at_host: [true; 2],
        may_be_outer: server_port == 80,
        may_be_inner: server_port != 80,
    }
}

fn look(spans: &[Span]) -> Vec<Option<Inside>> {
    Nesting::default().look(spans, &vec![false; spans.len()], true)
}

/// So many requests through a proxy, one per tenth of a second, the origin's part from `client`.
fn proxied(count: i64, client: [u8; 4], origin: [u8; 4]) -> Vec<Span> {
    let pair = |n| {
        let took = 20_000 + 3_000 * n % 17_000;
        [
            span(CLIENT, PROXY, 80, 100_000 * n, took + 90),
            span(client, origin, 8080, 100_000 * n + 60, took),
        ]
    };
    (0..count).flat_map(pair).collect()
}

#[test]
fn a_proxys_requests_lie_inside_those_of_its_clients() {
    for (client, origin) in [(PROXY, ORIGIN), (LOCAL, LOCAL)] {
        let found = look(&proxied(8, client, origin));
        for (place, inside) in found.iter().enumerate() {
            let front = (place % 2 == 1).then(|| place - 1);
            assert_eq!(*inside, front.map(|front| Inside { front, doubt: None }));
        }
    }
    let local: Vec<Span> = (0..10)
        .flat_map(|n| {
            let took = 20_000 + 3_000 * n % 17_000;
            [
                span(LOCAL, LOCAL, 80, 100_000 * n, took + 90),
                span(PROXY, ORIGIN, 8080, 100_000 * n + 60, took),
            ]
        })
        .collect();
    assert_eq!(
        look(&local).iter().flatten().count(),
        10,
        "it is asked on loopback"
    );
    let far: Vec<Span> = proxied(8, LOCAL, LOCAL)
        .into_iter()
        .map(|span| Span {
            is_at_host: [false; 2],
            ..span
        })
        .collect();
    assert!(
        look(&far).iter().all(Option::is_none),
        "the proxy's host has no loopback here"
    );
    assert!(
        look(&proxied(8, CLIENT, ORIGIN)).iter().all(Option::is_none),
        "another host asks"
    );
}

#[test]
fn few_requests_are_not_sure_and_one_may_be_luck() {
    let inside = |count| look(&proxied(count, PROXY, ORIGIN)).get(1).copied().flatten();
    assert_eq!(inside(1), None);
    assert_eq!(
        inside(2),
        Some(Inside {
            front: 0,
            doubt: Some(Because::FewInside)
        })
    );
    assert_eq!(
        inside(7),
        Some(Inside {
            front: 0,
            doubt: Some(Because::FewInside)
        })
    );
    assert_eq!(
        inside(8),
        Some(Inside {
            front: 0,
            doubt: None
        })
    );
}

/// Somebody on the same host asks every 7 ms for 1 ms, while clients ask all the time and wait 50 ms.
#[test]
fn a_health_checker_lies_inside_by_luck() {
    let mut spans: Vec<Span> = (0..200)
        .map(|n| span(CLIENT, PROXY, 80, 50_500 * n, 50_000))
        .collect();
    spans.extend((0..1400).map(|n| span(PROXY, ORIGIN, 8080, 7_000 * n + 3, 1_000)));
    spans.sort_by_key(|span| span.start_ns);
    assert!(look(&spans).iter().all(Option::is_none));
}

#[test]
fn a_cached_answer_has_nothing_inside() {
    let mut spans = proxied(10, PROXY, ORIGIN);
    let hit = span([10, 0, 0, 9], PROXY, 80, 500_010, 40_000);
    spans.push(hit);
    spans.sort_by_key(|span| span.start_ns);
    let place = spans.iter().position(|span| span.key == hit.key).unwrap();
    let found = look(&spans);
    assert!(found.iter().flatten().all(|inside| inside.front != place));
    assert_eq!(found.iter().flatten().count(), 10);
}

/// Two that wait for the same time at the same time cannot be told apart: each gets one, and neither is proven.
#[test]
fn two_fronts_as_near_share_two_requests() {
    let mut spans = proxied(10, PROXY, ORIGIN);
    let twins: Vec<Span> = spans.get(10..12).unwrap().to_vec();
    spans.extend(twins);
    spans.sort_by_key(|span| span.start_ns);
    let found = look(&spans);
    let doubted: Vec<usize> = (found.iter().flatten())
        .filter(|inside| inside.doubt == Some(Because::SeveralAround))
        .map(|inside| inside.front)
        .collect();
    assert_eq!(doubted, [10, 11]);
    assert_eq!(found.iter().flatten().count(), 11);
}

#[test]
fn where_one_host_may_ask_both_the_waits_have_to_follow() {
    let lockstep = |varied: i64, own: i64| {
        let pair = |n: i64| {
            let took = 30_000 + varied * (n * 7 % 10);
            [
                span(LOCAL, LOCAL, 80, 100_000 * n, took + 100 + own * (n * 3 % 10)),
                span(LOCAL, LOCAL, 8080, 100_000 * n + 20, took),
            ]
        };
        let spans: Vec<Span> = (0..20).flat_map(pair).collect();
        look(&spans).iter().flatten().count()
    };
    assert_eq!(
        lockstep(500, 0),
        20,
        "what the one takes longer the other does, too"
    );
    assert_eq!(lockstep(500, 120), 20);
    assert_eq!(lockstep(500, 130), 0);
    assert_eq!(lockstep(0, 0), 0, "two programs that sleep as long as each other");
}

/// What had no front in one look may have it in the next; only then it counts against the pair.
#[test]
fn a_front_may_end_later() {
    let mut nesting = Nesting::default();
    let spans = proxied(10, PROXY, ORIGIN);
    nesting.look(&spans, &vec![false; spans.len()], false);
    let alone: Vec<Span> = (0..40)
        .map(|n| span(PROXY, ORIGIN, 8080, 9_000_000 + n * MS, 500))
        .collect();
    nesting.look(&alone, &vec![false; alone.len()], false);
    let seen = |nesting: &Nesting| {
        nesting
            .pairs
            .values()
            .map(|seen| (seen.inside, seen.outside))
            .next()
    };
    assert_eq!(seen(&nesting), Some((10, 0)));
    nesting.look(&alone, &vec![true; alone.len()], false);
    assert_eq!(seen(&nesting), Some((10, 40)));
}
