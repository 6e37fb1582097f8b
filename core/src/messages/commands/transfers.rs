//! FTP's data connections as the control connection announces them: the port, and the command that uses it (RFC 959
//! 3.2, RFC 2428). Addresses are not read: behind a NAT they are wrong, and both connections are between the same
//! hosts.

use super::super::lines::number;
use super::super::sink::Sink;
use super::super::{Listener, Note};

/// Commands that use a data connection.
const TRANSFERS: [&str; 7] = ["RETR", "STOR", "STOU", "APPE", "LIST", "NLST", "MLSD"];

pub(super) fn is_transfer(verb: &str) -> bool {
    TRANSFERS.contains(&verb)
}

/// Returns the port of the client in PORT or EPRT.
pub(super) fn port_in_command(verb: &str, rest: &str) -> Option<u16> {
    match verb {
        "PORT" => port_of_six(rest.as_bytes()),
        "EPRT" => port_of_delimited(rest.as_bytes()),
        _ => None,
    }
}

/// Returns the port of the server: `227 Entering Passive Mode (h1,h2,h3,h4,p1,p2)`, `229 ... (|||port|)`.
pub(super) fn port_in_reply(code: u16, line: &[u8]) -> Option<u16> {
    match code {
        // some servers leave the parentheses out
        227 => {
            let text = line.get(3..)?;
            let begin = text.iter().position(u8::is_ascii_digit)?;
            port_of_six(text.get(begin..)?)
        }
        229 => port_of_delimited(line.get(memchr::memchr(b'(', line)? + 1..)?),
        _ => None,
    }
}

/// Reports that a data connection to this port will follow.
pub(super) fn announce_port(sink: &mut Sink<'_, impl Listener>, port: u16) {
    let at = sink.at();
    sink.listener().note(Note::DataPort { at, port });
}

/// Returns the port in `h1,h2,h3,h4,p1,p2`.
fn port_of_six(text: &[u8]) -> Option<u16> {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b',');
    let mut numbers = text
        .get(..end.unwrap_or(text.len()))?
        .split(|byte| *byte == b',')
        .skip(4);
    let mut byte = || u8::try_from(number(numbers.next()?)?).ok();
    let (high, low) = (byte()?, byte()?);
    Some(u16::from_be_bytes([high, low])).filter(|port| *port > 0)
}

/// Returns the port in `|1|10.0.0.1|6446|` or `|||6446|`, after the third delimiter.
fn port_of_delimited(text: &[u8]) -> Option<u16> {
    let delimiter = text.first()?;
    let digits = text.split(|byte| byte == delimiter).nth(3)?;
    u16::try_from(number(digits)?).ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_and_nonsense_is_not() {
        for (code, line, port) in [
            (227, "227 Entering Passive Mode (10,0,0,1,36,39).", Some(9255)),
            (227, "227 Entering Passive Mode 10,0,0,1,36,39", Some(9255)),
            (227, "227 (10,0,0,1,36)", None),
            (227, "227 (10,0,0,1,0,0)", None),
            (227, "227 (10,0,0,1,256,1)", None),
            (227, "227 no", None),
            (229, "229 Entering Extended Passive Mode (|||6446|)", Some(6446)),
            (229, "229 (|||64460|)", Some(64460)),
            (229, "229 (|||70000|)", None),
            (229, "229 ()", None),
            (226, "226 (|||6446|)", None),
        ] {
            assert_eq!(port_in_reply(code, line.as_bytes()), port, "{line}");
        }
        for (verb, rest, port) in [
            ("PORT", "10,0,0,1,4,1", Some(1025)),
            ("PORT", "10,0,0,1,4", None),
            ("EPRT", "|1|10.0.0.1|6275|", Some(6275)),
            ("EPRT", "|2|::1|5282|", Some(5282)),
            ("EPRT", "", None),
            ("RETR", "1,2,3,4,5,6", None),
        ] {
            assert_eq!(port_in_command(verb, rest), port, "{verb} {rest}");
        }
    }
}
