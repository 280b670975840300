//! Plans of replays: from drawn exports and the samples, through the library and the program.

mod drawn;
mod program;
mod random;
mod script;

use crate::export::Export;
use crate::look;
use std::path::Path;
use sync_report::analysis;
use sync_report::replay::plan::{Plan, PlanStream, PlannedSiteIx, ReplayOp, Target, Variant};
use sync_report::replay::trace::{self, ReplayRequest};

fn plan(e: &Export, request: &ReplayRequest) -> Plan {
    try_plan(e, request).expect("a plan")
}

fn try_plan(e: &Export, request: &ReplayRequest) -> Result<Plan, String> {
    let (_folder, path) = e.write_temp();
    plan_of(&path, request, 1)
}

fn plan_of(path: &Path, request: &ReplayRequest, threads: usize) -> Result<Plan, String> {
    let options = analysis::Options { threads, ..look::options() };
    let (report, mut found) =
        sync_report::report::run_whole(&[path.to_owned()], &options).map_err(|e| e.to_string())?;
    trace::plan(&report, &mut found[0], request).map_err(|e| e.to_string())
}

fn site(name: &str) -> ReplayRequest {
    ReplayRequest { sites: vec![name.to_owned()], ..ReplayRequest::default() }
}

/// Each op as a line: `gemm 0`, `copy host-to-device 8 pageable S1`, `sync stream 0 S1`; the stream where it is not 0.
fn acts(plan: &Plan, variant: &str) -> Vec<String> {
    let variant = variant_of(plan, variant);
    variant.ops.iter().map(|op| line(plan, op)).collect()
}

fn variant_of<'a>(plan: &'a Plan, name: &str) -> &'a Variant {
    let names = || plan.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>();
    plan.variants.iter().find(|v| v.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", names()))
}

fn line(plan: &Plan, op: &ReplayOp) -> String {
    let of =
        |site: &Option<PlannedSiteIx>| site.map_or_else(String::new, |s| format!(" {}", plan.sites[s].id));
    let on = |stream: &PlanStream| if stream.index() == 0 { String::new() } else { format!(" on {stream}") };
    match op {
        ReplayOp::Host { ns } => format!("host {ns}"),
        ReplayOp::Gemm { gemm, stream } => format!("gemm {gemm}{}", on(stream)),
        ReplayOp::Spin { ns, stream, .. } => format!("spin {ns}{}", on(stream)),
        ReplayOp::Copy { direction, bytes, memory, stream, blocking, site } => {
            let blocking = if *blocking { " blocking" } else { "" };
            format!("copy {direction} {bytes} {memory}{blocking}{}{}", on(stream), of(site))
        }
        ReplayOp::Memset { bytes, stream } => format!("memset {bytes}{}", on(stream)),
        ReplayOp::Record { event, stream } => format!("record {event}{}", on(stream)),
        ReplayOp::StreamWait { event, stream } => format!("stream-wait {event}{}", on(stream)),
        ReplayOp::Sync { target: Target::Stream(stream), site } => {
            format!("sync stream {stream}{}", of(site))
        }
        ReplayOp::Sync { target: Target::Event(event), site } => format!("sync event {event}{}", of(site)),
        ReplayOp::Sync { target: Target::Context, site } => format!("sync context{}", of(site)),
    }
}
