//! The status of a response over UDP, in the words of its protocol's document.

use crate::cursor::{self, Cursor, Header};
use crate::messages::Status;
use crate::messages::errors::{self, Words, word};

/// The status of a response; None if the response does not contain one.
pub(super) fn of(protocol: &str, data: &[u8]) -> Option<Status<'static>> {
    match protocol {
        "DHCP" => dhcp(data),
        "DHCPv6" => Some(numbered(
            errors::DHCPV6,
            dhcpv6(cursor::from(data, 4)),
            &[0],
            "Success",
        )),
        "Kerberos" => kerberos(data),
        "NTP" => ntp(data),
        "RADIUS" => radius(*data.first()?),
        "SIP" => Some(numbered(errors::SIP, sip(data)?, errors::LOG_INS, "OK")),
        "SNMP" => snmp(data),
        "STUN" => stun(data),
        "TFTP" => tftp(data),
        _ => None,
    }
}

/// A status with code and word. Codes in `fine`, and from 100 to 399, are no errors.
fn numbered(words: Words, code: u16, fine: &[u16], good: &'static str) -> Status<'static> {
    let error = !fine.contains(&code) && !(100..400).contains(&code);
    Status {
        code: Some(code),
        text: word(words, code).or((!error).then_some(good)),
        error,
    }
}

fn text(text: &'static str, error: bool) -> Option<Status<'static>> {
    let code = None;
    let text = Some(text);
    Some(Status { code, text, error })
}

/// Status code of a SIP response (RFC 3261 7.2).
pub(super) fn sip(data: &[u8]) -> Option<u16> {
    let digits = data.strip_prefix(b"SIP/2.0 ")?.first_chunk::<3>()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// DHCP: the message type is in option 53 (RFC 2132 9.6), after a fixed part and a magic number.
fn dhcp(data: &[u8]) -> Option<Status<'static>> {
    let mut cursor = Cursor::new(cursor::from(data, 240));
    loop {
        match cursor.u8()? {
            0 => {}
            53 => {
                return match (cursor.u8()?, cursor.u8()?) {
                    (1, 2) => text("OFFER", false),
                    (1, 5) => text("ACK", false),
                    (1, 6) => text("NAK", true),
                    _ => None,
                };
            }
            255 => return None,
            _ => {
                let len = usize::from(cursor.u8()?);
                cursor.take(len)?;
            }
        }
    }
}

/// DHCPv6: the first status code other than success, of the message or of an address in it (RFC 8415 21.13, 21.4,
/// 21.21).
fn dhcpv6(options: &[u8]) -> u16 {
    let mut cursor = Cursor::new(options);
    while let (Some(option), Some(len)) = (cursor.u16be(), cursor.u16be()) {
        let Some(value) = cursor.take(usize::from(len)) else {
            break;
        };
        let code = match option {
            13 => cursor::be16_at(value, 0).unwrap_or(0),
            3 | 25 => dhcpv6(cursor::from(value, 12)),
            _ => 0,
        };
        if code != 0 {
            return code;
        }
    }
    0
}

/// Kerberos: KRB-ERROR has its code in its seventh field (RFC 4120 5.9.1).
fn kerberos(data: &[u8]) -> Option<Status<'static>> {
    const ERROR: u8 = 0x7E;
    let (ERROR, mut error) = Cursor::new(data).tagged()? else {
        return text("ok", false);
    };
    let (_, mut fields) = error.tagged()?;
    loop {
        let (field, mut value) = fields.tagged()?;
        if field == 0xA6 {
            let code = u16::try_from(value.tagged()?.1.number()).ok()?;
            // no errors: pre-authentication required, and response too big for UDP
            return Some(numbered(errors::KERBEROS, code, &[25, 52], ""));
        }
    }
}

/// NTP: a leap indicator of 3 is a clock that was never set; a stratum of 0 without it is a "kiss of death" (RFC 5905
/// 7.3, 7.4).
fn ntp(data: &[u8]) -> Option<Status<'static>> {
    const KISSES: [&str; 15] = [
        "ACST", "AUTH", "AUTO", "BCST", "CRYP", "DENY", "DROP", "RSTR", "INIT", "MCST", "NKEY", "NTSN",
        "RATE", "RMOT", "STEP",
    ];
    let head = Header::<16>::of(data)?;
    let (leap, stratum, code) = (head.u8::<0>() >> 6, head.u8::<1>(), head.bytes::<12, 4>());
    match (stratum, leap) {
        (0, _) => {
            let kiss = KISSES.into_iter().find(|kiss| kiss.as_bytes() == code);
            let unset = if leap == 3 {
                "unsynchronised"
            } else {
                "kiss of death"
            };
            text(kiss.unwrap_or(unset), true)
        }
        (16.., _) | (_, 3) => text("unsynchronised", true),
        _ => text("ok", false),
    }
}

/// RADIUS (RFC 2865 3, RFC 2866 3).
fn radius(code: u8) -> Option<Status<'static>> {
    match code {
        2 => text("Access-Accept", false),
        3 => text("Access-Reject", true),
        5 => text("Accounting-Response", false),
        11 => text("Access-Challenge", false),
        _ => None,
    }
}

/// SNMP: version, community, then the PDU with request id and error-status (RFC 1157 4.1, RFC 3416 3). The encrypted
/// PDUs of version 3 are unknown; its reports are errors (RFC 3412 6.7).
fn snmp(data: &[u8]) -> Option<Status<'static>> {
    let (_, mut message) = Cursor::new(data).tagged()?;
    let version = message.tagged()?.1.number();
    if version == 3 {
        let (_, _) = (message.tagged()?, message.tagged()?);
        let (0x30, mut scoped) = message.tagged()? else {
            return None;
        };
        let (_, _) = (scoped.tagged()?, scoped.tagged()?);
        message = scoped;
    } else {
        message.tagged()?;
    }
    let (kind, mut unit) = message.tagged()?;
    match kind {
        0xA2 => {
            unit.tagged()?;
            let code = u16::try_from(unit.tagged()?.1.number()).ok()?;
            Some(numbered(errors::SNMP, code, &[0], "noError"))
        }
        0xA8 => text("report", true),
        _ => None,
    }
}

/// STUN: attribute 9 of an error response is a class of hundreds and a number (RFC 8489 14.8). A server that requires
/// credentials refuses the first request (9.2.4): no error.
fn stun(data: &[u8]) -> Option<Status<'static>> {
    const ERROR_CODE: u16 = 9;
    let head = Header::<20>::of(data)?;
    if head.u8::<1>() & 0x10 == 0 {
        return text("ok", false);
    }
    let mut cursor = Cursor::new(cursor::from(data, 20));
    loop {
        let (attribute, len) = (cursor.u16be()?, usize::from(cursor.u16be()?));
        let value = cursor.take(len.next_multiple_of(4).min(cursor.left()))?;
        if attribute == ERROR_CODE {
            let code = u16::from(cursor::u8_at(value, 2)? & 7) * 100 + u16::from(cursor::u8_at(value, 3)?);
            return Some(numbered(errors::STUN, code, &[401, 438], ""));
        }
    }
}

/// TFTP: an error is an operation of its own (RFC 1350 5).
fn tftp(data: &[u8]) -> Option<Status<'static>> {
    const ERROR: u16 = 5;
    if cursor::be16_at(data, 0)? != ERROR {
        return text("ok", false);
    }
    let code = cursor::be16_at(data, 2)?;
    Some(Status {
        code: Some(code),
        text: word(errors::TFTP, code),
        error: true,
    })
}
