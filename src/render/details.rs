//! One site whole: verdict and its reasons, stack, costs, examples, fix.

use super::awaited;
use super::document::{Block, Column, Table, Words};
use super::phrase::{self, Processes};
use super::saving;
use super::style::Tone;
use super::view::{self, FrameView, Views};
use crate::model::edit::Block as Edit;
use crate::model::{Attribution, Class, Example, Fix, Frame, Recorder, Report, Site};
use crate::text::{self, escape_terminal};

const BAR: usize = 40;
const LONG_SYMBOL: usize = 160;
const FRAMES: usize = 12;

/// The site of this id ("S1", "s1", "train.py:30"); `None` where the report has none.
pub(crate) fn document(report: &Report, site_id: &str) -> Option<Vec<Block>> {
    let site = report.site(site_id)?;
    let views = Views::of(report);
    let view = views.site(site);
    let verdict = format!("{} {}, {}", view.verdict, view.confidence, view.kind);
    let heading = Words::toned(Tone::Strong, view.id)
        .then("  ")
        .then(Words::toned(Tone::of(view.class), verdict))
        .then(format!("  {}", view.place.both()));
    let mut blocks = vec![
        Block::Heading(heading),
        Block::Paragraph(Words::toned(Tone::Faint, format!("{}; {}", view.call, api(site)))),
        evidence(site),
        Block::lines(site.allowed.iter().map(|reason| format!("allowed: {reason}"))),
        Block::section("stack, most recent call last; > is your code", [stack(site)]),
        called_from(site, &views),
        Block::section("native chain, most recent call last", [native(site)]),
    ];
    blocks.extend(about(report, site));
    blocks.extend([
        Block::section("blocked time of a wait", [histogram(site)]),
        Block::section(clock(report, site), [Block::Table(examples(&site.examples))]),
    ]);
    blocks.extend(site.fix.as_ref().map(advice));
    blocks.extend(elsewhere(site));
    Some(blocks)
}

fn elsewhere(site: &Site) -> Option<Block> {
    const MOST: usize = 10;
    let all = site.elsewhere.as_ref()?;
    let more = all.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("and {} more", text::count(more as u64)));
    let pattern = site.pattern.map_or("", |pattern| pattern.as_str());
    let places = text::counted(all.len() as u64, "other place");
    let lines = all.iter().take(MOST).cloned().chain(more);
    let title = format!("the pattern {pattern} stands in {places} of the repository, by the source alone");
    Some(if all.is_empty() { Block::lines([title]) } else { Block::section(title, [Block::lines(lines)]) })
}

pub(super) fn reasons(site: &Site, views: &Views) -> [Block; 2] {
    [evidence(site), called_from(site, views)]
}

pub(super) fn about(report: &Report, site: &Site) -> [Block; 3] {
    [
        Block::section("cost", [Block::values(costs(report, site))]),
        Block::section("what it waited for", [Block::Paragraph(awaited::paragraph(site).into())]),
        Block::section("context", [Block::values(context(report, site))]),
    ]
}

pub(super) fn for_review(report: &Report, site: &Site, views: &Views) -> Vec<Block> {
    let frame = |f: &Frame| {
        let sign = if f.user { ">" } else { " " };
        // No frame starts a line bare: in a log, `::` there begins a command.
        Words::from(format!("{sign} {}  {}", phrase::at_line(&f.file, f.line), f.function))
    };
    let source = site.source.iter().map(|source| Words::from(format!("| {}", source.trim())));
    let mut stack: Vec<Words> = source.chain(site.frames.iter().take(FRAMES).map(frame)).collect();
    let left = site.frames.len().saturating_sub(FRAMES);
    stack.extend((left > 0).then(|| format!("  … {left} more frames").into()));
    if stack.is_empty() {
        stack = site.native.iter().take(FRAMES).map(|f| format!("  {f}").into()).collect();
    }
    let wanted = ["waits", "blocked", "each", "idle after", "saves"];
    let costs = costs(report, site).into_iter().filter(|(label, _)| wanted.contains(label));
    let mut blocks =
        vec![evidence(site), Block::Code("", stack), called_from(site, views), Block::facts(costs)];
    if let Some(fix) = &site.fix {
        let suggested = suggestions(site);
        let title = Words::toned(Tone::Strong, format!("{}. ", fix.title)).then(&*fix.why);
        blocks.push(Block::Paragraph(title));
        blocks.extend(suggested.unwrap_or_else(|| vec![difference(fix)]));
        blocks.extend(ways(fix));
    }
    blocks
}

fn evidence(site: &Site) -> Block {
    let reasons = site.evidence.iter().map(|evidence| (evidence.rule.as_str(), &*evidence.text));
    Block::section(evidence_title(site.class), [Block::facts(reasons)])
}

/// In the order of a Python traceback.
fn stack(site: &Site) -> Block {
    let frame = |frame: &Frame| {
        let FrameView { file, function, user, source } = FrameView::of(site, frame);
        let words = format!("{file}  {function}");
        let line =
            if user { format!("> {words}").into() } else { Words::toned(Tone::Faint, format!("  {words}")) };
        std::iter::once(line)
            .chain(source.map(|source| Words::from("      ").then(Words::toned(Tone::Strong, source))))
    };
    Block::Code("", view::stack(site).iter().rev().flat_map(frame).collect())
}

fn called_from(site: &Site, views: &Views) -> Block {
    let (paths, more) = phrase::call_paths(site, &views.files);
    let left =
        (more > 0).then(|| (String::new(), format!("and {}", text::counted(more as u64, "more path"))));
    let paths = paths.into_iter().map(|(place, cost)| (cost, place));
    Block::section("called from", [Block::facts(paths.chain(left))])
}

fn native(site: &Site) -> Block {
    let name = |function: &String| {
        let function = escape_terminal(function);
        format!("  {}", text::shorten_symbol(&function, LONG_SYMBOL)).into()
    };
    Block::Code("", site.native.iter().rev().map(name).collect())
}

fn histogram(site: &Site) -> Block {
    let buckets = &site.histogram;
    let most = buckets.iter().map(|&(_, waits)| waits).max().filter(|&most| most > 0);
    let rows = buckets.iter().filter(|_| most.is_some());
    let bars = rows.clone().map(|&(_, waits)| bar(waits, most.unwrap_or(1), BAR));
    Block::Table(Table::new(
        "bucket",
        [
            Column::numbers("", rows.clone().map(|&(bound, _)| format!("≤ {}", text::duration(bound)))),
            Column::numbers("", rows.map(|&(_, waits)| text::count(waits))),
            Column::words("", bars),
        ],
    ))
}

fn clock(report: &Report, site: &Site) -> &'static str {
    let recorder = report.profiles.get(site.process.profile.index()).map(|profile| profile.recorder);
    match recorder.unwrap_or_default() {
        Recorder::Nsys => "examples, at the times of the nsys GUI",
        Recorder::TorchProfiler => "examples, at the times since the trace's first event",
    }
}

fn examples(examples: &[Example]) -> Table {
    let of = |value: fn(&Example) -> String| examples.iter().map(value);
    let awaited = |e: &Example| {
        let awaited = e.awaited.as_deref().map(escape_terminal).unwrap_or_default();
        text::shorten_symbol(&awaited, LONG_SYMBOL).into_owned()
    };
    Table::new(
        "example",
        [
            Column::numbers("at", of(|e| text::timestamp(e.start_ns))),
            Column::numbers("duration", of(|e| text::duration(e.length_ns()))),
            Column::numbers("blocked", of(|e| text::duration(e.blocked_ns))),
            Column::numbers("idle after", of(|e| text::duration(e.drain_ns))),
            Column::places("awaited", examples.iter().map(|e| awaited(e).into())),
        ],
    )
}

pub(super) fn advice(fix: &Fix) -> Block {
    let title = format!("{} ({})", fix.title, fix.strategy);
    let mut blocks =
        vec![Block::lines(std::iter::once(title).chain((!fix.why.is_empty()).then(|| fix.why.clone())))];
    let here = fix.here.as_ref().map(|here| signed(&here.before, &here.after));
    blocks.extend(here.map(|lines| Block::section("here", [lines])));
    blocks.push(Block::section("before", [Block::code("python", &fix.before)]));
    blocks.push(Block::section("after", [Block::code("python", &fix.after)]));
    blocks.extend(ways(fix));
    blocks.push(Block::section("then confirm", [Block::code("", &fix.confirm)]));
    Block::section("what to do", blocks)
}

fn ways(fix: &Fix) -> Option<Block> {
    let or = fix.alternatives.iter().map(|way| ("or", &**way));
    let mind = (!fix.caveat.is_empty()).then_some(("mind", &*fix.caveat));
    let all: Vec<_> = or.chain(mind).collect();
    (!all.is_empty()).then(|| Block::facts(all))
}

fn difference(fix: &Fix) -> Block {
    match &fix.here {
        Some(here) => signed(&here.before, &here.after),
        None => signed(&fix.before, &fix.after),
    }
}

fn signed(before: &str, after: &str) -> Block {
    let gone = before.lines().map(|line| format!("- {line}"));
    Block::Code("diff", gone.chain(after.lines().map(|line| format!("+ {line}"))).map(Words::from).collect())
}

/// The edit of the site's file as blocks that a review comment on those lines can apply. `None` without an
/// edit, or if escaping would change its text.
fn suggestions(site: &Site) -> Option<Vec<Block>> {
    let edit = site.proposal.as_ref()?.outcome.edit()?;
    let file = text::path_end(&site.location()?.file, 1);
    let plain = |line: &str| text::escape_terminal(line) == line;
    let mut blocks = Vec::new();
    for Edit { first, last, text } in &edit.blocks {
        let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        if !text.lines().all(|line| plain(line.trim_start_matches('\t'))) {
            return None;
        }
        blocks.push(Block::Paragraph(Words::code(file).then(format!(", {lines}:"))));
        blocks.push(Block::code("suggestion", text));
    }
    blocks.extend(edit.mind.map(|mind| Block::Paragraph(format!("Unsafe: {}.", mind.help()).into())));
    Some(blocks)
}

/// "cudaStreamSynchronize (cuStreamSynchronize)".
pub(super) fn api(site: &Site) -> String {
    let api = escape_terminal(&site.api);
    let driver = site.driver_api.as_str();
    if api == driver { api.into_owned() } else { format!("{api} ({driver})") }
}

const fn evidence_title(class: Class) -> &'static str {
    match class {
        Class::False => "why it is avoidable",
        Class::True => "why it is needed",
        Class::Unknown => "what is known",
    }
}

fn context(report: &Report, site: &Site) -> Vec<(&'static str, String)> {
    let exact = site.attribution == Attribution::PythonBacktrace;
    let note = match &*escape_terminal(&site.attribution_note) {
        "" => site.attribution.to_string(),
        note => format!("{}, {note}", site.attribution),
    };
    let stream = site.stream.map(|stream| format!("stream {stream}"));
    let device = match site.device {
        Some(id) => Some(format!("GPU {id}, {}", stream.as_deref().unwrap_or("several streams"))),
        None => stream,
    };
    let ranges: Vec<_> = site.nvtx.iter().map(|range| escape_terminal(range)).collect();
    let pairs = [
        ("placed by", (!exact).then_some(note)),
        ("thread", Some(phrase::thread(site))),
        ("process", Processes::of(report).map(|processes| processes.label(site))),
        ("device", device),
        ("NVTX", (!ranges.is_empty()).then(|| ranges.join(" › "))),
        ("tensor", site.operand.as_ref().map(|operand| escape_terminal(&operand.to_string()).into_owned())),
        ("pattern", site.pattern.map(|pattern| format!("{pattern}: sync-report explain {pattern}"))),
        ("capture", site.blocks_capture.then(|| "this wait would make a CUDA graph capture fail".to_owned())),
        ("key", Some(view::escaped(&site.key))),
    ];
    pairs.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

fn costs(report: &Report, site: &Site) -> Vec<(&'static str, String)> {
    let mut waits = text::count(site.waits);
    waits.extend(site.per_iteration.map(|rate| format!(", {} per iteration", text::rate(rate))));
    waits.extend(site.start_up.map(|_| format!(", {}", phrase::START_UP)));
    let idle = (site.found_idle > 0).then(|| text::count(site.found_idle));
    waits.extend(idle.map(|n| format!(", {n} found the GPU idle already")));
    let mut blocked = text::duration(site.blocked_ns);
    let each = site.blocked_per_iteration_ns.map(text::duration);
    blocked.extend(each.map(|each| format!(", {each} per iteration")));
    blocked += &format!(", {} of the thread's time", text::percent(site.blocked_percent));
    let [total, half, most] = [site.drain_ns, site.drain_p50_ns, site.drain_max_ns].map(text::duration);
    let mut drain = format!("{total}, {} of the GPU's time", text::percent(site.drain_percent));
    // One wait can hold most of the idle time: the first after a pause, or one that the profiler held up.
    if site.drain_ns > 0 && site.waits > 1 {
        drain += &format!("; median {half}, max {most}");
    }
    let sets = report.together.iter().filter(|set| set.sites.contains(&site.id));
    let sets: Vec<String> = sets.map(saving::together).collect();
    let pairs = [
        ("waits", Some(waits)),
        ("blocked", Some(blocked)),
        ("each", Some(phrase::each(site))),
        ("idle after", Some(drain)),
        ("saves", saving::in_words(site)),
        ("together", (!sets.is_empty()).then(|| sets.join(" "))),
        ("measured", site.replayed.as_ref().map(saving::replayed_in_words)),
    ];
    pairs.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

/// A bar of `value` out of `most` in `room` columns, to an eighth of a column; never empty for a value above 0.
fn bar(value: u64, most: u64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let exact = u128::from(value) * room as u128 * 8 / u128::from(most.max(1));
    let eighths = usize::try_from(exact).unwrap_or(usize::MAX).min(room * 8).max(usize::from(value > 0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
#[path = "details_tests.rs"]
mod tests;
