//! Names of procedures, and the status of replies: RPC's own and that of NFS.

use smol_str::{SmolStr, format_smolstr};

use super::skip_auth;
use crate::cursor::Cursor;

const PORTMAP: u32 = 100_000;
pub(super) const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;
const LOCKS: u32 = 100_021;

// names of procedures, by their numbers
/// RFC 1833 3 (version 2) and 2 (versions 3 and 4).
const PORTMAP_2: [&str; 6] = ["NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"];
#[rustfmt::skip]
const PORTMAP_4: [&str; 13] = [
    "NULL", "SET", "UNSET", "GETADDR", "DUMP", "BCAST", "GETTIME", "UADDR2TADDR", "TADDR2UADDR", "GETVERSADDR",
    "INDIRECT", "GETADDRLIST", "GETSTAT",
];
/// RFC 1094 2.2.
#[rustfmt::skip]
const NFS_2: [&str; 18] = [
    "NULL", "GETATTR", "SETATTR", "ROOT", "LOOKUP", "READLINK", "READ", "WRITECACHE", "WRITE", "CREATE", "REMOVE",
    "RENAME", "LINK", "SYMLINK", "MKDIR", "RMDIR", "READDIR", "STATFS",
];
/// RFC 1813 3.
#[rustfmt::skip]
const NFS_3: [&str; 22] = [
    "NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK",
    "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
];
/// Operations of NFS 4, whose numbers begin at `FIRST_OPERATION` (RFC 8881 16.2.4).
#[rustfmt::skip]
const NFS_4: [&str; 56] = [
    "ACCESS", "CLOSE", "COMMIT", "CREATE", "DELEGPURGE", "DELEGRETURN", "GETATTR", "GETFH", "LINK", "LOCK", "LOCKT",
    "LOCKU", "LOOKUP", "LOOKUPP", "NVERIFY", "OPEN", "OPENATTR", "OPEN_CONFIRM", "OPEN_DOWNGRADE", "PUTFH",
    "PUTPUBFH", "PUTROOTFH", "READ", "READDIR", "READLINK", "REMOVE", "RENAME", "RENEW", "RESTOREFH", "SAVEFH",
    "SECINFO", "SETATTR", "SETCLIENTID", "SETCLIENTID_CONFIRM", "VERIFY", "WRITE", "RELEASE_LOCKOWNER",
    "BACKCHANNEL_CTL", "BIND_CONN_TO_SESSION", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "FREE_STATEID",
    "GET_DIR_DELEGATION", "GETDEVICEINFO", "GETDEVICELIST", "LAYOUTCOMMIT", "LAYOUTGET", "LAYOUTRETURN",
    "SECINFO_NO_NAME", "SEQUENCE", "SET_SSV", "TEST_STATEID", "WANT_DELEGATION", "DESTROY_CLIENTID",
    "RECLAIM_COMPLETE",
];
const FIRST_OPERATION: u32 = 3;
/// Operations that precede the one that is the request: they choose file and session.
const PUTFH: u32 = 22;
const PUTROOTFH: u32 = 24;
const SEQUENCE: u32 = 53;
const SEQUENCE_LEN: usize = 32;
const MOUNT_3: [&str; 6] = ["NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"];
const LOCKS_4: [&str; 6] = ["NULL", "TEST", "LOCK", "CANCEL", "UNLOCK", "GRANTED"];
/// Status of an accepted call (RFC 5531 9).
#[rustfmt::skip]
const ACCEPTED: [&str; 6] = [
    "SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR",
];
/// Statuses of NFS (RFC 1813 2.6, RFC 8881 15.1).
#[rustfmt::skip]
const ERRORS: [(u32, &str); 63] = [
    (1, "PERM"), (2, "NOENT"), (5, "IO"), (6, "NXIO"), (13, "ACCES"), (17, "EXIST"), (18, "XDEV"),
    (19, "NODEV"), (20, "NOTDIR"), (21, "ISDIR"), (22, "INVAL"), (27, "FBIG"), (28, "NOSPC"), (30, "ROFS"),
    (31, "MLINK"), (63, "NAMETOOLONG"), (66, "NOTEMPTY"), (69, "DQUOT"), (70, "STALE"), (71, "REMOTE"),
    (10001, "BADHANDLE"), (10002, "NOT_SYNC"), (10003, "BAD_COOKIE"), (10004, "NOTSUPP"),
    (10005, "TOOSMALL"), (10006, "SERVERFAULT"), (10007, "BADTYPE"), (10008, "DELAY"), (10009, "SAME"),
    (10010, "DENIED"), (10011, "EXPIRED"), (10012, "LOCKED"), (10013, "GRACE"), (10014, "FHEXPIRED"),
    (10015, "SHARE_DENIED"), (10016, "WRONGSEC"), (10017, "CLID_INUSE"), (10018, "RESOURCE"),
    (10019, "MOVED"), (10020, "NOFILEHANDLE"), (10021, "MINOR_VERS_MISMATCH"), (10022, "STALE_CLIENTID"),
    (10023, "STALE_STATEID"), (10024, "OLD_STATEID"), (10025, "BAD_STATEID"), (10026, "BAD_SEQID"),
    (10027, "NOT_SAME"), (10029, "SYMLINK"), (10030, "RESTOREFH"), (10032, "ATTRNOTSUPP"),
    (10033, "NO_GRACE"), (10036, "BADXDR"), (10037, "LOCKS_HELD"), (10038, "OPENMODE"), (10039, "BADOWNER"),
    (10040, "BADCHAR"), (10041, "BADNAME"), (10044, "OP_ILLEGAL"), (10045, "DEADLOCK"),
    (10046, "FILE_OPEN"), (10047, "ADMIN_REVOKED"), (10048, "CB_PATH_DOWN"), (10052, "BADSESSION"),
];

/// Returns a procedure's name; its number if it is not known.
pub(super) fn procedure(
    program: u32,
    version: u32,
    procedure: u32,
    arguments: Option<Cursor<'_>>,
) -> SmolStr {
    let names: &[&str] = match (program, version) {
        (PORTMAP, 2) => &PORTMAP_2,
        (PORTMAP, 3 | 4) => &PORTMAP_4,
        (NFS, 2) => &NFS_2,
        (NFS, 3) => &NFS_3,
        (NFS, 4) => &["NULL", "COMPOUND"],
        (MOUNT, _) => &MOUNT_3,
        (LOCKS, _) => &LOCKS_4,
        _ => &["NULL"],
    };
    match names.get(procedure as usize) {
        Some(&"COMPOUND") => match arguments.and_then(operation) {
            Some(operation) => format_smolstr!("COMPOUND {operation}"),
            None => SmolStr::new_static("COMPOUND"),
        },
        Some(name) => SmolStr::new_static(name),
        None => format_smolstr!("{procedure}"),
    }
}

/// Returns the first operation of a COMPOUND that does not only choose file or session.
fn operation(mut cursor: Cursor<'_>) -> Option<&'static str> {
    opaque(&mut cursor)?; // tag
    cursor.u32be()?;
    let count = cursor.u32be()?;
    for _ in 0..count.min(4) {
        match cursor.u32be()? {
            SEQUENCE => cursor.take(SEQUENCE_LEN).map(drop)?,
            PUTFH => opaque(&mut cursor)?,
            PUTROOTFH => {}
            operation => {
                return NFS_4
                    .get(operation.checked_sub(FIRST_OPERATION)? as usize)
                    .copied();
            }
        }
    }
    None
}

/// Skips bytes after their length.
fn opaque(cursor: &mut Cursor<'_>) -> Option<()> {
    let len = cursor.u32be().filter(|len| *len <= 1024)?;
    cursor.take(len.next_multiple_of(4) as usize).map(drop)
}

/// Reads the status of a reply, after its message type: a code, and the name of an error.
pub(super) fn status(reply: &mut Cursor<'_>, is_nfs: bool) -> Option<(u32, Option<&'static str>)> {
    if reply.u32be()? == 1 {
        let why = reply.u32be()?;
        return Some((why, Some(if why == 0 { "RPC_MISMATCH" } else { "AUTH_ERROR" })));
    }
    skip_auth(reply)?;
    let accepted = reply.u32be()?;
    if accepted > 0 {
        return Some((accepted, ACCEPTED.get(accepted as usize).copied()));
    }
    let status = if is_nfs { reply.u32be().unwrap_or(0) } else { 0 };
    let word = ERRORS
        .iter()
        .find(|(code, _)| *code == status)
        .map(|(_, word)| *word);
    Some((status, word))
}
