//! MMS (ISO 9506-2) behind session and presentation (X.225, X.226): services and their numbers. Remembers nothing.

use smol_str::{SmolStr, format_smolstr};

use super::Meaning;
use crate::cursor::Cursor;

/// Units of the session: a connect, its two answers, and data behind a token.
const CONNECT: u8 = 0x0D;
const ACCEPT: u8 = 0x0E;
const REFUSE: u8 = 0x0C;
const DATA: [u8; 4] = [1, 0, 1, 0];

pub(super) fn is_mine(data: &[u8]) -> bool {
    matches!(data, [CONNECT | ACCEPT, len, ..] if *len != 0) || read(data).is_some()
}

/// What stands behind a tag of BER with its length, which may be cut.
fn value<'a>(cursor: &mut Cursor<'a>) -> Option<(u8, Cursor<'a>)> {
    let (tag, first) = (cursor.u8()?, cursor.u8()?);
    let len = match first {
        0..=0x7F => usize::from(first),
        0x81 => usize::from(cursor.u8()?),
        0x82 => usize::from(cursor.u16be()?),
        _ => return None,
    };
    let inside = cursor.take(len.min(cursor.left()))?;
    Some((tag, Cursor::new(inside)))
}

pub(super) fn read(data: &[u8]) -> Option<Meaning> {
    match data {
        [CONNECT, len, ..] if *len != 0 => return Some(Meaning::Setup),
        [ACCEPT, len, ..] if *len != 0 => return Some(Meaning::SetupAnswer(None)),
        [REFUSE, ..] => return Some(Meaning::SetupAnswer(Some("refused".into()))),
        _ => {}
    }
    let mut cursor = Cursor::new(data.strip_prefix(&DATA)?);
    // fully encoded data: a list of one, with the number of its context and the unit itself
    let (0x61, mut list) = value(&mut cursor)? else {
        return None;
    };
    let (0x30, mut entry) = value(&mut list)? else {
        return None;
    };
    let (2, _) = value(&mut entry)? else { return None };
    let (0xA0, mut unit) = value(&mut entry)? else {
        return None;
    };
    let (kind, mut body) = value(&mut unit)?;
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
            error: None,
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

fn number(cursor: &mut Cursor<'_>, wanted: u8) -> Option<u32> {
    let (tag, mut digits) = value(cursor)?;
    let digits = digits.take(digits.left())?;
    let fits = tag == wanted && (1..=5).contains(&digits.len());
    fits.then(|| digits.iter().fold(0u32, |id, byte| id << 8 | u32::from(*byte)))
}

/// A service error's class and code.
fn failure(body: &mut Cursor<'_>) -> Option<SmolStr> {
    let (_, mut error) = value(body)?;
    let (_, mut class) = value(&mut error)?;
    let (tag, mut code) = value(&mut class)?;
    Some(format_smolstr!("error {}/{}", tag & 0x1F, code.u8()?))
}

/// What a confirmed request asks for, by its tag (ISO 9506-2 7.4).
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
