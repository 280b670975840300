//! The plan as a PyTorch script that reproduces the stall without this tool.
//!
//! The plan's literals are between `head.py` and `body.py`, which runs it. All text of the export is in ASCII
//! string literals, so that no name becomes code.

use super::plan::{Certainty, Gemm, Plan, ReplayOp, Target, Variant};
use super::product::{Compute, Element, Shape};
use crate::vocabulary::HostMemory;

const HEAD: &str = include_str!("head.py");
const BODY: &str = include_str!("body.py");

pub fn script(plan: &Plan) -> String {
    let notes: String = plan.notes.iter().map(|note| format!("    {},\n", literal(note))).collect();
    let gemms: String = plan.gemms.iter().map(|gemm| format!("    {}\n", product(gemm))).collect();
    let variants: String = plan.variants.iter().map(variant).collect();
    format!(
        "{HEAD}
PROFILE = {}
CHOSEN = {}
RECORDED_NS = {}
RECORDED_GPU = {}
# Steps in a row that one measurement consists of.
REPEAT = {}
STREAMS = {}
EVENTS = {}
# What this leaves out or assumes.
NOTES = [
{notes}]
# As cuBLAS takes them: m, n, k, batch, A and B transposed, type, tf32, recorded kernel.
GEMMS = [
{gemms}]
# Times are in ns. copy: direction, bytes, host memory, blocking, stream.
VARIANTS = [
{variants}]
DEFAULT_FIXED = {}
{BODY}",
        literal(&plan.profile),
        literal(&plan.stretch.chosen),
        plan.stretch.to_ns - plan.stretch.from_ns,
        literal(plan.gpu.name.as_deref().unwrap_or("an unnamed GPU")),
        plan.repeat,
        plan.streams,
        plan.events,
        default_fixed(&plan.variants),
    )
}

fn variant(variant: &Variant) -> String {
    let calls: String = variant.ops.iter().map(|op| format!("        {},\n", call(op))).collect();
    format!("    ({}, [\n{calls}    ]),\n", literal(&variant.name))
}

/// The variant of the only site asked for, else the last.
fn default_fixed(variants: &[Variant]) -> usize {
    let mut single = (0..variants.len()).filter(|&i| variants[i].fixed.len() == 1);
    let only = single.next().filter(|_| single.next().is_none());
    only.unwrap_or(variants.len().saturating_sub(1))
}

fn product(gemm: &Gemm) -> String {
    let Shape { m, n, k, batch, transpose_a, transpose_b, element, compute } = gemm.shape;
    let kind = match element {
        Element::F16 => "float16",
        Element::Bf16 => "bfloat16",
        Element::F32 => "float32",
        Element::F64 => "float64",
    };
    let certainty = match gemm.certainty {
        Certainty::Exact => "exact",
        Certainty::TileRounded => "rounded to tiles",
        Certainty::DurationMatched => "of unknown size: about as long",
    };
    let [ta, tb, tf32] = [transpose_a, transpose_b, compute == Compute::Tf32].map(boolean);
    let (kernel, us) = (literal(&gemm.kernel), gemm.recorded_ns as f64 / 1e3);
    format!(
        "({m}, {n}, {k}, {batch}, {ta}, {tb}, \"{kind}\", {tf32}, {kernel}),  # {certainty}, recorded {us:.1} us"
    )
}

fn call(op: &ReplayOp) -> String {
    match op {
        ReplayOp::Host { ns } => format!("(\"host\", {ns})"),
        ReplayOp::Gemm { gemm, stream } => format!("(\"gemm\", {gemm}, {stream})"),
        ReplayOp::Spin { ns, stream, .. } => format!("(\"spin\", {ns}, {stream})"),
        ReplayOp::Copy { direction, bytes, memory, stream, blocking, .. } => {
            let memory = if *memory == HostMemory::Pinned { "pinned" } else { "pageable" };
            let blocking = boolean(*blocking);
            format!("(\"copy\", \"{direction}\", {bytes}, \"{memory}\", {blocking}, {stream})")
        }
        ReplayOp::Memset { bytes, stream } => format!("(\"memset\", {bytes}, {stream})"),
        ReplayOp::Record { event, stream } => format!("(\"record\", {event}, {stream})"),
        ReplayOp::StreamWait { event, stream } => format!("(\"stream_wait\", {event}, {stream})"),
        ReplayOp::Sync { target: Target::Stream(stream), .. } => format!("(\"sync_stream\", {stream})"),
        ReplayOp::Sync { target: Target::Event(event), .. } => format!("(\"sync_event\", {event})"),
        ReplayOp::Sync { target: Target::Context, .. } => "(\"sync_device\",)".to_owned(),
    }
}

const fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A Python string literal of printable ASCII.
fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c => out += &format!("\\U{:08x}", c as u32),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_ascii_and_closed() {
        for (text, python) in [
            ("a b", "\"a b\""),
            ("\"; import os #", "\"\\\"; import os #\""),
            ("\\\"", "\"\\\\\\\"\""),
            ("a\nb\r\u{2028}", "\"a\\U0000000ab\\U0000000d\\U00002028\""),
            ("größe", "\"gr\\U000000f6\\U000000dfe\""),
            ("{PROFILE} %s", "\"{PROFILE} %s\""),
        ] {
            assert_eq!(literal(text), python);
        }
    }
}
