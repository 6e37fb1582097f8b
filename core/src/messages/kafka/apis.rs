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

/// SaslHandshake and SaslAuthenticate: their answers begin with an error code in every version.
pub(super) fn is_login(api: u16) -> bool {
    matches!(api, 17 | 36)
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
