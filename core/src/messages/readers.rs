//! The registry of protocols: how each is recognised, which reader reads it, and what is true of its messages. To add
//! one, write its reader in a file of this folder and add an entry to `readers!` below.

use super::sink::Sink;
use super::{Close, FirstBytes, Guess, Kind, Listener, Memory, MessageReader, Outcome, Side, Stretch};
use super::{
    amqp, beanstalk, commands, dnp3, dns, enip, fastcgi, gearman, http1, http2, interactive, iscsi, iso,
    kafka, ldap, memcached, modbus, mongodb, mqtt, mysql, nats, opcua, openflow, postgres, proxy,
    rabbit_streams, redis, rpc, sip, smb, stomp, synchrophasor, tls, turns, websocket,
};
use crate::base::word_enum;

/// How a protocol is recognised by its bytes. Ports play no part.
///
/// The four predicates run at different places of a stream; the less context a place gives, the stricter they are:
///
/// | predicate | place in the stream | example |
/// | --- | --- | --- |
/// | `sniff` | the first bytes of both sides | `GET / HT` is `More` for HTTP/1, `GET / HTTP/1.1` is `Yes` |
/// | `begins_message` | a turn begins after the reader lost its way | a client's turn begins with `GET /b HTTP/1.1` |
/// | `begins_inside_turn` | any packet of a turn, on a stream of this protocol | `HTTP/1.1 200 OK` amid a long answer |
/// | `takes_over_turn` | any packet of a turn, on a stream of no known protocol | a ClientHello after an SSLRequest |
pub(super) struct Recognition {
    pub(super) protocol: Protocol,
    /// Whether the stream is of this protocol, by the first bytes of both sides. The stream is undecided while a
    /// protocol answers `More` (for at most `MAX_UNDECIDED` bytes of a side) or `NeedsOtherSide` (for `MAX_HELD`).
    pub(super) sniff: fn(&FirstBytes<'_>) -> Guess,
    /// Whether a turn of this side that begins with these bytes begins a message of this protocol.
    pub(super) begins_message: fn(Side, &[u8]) -> bool,
    /// Whether these bytes of a packet amid a turn begin a message. What the turn carried before them ends there.
    pub(super) begins_inside_turn: fn(Side, &[u8]) -> bool,
    /// Whether the stream goes on in this protocol from this packet amid a turn. The turn's bytes before it negotiated
    /// the protocol, and stay in the same message.
    pub(super) takes_over_turn: fn(Side, &[u8]) -> bool,
    pub(super) reader: fn(&mut Memory) -> AnyReader,
}

impl Recognition {
    /// Never matches: the defaults of the predicates that a protocol does without.
    pub(super) const NEVER: Recognition = Recognition {
        protocol: Protocol::Turns,
        sniff: |_| Guess::No,
        begins_message: |_, _| false,
        begins_inside_turn: |_, _| false,
        takes_over_turn: |_, _| false,
        reader: |_| AnyReader::Turns,
    };
}

word_enum! {
    /// What sets a protocol's messages apart, named in the list of readers.
    ProtocolTrait:
    "turns" Turns "its reader gives turns: the protocol shows only the sender"
    "in_order" InOrder "the answers on a connection come in the order of the requests, whatever the server does at once"
    "person" Person "a person types: the pauses are theirs, and turns are no requests"
    "tunnel" Tunnel "packets of others pass, which answer nobody: turns are no requests"
    "client_first" ClientFirst "the server sends nothing before a request"
    "all_answered" AllAnswered "no request goes without an answer, not even the last one"
    "cache" Cache "a program sends hundreds of requests for one page: slow from `slow_cache_ms` on"
    "database" Database "a program sends tens of requests for one page: slow from `slow_database_ms` on"
}

/// Defines `Protocol`, `AnyReader` and `KNOWN` from entries `Variant(reader type), word, recognition, traits`. Entries
/// with a `+` are protocols that another reader recognises inside its own. `AnyReader` is an enum, not a
/// `dyn MessageReader`, because `feed` is generic over the listener and has to be inlined.
macro_rules! readers {
    (
        $($protocol:ident($reader:ty), $word:literal, $recognition:expr $(, $trait:ident)*;)*
        $(+ $inner:ident, $inner_word:literal $(, $inner_trait:ident)*;)*
    ) => {
        /// The application protocol of a stream.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub enum Protocol {
            /// No known protocol.
            #[default]
            Turns,
            $($protocol,)*
            $($inner,)*
        }

        impl Protocol {
            /// The protocol's name in tables.
            pub fn word(self) -> &'static str {
                match self {
                    Protocol::Turns => "turns",
                    $(Protocol::$protocol => $word,)*
                    $(Protocol::$inner => $inner_word,)*
                }
            }

            pub const ALL: &[Protocol] = &[$(Protocol::$protocol,)* $(Protocol::$inner,)* Protocol::Turns];

            #[inline]
            pub fn traits(self) -> &'static [ProtocolTrait] {
                match self {
                    Protocol::Turns => &[ProtocolTrait::Turns],
                    $(Protocol::$protocol => &[$(ProtocolTrait::$trait),*],)*
                    $(Protocol::$inner => &[$(ProtocolTrait::$inner_trait),*],)*
                }
            }

            /// The traits as a bit set, for `has` in the path of every message.
            #[inline]
            fn trait_bits(self) -> u32 {
                match self {
                    Protocol::Turns => 1 << ProtocolTrait::Turns as u32,
                    $(Protocol::$protocol => 0 $(| 1 << ProtocolTrait::$trait as u32)*,)*
                    $(Protocol::$inner => 0 $(| 1 << ProtocolTrait::$inner_trait as u32)*,)*
                }
            }

            #[inline]
            fn has(self, wanted: ProtocolTrait) -> bool {
                self.trait_bits() >> wanted as u32 & 1 != 0
            }
        }

        /// The reader of a stream's protocol; `Turns` where none is known.
        #[derive(Debug, Default)]
        pub(super) enum AnyReader {
            #[default]
            Turns,
            $($protocol(Box<$reader>),)*
        }

        impl AnyReader {
            pub(super) fn protocol(&self) -> Protocol {
                match self {
                    AnyReader::Turns => Protocol::Turns,
                    $(AnyReader::$protocol(_) => Protocol::$protocol,)*
                }
            }

            #[inline(always)]
            pub(super) fn feed<'a>(
                &mut self,
                sink: Sink<'_, impl Listener>,
                stretch: Stretch<'a>,
            ) -> Outcome<'a> {
                match self {
                    AnyReader::Turns => turns::Turns.feed(sink, stretch),
                    $(AnyReader::$protocol(reader) => reader.feed(sink, stretch),)*
                }
            }

            pub(super) fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
                match self {
                    AnyReader::Turns => turns::Turns.close(sink, how),
                    $(AnyReader::$protocol(reader) => reader.close(sink, how),)*
                }
            }

            pub(super) fn resume(&mut self, side: Side, is_inside_turn: bool) {
                match self {
                    AnyReader::Turns => {}
                    $(AnyReader::$protocol(reader) => reader.resume(side, is_inside_turn),)*
                }
            }
        }

        /// The recognitions in the order they are tried: protocols with distinctive bytes first.
        pub(super) const KNOWN: [Recognition; [$($word),*].len()] = [$($recognition),*];
    };
}

readers! {
    Http(http1::Http1), "http", http1::RECOGNITION, InOrder, ClientFirst, AllAnswered;
    Tls(tls::Tls), "tls", tls::RECOGNITION, Turns, ClientFirst;
    Proxy(proxy::Proxy), "proxy", proxy::PROXY, InOrder;
    Http2(http2::Http2), "http2", http2::RECOGNITION, AllAnswered;
    Amqp(amqp::Reader), "amqp", amqp::RECOGNITION;
    Mqtt(mqtt::Reader), "mqtt", mqtt::RECOGNITION;
    Smb(smb::Reader), "smb", smb::RECOGNITION;
    Ssh(interactive::Interactive), "ssh", interactive::SSH, Person;
    Vnc(interactive::Interactive), "vnc", interactive::VNC, Person;
    Rdp(interactive::Interactive), "rdp", interactive::RDP, Person;
    Telnet(interactive::Interactive), "telnet", interactive::TELNET, Person;
    OpenVpn(interactive::Interactive), "openvpn", interactive::OPENVPN, Tunnel;
    S7(iso::Reader), "s7comm", iso::S7;
    Mms(iso::Reader), "mms", iso::MMS;
    Synchrophasor(synchrophasor::Reader), "c37.118", synchrophasor::RECOGNITION;
    OpcUa(opcua::Reader), "opcua", opcua::RECOGNITION;
    Sip(sip::SipReader), "sip", sip::SIP;
    Rtsp(sip::RtspReader), "rtsp", sip::RTSP;
    Smtp(commands::Commands), "smtp", commands::SMTP, InOrder;
    Ftp(commands::Commands), "ftp", commands::FTP, InOrder;
    Pop3(commands::Commands), "pop3", commands::POP3, InOrder;
    Imap(commands::Commands), "imap", commands::IMAP;
    MongoDb(mongodb::MongoDb), "mongodb", mongodb::RECOGNITION;
    MySql(mysql::MySql), "mysql", mysql::RECOGNITION, InOrder, Database;
    Postgres(postgres::Postgres), "postgresql", postgres::RECOGNITION, InOrder, Database;
    Redis(redis::Redis), "redis", redis::RECOGNITION, InOrder, Cache;
    Memcached(memcached::Memcached), "memcached", memcached::RECOGNITION, InOrder, Cache;
    MemcachedBinary(memcached::Binary), "memcached", memcached::BINARY, InOrder, Cache;
    Rpc(rpc::Reader), "rpc", rpc::RECOGNITION;
    Ldap(ldap::Reader), "ldap", ldap::RECOGNITION;
    Nats(nats::Reader), "nats", nats::RECOGNITION;
    Stomp(stomp::Stomp), "stomp", stomp::RECOGNITION;
    FastCgi(fastcgi::Reader), "fastcgi", fastcgi::RECOGNITION, ClientFirst, AllAnswered;
    Beanstalk(beanstalk::Reader), "beanstalkd", beanstalk::RECOGNITION;
    Gearman(gearman::Reader), "gearman", gearman::RECOGNITION;
    Dns(dns::Dns), "dns", dns::RECOGNITION;
    RabbitStreams(rabbit_streams::Reader), "rabbitmq-streams", rabbit_streams::RECOGNITION;
    Kafka(kafka::Reader), "kafka", kafka::RECOGNITION, InOrder;
    Dnp3(dnp3::Reader), "dnp3", dnp3::RECOGNITION;
    Modbus(modbus::Reader), "modbus", modbus::RECOGNITION;
    Enip(enip::Reader), "enip", enip::RECOGNITION;
    Iscsi(iscsi::Reader), "iscsi", iscsi::RECOGNITION;
    OpenFlow(openflow::Reader), "openflow", openflow::RECOGNITION;
    WebSocket(websocket::WebSocket), "websocket", websocket::RECOGNITION;
    Socks(proxy::Socks), "socks", proxy::SOCKS, InOrder;
    FtpData(turns::DataConnection), "ftp-data", turns::RECOGNITION, Turns;
    + Grpc, "grpc", AllAnswered;
    + GrpcWeb, "grpc-web", InOrder, ClientFirst, AllAnswered;
    + JsonRpc, "json-rpc";
}

impl Protocol {
    /// The kind of a message whose reader sets none.
    pub fn kind(self) -> Kind {
        if self.has(ProtocolTrait::Turns) {
            Kind::Turn
        } else {
            Kind::Request
        }
    }

    pub fn answers_in_order(self) -> bool {
        self.has(ProtocolTrait::InOrder)
    }

    pub fn is_interactive(self) -> bool {
        self.has(ProtocolTrait::Person) || self.has(ProtocolTrait::Tunnel)
    }
}

impl AnyReader {
    pub(super) fn is_turns(&self) -> bool {
        matches!(self, AnyReader::Turns)
    }
}
