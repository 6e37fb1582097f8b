//! Kafka's APIs: their names, and the first fields of requests and responses in each version. From some version on
//! ("flexible") headers and bodies have tagged fields, and lengths are variable-length numbers ("compact").

use crate::cursor::Cursor;

const PRODUCE: u16 = 0;
const FETCH: u16 = 1;
const FIND_COORDINATOR: u16 = 10;
const JOIN_GROUP: u16 = 11;
const HEARTBEAT: u16 = 12;
const LEAVE_GROUP: u16 = 13;
const SYNC_GROUP: u16 = 14;
const SASL_HANDSHAKE: u16 = 17;
const INIT_PRODUCER_ID: u16 = 22;
const SASL_AUTHENTICATE: u16 = 36;
/// Names of the APIs, by API key. Key 18 is written as clients log it.
#[rustfmt::skip]
const WORDS: [&str; 76] = [
    "Produce", "Fetch", "ListOffsets", "Metadata", "LeaderAndIsr", "StopReplica", "UpdateMetadata",
    "ControlledShutdown", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup",
    "SyncGroup", "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersion", "CreateTopics", "DeleteTopics",
    "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
    "WriteTxnMarkers", "TxnOffsetCommit", "DescribeAcls", "CreateAcls", "DeleteAcls", "DescribeConfigs",
    "AlterConfigs", "AlterReplicaLogDirs", "DescribeLogDirs", "SaslAuthenticate", "CreatePartitions",
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
    "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs", "AlterPartitionReassignments",
    "ListPartitionReassignments", "OffsetDelete", "DescribeClientQuotas", "AlterClientQuotas",
    "DescribeUserScramCredentials", "AlterUserScramCredentials", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch",
    "DescribeQuorum", "AlterPartition", "UpdateFeatures", "Envelope", "FetchSnapshot", "DescribeCluster",
    "DescribeProducers", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker", "DescribeTransactions",
    "ListTransactions", "AllocateProducerIds", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe",
    "ControllerRegistration", "GetTelemetrySubscriptions", "PushTelemetry", "AssignReplicasToDirs",
    "ListClientMetricsResources", "DescribeTopicPartitions",
];

pub(super) fn name(api: u16) -> Option<&'static str> {
    WORDS.get(usize::from(api)).copied()
}

/// APIs whose response has one error code, or one for its first partition: the API, the version from which the throttle
/// time stands before the code, and the version from which header and body are flexible. `u16::MAX`: no version.
const ERRORS: [(u16, u16, u16); 10] = [
    (PRODUCE, u16::MAX, 9),
    (FETCH, 1, 12),
    (FIND_COORDINATOR, 1, 3),
    (JOIN_GROUP, 2, 6),
    (HEARTBEAT, 1, 4),
    (LEAVE_GROUP, 1, 4),
    (SYNC_GROUP, 1, 4),
    (SASL_HANDSHAKE, u16::MAX, u16::MAX),
    (INIT_PRODUCER_ID, 0, 2),
    (SASL_AUTHENTICATE, u16::MAX, 2),
];

pub(super) fn has_error(api: u16) -> bool {
    ERRORS.iter().any(|(listed, ..)| *listed == api)
}

/// Returns the error code of a response, whose `body` begins after the correlation id.
pub(super) fn error(api: u16, version: u16, body: &[u8]) -> Option<u16> {
    let (_, throttled, flexible) = *ERRORS.iter().find(|(listed, ..)| *listed == api)?;
    let (mut cursor, is_compact) = (Cursor::new(body), version >= flexible);
    skip_tags(is_compact, &mut cursor)?;
    if version >= throttled {
        cursor.u32be()?;
    }
    match api {
        FETCH if version < 7 => None,
        FIND_COORDINATOR if version >= 4 => None, // the code stands with each of several coordinators
        // the code of the first partition of the first topic
        PRODUCE if version < 13 => {
            first_topic(is_compact, &mut cursor)?;
            let partitions = if is_compact {
                varint(&mut cursor)? > 1
            } else {
                cursor.u32be()? > 0
            };
            partitions.then(|| cursor.u32be()).flatten()?;
            cursor.u16be()
        }
        PRODUCE => None,
        _ => cursor.u16be(),
    }
}

/// The first fields of a request's body.
#[derive(Debug, Default)]
pub(super) struct Body<'a> {
    /// The first topic; None in versions that give an id of the topic only, and for other APIs.
    pub(super) topic: Option<&'a [u8]>,
    /// Produce with `acks` 0.
    pub(super) has_no_answer: bool,
    /// The answer waits for an event: data, or the other members of a group.
    pub(super) waits: bool,
}

impl<'a> Body<'a> {
    pub(super) fn read(api: u16, version: u16, mut cursor: Cursor<'a>) -> Option<Self> {
        match api {
            PRODUCE => Body::produce(version, &mut cursor),
            FETCH => Body::fetch(version, &mut cursor),
            _ => Some(Body {
                waits: matches!(api, JOIN_GROUP | SYNC_GROUP),
                ..Body::default()
            }),
        }
    }

    fn produce(version: u16, cursor: &mut Cursor<'a>) -> Option<Self> {
        let is_compact = version >= 9;
        skip_tags(is_compact, cursor)?;
        if version >= 3 {
            string(is_compact, cursor)?; // transactional id
        }
        let acks = cursor.u16be()?;
        cursor.u32be()?;
        Some(Body {
            topic: (version < 13).then(|| first_topic(is_compact, cursor)).flatten(),
            has_no_answer: acks == 0,
            waits: false,
        })
    }

    fn fetch(version: u16, cursor: &mut Cursor<'a>) -> Option<Self> {
        let is_compact = version >= 12;
        skip_tags(is_compact, cursor)?;
        if version < 15 {
            cursor.u32be()?; // replica id
        }
        let waits = cursor.u32be()? > 0;
        // (first version, bytes) of min_bytes, max_bytes, isolation_level, session_id with session_epoch
        let skipped = [(0, 4), (3, 4), (4, 1), (7, 8)];
        let present = skipped.iter().filter(|(since, _)| version >= *since);
        cursor.take(present.map(|(_, bytes)| bytes).sum())?;
        Some(Body {
            topic: (version < 13).then(|| first_topic(is_compact, cursor)).flatten(),
            has_no_answer: false,
            waits,
        })
    }
}

/// Reads an unsigned varint: groups of seven bits, the lowest first.
fn varint(cursor: &mut Cursor<'_>) -> Option<usize> {
    let mut value = 0;
    for group in 0..4 {
        let byte = cursor.u8()?;
        value |= usize::from(byte & 0x7F) << (7 * group);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Skips the tagged fields of a flexible header. None if there are any: clients send none.
fn skip_tags(is_flexible: bool, cursor: &mut Cursor<'_>) -> Option<()> {
    let has_no_tags = !is_flexible || varint(cursor)? == 0;
    has_no_tags.then_some(())
}

/// Reads a string that may be null: after a 2-byte length, or, if `compact`, after a varint of its length plus 1.
fn string<'a>(is_compact: bool, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = if is_compact {
        varint(cursor)?.saturating_sub(1)
    } else {
        let len = cursor.u16be()?;
        if len == u16::MAX { 0 } else { usize::from(len) }
    };
    cursor.take(len)
}

fn first_topic<'a>(is_compact: bool, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let topics = if is_compact {
        varint(cursor)? > 1
    } else {
        (1..=i32::MAX as u32).contains(&cursor.u32be()?)
    };
    let topic = topics.then(|| string(is_compact, cursor)).flatten()?;
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (!topic.is_empty() && topic.iter().all(legal)).then_some(topic)
}
