//! The plan as a PyTorch script, for someone to reproduce the stall without this tool.
//!
//! A generated head holds the plan as literals; `body.py` runs it. All text of the export stands in string literals of
//! plain ASCII, so that no name becomes code.

use super::plan::{Act, Certainty, Compute, Element, Gemm, Plan, Target, Variant};
use crate::vocabulary::HostMemory;
use std::fmt::Write;

const BODY: &str = include_str!("body.py");

const DOCUMENTATION: &str = r#"#!/usr/bin/env python3
"""The workload around a wait for the GPU, as recorded by Nsight Systems, in PyTorch alone.

Matrix products have the recorded sizes and types; other kernels only take their recorded time (torch.cuda._sleep), the
host between two calls too. Copies, events, streams and waits are as recorded, or as a fix makes them.

    python replay.py                both ways, interleaved: as recorded, and with the waits fixed
    python replay.py --sync         as recorded only
    python replay.py --no-sync      with the waits fixed only
"""
import argparse
import itertools
import os
import statistics
import sys
import time

import torch
"#;

/// Writes the script.
pub fn script(plan: &Plan) -> String {
    let mut out = String::from(DOCUMENTATION);
    head(plan, &mut out);
    out.push_str(BODY);
    out
}

fn head(plan: &Plan, out: &mut String) {
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(String::new());
    line(format!("PROFILE = {}", literal(&plan.profile)));
    line(format!("CHOSEN = {}", literal(&plan.stretch.chosen)));
    line(format!("RECORDED_NS = {}", plan.stretch.to_ns - plan.stretch.from_ns));
    line(format!("RECORDED_GPU = {}", literal(plan.gpu.name.as_deref().unwrap_or("an unnamed GPU"))));
    line("# Steps in a row that one measurement consists of.".to_owned());
    line(format!("REPEAT = {}", plan.repeat));
    line(format!("STREAMS = {}", plan.streams));
    line(format!("EVENTS = {}", plan.events));
    line("# What this leaves out or assumes.".to_owned());
    line("NOTES = [".to_owned());
    plan.notes.iter().for_each(|note| line(format!("    {},", literal(note))));
    line("]".to_owned());
    line(
        "# As cuBLAS takes them: m, n, k, batch, A and B transposed, type, tf32, recorded kernel.".to_owned(),
    );
    line("GEMMS = [".to_owned());
    plan.gemms.iter().for_each(|gemm| line(format!("    {}", product(gemm))));
    line("]".to_owned());
    line("# Times are in ns. copy: direction, bytes, host memory, blocking, stream.".to_owned());
    line("VARIANTS = [".to_owned());
    for variant in &plan.variants {
        line(format!("    ({}, [", literal(&variant.name)));
        variant.acts.iter().for_each(|a| line(format!("        {},", act(a))));
        line("    ]),".to_owned());
    }
    line("]".to_owned());
    line(format!("DEFAULT_FIXED = {}", default_fixed(&plan.variants)));
}

/// The change of the only site asked for, else that of all.
fn default_fixed(variants: &[Variant]) -> usize {
    let single = variants.iter().filter(|v| v.fixed.len() == 1).count() == 1;
    let last = variants.len().saturating_sub(1);
    if single { variants.iter().position(|v| v.fixed.len() == 1).unwrap_or(last) } else { last }
}

fn product(gemm: &Gemm) -> String {
    let kind = match gemm.element {
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
    let mut row = String::new();
    let _ = write!(
        row,
        "({}, {}, {}, {}, {}, {}, \"{kind}\", {}, {}),  # {certainty}, recorded {:.1} us",
        gemm.m,
        gemm.n,
        gemm.k,
        gemm.batch,
        boolean(gemm.transpose_a),
        boolean(gemm.transpose_b),
        boolean(gemm.compute == Compute::Tf32),
        literal(&gemm.kernel),
        gemm.recorded_ns as f64 / 1e3
    );
    row
}

fn act(act: &Act) -> String {
    match act {
        Act::Host { ns } => format!("(\"host\", {ns})"),
        Act::Gemm { gemm, stream } => format!("(\"gemm\", {gemm}, {stream})"),
        Act::Spin { ns, stream, .. } => format!("(\"spin\", {ns}, {stream})"),
        Act::Copy { direction, bytes, memory, stream, blocking, .. } => {
            let memory = if *memory == HostMemory::Pinned { "pinned" } else { "pageable" };
            let blocking = boolean(*blocking);
            format!("(\"copy\", \"{direction}\", {bytes}, \"{memory}\", {blocking}, {stream})")
        }
        Act::Memset { bytes, stream } => format!("(\"memset\", {bytes}, {stream})"),
        Act::Record { event, stream } => format!("(\"record\", {event}, {stream})"),
        Act::StreamWait { event, stream } => format!("(\"stream_wait\", {event}, {stream})"),
        Act::Sync { target: Target::Stream(stream), .. } => format!("(\"sync_stream\", {stream})"),
        Act::Sync { target: Target::Event(event), .. } => format!("(\"sync_event\", {event})"),
        Act::Sync { target: Target::Context, .. } => "(\"sync_device\",)".to_owned(),
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
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
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
