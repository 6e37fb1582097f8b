//! The sample captures give what `sample_pcaps/README.md` and `clips/truth.json` say of them.
#![allow(clippy::indexing_slicing, reason = "a panic is how a test fails")]

mod common;

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use common::tables::{Tables, sample};

/// Exchanges (by number) with a row of the cause, and its owners.
fn with(tables: &Tables, cause: &str) -> (BTreeSet<u64>, BTreeSet<String>) {
    let (causes, owners) = (tables.words("causes", "cause"), tables.words("causes", "owner"));
    let rows = tables
        .ids("causes", "exchange")
        .into_iter()
        .zip(causes)
        .zip(owners);
    rows.filter(|((_, name), _)| name == cause)
        .map(|((exchange, _), owner)| (exchange, owner))
        .unzip()
}

/// Index of every exchange within its stream, by the exchange's number.
fn indices(tables: &Tables) -> Vec<(u64, u32)> {
    let index = tables.column("exchanges", "index", |a| {
        a.as_primitive::<UInt32Type>().values().to_vec()
    });
    tables
        .ids("exchanges", "exchange")
        .into_iter()
        .zip(index)
        .collect()
}

/// TCP segments, streams, requests, complete ones.
fn counts(tables: &Tables) -> [usize; 4] {
    tables.assert_partitions();
    assert_eq!(tables.issues(), []);
    let rows = |name| tables.rows(name);
    [
        rows("events"),
        rows("streams"),
        rows("exchanges"),
        tables.complete(),
    ]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn nginx_latency() {
    let tables = Tables::of(&sample("nginx-latency.pcap"));
    assert_eq!(counts(&tables), [4966, 41, 960, 960]);
    let (held, owners) = with(&tables, "delayed_ack");
    assert_eq!(
        (held.len(), owners),
        (880, BTreeSet::from(["client".to_string()]))
    );
    // all but the first and the last of each connection
    let stalled: BTreeSet<u64> = indices(&tables)
        .iter()
        .filter(|(_, index)| (1..23).contains(index))
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(held, stalled);
    let rules = tables.words("causes", "rule");
    assert_eq!(
        rules.iter().filter(|rule| *rule == "nagle_fin_release").count(),
        40
    );
    let holds: Vec<f64> = tables
        .ms("exchanges", "delayed_ack_ms")
        .into_iter()
        .filter(|hold| *hold > 0.0)
        .collect();
    assert!(holds.iter().all(|hold| (42.0..=44.0).contains(hold)));
    assert!((median(tables.ms("exchanges", "latency_ms")) - 43.75).abs() < 0.01);
    assert_eq!(tables.words("evidence", "verdict"), ["nagle"]);
    assert_eq!(
        tables.ms("evidence", "tick_ms"),
        [4.0],
        "the client's kernel has HZ = 250"
    );
}

#[test]
fn nginx_good() {
    let tables = Tables::of(&sample("nginx-good.pcap"));
    assert_eq!(counts(&tables), [4000, 41, 949 + 19, 949]);
    assert_eq!(with(&tables, "delayed_ack").0.len(), 0);
    let latency = tables.ms("exchanges", "latency_ms");
    assert!(latency.iter().all(|ms| *ms <= 0.455), "the maximum is 0.45 ms");
    assert!((median(latency) - 0.19).abs() < 0.006);
    assert!(
        tables
            .words("evidence", "verdict")
            .iter()
            .all(|verdict| verdict != "nagle")
    );
}

#[test]
fn probes() {
    let tables = Tables::of(&sample("probes.pcap"));
    let [events, streams, exchanges, _] = counts(&tables);
    assert_eq!((streams, exchanges), (22, 0));
    assert_eq!(tables.rows("connects"), 22, "no request followed any of them");
    // 77 frames less 4 of ARP and 10 of ping
    assert_eq!(events, 77 - 4 - 10);
    let first = tables.ids("events", "frame").first().copied();
    assert_eq!(first, Some(13));
}

/// Clip; segments; exchanges with a delayed ACK; owners of the waits that are named; causes that must not be.
type Clip = (
    &'static str,
    usize,
    usize,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const CLIPS: [Clip; 5] = [
    (
        "split-nagle",
        164,
        28,
        &[("nagle", "client"), ("delayed_ack", "server")],
        &["server_think"],
    ),
    (
        "split-nodelay",
        136,
        0,
        &[],
        &["nagle", "delayed_ack", "server_think"],
    ),
    (
        "gap43-nodelay",
        158,
        0,
        &[("server_think", "server")],
        &["nagle", "delayed_ack"],
    ),
    (
        "think40",
        104,
        0,
        &[("server_think", "server")],
        &["nagle", "delayed_ack"],
    ),
    (
        "quickack",
        164,
        0,
        &[("nagle", "server")],
        &["delayed_ack", "server_think"],
    ),
];

#[test]
fn clips() {
    for (clip, frames, stalls, named, not_named) in CLIPS {
        let tables = Tables::of(&sample(&format!("clips/{clip}.pcap")));
        assert_eq!(counts(&tables), [frames, 2, 30, 30], "{clip}");
        let held = with(&tables, "delayed_ack").0;
        assert_eq!(held.len(), stalls, "{clip}");
        let first = indices(&tables).into_iter().filter(|(_, index)| *index == 0);
        assert!(
            first.into_iter().all(|(id, _)| !held.contains(&id)),
            "{clip}: a first exchange"
        );
        for (cause, owner) in named {
            assert_eq!(
                with(&tables, cause).1,
                BTreeSet::from([owner.to_string()]),
                "{clip}: {cause}"
            );
        }
        for cause in not_named {
            // what a program takes for its own work is no finding
            let limit = if *cause == "server_think" { 1.0 } else { 0.0 };
            let spent = tables.ms("exchanges", &format!("{cause}_ms"));
            assert!(spent.iter().all(|ms| *ms <= limit), "{clip}: {cause}");
        }
    }
}
