//! Words for the numbers that answers end with, as each protocol's own document writes them. Numbers of success have none
//! here. Knows no bytes.

/// A number and its word.
type Words = &'static [(u16, &'static str)];

/// RFC 4511 A.1.
#[rustfmt::skip]
pub(super) const LDAP: Words = &[
    (1, "operationsError"), (2, "protocolError"), (3, "timeLimitExceeded"), (4, "sizeLimitExceeded"),
    (7, "authMethodNotSupported"), (8, "strongerAuthRequired"), (10, "referral"), (11, "adminLimitExceeded"),
    (12, "unavailableCriticalExtension"), (13, "confidentialityRequired"), (16, "noSuchAttribute"),
    (17, "undefinedAttributeType"), (19, "constraintViolation"), (20, "attributeOrValueExists"),
    (21, "invalidAttributeSyntax"), (32, "noSuchObject"), (34, "invalidDNSyntax"), (48, "inappropriateAuthentication"),
    (49, "invalidCredentials"), (50, "insufficientAccessRights"), (51, "busy"), (52, "unavailable"),
    (53, "unwillingToPerform"), (54, "loopDetect"), (64, "namingViolation"), (65, "objectClassViolation"),
    (66, "notAllowedOnNonLeaf"), (67, "notAllowedOnRDN"), (68, "entryAlreadyExists"), (80, "other"),
    (118, "canceled"), (122, "assertionFailed"),
];

/// Of CONNACK in MQTT 3.1.1 (3.2.2.3).
#[rustfmt::skip]
pub(super) const MQTT_CONNECT: Words = &[
    (1, "Unacceptable protocol version"), (2, "Identifier rejected"), (3, "Server unavailable"),
    (4, "Bad user name or password"), (5, "Not authorized"),
];

/// Reason codes of MQTT 5 (2.4); 128 is SUBACK's failure in 3.1.1, too.
#[rustfmt::skip]
pub(super) const MQTT: Words = &[
    (128, "Unspecified error"), (129, "Malformed packet"), (130, "Protocol error"),
    (131, "Implementation specific error"), (132, "Unsupported protocol version"), (133, "Client identifier not valid"),
    (134, "Bad user name or password"), (135, "Not authorized"), (136, "Server unavailable"), (137, "Server busy"),
    (138, "Banned"), (140, "Bad authentication method"), (143, "Topic filter invalid"), (144, "Topic name invalid"),
    (145, "Packet identifier in use"), (146, "Packet identifier not found"), (147, "Receive maximum exceeded"),
    (149, "Packet too large"), (151, "Quota exceeded"), (153, "Payload format invalid"), (154, "Retain not supported"),
    (155, "QoS not supported"), (156, "Use another server"), (157, "Server moved"),
    (158, "Shared subscriptions not supported"), (159, "Connection rate exceeded"),
    (161, "Subscription identifiers not supported"), (162, "Wildcard subscriptions not supported"),
];

/// AMQP 0-9-1, 1.2.
#[rustfmt::skip]
pub(super) const AMQP: Words = &[
    (311, "content-too-large"), (312, "no-route"), (313, "no-consumers"), (320, "connection-forced"),
    (402, "invalid-path"), (403, "access-refused"), (404, "not-found"), (405, "resource-locked"),
    (406, "precondition-failed"), (501, "frame-error"), (502, "syntax-error"), (503, "command-invalid"),
    (504, "channel-error"), (505, "unexpected-frame"), (506, "resource-error"), (530, "not-allowed"),
    (540, "not-implemented"), (541, "internal-error"),
];

/// Error codes of Kafka's protocol guide; -1 is 65,535.
#[rustfmt::skip]
pub(super) const KAFKA: Words = &[
    (65535, "UNKNOWN_SERVER_ERROR"), (1, "OFFSET_OUT_OF_RANGE"), (2, "CORRUPT_MESSAGE"),
    (3, "UNKNOWN_TOPIC_OR_PARTITION"), (4, "INVALID_FETCH_SIZE"), (5, "LEADER_NOT_AVAILABLE"),
    (6, "NOT_LEADER_OR_FOLLOWER"), (7, "REQUEST_TIMED_OUT"), (8, "BROKER_NOT_AVAILABLE"),
    (9, "REPLICA_NOT_AVAILABLE"), (10, "MESSAGE_TOO_LARGE"), (13, "NETWORK_EXCEPTION"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS"), (15, "COORDINATOR_NOT_AVAILABLE"), (16, "NOT_COORDINATOR"),
    (17, "INVALID_TOPIC_EXCEPTION"), (18, "RECORD_LIST_TOO_LARGE"), (19, "NOT_ENOUGH_REPLICAS"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"), (21, "INVALID_REQUIRED_ACKS"), (22, "ILLEGAL_GENERATION"),
    (23, "INCONSISTENT_GROUP_PROTOCOL"), (24, "INVALID_GROUP_ID"), (25, "UNKNOWN_MEMBER_ID"),
    (26, "INVALID_SESSION_TIMEOUT"), (27, "REBALANCE_IN_PROGRESS"), (29, "TOPIC_AUTHORIZATION_FAILED"),
    (30, "GROUP_AUTHORIZATION_FAILED"), (31, "CLUSTER_AUTHORIZATION_FAILED"), (33, "UNSUPPORTED_SASL_MECHANISM"),
    (34, "ILLEGAL_SASL_STATE"), (35, "UNSUPPORTED_VERSION"), (36, "TOPIC_ALREADY_EXISTS"), (41, "NOT_CONTROLLER"),
    (42, "INVALID_REQUEST"), (47, "INVALID_PRODUCER_EPOCH"), (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    (58, "SASL_AUTHENTICATION_FAILED"), (59, "UNKNOWN_PRODUCER_ID"), (70, "FETCH_SESSION_ID_NOT_FOUND"),
    (71, "INVALID_FETCH_SESSION_EPOCH"), (74, "FENCED_LEADER_EPOCH"), (75, "UNKNOWN_LEADER_EPOCH"),
    (79, "MEMBER_ID_REQUIRED"), (82, "FENCED_INSTANCE_ID"), (89, "THROTTLING_QUOTA_EXCEEDED"),
];

/// MongoDB's error_codes.yml.
#[rustfmt::skip]
pub(super) const MONGODB: Words = &[
    (1, "InternalError"), (2, "BadValue"), (6, "HostUnreachable"), (9, "FailedToParse"), (11, "UserNotFound"),
    (13, "Unauthorized"), (14, "TypeMismatch"), (18, "AuthenticationFailed"), (20, "IllegalOperation"),
    (26, "NamespaceNotFound"), (27, "IndexNotFound"), (43, "CursorNotFound"), (46, "LockBusy"),
    (48, "NamespaceExists"), (50, "MaxTimeMSExpired"), (59, "CommandNotFound"), (64, "WriteConcernFailed"),
    (66, "ImmutableField"), (67, "CannotCreateIndex"), (72, "InvalidOptions"), (73, "InvalidNamespace"),
    (85, "IndexOptionsConflict"), (91, "ShutdownInProgress"), (112, "WriteConflict"), (115, "CommandNotSupported"),
    (121, "DocumentValidationFailure"), (189, "PrimarySteppedDown"), (211, "KeyNotFound"), (225, "TransactionTooOld"),
    (251, "NoSuchTransaction"), (262, "ExceededTimeLimit"), (10107, "NotWritablePrimary"), (11000, "DuplicateKey"),
    (11600, "InterruptedAtShutdown"), (11601, "Interrupted"), (11602, "InterruptedDueToReplStateChange"),
    (13435, "NotPrimaryNoSecondaryOk"), (13436, "NotPrimaryOrSecondary"),
];

/// RabbitMQ's PROTOCOL.adoc of its stream plugin.
#[rustfmt::skip]
pub(super) const RABBIT_STREAMS: Words = &[
    (2, "stream does not exist"), (3, "subscription id already exists"), (4, "subscription id does not exist"),
    (5, "stream already exists"), (6, "stream not available"), (7, "SASL mechanism not supported"),
    (8, "authentication failure"), (9, "SASL error"), (10, "SASL challenge"), (11, "authentication failure loopback"),
    (12, "virtual host access failure"), (13, "unknown frame"), (14, "frame too large"), (15, "internal error"),
    (16, "access refused"), (17, "precondition failed"), (18, "publisher does not exist"), (19, "no offset"),
];

/// General status codes of CIP (volume 1, appendix B).
#[rustfmt::skip]
pub(super) const CIP: Words = &[
    (1, "connection failure"), (2, "resource unavailable"), (3, "invalid parameter value"), (4, "path segment error"),
    (5, "path destination unknown"), (6, "partial transfer"), (7, "connection lost"), (8, "service not supported"),
    (9, "invalid attribute value"), (11, "already in requested mode"), (12, "object state conflict"),
    (13, "object already exists"), (14, "attribute not settable"), (15, "privilege violation"),
    (16, "device state conflict"), (17, "reply data too large"), (19, "not enough data"),
    (20, "attribute not supported"), (21, "too much data"), (22, "object does not exist"), (30, "embedded service error"),
    (31, "vendor specific error"), (32, "invalid parameter"), (38, "invalid path size"),
];

/// The word for a number.
pub(super) fn word(words: Words, code: u16) -> Option<&'static str> {
    words
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, word)| *word)
}
