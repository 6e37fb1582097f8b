//! Kafka's APIs: their names, and what the first fields of Produce and Fetch say in each version.

use crate::cursor::Cursor;

const PRODUCE: u16 = 0;
const FETCH: u16 = 1;
/// By their numbers. 18 is written as clients log it.
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

pub(super) fn word(api: u16) -> Option<&'static str> {
    WORDS.get(usize::from(api)).copied()
}

/// Where an answer has one error code for all of it, or one of its first partition: the API, from which version on the
/// time that the client was throttled stands before it, and from which version on the head and the body are flexible.
const ERRORS: [(u16, u16, u16); 10] = [
    (PRODUCE, u16::MAX, 9),
    (FETCH, 1, 12),
    (10, 1, 3),
    (11, 2, 6),
    (12, 1, 4),
    (13, 1, 4),
    (14, 1, 4),
    (17, u16::MAX, u16::MAX),
    (22, 0, 2),
    (36, u16::MAX, 2),
];

pub(super) fn has_error(api: u16) -> bool {
    ERRORS.iter().any(|(known, ..)| *known == api)
}

/// The error code of an answer, behind its number.
pub(super) fn error(api: u16, version: u16, body: &[u8]) -> Option<u16> {
    let (_, throttled, flexible) = *ERRORS.iter().find(|(known, ..)| *known == api)?;
    let (mut cursor, compact) = (Cursor::new(body), version >= flexible);
    skip_tags(compact, &mut cursor)?;
    if version >= throttled {
        cursor.u32be()?;
    }
    match api {
        FETCH if version < 7 => None,
        10 if version >= 4 => None, // several coordinators
        // of the first partition of the first topic
        PRODUCE if version < 13 => {
            first_topic(compact, &mut cursor)?;
            let partitions = if compact {
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

/// What a request's first fields say.
#[derive(Debug, Default)]
pub(super) struct Body<'a> {
    /// The first topic, in versions that name it.
    pub(super) topic: Option<&'a [u8]>,
    /// Produce with `acks` 0.
    pub(super) no_answer: bool,
    /// The answer waits for an event: data, or the other members of a group.
    pub(super) waits: bool,
}

impl<'a> Body<'a> {
    pub(super) fn read(api: u16, version: u16, mut cursor: Cursor<'a>) -> Option<Self> {
        match api {
            PRODUCE => Body::produce(version, &mut cursor),
            FETCH => Body::fetch(version, &mut cursor),
            _ => Some(Body {
                waits: matches!(api, 11 | 14),
                ..Body::default()
            }),
        }
    }

    fn produce(version: u16, cursor: &mut Cursor<'a>) -> Option<Self> {
        let compact = version >= 9;
        skip_tags(compact, cursor)?;
        if version >= 3 {
            text(compact, cursor)?; // of a transaction
        }
        let acks = cursor.u16be()?;
        cursor.u32be()?;
        Some(Body {
            topic: if version < 13 {
                first_topic(compact, cursor)
            } else {
                None
            },
            no_answer: acks == 0,
            waits: false,
        })
    }

    fn fetch(version: u16, cursor: &mut Cursor<'a>) -> Option<Self> {
        let compact = version >= 12;
        skip_tags(compact, cursor)?;
        if version < 15 {
            cursor.u32be()?; // the replica that asks
        }
        let waits = cursor.u32be()? > 0;
        // least bytes, most bytes, isolation, session and epoch
        let more = [(0, 4), (3, 4), (4, 1), (7, 8)];
        let bytes = more.iter().filter(|(since, _)| version >= *since);
        cursor.take(bytes.map(|(_, bytes)| bytes).sum())?;
        Some(Body {
            topic: if version < 13 {
                first_topic(compact, cursor)
            } else {
                None
            },
            no_answer: false,
            waits,
        })
    }
}

/// A number in groups of seven bits, the lowest first.
fn varint(cursor: &mut Cursor<'_>) -> Option<usize> {
    let mut value = 0;
    for place in 0..4 {
        let byte = cursor.u8()?;
        value |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The tagged fields of a head, which flexible versions have; clients send none.
fn skip_tags(flexible: bool, cursor: &mut Cursor<'_>) -> Option<()> {
    let none = !flexible || varint(cursor)? == 0;
    none.then_some(())
}

/// A text that may be null: behind two bytes of length, or a number that is one more.
fn text<'a>(compact: bool, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = if compact {
        varint(cursor)?.saturating_sub(1)
    } else {
        let len = cursor.u16be()?;
        if len == u16::MAX { 0 } else { usize::from(len) }
    };
    cursor.take(len)
}

fn first_topic<'a>(compact: bool, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let topics = if compact {
        varint(cursor)? > 1
    } else {
        (1..=i32::MAX as u32).contains(&cursor.u32be()?)
    };
    let topic = topics.then(|| text(compact, cursor)).flatten()?;
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (!topic.is_empty() && topic.iter().all(legal)).then_some(topic)
}
