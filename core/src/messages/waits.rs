//! Requests whose answer waits for events, recognised by their names: a watch of Kubernetes, a blocking query of
//! Consul, a feed of CouchDB, a followed log, calls of gRPC that watch or subscribe. A late answer to them is not a
//! delay.

use super::Kind;

/// Query parameters with their values, and the kind of a request with one of them.
const PARAMETERS: [(&str, &[&str], Kind); 4] = [
    ("watch", &["1", "true"], Kind::EventStream),
    ("follow", &["1", "true"], Kind::EventStream),
    ("feed", &["continuous", "eventsource"], Kind::EventStream),
    ("feed", &["longpoll"], Kind::LongPoll),
];
/// Prefixes of gRPC methods that report events: of etcd, gNMI, health checks and service discovery.
const CALLS: [&str; 4] = ["Watch", "Subscribe", "Listen", "LeaseKeepAlive"];

/// Returns the kind of an HTTP request with this target; `None` for one that is answered at once.
pub(super) fn of_target(target: &str) -> Option<Kind> {
    let (_, query) = target.split_once('?')?;
    let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
    let value = |name: &str| pairs().find(|(key, _)| *key == name).map(|(_, value)| value);
    let listed = PARAMETERS
        .iter()
        .find(|(name, values, _)| value(name).is_some_and(|given| values.contains(&given)));
    // Consul: wait until the data is newer than the index, at most so long
    let blocks = || {
        value("index")
            .filter(|index| *index != "0")
            .and(value("wait"))
            .map(|_| Kind::LongPoll)
    };
    listed.map(|(.., kind)| *kind).or_else(blocks)
}

/// Returns the kind of a gRPC call with this path.
pub(super) fn of_call(path: &str) -> Option<Kind> {
    let (_, method) = path.rsplit_once('/')?;
    CALLS
        .iter()
        .any(|call| method.starts_with(call))
        .then_some(Kind::EventStream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_blocking_queries_wait_for_events() {
        for (target, kind) in [
            ("/api/v1/pods?limit=500&watch=true", Some(Kind::EventStream)),
            ("/api/v1/pods?watch=1", Some(Kind::EventStream)),
            ("/api/v1/pods?watch=false", None),
            ("/api/v1/pods?watched=1", None),
            ("/containers/web/logs?follow=1&stdout=1", Some(Kind::EventStream)),
            ("/shop/_changes?feed=longpoll&since=7", Some(Kind::LongPoll)),
            ("/v1/kv/a?index=7&wait=60s", Some(Kind::LongPoll)),
            ("/v1/kv/a?index=0&wait=60s", None),
            ("/pages?index=7", None),
            ("/watch", None),
        ] {
            assert_eq!(of_target(target), kind, "{target}");
        }
        assert_eq!(of_call("/etcdserverpb.Watch/Watch"), Some(Kind::EventStream));
        assert_eq!(of_call("/gnmi.gNMI/Subscribe"), Some(Kind::EventStream));
        assert_eq!(of_call("/shop.Watch/Get"), None);
    }
}
