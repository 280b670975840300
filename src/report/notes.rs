//! Limits of an export's prices, as warnings.

use crate::analysis::Priced;
use crate::cost::prices::TOLERANCE;
use crate::model::{Code, Warning};
use crate::profile::recapture;
use crate::text;
use crate::vocabulary::{Change, Class};

/// Share of the span from which time outside waits is worth a warning: profiler, allocation, code loading.
pub(super) const WORTH_SAYING: f64 = 0.1;

/// Share of a span from which an estimate reads "most of".
const MOST: f64 = 0.9;

const LONGEST_NAME: usize = 60;

/// Fewer raise no warning.
const MANY_CALLS: usize = 50;

pub fn warnings(found: &Priced) -> Vec<Warning> {
    if found.prices.is_empty() {
        return Vec::new();
    }
    let notes = [reproduction, profiler, step_time, power, partial, bandwidth, other_ranks];
    notes.iter().filter_map(|note| note(found)).collect()
}

fn note(code: Code, message: String) -> Warning {
    Warning::new(code, message, "")
}

fn reproduction(found: &Priced) -> Option<Warning> {
    let prices = &found.prices;
    if found.waits.is_empty() || prices.usable() {
        return None;
    }
    let longer = prices.recorded > prices.simulated;
    let why =
        if longer { "; another process on the GPU, which no capture shows, may have held it up" } else { "" };
    let [takes, took] = [prices.simulated, prices.recorded].map(text::duration);
    let off = text::percent(TOLERANCE * 100.0);
    let message = format!(
        "the simulation of this capture with nothing fixed takes {takes}, recorded were {took}: over {off} off, so savings are bounds only{why}"
    );
    Some(note(Code::SimulationOff, message))
}

fn profiler(found: &Priced) -> Option<Warning> {
    let prices = &found.prices;
    let (whole, alone, each) = match found.iterations.as_ref().zip(prices.iteration) {
        Some((recorded, alone)) => (recorded.start_to_start_ns(), alone.length, "each iteration of "),
        // Simulated with the profiler, as in the report's first lines.
        None => (prices.captured.length, prices.run.length, "the run of "),
    };
    let part = whole - alone;
    if found.profile.calls.len() < MANY_CALLS || (part as f64) < WORTH_SAYING * whole.max(1) as f64 {
        return None;
    }
    // An estimate of nearly all time, or of more, is no figure.
    let most = part as f64 > MOST * whole as f64;
    let share = if most { "most of".to_owned() } else { format!("about {} of", text::duration(part)) };
    let of = text::duration(whole);
    let (hint, command) = match (found.prices.step_known, found.prices.backtraces, &found.iterations) {
        // The length is given: nothing is left to do.
        (Some(true), ..) => return None,
        (_, true, _) => (
            ", since every call has a backtrace; a capture with backtraces at waits alone has the same lines and closer prices",
            recapture::capture(&found.profile.target, ""),
        ),
        (_, false, Some(_)) => ("; time one without it and pass that as --step-time", String::new()),
        (_, false, None) => ("", String::new()),
    };
    let message = format!("The profiler takes {share} {each}{of}{hint}");
    Some(Warning::new(Code::ProfilerOverhead, message, command))
}

fn step_time(found: &Priced) -> Option<Warning> {
    (found.prices.step_known == Some(false)).then(|| {
        let why = match &found.iterations {
            None => "no loop is known here; name its NVTX ranges with --iteration-marker",
            Some(_) => "whatever share of its time is taken for the profiler's, no iteration of this capture comes out as long as that; it is to be from the start of one to the start of the next, on average",
        };
        note(Code::StepTimeUnused, format!("--step-time is not used: {why}"))
    })
}

fn power(found: &Priced) -> Option<Warning> {
    let (run, lengths) = found.prices.clock.limited?;
    let [fast, slow] = lengths.map(text::duration);
    let name = found.profile.kernel_name(run).map_or("[kernel]", |name| name);
    let name = text::escape_terminal(&text::shorten_symbol(name, LONGEST_NAME)).into_owned();
    let message = format!(
        "`{name}`, which takes most time, took {fast} at first and {slow} later, its grid unchanged: the GPU may be at its power limit and clock down as its idle time goes; then only the energy of idling is won, about a sixth of that time: between nothing and all"
    );
    Some(note(Code::PowerLimited, message))
}

fn partial(found: &Priced) -> Option<Warning> {
    let left = found.prices.unsimulated as u64;
    let sites = text::counted(left, "site");
    let message = format!("{sites} priced by bounds only: simulating each takes too long");
    (left > 0).then(|| note(Code::PricesPartlyBounds, message))
}

fn bandwidth(found: &Priced) -> Option<Warning> {
    let speed = found.prices.assumed_bandwidth?;
    let mut priced = found.sites.iter().zip(&found.prices.sites);
    let uploads =
        priced.any(|(s, p)| s.verdict.class == Class::False && p.fix == Change::Pinned && p.high > 0);
    let message = format!(
        "No large pinned copy was captured, so H2D bandwidth is assumed: {speed:.0} GB/s (PCIe x16). On x8 or a shared bus, expect half"
    );
    uploads.then(|| note(Code::BandwidthAssumed, message))
}

fn other_ranks(found: &Priced) -> Option<Warning> {
    let alone = found.collectives.alone();
    (alone > 0 && found.prices.run.high > 0).then(|| {
        let kernels = text::counted(alone, "collective kernel");
        let message = format!(
            "{kernels} (NCCL) keep their recorded length: they wait for other ranks, so a rank that gets faster alone may only wait longer there"
        );
        note(Code::CollectivesAsRecorded, message)
    })
}
