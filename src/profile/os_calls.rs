//! Traced operating-system calls: a thread writes, reads a clock, or waits for something other than the GPU.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{GlobalTid, ThreadIx};
use crate::profile::strings::Strings;
use crate::text::Names;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::{Range, RangeInclusive};
use typed_index_collections::TiSlice;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Writes to a file, a socket or a terminal.
    Write,
    Clock,
    /// Waits for a lock, a message, a file, another process, or for time to pass.
    Wait,
}

/// Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OsCall {
    pub kind: Kind,
    pub tid: GlobalTid,
    pub start: i64,
    pub end: i64,
    /// StringIds id.
    pub name: i64,
}

/// Sorted.
#[derive(Default)]
pub struct OsCalls(Vec<OsCall>);

pub const TABLE: &str = "OSRT_API";
const WRITES: Names = Names("write fwrite writev pwrite pwrite64 send sendto sendmsg fputs puts");
const CLOCKS: Names = Names("clock_gettime gettimeofday time clock");
const WAITS: Names = Names(
    "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_mutex_lock \
     pthread_mutex_timedlock pthread_mutex_clocklock pthread_rwlock_rdlock pthread_rwlock_wrlock \
     pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_barrier_wait pthread_join \
     pthread_timedjoin_np futex flock lockf sem_wait sem_timedwait sem_clockwait semop semtimedop \
     msgrcv mq_receive mq_timedreceive poll ppoll select pselect epoll_wait epoll_pwait \
     epoll_pwait2 accept accept4 connect recv recvfrom recvmsg recvmmsg read readv pread pread64 \
     preadv preadv2 fread fgets fgetc getc getline getdelim open open64 openat openat64 fopen \
     fopen64 fsync fdatasync sync syncfs sync_file_range msync sendfile sendfile64 sleep usleep \
     nanosleep clock_nanosleep pause sigwait sigwaitinfo sigtimedwait wait wait3 wait4 waitid \
     waitpid pclose system",
);
/// Lengths of names. Most strings are longer, or have other characters, and a search costs a microsecond.
const LENGTHS: RangeInclusive<usize> = 4..=26;

fn kind(name: &str) -> Option<Kind> {
    let kinds = [(Kind::Write, WRITES), (Kind::Clock, CLOCKS), (Kind::Wait, WAITS)];
    kinds.into_iter().find(|(_, names)| names.has(name)).map(|kind| kind.0)
}

pub fn is_name(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    LENGTHS.contains(&text.len())
        && text.iter().all(plain)
        && std::str::from_utf8(text).is_ok_and(|name| kind(name).is_some())
}

/// Reads the calls of `threads`, which ascend. `names`: ids of the strings that name them.
pub fn read(
    db: &Database,
    strings: &mut Strings,
    names: &FxHashSet<i64>,
    threads: &TiSlice<ThreadIx, GlobalTid>,
) -> Result<OsCalls, InputError> {
    if names.is_empty() {
        return Ok(OsCalls::default());
    }
    strings.fetch(db, names.iter().copied())?;
    let kind = |&id: &i64| Some((id, kind(strings.get(id)?)?));
    let kinds: FxHashMap<i64, Kind> = names.iter().filter_map(kind).collect();
    let read = |row: &Cells| {
        let (name, tid) = (row.int(3)?, row.global_tid(0)?);
        let kind = *kinds.get(&name)?;
        let (start, end) = (row.time(1).ok()??, row.time(2).ok()??);
        threads.binary_search(&tid).is_ok().then_some(OsCall { kind, tid, start, end, name })
    };
    let mut found = db.scan(TABLE, &["globalTid", "start", "end", "nameId"], read)?;
    found.sort_unstable();
    Ok(OsCalls(found))
}

impl OsCalls {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one starts within `from..=to`.
    pub fn any(&self, kind: Kind, tid: GlobalTid, from: i64, to: i64) -> bool {
        let first = self.first_from(kind, tid, from);
        self.0.get(first).is_some_and(|call| call.kind == kind && call.tid == tid && call.start <= to)
    }

    /// By start.
    pub fn of(&self, kind: Kind, tid: GlobalTid) -> &[OsCall] {
        let from = self.first_from(kind, tid, i64::MIN);
        let count = self.0[from..].partition_point(|call| (call.kind, call.tid) == (kind, tid));
        &self.0[Range { start: from, end: from + count }]
    }

    fn first_from(&self, kind: Kind, tid: GlobalTid, from: i64) -> usize {
        self.0.partition_point(|call| (call.kind, call.tid, call.start) < (kind, tid, from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_lengths_that_are_looked_for() {
        let all = || [WRITES, CLOCKS, WAITS].into_iter().flat_map(|names| names.iter().collect::<Vec<_>>());
        assert!(all().all(|name| is_name(name.as_bytes())));
        let lengths: Vec<usize> = all().map(str::len).collect();
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(LENGTHS.start()), Some(LENGTHS.end()))
        );
        assert!(!is_name(b"munmap") && !is_name(b"Read"));
    }
}
