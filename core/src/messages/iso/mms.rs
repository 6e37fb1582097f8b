//! MMS (ISO 9506-2) inside units of session and presentation (X.225, X.226): services, invoke ids and errors.
//! Stateless.

use smol_str::{SmolStr, format_smolstr};

use super::Meaning;
use crate::cursor::Cursor;
use crate::messages::errors;

/// Units of the session layer: CONNECT and its two responses, and GIVE TOKENS with DATA TRANSFER.
const CONNECT: u8 = 0x0D;
const ACCEPT: u8 = 0x0E;
const REFUSE: u8 = 0x0C;
const DATA: [u8; 4] = [1, 0, 1, 0];
/// Services whose positive responses have a result for each value.
const READ: u8 = 0xA4;
const WRITE: u8 = 0xA5;

/// Whether a unit's data are of this protocol.
pub(super) fn is_known(data: &[u8]) -> bool {
    matches!(data, [CONNECT | ACCEPT, len, ..] if *len != 0) || read(data).is_some()
}

pub(super) fn read(data: &[u8]) -> Option<Meaning> {
    match data {
        [CONNECT, len, ..] if *len != 0 => return Some(Meaning::Setup),
        [ACCEPT, len, ..] if *len != 0 => return Some(Meaning::SetupAnswer(None)),
        [REFUSE, ..] => return Some(Meaning::SetupAnswer(Some("refused".into()))),
        _ => {}
    }
    let mut cursor = Cursor::new(data.strip_prefix(&DATA)?);
    // fully-encoded-data of the presentation layer: a list of one entry, with its context id and the PDU of MMS
    let (0x61, mut list) = cursor.tagged()? else {
        return None;
    };
    let (0x30, mut entry) = list.tagged()? else {
        return None;
    };
    let (2, _) = entry.tagged()? else { return None };
    let (0xA0, mut unit) = entry.tagged()? else {
        return None;
    };
    let (kind, mut body) = unit.tagged()?;
    match kind {
        0xA0 => {
            let id = number(&mut body, 2)?;
            Some(Meaning::Request {
                id,
                method: service(body.rest()),
                target: SmolStr::default(),
            })
        }
        0xA1 => Some(Meaning::Answer {
            id: number(&mut body, 2)?,
            error: value_error(body),
        }),
        0xA2 => {
            let id = number(&mut body, 0x80)?;
            Some(Meaning::Answer {
                id,
                error: Some(failure(&mut body).unwrap_or_else(|| "error".into())),
            })
        }
        0xA3 => Some(Meaning::Push("InformationReport")),
        0xA4 => Some(Meaning::Answer {
            id: number(&mut body, 0x80)?,
            error: Some("rejected".into()),
        }),
        _ => None,
    }
}

/// Reads an integer with this tag.
fn number(cursor: &mut Cursor<'_>, wanted: u8) -> Option<u32> {
    let (tag, digits) = cursor.tagged()?;
    (tag == wanted && (1..=5).contains(&digits.left())).then(|| digits.number())
}

/// Returns the text of a service error, by its class and code (ISO 9506-2 7.4.3).
fn failure(body: &mut Cursor<'_>) -> Option<SmolStr> {
    let (_, mut error) = body.tagged()?;
    let (_, mut class) = error.tagged()?;
    let (tag, code) = class.tagged()?;
    let (class, code) = (u16::from(tag & 0x1F), code.number() as u16 & 0xFF);
    let word = errors::word(errors::MMS, class << 8 | code);
    Some(word.map_or_else(|| format_smolstr!("error {class}/{code}"), SmolStr::new_static))
}

/// Returns the first DataAccessError in a positive response to a read or a write, which has a result for each value.
fn value_error(mut body: Cursor<'_>) -> Option<SmolStr> {
    const FAILED: u8 = 0x80;
    let (service, mut results) = body.tagged()?;
    if service == READ {
        // the specification of the variables may precede the results
        let (mut kind, mut list) = results.tagged()?;
        if kind == 0xA0 {
            (kind, list) = results.tagged()?;
        }
        if kind != 0xA1 {
            return None;
        }
        results = list;
    } else if service != WRITE {
        return None;
    }
    while let Some((kind, value)) = results.tagged() {
        if kind == FAILED {
            let code = value.number();
            let word = u16::try_from(code)
                .ok()
                .and_then(|code| errors::word(errors::MMS_VALUES, code));
            return Some(word.map_or_else(|| format_smolstr!("access error {code}"), SmolStr::new_static));
        }
    }
    None
}

/// Returns the service of a confirmed request, by its tag (ISO 9506-2 7.4).
fn service(body: &[u8]) -> &'static str {
    match *body {
        [0xBF, 72, ..] => "FileOpen",
        [0xBF, 73, ..] => "FileRead",
        [0xBF, 74, ..] => "FileClose",
        [0xBF, 76, ..] => "FileDelete",
        [0xBF, 77, ..] => "FileDirectory",
        [tag, ..] => match tag & 0x1F {
            0 => "Status",
            1 => "GetNameList",
            2 => "Identify",
            3 => "Rename",
            4 => "Read",
            5 => "Write",
            6 => "GetVariableAccessAttributes",
            11 => "DefineNamedVariableList",
            12 => "GetNamedVariableListAttributes",
            13 => "DeleteNamedVariableList",
            _ => "Confirmed",
        },
        _ => "Confirmed",
    }
}
