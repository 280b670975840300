//! One site whole: verdict and its reasons, stack, costs, examples, fix.

use super::awaited;
use super::grid::{self, Column};
use super::phrase::{self, FileNames, Processes};
use super::saving;
use super::style::{Style, Tone};
use super::view::{self, FrameView, Views};
use crate::model::{Example, Report, Site};
use crate::text::{self, escape_terminal};
use crate::vocabulary::{Attribution, Class, Evidence};
use std::io::{self, Write};

/// Columns of the longest bar of the histogram.
const BAR: usize = 40;
/// Native functions are cut to this width where the terminal's is not known.
const LONG_SYMBOL: usize = 160;

/// Prints the site `site_id` ("S1", "s1"); `Ok(false)`, and nothing printed, where the report has none of that id.
pub fn render(report: &Report, site_id: &str, style: &Style, out: &mut dyn Write) -> io::Result<bool> {
    let Some(site) = report.site(site_id) else { return Ok(false) };
    let page = Page { report, site, style };
    let sections = [
        page.head(),
        page.evidence(),
        page.stack(),
        page.call_paths(),
        page.native(),
        labelled("context", &context(report, site)),
        labelled("cost", &costs(report, site)),
        labelled("what it waited for", &awaited::labelled(site)),
        page.histogram(),
        page.examples(),
        page.fix(),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    writeln!(out, "{}", style.finish(&sections.join("\n\n")))?;
    Ok(true)
}

struct Page<'a> {
    report: &'a Report,
    site: &'a Site,
    style: &'a Style,
}

/// A title and its lines; nothing without lines.
fn section(title: &str, lines: Vec<String>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("{}\n{}", Tone::Strong.paint(title), lines.join("\n"))
}

/// Lines of `label  text`. They are never wrapped, to be copied and found.
fn labelled<L: AsRef<str>>(title: &str, pairs: &[(L, String)]) -> String {
    let lines = (!pairs.is_empty()).then(|| Style::default().labelled("  ", pairs));
    section(title, lines.into_iter().collect())
}

impl Page<'_> {
    /// `words` wrapped behind a lead.
    fn hang(&self, lead: &str, words: &str) -> String {
        self.style.hang(lead, &escape_terminal(words))
    }

    fn symbol_width(&self, indent: usize) -> usize {
        self.style.width.map_or(LONG_SYMBOL, |width| width.saturating_sub(indent).max(20))
    }

    fn head(&self) -> String {
        let site = self.site;
        let view = Views::of(self.report).site(site);
        let verdict = format!("{} {}, {}", view.verdict, view.confidence, view.kind);
        let (id, verdict) = (Tone::Strong.paint(&view.id), Tone::of(view.class).paint(verdict));
        let call = Tone::Faint.paint(format!("{}; {}", view.call, api(site)));
        format!("{id}  {verdict}  {}\n    {call}", view.place.fit_both(usize::MAX))
    }

    fn evidence(&self) -> String {
        let reason = |evidence: &Evidence| {
            let lead = format!("  {}  ", Tone::Faint.paint(format!("{:4}", evidence.rule)));
            self.hang(&lead, &evidence.text)
        };
        section(evidence_title(self.site.class), self.site.evidence.iter().map(reason).collect())
    }

    /// The Python stack in the order of a Python traceback; frames of the user stand out.
    fn stack(&self) -> String {
        let frames = view::stack(self.site).iter().rev();
        let lines = frames.flat_map(|frame| frame_lines(FrameView::of(self.site, frame)));
        section("stack, most recent call last; > is your code", lines.collect())
    }

    /// The ways to the line, where there are several.
    fn call_paths(&self) -> String {
        let (paths, more) = phrase::call_paths(self.site, &FileNames::of(self.report));
        let paths: Vec<_> = paths.into_iter().map(|(place, cost)| (cost, place)).collect();
        let lines = (!paths.is_empty()).then(|| self.style.labelled("    ", &paths));
        let left = (more > 0).then(|| format!("    and {}", text::counted(more as u64, "more path")));
        section("called from", lines.into_iter().chain(left).collect())
    }

    fn native(&self) -> String {
        let name = |function: &String| {
            let function = escape_terminal(function);
            format!("    {}", text::shorten_symbol(&function, self.symbol_width(4)))
        };
        section("native chain, most recent call last", self.site.native.iter().rev().map(name).collect())
    }

    fn histogram(&self) -> String {
        let buckets = &self.site.histogram;
        let most = buckets.iter().map(|&(_, waits)| waits).max().unwrap_or(0);
        if most == 0 {
            return String::new();
        }
        let bounds: Vec<String> = buckets.iter().map(|&(bound, _)| text::duration(bound)).collect();
        let counts: Vec<String> = buckets.iter().map(|&(_, waits)| text::count(waits)).collect();
        let widest = |texts: &[String]| texts.iter().map(|text| text::width(text)).max().unwrap_or(0);
        let (bound_width, count_width) = (widest(&bounds), widest(&counts));
        let room = self.style.width.map_or(BAR, |width| width.saturating_sub(bound_width + count_width + 8));
        let room = room.clamp(8, BAR);
        let lines = buckets.iter().zip(&bounds).zip(&counts).map(|((&(_, waits), bound), count)| {
            let pad = " ".repeat(bound_width - text::width(bound));
            let line = format!("  ≤ {pad}{bound}  {count:>count_width$}  {}", bar(waits, most, room));
            line.trim_end().to_owned()
        });
        section("blocked time of a wait", lines.collect())
    }

    /// The waits to look at in the nsys GUI.
    fn examples(&self) -> String {
        let examples = &self.site.examples;
        if examples.is_empty() {
            return String::new();
        }
        let cells = |cell: &dyn Fn(&Example) -> String| examples.iter().map(|e| vec![cell(e)]).collect();
        let awaited = |e: &Example| {
            let awaited = e.awaited.as_deref().map(escape_terminal).unwrap_or_default();
            text::shorten_symbol(&awaited, self.symbol_width(56)).into_owned()
        };
        let columns = [
            Column::right(&["at"], cells(&|e| text::timestamp(e.start_ns))),
            Column::right(&["duration"], cells(&|e| text::duration(e.length_ns()))),
            Column::right(&["blocked"], cells(&|e| text::duration(e.blocked_ns))),
            Column::right(&["idle after"], cells(&|e| text::duration(e.drain_ns))),
            Column::left(&["awaited"], cells(&awaited)),
        ];
        let table = grid::titled(Tone::Faint, &columns, false, false);
        let lines = table.lines().map(|line| format!("  {line}"));
        section("examples, at the times of the nsys GUI", lines.collect())
    }

    fn fix(&self) -> String {
        let Some(fix) = &self.site.fix else { return String::new() };
        let mut lines = vec![self.hang("  ", &format!("{} ({})", fix.title, fix.strategy))];
        lines.extend((!fix.why.is_empty()).then(|| self.hang("  ", &fix.why)));
        let label = |label: &str| format!("\n  {}", Tone::Faint.paint(label));
        if let Some(here) = &fix.here {
            let (before, after) = (escape_terminal(&here.before), escape_terminal(&here.after));
            lines.extend([label("here"), format!("    - {before}"), format!("    + {after}")]);
        }
        let code = |title: &str, code: &str| {
            let title = (!code.is_empty()).then(|| label(title));
            let lines = code.lines().map(|line| format!("      {}", escape_terminal(line)));
            title.into_iter().chain(lines).collect::<Vec<_>>()
        };
        lines.extend(code("before", &fix.before));
        lines.extend(code("after", &fix.after));
        lines.extend(fix.alternatives.iter().map(|way| self.hang("  or      ", way)));
        let mind = format!("  {}  ", Tone::Unsure.paint("mind"));
        lines.extend((!fix.caveat.is_empty()).then(|| format!("\n{}", self.hang(&mind, &fix.caveat))));
        lines.extend(code("then confirm", &fix.confirm));
        section("what to do", lines)
    }
}

fn frame_lines(FrameView { file, function, user, source }: FrameView) -> impl Iterator<Item = String> {
    let words = format!("{file}  {function}");
    let line = if user { format!("  > {words}") } else { format!("    {}", Tone::Faint.paint(words)) };
    std::iter::once(line).chain(source.map(|source| format!("        {}", Tone::Strong.paint(source))))
}

/// "cudaStreamSynchronize (cuStreamSynchronize)".
pub(super) fn api(site: &Site) -> String {
    let api = escape_terminal(&site.api);
    let driver = site.driver_api.as_str();
    if api == driver { api.into_owned() } else { format!("{api} ({driver})") }
}

/// What the reasons of a verdict are reasons for.
pub(super) const fn evidence_title(class: Class) -> &'static str {
    match class {
        Class::False => "why it is avoidable",
        Class::True => "why it is needed",
        Class::Unknown => "what is known",
    }
}

/// Where else the waits can be placed: thread, process, device, NVTX.
pub(super) fn context(report: &Report, site: &Site) -> Vec<(&'static str, String)> {
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
        ("pattern", site.pattern.map(|pattern| format!("{pattern}: sync-report explain {pattern}"))),
        ("capture", site.blocks_capture.then(|| "this wait would make a CUDA graph capture fail".to_owned())),
        ("key", Some(view::escaped(&site.key))),
    ];
    pairs.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

/// What the waits cost.
pub(super) fn costs(report: &Report, site: &Site) -> Vec<(&'static str, String)> {
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
    // One wait can hold most of it: the first after a pause, or one that the profiler held up.
    if site.drain_ns > 0 && site.waits > 1 {
        drain += &format!("; median {half}, max {most}");
    }
    let [each, together] = saving::bounds_in_words(site).map_or([None, None], |words| words.map(Some));
    let sets = report.together.iter().filter(|set| set.sites.contains(&site.id));
    let sets: Vec<String> = sets.map(saving::together).collect();
    let pairs = [
        ("waits", Some(waits)),
        ("blocked", Some(blocked)),
        ("each", Some(phrase::each(site))),
        ("idle after", Some(drain)),
        ("saves", saving::in_words(site)),
        ("together", (!sets.is_empty()).then(|| sets.join(" "))),
        ("bounds", each),
        ("", together),
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
