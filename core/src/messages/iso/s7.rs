//! S7 communication, and its successor S7comm-plus where it is not encrypted (Wireshark's dissectors `s7comm` and
//! `s7comm-plus`): functions and errors. Stateless.

use smol_str::{SmolStr, format_smolstr};

use super::Meaning;
use crate::cursor::{self, Cursor};
use crate::messages::errors;

const S7: u8 = 0x32;
const PLUS: u8 = 0x72;
/// Message types: a request of either side, a response without and with data, and user data, which has its own types.
const JOB: u8 = 1;
const ACK: u8 = 2;
const ACK_DATA: u8 = 3;
const USERDATA: u8 = 7;
const READ: u8 = 4;
const WRITE: u8 = 5;
/// Types in the high half of user data's type byte.
const USER_REQUEST: u8 = 4;
const USER_ANSWER: u8 = 8;

/// Whether a unit's data are of this protocol.
pub(super) fn is_known(data: &[u8]) -> bool {
    match data {
        [S7, JOB | ACK | ACK_DATA | USERDATA, 0, 0, ..] => true,
        [PLUS, 1..=3, ..] => read_plus(data).is_some(),
        _ => false,
    }
}

pub(super) fn read(data: &[u8]) -> Option<Meaning> {
    match *data.first()? {
        S7 => read_plain(data),
        PLUS => read_plus(data),
        _ => None,
    }
}

fn function_name(function: u8) -> &'static str {
    match function {
        0x00 => "CpuServices",
        READ => "ReadVar",
        WRITE => "WriteVar",
        0x1A => "RequestDownload",
        0x1B => "DownloadBlock",
        0x1C => "DownloadEnded",
        0x1D => "StartUpload",
        0x1E => "Upload",
        0x1F => "EndUpload",
        0x28 => "PlcControl",
        0x29 => "PlcStop",
        0xF0 => "SetupCommunication",
        _ => "Job",
    }
}

fn read_plain(data: &[u8]) -> Option<Meaning> {
    let mut cursor = Cursor::new(data);
    let (_, kind) = (cursor.u8()?, cursor.u8()?);
    cursor.u16be()?;
    let (id, parameters, _) = (u32::from(cursor.u16be()?), cursor.u16be()?, cursor.u16be()?);
    Some(match kind {
        JOB => Meaning::Request {
            id,
            method: function_name(cursor.u8()?),
            target: SmolStr::default(),
        },
        ACK | ACK_DATA => {
            let (class, code) = (cursor.u8()?, cursor.u8()?);
            let error = match u16::from_be_bytes([class, code]) {
                0 => value_error(cursor.rest(), usize::from(parameters)),
                error => Some(error_word(error)),
            };
            Meaning::Answer { id, error }
        }
        USERDATA => {
            // parameter head (3 bytes), length, method, type and group, subfunction, sequence number
            let parameter = cursor.rest();
            let (kind, subfunction) = (cursor::u8_at(parameter, 5)?, cursor::u8_at(parameter, 6)?);
            match kind >> 4 {
                USER_REQUEST => Meaning::Request {
                    id,
                    method: "UserData",
                    target: format_smolstr!("{}/{subfunction}", kind & 0xF),
                },
                USER_ANSWER => {
                    let error = cursor::be16_at(parameter, 10).filter(|error| *error != 0);
                    Meaning::Answer {
                        id,
                        error: error.map(error_word),
                    }
                }
                _ => Meaning::Push("UserData"),
            }
        }
        _ => return None,
    })
}

/// Returns the text of an error, else that of its class.
fn error_word(error: u16) -> SmolStr {
    match errors::word(errors::S7, error).or(errors::word(errors::S7, error & 0xFF00)) {
        Some(word) => format_smolstr!("{word} ({error:04x})"),
        None => format_smolstr!("error {error:04x}"),
    }
}

/// Returns the first error in a response to a read or a write, which has a code for each value.
fn value_error(body: &[u8], parameters: usize) -> Option<SmolStr> {
    const GOOD: u8 = 0xFF;
    let (function, count) = (cursor::u8_at(body, 0)?, cursor::u8_at(body, 1)?);
    let mut values = Cursor::new(cursor::from(body, parameters));
    for _ in 0..count {
        let code = values.u8()?;
        if code != GOOD {
            return match function {
                READ | WRITE => Some(
                    errors::word(errors::S7_VALUES, u16::from(code))
                        .map_or_else(|| format_smolstr!("value error {code:02x}"), SmolStr::new_static),
                ),
                _ => None,
            };
        }
        if function == READ {
            // the length counts bits or bytes, depending on the kind; values are padded to an even length
            let (kind, len) = (values.u8()?, usize::from(values.u16be()?));
            let len = if matches!(kind, 3..=5) {
                len.div_ceil(8)
            } else {
                len
            };
            values.take(len.next_multiple_of(2).min(values.left()))?;
        }
    }
    None
}

/// Reads a message of S7comm-plus.
fn read_plus(data: &[u8]) -> Option<Meaning> {
    let version = cursor::u8_at(data, 1)?;
    let body = cursor::from(data, 4);
    // version 3 has a digest after its length before the message
    let digest = usize::from(cursor::u8_at(body, 0)?) + 1;
    let body = if version == 3 {
        cursor::from(body, digest)
    } else {
        body
    };
    let mut cursor = Cursor::new(body);
    let operation = cursor.u8()?;
    if operation == 0x33 {
        return Some(Meaning::Push("Notification"));
    }
    let (_, function, _) = (cursor.u16be()?, cursor.u16be()?, cursor.u16be()?);
    let id = u32::from(cursor.u16be()?);
    let method = match function {
        0x04BB => "Explore",
        0x04CA => "CreateObject",
        0x04D4 => "DeleteObject",
        0x04F2 => "SetVariable",
        0x0524 => "GetLink",
        0x0542 => "SetMultiVariables",
        0x054C => "GetMultiVariables",
        0x0556 => "BeginSequence",
        0x0560 => "EndSequence",
        0x056B => "Invoke",
        0x0586 => "GetVarSubStreamed",
        _ => return None,
    };
    match operation {
        0x31 => Some(Meaning::Request {
            id,
            method,
            target: SmolStr::default(),
        }),
        0x32 => Some(Meaning::Answer { id, error: None }),
        _ => None,
    }
}
