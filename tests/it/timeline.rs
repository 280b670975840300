//! Plans of replays: from drawn exports and the samples, through the library and the program.

mod drawn;
mod program;
mod random;
mod script;

use crate::export::Export;
use crate::look;
use std::path::Path;
use sync_report::analysis;
use sync_report::replay::plan::{Act, Alone, Plan, Target, Variant};
use sync_report::replay::timeline::{self, Wish};

/// The plan of a drawn export.
fn plan(e: &Export, wish: &Wish) -> Plan {
    try_plan(e, wish).expect("a plan")
}

fn try_plan(e: &Export, wish: &Wish) -> Result<Plan, String> {
    let (_folder, path) = e.write_temp();
    plan_of(&path, wish, 1)
}

fn plan_of(path: &Path, wish: &Wish, threads: usize) -> Result<Plan, String> {
    let options = analysis::Options { threads, ..look::options() };
    let (report, mut found) = analysis::run_one(path, &options).map_err(|e| e.to_string())?;
    timeline::plan(&report, &mut found, wish).map_err(|e| e.to_string())
}

fn site(name: &str) -> Wish {
    Wish { sites: vec![name.to_owned()], ..Wish::default() }
}

/// Each act as a line: `gemm 0`, `copy host-to-device 8 pageable S1`, `sync stream 0 S1`; the stream where it is not 0.
fn acts(plan: &Plan, variant: &str) -> Vec<String> {
    let variant = variant_of(plan, variant);
    variant.acts.iter().map(|act| line(plan, act)).collect()
}

fn variant_of<'a>(plan: &'a Plan, name: &str) -> &'a Variant {
    let names = || plan.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>();
    plan.variants.iter().find(|v| v.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", names()))
}

fn line(plan: &Plan, act: &Act) -> String {
    let of = |site: &Option<usize>| site.map_or_else(String::new, |s| format!(" {}", plan.sites[s].id));
    let on = |stream: &usize| if *stream == 0 { String::new() } else { format!(" on {stream}") };
    match act {
        Act::Host { ns } => format!("host {ns}"),
        Act::Gemm { gemm, stream } => format!("gemm {gemm}{}", on(stream)),
        Act::Spin { ns, stream, .. } => format!("spin {ns}{}", on(stream)),
        Act::Copy { direction, bytes, memory, stream, blocking, site } => {
            let blocking = if *blocking { " blocking" } else { "" };
            format!("copy {direction} {bytes} {memory}{blocking}{}{}", on(stream), of(site))
        }
        Act::Memset { bytes, stream } => format!("memset {bytes}{}", on(stream)),
        Act::Record { event, stream } => format!("record {event}{}", on(stream)),
        Act::StreamWait { event, stream } => format!("stream-wait {event}{}", on(stream)),
        Act::Sync { target: Target::Stream(stream), site } => format!("sync stream {stream}{}", of(site)),
        Act::Sync { target: Target::Event(event), site } => format!("sync event {event}{}", of(site)),
        Act::Sync { target: Target::Context, site } => format!("sync context{}", of(site)),
    }
}

/// `0 1 wait`.
fn alone(plan: &Plan) -> String {
    let word = |a: &Alone| match a {
        Alone::Gemm(gemm) => gemm.to_string(),
        Alone::Wait => "wait".to_owned(),
    };
    plan.alone.iter().map(word).collect::<Vec<_>>().join(" ")
}
