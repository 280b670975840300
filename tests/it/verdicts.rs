//! Each decisive rule: a case that it decides, and near misses that must stay open.
//!
//! Cases are drawn alike:
//!
//! ```text
//!  host      [launch before…]  [copy][sync==========]  [launch after…]
//!  stream 7     [before…~~~~~~~~~~~~~~~~~~][copy]         [after…]
//! ```

use crate::export::{Call, Copy, Export, GPU0, Memory, NativeFrame, PythonFrame, Schema, empty, empty_of};
use crate::look::{self, only};
use sync_report::model::{Report, Site};
use sync_report::vocabulary::PatternId;

mod bare;
mod guards;
mod kernels;
mod library;
mod named;
mod programs;
mod sizes;
mod timing;
mod weak;

#[derive(Clone, Copy, Default)]
struct Scene<'a> {
    copy: Option<Copy>,
    before: &'a [&'a str],
    after: &'a [&'a str],
    chain: &'a [&'a str],
    frames: &'a [PythonFrame<'a>],
    ranges: &'a [&'a str],
    thread: &'a str,
}

impl Scene<'_> {
    fn export(&self) -> Export {
        let (mut e, t) = empty();
        e.name_thread(t, if self.thread.is_empty() { "python3" } else { self.thread });
        let mut at = 1000;
        for name in self.before {
            e.launch(t, at..at + 5, GPU0, at + 10_000..at + 10_010, name);
            at += 20;
        }
        let wait = match self.copy {
            Some(copy) => {
                let call = e.memcpy(t, 5000..5010, copy, GPU0, 20_000..20_010);
                self.traced(&mut e, call);
                e.sync(t, "cudaStreamSynchronize", 5020..20_100, GPU0)
            }
            None => e.sync(t, "cudaStreamSynchronize", 5020..20_100, GPU0),
        };
        self.traced(&mut e, wait);
        let mut at = 30_000;
        for name in self.after {
            e.launch(t, at..at + 5, GPU0, at + 100..at + 110, name);
            at += 200;
        }
        for (i, range) in self.ranges.iter().enumerate() {
            let i = i as i64;
            e.nvtx(t, 4000 + i..25_000 - i, range);
        }
        e
    }

    fn traced(&self, e: &mut Export, call: Call) {
        if !self.frames.is_empty() {
            e.python(call, self.frames);
        }
        if !self.chain.is_empty() {
            let chain: Vec<NativeFrame> = self.chain.iter().map(|s| (*s, "libtorch_cpu.so")).collect();
            e.native(call, &chain);
        }
    }

    fn site(&self) -> Site {
        let report = look::report(&self.export());
        let waiting = |s: &&Site| s.driver_api.as_str() == "cuStreamSynchronize";
        let site = report.sites.iter().find(waiting).expect("the wait");
        assert_eq!(report.sites.len(), 1, "{:?}", look::sites(&report));
        site.clone()
    }

    /// `true dynamic-shape B01 R08`
    fn verdict(&self) -> String {
        words(&self.site())
    }
}

fn words(site: &Site) -> String {
    let pattern = site.pattern.map_or("-", PatternId::as_str);
    let rules = site.evidence.iter().map(|reason| reason.rule.as_str());
    let rule = rules.clone().find(|rule| !rule.starts_with('X')).unwrap_or_default();
    format!("{} {} {pattern} {rule}", site.class, site.kind)
}

fn read(bytes: i64) -> Option<Copy> {
    Some(Copy::d2h(bytes, Memory::Pinned))
}

fn upload(bytes: i64, memory: Memory) -> Option<Copy> {
    Some(Copy::h2d(bytes, memory))
}

fn told(site: &Site) -> String {
    site.evidence.iter().map(|e| &*e.text).collect::<Vec<_>>().join(" | ")
}
