//! Which calls are waits, which are not, and what each awaited.
//!
//! In the drawings `[…]` is a call or an op, with its first and last nanosecond below.

use crate::export::{Copy, Export, GPU0, Gpu, Memory, Schema, SyncKind, Thread, empty, empty_of};
use crate::look;

mod awaited;
mod blocking;
mod targets;
mod threads;

const SIDE: Gpu = Gpu { device: 0, stream: 13 };
const GPU1: Gpu = Gpu { device: 1, stream: 7 };

fn without_sync_rows(e: &mut Export) -> &mut Export {
    e.drop_table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
}

fn assert_waits(e: &Export, expected: &[&str]) {
    assert_eq!(look::waits(e), expected);
}
