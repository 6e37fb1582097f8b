//! Recognition of Redis by its first bytes: a command as an array of strings, a push, or an inline command with its
//! reply.

use super::super::{FirstBytes, Guess, Side};
use super::{command, resp};

/// First words of pushes.
pub(super) const PUSHES: [&[u8]; 4] = [b"message", b"pmessage", b"smessage", b"invalidate"];

pub(super) fn sniff(first: &FirstBytes<'_>) -> Guess {
    match first.side {
        // a client that sends inline commands speaks first
        Side::Client if first.began == Side::Server && sniff_command(first.input) != Guess::Yes => Guess::No,
        Side::Client => sniff_command(first.input),
        Side::Server if first.other.is_empty() => sniff_push(first.input),
        // the client has sent an inline command: the reply decides
        Side::Server
            if first.began == Side::Client && sniff_command(first.other) == Guess::NeedsOtherSide =>
        {
            sniff_reply(first.input)
        }
        Side::Server => Guess::No,
    }
}

pub(super) fn begins_message(side: Side, first: &[u8]) -> bool {
    match side {
        // a reply may be an array of strings, too, so in the middle of a stream the verb must be known
        Side::Client => {
            sniff_command(first) == Guess::Yes && array(first, b'*').is_ok_and(|(_, word)| is_command(word))
        }
        Side::Server => sniff_push(first) == Guess::Yes,
    }
}

/// Redis' own commands (redis.io, "Commands"); `MODULES` has the prefixes of those of its modules (`JSON.GET`).
const COMMANDS: &str = "ACL APPEND ASKING AUTH BGREWRITEAOF BGSAVE BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS BLMOVE \
    BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT CLUSTER COMMAND CONFIG COPY DBSIZE DEBUG DECR DECRBY \
    DEL DISCARD DUMP ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC EXISTS EXPIRE EXPIREAT EXPIRETIME FAILOVER FCALL \
    FCALL_RO FLUSHALL FLUSHDB FUNCTION GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEOSEARCH \
    GEOSEARCHSTORE GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HELLO HEXISTS HEXPIRE HEXPIREAT HGET HGETALL HINCRBY \
    HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPTTL HRANDFIELD HSCAN HSET HSETNX HSTRLEN HTTL HVALS INCR \
    INCRBY INCRBYFLOAT INFO KEYS LASTSAVE LATENCY LCS LINDEX LINSERT LLEN LMOVE LMPOP LPOP LPOS LPUSH LPUSHX LRANGE \
    LREM LSET LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE MSET MSETNX MULTI OBJECT PERSIST PEXPIRE PEXPIREAT \
    PEXPIRETIME PFADD PFCOUNT PFMERGE PING PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY \
    READONLY READWRITE RENAME RENAMENX REPLCONF REPLICAOF RESET RESTORE ROLE RPOP RPOPLPUSH RPUSH RPUSHX SADD SAVE \
    SCAN SCARD SCRIPT SDIFF SDIFFSTORE SELECT SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SINTER SINTERCARD SINTERSTORE \
    SISMEMBER SLAVEOF SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE \
    STRLEN SUBSCRIBE SUBSTR SUNION SUNIONSTORE SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH \
    WAIT WAITAOF WATCH XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE \
    XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE \
    ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX \
    ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION \
    ZUNIONSTORE";
const MODULES: [&str; 8] = ["BF", "CF", "CMS", "FT", "JSON", "TDIGEST", "TOPK", "TS"];

fn is_command(word: &[u8]) -> bool {
    let is = |command: &str| word.eq_ignore_ascii_case(command.as_bytes());
    let of_module = |module: &&str| {
        word.split_at_checked(module.len()).is_some_and(|(begin, rest)| {
            begin.eq_ignore_ascii_case(module.as_bytes()) && rest.first() == Some(&b'.')
        })
    };
    COMMANDS.split_ascii_whitespace().any(is) || MODULES.iter().any(of_module)
}

/// Whether these bytes are a command: an array whose first string is a word, or an inline command.
fn sniff_command(input: &[u8]) -> Guess {
    if input.first().is_some_and(u8::is_ascii_alphabetic) {
        return match memchr::memchr(b'\n', input).and_then(|end| input.get(..end)) {
            Some(line) if command::is_inline(line) => Guess::NeedsOtherSide,
            None if input.is_ascii() => Guess::More,
            _ => Guess::No,
        };
    }
    let is_verb = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_' | b'-');
    match array(input, b'*') {
        Ok(_) if sniff_push(input) == Guess::Yes => Guess::No,
        Ok((_, word)) if !word.is_empty() && word.iter().all(is_verb) => Guess::Yes,
        Ok(_) => Guess::No,
        Err(guess) => guess,
    }
}

/// Whether these bytes are a push that no other protocol has.
fn sniff_push(input: &[u8]) -> Guess {
    if input.strip_prefix(b"+").is_some_and(is_monitored) {
        return Guess::Yes;
    }
    let kind = input.first().copied().filter(|kind| matches!(kind, b'*' | b'>'));
    match kind.map_or(Err(Guess::No), |kind| array(input, kind)) {
        Ok((3 | 4, word)) if PUSHES.contains(&word) => Guess::Yes,
        Ok((2, b"invalidate")) => Guess::Yes,
        Ok(_) => Guess::No,
        Err(guess) => guess,
    }
}

/// Whether these bytes are a reply to an inline command.
fn sniff_reply(input: &[u8]) -> Guess {
    let line = memchr::memchr(b'\n', input).and_then(|end| input.get(..end));
    match (input.first(), line) {
        (Some(b'+' | b'-' | b':' | b'$' | b'*' | b'_' | b'%'), None) => Guess::More,
        (Some(b'+' | b'-'), Some(line))
            if line.ends_with(b"\r") && line.get(1).is_some_and(u8::is_ascii_uppercase) =>
        {
            Guess::Yes
        }
        (Some(b':' | b'$' | b'*' | b'%'), Some([_, number @ .., b'\r']))
            if resp::number(number).is_some() =>
        {
            Guess::Yes
        }
        _ => Guess::No,
    }
}

/// Returns an array's count and its first string, of at most 32 bytes.
fn array(input: &[u8], kind: u8) -> Result<(u64, &[u8]), Guess> {
    let (count, rest) = header(input, kind)?;
    let (len, rest) = header(rest, b'$')?;
    let whole = rest.get(..len as usize + 2).ok_or(Guess::More)?;
    if !(1..=32).contains(&len) || count == 0 {
        return Err(Guess::No);
    }
    whole
        .strip_suffix(b"\r\n")
        .map(|word| (count, word))
        .ok_or(Guess::No)
}

/// Returns the number after a type byte, and the bytes after that line.
fn header(input: &[u8], kind: u8) -> Result<(u64, &[u8]), Guess> {
    let Some((first, text)) = input.split_first() else {
        return Err(Guess::More);
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = crate::cursor::split(text, digits);
    if *first != kind || digits > 7 {
        return Err(Guess::No);
    }
    match rest {
        [b'\r', b'\n', rest @ ..] if digits > 0 => Ok((resp::number(number).flatten().unwrap_or(0), rest)),
        [] | [b'\r'] => Err(Guess::More),
        _ => Err(Guess::No),
    }
}

/// Whether this is a line of MONITOR, without its `+`: `1339518083.107412 [0 127.0.0.1:60866] "GET" "x"`.
pub(super) fn is_monitored(line: &[u8]) -> bool {
    let time = line
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
        .count();
    time > 10 && line.get(time..).is_some_and(|rest| rest.starts_with(b" ["))
}
