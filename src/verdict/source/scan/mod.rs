//! All lines of a file that wait, without a capture.
//!
//! Definition: an expression waits for certain if its operand is on the device and the text waits plainly;
//! probably if nothing says that the operand is on the host, and only tensors are used so. Waits that are
//! merely possible are left out. The verdict is that of a report, given what a capture would show of such a
//! wait.
//!
//! ```text
//! def step(batch):                     # called in a loop
//!     x = batch.to("cuda")             probably: an upload
//!     loss = model(x).mean()
//!     log(loss.item())                 certain: `loss` is on the device
//!     return float(batch.size(0))      no wait: a number of Python's
//! ```
//! Cost: one walk over the file for the waits, one for callers of functions. Each of the first [`MOST`] waits
//! is followed as in a report, which may walk the file again.

mod allow;
mod evidence;
mod heat;

pub use allow::{allowance, allowed};

use super::combine;
use super::infer::{Here, Placement, Placements};
use super::judge::reader::{Case, Reading, SiteReader};
use super::locate::{Beside, Index, Observed, SyncExpr};
use crate::model::Frame;
use crate::model::lint::{Certainty, Heat};
use crate::python::parse::{Node, Path, Source, SourceTree, last, nodes};
use crate::vocabulary::{Class, Copy, Direction, HostMemory, PatternId};
use evidence::Wait;
use indexmap::IndexMap;
use ruff_text_size::Ranged;

#[derive(Clone, Debug)]
pub struct WaitingLine {
    /// From 1, as a capture would record it.
    pub line: u32,
    /// `<module>` outside of any function.
    pub function: String,
    pub certainty: Certainty,
    pub heat: Heat,
    pub number: bool,
    pub reading: Reading,
    /// The reason in the comment that allows it.
    pub allowed: Option<String>,
}

/// Waits judged per file: a file with more is generated.
pub const MOST: usize = 500;

/// Waits of one line, pattern and class count as one: `print(a.item(), b.item())`.
type Alike = (u32, Option<PatternId>, Class);

/// The waiting lines in source order, and how many waits after the first [`MOST`] were left out. `beside`:
/// the program's other GPU work, on which edits depend.
///
/// # Errors
/// A reason why the file is not read, as the end of a sentence.
pub fn scan(tree: &SourceTree, recorded: &str, beside: Beside) -> Result<(Vec<WaitingLine>, usize), String> {
    let refused =
        || tree.refused().pop().map_or_else(|| "cannot be found".to_owned(), |refused| refused.reason);
    let file = tree.open(recorded).ok_or_else(refused)?;
    if !file.is_valid() {
        return Err("has a syntax error".to_owned());
    }
    if !evidence::works_with_tensors(&file) {
        return Ok((Vec::new(), 0));
    }
    let placements = Placements::new(&file);
    let heats = heat::Heats::of(&file);
    let mut alike: IndexMap<Alike, (WaitingLine, Vec<Reading>)> = IndexMap::new();
    let waits = waits(&file, &placements, &heats);
    let left = waits.len().saturating_sub(MOST);
    for (path, wait) in waits.into_iter().take(MOST) {
        let line = line_of(&file, &path);
        let function = nodes::function_name(&path);
        let function = if function.is_empty() { "<module>" } else { function }.to_owned();
        let frames = [Frame { function, file: recorded.to_owned(), line, user: true }];
        let here = Here { placements: &placements, path: &path };
        let observed = observed(wait, here, beside);
        let site = SiteReader { tree, frames: &frames, observed: &observed };
        let text = last(&path).map(|node| file.text(node)).unwrap_or_default();
        let reading = Case { site, here, sync: wait.sync, text: &text }.judge();
        let first = nodes::statement(&path).map_or(line, |at| file.line_of(path[at].start()));
        let [Frame { function, .. }] = frames;
        let of = (line, reading.verdict.pattern, reading.verdict.class);
        let (found, readings) = alike.entry(of).or_insert_with(|| {
            let allowed = allowance(&file, [line, first]);
            let (certainty, heat, reading) = (wait.certainty, heats.of_path(&path), reading.clone());
            let number = observed.copy.is_some_and(Copy::reads_number);
            (WaitingLine { line, function, certainty, heat, number, reading, allowed }, Vec::new())
        });
        found.certainty = found.certainty.min(wait.certainty);
        readings.push(reading);
    }
    let whole = |(found, readings): (WaitingLine, Vec<Reading>)| {
        let line_text = Some(file.line_text(found.line).to_owned());
        WaitingLine {
            reading: Reading { line_text, ..combine(&file, readings, true).unwrap_or(found.reading) },
            ..found
        }
    };
    Ok((alike.into_values().map(whole).collect(), left))
}

fn waits<'a>(
    file: &'a Source,
    placements: &Placements<'a>,
    heats: &heat::Heats<'a>,
) -> Vec<(Path<'a>, Wait<'a>)> {
    let mut found = Vec::new();
    nodes::walk(&[file.module()], &mut |path| {
        let here = Here { placements, path };
        let wait = evidence::of(here, heats);
        found.extend(wait.map(|wait| (path.to_vec(), wait)));
        !evidence::is_passed_over(path)
    });
    found
}

/// The line that CPython records: where the expression starts, or the method's name in a broken chain.
fn line_of(file: &Source, path: &[Node<'_>]) -> u32 {
    let method = nodes::call(path).and_then(|call| call.func.as_attribute_expr());
    file.line_of(method.map_or(nodes::range(path).start(), |ast| ast.attr.start()))
}

/// What a capture would have observed of a wait. Sizes are unknown: a number counts as 8 bytes, which may be
/// an integer, and all else as large and pageable, so that no edit is safe for its size.
fn observed(wait: Wait<'_>, here: Here<'_, '_>, beside: Beside) -> Observed<'static> {
    const NUMBER: u64 = 8;
    const LARGE: u64 = 1 << 20;
    let copy = |direction, bytes, host_memory| (Some(Copy { direction, bytes, host_memory }), bytes);
    let up = copy(Direction::HostToDevice, LARGE, HostMemory::Pageable);
    let down = copy(Direction::DeviceToHost, LARGE, HostMemory::Pageable);
    let number = copy(Direction::DeviceToHost, NUMBER, HostMemory::Pinned);
    let mut api = "cudaStreamSynchronize";
    let mut operator = None;
    let (copy, largest) = match wait.sync {
        SyncExpr::Explicit => {
            api = synchronised(here);
            (None, 0)
        }
        SyncExpr::EmptyCache => {
            api = "cudaFree";
            (None, 0)
        }
        SyncExpr::Barrier => (None, 0),
        SyncExpr::Create(_) | SyncExpr::Index { what: Index::List | Index::Constant, .. } => up,
        SyncExpr::Move(_, Placement::Host) => down,
        SyncExpr::Move(..) => up,
        SyncExpr::ToList | SyncExpr::Download(_) | SyncExpr::Save | SyncExpr::Format => down,
        SyncExpr::Shape(_) | SyncExpr::Index { what: Index::Mask, .. } => {
            operator = Some("nonzero");
            number
        }
        _ => {
            operator = Some("_local_scalar_dense");
            number
        }
    };
    // An f-string asks a tensor for its format, which reads one number.
    let formats = matches!(nodes::above(here.path, 1), Some(Node::InterpolatedElement(_)));
    let through = (wait.sync == SyncExpr::Format && formats).then_some(("torch/_tensor.py", "__format__"));
    Observed { api, copy, operator, through, largest, beside, ..Observed::default() }
}

/// The call behind a `synchronize()`, by its receiver's name.
fn synchronised(here: Here<'_, '_>) -> &'static str {
    let callee = nodes::call(here.path).map(|call| nodes::dotted(&call.func)).unwrap_or_default();
    match callee.to_ascii_lowercase() {
        callee if callee.contains("event") => "cudaEventSynchronize",
        callee if callee.contains("stream") => "cudaStreamSynchronize",
        _ => "cudaDeviceSynchronize",
    }
}
