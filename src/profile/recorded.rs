//! Operators and Python functions, which torch.profiler records beside CUDA calls. Each record takes time at
//! its beginning and at its end.
//!
//! ```text
//!  thread   [step                                    ]
//!                [aten::add    ]   [aten::relu   ]
//!  calls            [launch]          [launch]
//!  between                  |.......|                  an end and a beginning
//! ```

use crate::error::InputError;
use crate::profile::database::Database;
use crate::profile::ids::GlobalTid;
use rustc_hash::FxHashMap;

/// Only traces have this table, not exports of nsys.
pub const TABLE: &str = "TORCH_PROFILER_RANGES";

/// Beginnings and ends of ranges, in ns, sorted.
#[derive(Debug, Default)]
pub struct Recorded {
    pub operators: Vec<i64>,
    pub python: Vec<i64>,
}

impl Recorded {
    pub fn read(db: &Database) -> Result<FxHashMap<GlobalTid, Self>, InputError> {
        let mut threads: FxHashMap<GlobalTid, Self> = FxHashMap::default();
        db.rows(TABLE, &["globalTid", "isPython", "start", "end"], |row| {
            let Some(tid) = row.global_tid(0) else { return };
            let thread = threads.entry(tid).or_default();
            let times = if row.int(1) == Some(1) { &mut thread.python } else { &mut thread.operators };
            times.extend(row.int(2).into_iter().chain(row.int(3)));
        })?;
        for thread in threads.values_mut() {
            thread.operators.sort_unstable();
            thread.python.sort_unstable();
        }
        Ok(threads)
    }

    /// Counts beginnings and ends within `from..to`: of operators, and of Python functions.
    pub fn between(&self, from: i64, to: i64) -> [usize; 2] {
        [&self.operators, &self.python].map(|times| {
            let before = |time| times.partition_point(|&at| at < time);
            before(to) - before(from)
        })
    }
}
