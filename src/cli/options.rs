//! The command line as the library's [`Options`], which are made only here.

use super::args::{ReplayArgs, ReportArgs, SelectArgs, SharedArgs};
use super::progress;
use anyhow::Result;
use sync_report::analysis::Options;
use sync_report::analysis::filter::Filter;
use sync_report::analysis::pricing::Scenario;
use sync_report::formats::{Format, Rendered};
use sync_report::model::timeline::WHOLE;
use sync_report::replay::constants::Constants;
use sync_report::replay::plan::HostTime;

pub fn plain(shared: &SharedArgs) -> Options {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    Options {
        threads: shared.threads.map_or_else(all, usize::from),
        memory: shared.memory.unwrap_or_else(half_of_free),
        reader: shared.reader,
        progress: progress::shown(shared.progress, shared.quiet),
        ..Options::default()
    }
}

/// Half of Linux's available memory, in bytes; elsewhere what 64 small exports need.
fn half_of_free() -> u64 {
    let said = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = said.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    free.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(2 << 30, |kib| kib * 512)
}

pub fn selected(select: &SelectArgs, shared: &SharedArgs) -> Options {
    Options {
        source_roots: select.code.sources.roots(),
        recorded: select.code.sources.recorded(),
        rules: select.code.rules(),
        filter: Filter {
            nvtx: select.nvtx.clone(),
            process: select.process,
            thread: select.thread.clone(),
            device: select.device,
            from: select.from,
            to: select.to,
        },
        iteration_marker: select.iteration_marker.clone(),
        ..plain(shared)
    }
}

pub fn report(args: &ReportArgs, format: &Format<Rendered>) -> Result<Options> {
    let saving = &args.saving;
    let constants = saving.constants.as_deref().map(Constants::read).transpose()?;
    Ok(Options {
        classes: args.list.class.clone(),
        sort: args.list.sort,
        top: if args.details.is_some() { 0 } else { args.list.top.unwrap_or(format.top) },
        without_spread: !format.spread,
        awaited: format.awaited,
        timelines: format.timelines.then_some(WHOLE),
        capture: args.graph_ready.clone(),
        scenario: Scenario { assume_fixed: saving.assume_fixed.clone(), fixes: saving.fix.clone() },
        assumed: constants.as_ref().map(Into::into).unwrap_or_default(),
        step: saving.step_time,
        ..selected(&args.select, &args.shared)
    })
}

pub fn replay(args: &ReplayArgs) -> Options {
    Options {
        source_roots: args.sources.roots(),
        recorded: args.sources.recorded(),
        // The prediction is for the host time that is replayed.
        as_captured: args.host != HostTime::Unprofiled,
        scenario: Scenario { fixes: args.fix.clone(), ..Scenario::default() },
        ..plain(&args.shared)
    }
}
