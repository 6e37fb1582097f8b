//! The words of error codes, as each protocol's specification writes them. Codes of success have no word.

/// Codes with their words.
pub type Words = &'static [(u16, &'static str)];

/// RFC 4511 A.1.
#[rustfmt::skip]
pub const LDAP: Words = &[
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

/// Return codes of CONNACK in MQTT 3.1.1 (3.2.2.3).
#[rustfmt::skip]
pub const MQTT_CONNECT: Words = &[
    (1, "Unacceptable protocol version"), (2, "Identifier rejected"), (3, "Server unavailable"),
    (4, "Bad user name or password"), (5, "Not authorized"),
];

/// Reason codes of MQTT 5 (2.4); 128 is the failure of SUBACK in 3.1.1, too.
#[rustfmt::skip]
pub const MQTT: Words = &[
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
pub const AMQP: Words = &[
    (311, "content-too-large"), (312, "no-route"), (313, "no-consumers"), (320, "connection-forced"),
    (402, "invalid-path"), (403, "access-refused"), (404, "not-found"), (405, "resource-locked"),
    (406, "precondition-failed"), (501, "frame-error"), (502, "syntax-error"), (503, "command-invalid"),
    (504, "channel-error"), (505, "unexpected-frame"), (506, "resource-error"), (530, "not-allowed"),
    (540, "not-implemented"), (541, "internal-error"),
];

/// Error codes of Kafka's protocol guide; -1 is stored as 65,535.
#[rustfmt::skip]
pub const KAFKA: Words = &[
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

/// Error codes of MongoDB's error_codes.yml.
#[rustfmt::skip]
pub const MONGODB: Words = &[
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

/// Response codes of RabbitMQ streams (PROTOCOL.adoc of the stream plugin).
#[rustfmt::skip]
pub const RABBIT_STREAMS: Words = &[
    (2, "stream does not exist"), (3, "subscription id already exists"), (4, "subscription id does not exist"),
    (5, "stream already exists"), (6, "stream not available"), (7, "SASL mechanism not supported"),
    (8, "authentication failure"), (9, "SASL error"), (10, "SASL challenge"), (11, "authentication failure loopback"),
    (12, "virtual host access failure"), (13, "unknown frame"), (14, "frame too large"), (15, "internal error"),
    (16, "access refused"), (17, "precondition failed"), (18, "publisher does not exist"), (19, "no offset"),
];

/// General status codes of CIP (volume 1, appendix B).
#[rustfmt::skip]
pub const CIP: Words = &[
    (1, "connection failure"), (2, "resource unavailable"), (3, "invalid parameter value"), (4, "path segment error"),
    (5, "path destination unknown"), (6, "partial transfer"), (7, "connection lost"), (8, "service not supported"),
    (9, "invalid attribute value"), (11, "already in requested mode"), (12, "object state conflict"),
    (13, "object already exists"), (14, "attribute not settable"), (15, "privilege violation"),
    (16, "device state conflict"), (17, "reply data too large"), (19, "not enough data"),
    (20, "attribute not supported"), (21, "too much data"), (22, "object does not exist"),
    (30, "embedded service error"), (31, "vendor specific error"), (32, "invalid parameter"), (38, "invalid path size"),
];

/// High halves of OPC UA's status codes (OPC 10000-6, annex A.2).
#[rustfmt::skip]
pub const OPC_UA: Words = &[
    (0x8001, "BadUnexpectedError"), (0x8002, "BadInternalError"), (0x8003, "BadOutOfMemory"),
    (0x8004, "BadResourceUnavailable"), (0x8005, "BadCommunicationError"), (0x8006, "BadEncodingError"),
    (0x8007, "BadDecodingError"), (0x8008, "BadEncodingLimitsExceeded"), (0x8009, "BadUnknownResponse"),
    (0x800A, "BadTimeout"), (0x800B, "BadServiceUnsupported"), (0x800C, "BadShutdown"),
    (0x800D, "BadServerNotConnected"), (0x800E, "BadServerHalted"), (0x800F, "BadNothingToDo"),
    (0x8010, "BadTooManyOperations"), (0x8012, "BadCertificateInvalid"), (0x8013, "BadSecurityChecksFailed"),
    (0x8014, "BadCertificateTimeInvalid"), (0x801A, "BadCertificateUntrusted"), (0x801F, "BadUserAccessDenied"),
    (0x8020, "BadIdentityTokenInvalid"), (0x8021, "BadIdentityTokenRejected"), (0x8022, "BadSecureChannelIdInvalid"),
    (0x8025, "BadSessionIdInvalid"), (0x8026, "BadSessionClosed"), (0x8027, "BadSessionNotActivated"),
    (0x8028, "BadSubscriptionIdInvalid"), (0x8033, "BadNodeIdInvalid"), (0x8034, "BadNodeIdUnknown"),
    (0x8035, "BadAttributeIdInvalid"), (0x803A, "BadNotReadable"), (0x803B, "BadNotWritable"),
    (0x8055, "BadSecurityPolicyRejected"), (0x8056, "BadTooManySessions"), (0x8074, "BadTypeMismatch"),
    (0x8075, "BadMethodInvalid"), (0x8077, "BadTooManySubscriptions"), (0x8078, "BadTooManyPublishRequests"),
    (0x8079, "BadNoSubscription"), (0x807A, "BadSequenceNumberUnknown"), (0x807B, "BadMessageNotAvailable"),
    (0x807D, "BadTcpServerTooBusy"), (0x807E, "BadTcpMessageTypeInvalid"), (0x807F, "BadTcpSecureChannelUnknown"),
    (0x8080, "BadTcpMessageTooLarge"), (0x8081, "BadTcpNotEnoughResources"), (0x8082, "BadTcpInternalError"),
    (0x8083, "BadTcpEndpointUrlInvalid"), (0x8084, "BadRequestInterrupted"), (0x8085, "BadRequestTimeout"),
    (0x8086, "BadSecureChannelClosed"), (0x80AE, "BadConnectionClosed"), (0x80AF, "BadInvalidState"),
    (0x80B8, "BadRequestTooLarge"), (0x80B9, "BadResponseTooLarge"),
];

/// Error types of OpenFlow 1.0 (5.4.4); `OPENFLOW` has those of later versions (1.5.1, 7.5.4).
#[rustfmt::skip]
pub const OPENFLOW_1_0: Words = &[
    (0, "HELLO_FAILED"), (1, "BAD_REQUEST"), (2, "BAD_ACTION"), (3, "FLOW_MOD_FAILED"), (4, "PORT_MOD_FAILED"),
    (5, "QUEUE_OP_FAILED"),
];
#[rustfmt::skip]
pub const OPENFLOW: Words = &[
    (0, "HELLO_FAILED"), (1, "BAD_REQUEST"), (2, "BAD_ACTION"), (3, "BAD_INSTRUCTION"), (4, "BAD_MATCH"),
    (5, "FLOW_MOD_FAILED"), (6, "GROUP_MOD_FAILED"), (7, "PORT_MOD_FAILED"), (8, "TABLE_MOD_FAILED"),
    (9, "QUEUE_OP_FAILED"), (10, "SWITCH_CONFIG_FAILED"), (11, "ROLE_REQUEST_FAILED"), (12, "METER_MOD_FAILED"),
    (13, "TABLE_FEATURES_FAILED"), (14, "BAD_PROPERTY"), (15, "ASYNC_CONFIG_FAILED"), (16, "FLOW_MONITOR_FAILED"),
    (17, "BUNDLE_FAILED"), (0xFFFF, "EXPERIMENTER"),
];
/// Codes of errors of the type BAD_REQUEST.
#[rustfmt::skip]
pub const OPENFLOW_REQUEST: Words = &[
    (0, "BAD_VERSION"), (1, "BAD_TYPE"), (2, "BAD_MULTIPART"), (3, "BAD_EXPERIMENTER"), (4, "BAD_EXPERIMENTER_TYPE"),
    (5, "EPERM"), (6, "BAD_LEN"), (7, "BUFFER_EMPTY"), (8, "BUFFER_UNKNOWN"), (9, "BAD_TABLE_ID"), (10, "IS_SLAVE"),
    (11, "BAD_PORT"), (12, "BAD_PACKET"), (13, "MULTIPART_BUFFER_OVERFLOW"),
];

/// Errors of MMS, class and code (ISO 9506-2 7.4.3). `MMS_VALUES` has those of single values (14.4.3).
#[rustfmt::skip]
pub const MMS: Words = &[
    (0x001, "vmd-state-conflict"), (0x002, "vmd-operational-problem"), (0x003, "domain-transfer-problem"),
    (0x004, "state-machine-id-invalid"), (0x101, "application-unreachable"), (0x102, "connection-lost"),
    (0x103, "application-reference-invalid"), (0x104, "context-unsupported"), (0x201, "object-undefined"),
    (0x202, "invalid-address"), (0x203, "type-unsupported"), (0x204, "type-inconsistent"), (0x205, "object-exists"),
    (0x206, "object-attribute-inconsistent"), (0x301, "memory-unavailable"), (0x302, "processor-resource-unavailable"),
    (0x303, "mass-storage-unavailable"), (0x304, "capability-unavailable"), (0x305, "capability-unknown"),
    (0x401, "primitives-out-of-sequence"), (0x402, "object-state-conflict"), (0x403, "pdu-size"),
    (0x404, "continuation-invalid"), (0x405, "object-constraint-conflict"), (0x501, "timeout"), (0x502, "deadlock"),
    (0x503, "cancel"), (0x601, "unsupportable-time-resolution"), (0x701, "object-access-unsupported"),
    (0x702, "object-non-existent"), (0x703, "object-access-denied"), (0x704, "object-invalidated"),
    (0x801, "version-incompatible"), (0x802, "max-segment-insufficient"), (0xB01, "filename-ambiguous"),
    (0xB02, "file-busy"), (0xB03, "filename-syntax-error"), (0xB04, "content-type-invalid"),
    (0xB05, "position-invalid"), (0xB06, "file-access-denied"), (0xB07, "file-non-existent"), (0xB08, "duplicate-filename"),
    (0xB09, "insufficient-space-in-filestore"),
];
#[rustfmt::skip]
pub const MMS_VALUES: Words = &[
    (0, "object-invalidated"), (1, "hardware-fault"), (2, "temporarily-unavailable"), (3, "object-access-denied"),
    (4, "object-undefined"), (5, "invalid-address"), (6, "type-unsupported"), (7, "type-inconsistent"),
    (8, "object-attribute-inconsistent"), (9, "object-access-unsupported"), (10, "object-non-existent"),
    (11, "object-value-invalid"),
];

/// Errors of S7, as Wireshark's dissector s7comm names them: classes (low byte 0) and single errors. `S7_VALUES` has
/// the codes of single values.
#[rustfmt::skip]
pub const S7: Words = &[
    (0x8100, "application relationship"), (0x8104, "function not available"), (0x8200, "object definition"),
    (0x8300, "no resources available"), (0x8400, "error on service processing"), (0x8500, "error on supplies"),
    (0x8700, "access error"), (0xD209, "block not found"), (0xD241, "protection level too low"),
    (0xD402, "information not available"), (0xD602, "wrong password"), (0xD604, "no password needed"),
];
#[rustfmt::skip]
pub const S7_VALUES: Words = &[
    (0, "reserved"), (1, "hardware error"), (3, "access denied"), (5, "invalid address"),
    (6, "data type not supported"), (7, "data type inconsistent"), (10, "object does not exist"),
];

/// Codes of HTTP and SIP that answer a request without credentials, which the client then repeats with them.
pub const LOG_INS: &[u16] = &[401, 407];

/// RFC 3261 21.
#[rustfmt::skip]
pub const SIP: Words = &[
    (300, "Multiple Choices"), (301, "Moved Permanently"), (302, "Moved Temporarily"), (305, "Use Proxy"),
    (400, "Bad Request"), (401, "Unauthorized"), (403, "Forbidden"), (404, "Not Found"), (405, "Method Not Allowed"),
    (406, "Not Acceptable"), (407, "Proxy Authentication Required"), (408, "Request Timeout"), (410, "Gone"),
    (413, "Request Entity Too Large"), (415, "Unsupported Media Type"), (416, "Unsupported URI Scheme"),
    (420, "Bad Extension"), (422, "Session Interval Too Small"), (423, "Interval Too Brief"),
    (480, "Temporarily Unavailable"), (481, "Call/Transaction Does Not Exist"), (482, "Loop Detected"),
    (483, "Too Many Hops"), (484, "Address Incomplete"), (485, "Ambiguous"), (486, "Busy Here"),
    (487, "Request Terminated"), (488, "Not Acceptable Here"), (489, "Bad Event"), (491, "Request Pending"),
    (500, "Server Internal Error"), (501, "Not Implemented"), (502, "Bad Gateway"), (503, "Service Unavailable"),
    (504, "Server Time-out"), (505, "Version Not Supported"), (513, "Message Too Large"), (600, "Busy Everywhere"),
    (603, "Decline"), (604, "Does Not Exist Anywhere"), (606, "Not Acceptable"),
];

/// RFC 1157 4.1.1, RFC 3416 3.
#[rustfmt::skip]
pub const SNMP: Words = &[
    (1, "tooBig"), (2, "noSuchName"), (3, "badValue"), (4, "readOnly"), (5, "genErr"), (6, "noAccess"),
    (7, "wrongType"), (8, "wrongLength"), (9, "wrongEncoding"), (10, "wrongValue"), (11, "noCreation"),
    (12, "inconsistentValue"), (13, "resourceUnavailable"), (14, "commitFailed"), (15, "undoFailed"),
    (16, "authorizationError"), (17, "notWritable"), (18, "inconsistentName"),
];

/// RFC 1350, appendix; RFC 2347.
#[rustfmt::skip]
pub const TFTP: Words = &[
    (0, "error"), (1, "File not found"), (2, "Access violation"), (3, "Disk full"), (4, "Illegal TFTP operation"),
    (5, "Unknown transfer ID"), (6, "File already exists"), (7, "No such user"), (8, "Option refused"),
];

/// RFC 8489 14.8, RFC 8656 19, RFC 8445.
#[rustfmt::skip]
pub const STUN: Words = &[
    (300, "Try Alternate"), (400, "Bad Request"), (401, "Unauthenticated"), (403, "Forbidden"),
    (420, "Unknown Attribute"), (437, "Allocation Mismatch"), (438, "Stale Nonce"),
    (440, "Address Family not Supported"), (441, "Wrong Credentials"), (442, "Unsupported Transport Protocol"),
    (443, "Peer Address Family Mismatch"), (486, "Allocation Quota Reached"), (487, "Role Conflict"),
    (500, "Server Error"), (508, "Insufficient Capacity"),
];

/// RFC 8415 21.13.
#[rustfmt::skip]
pub const DHCPV6: Words = &[
    (1, "UnspecFail"), (2, "NoAddrsAvail"), (3, "NoBinding"), (4, "NotOnLink"), (5, "UseMulticast"),
    (6, "NoPrefixAvail"),
];

/// RFC 4120 7.5.9.
#[rustfmt::skip]
pub const KERBEROS: Words = &[
    (1, "KDC_ERR_NAME_EXP"), (2, "KDC_ERR_SERVICE_EXP"), (3, "KDC_ERR_BAD_PVNO"), (6, "KDC_ERR_C_PRINCIPAL_UNKNOWN"),
    (7, "KDC_ERR_S_PRINCIPAL_UNKNOWN"), (9, "KDC_ERR_NULL_KEY"), (11, "KDC_ERR_NEVER_VALID"), (12, "KDC_ERR_POLICY"),
    (13, "KDC_ERR_BADOPTION"), (14, "KDC_ERR_ETYPE_NOSUPP"), (16, "KDC_ERR_PADATA_TYPE_NOSUPP"),
    (18, "KDC_ERR_CLIENT_REVOKED"), (19, "KDC_ERR_SERVICE_REVOKED"), (23, "KDC_ERR_KEY_EXPIRED"),
    (24, "KDC_ERR_PREAUTH_FAILED"), (25, "KDC_ERR_PREAUTH_REQUIRED"), (29, "KDC_ERR_SVC_UNAVAILABLE"),
    (31, "KRB_AP_ERR_BAD_INTEGRITY"), (32, "KRB_AP_ERR_TKT_EXPIRED"), (33, "KRB_AP_ERR_TKT_NYV"),
    (37, "KRB_AP_ERR_SKEW"), (41, "KRB_AP_ERR_MODIFIED"), (52, "KRB_ERR_RESPONSE_TOO_BIG"), (60, "KRB_ERR_GENERIC"),
    (68, "KDC_ERR_WRONG_REALM"),
];

/// Returns the word of a code.
pub fn word(words: Words, code: u16) -> Option<&'static str> {
    words
        .iter()
        .find(|(listed, _)| *listed == code)
        .map(|(_, word)| *word)
}
