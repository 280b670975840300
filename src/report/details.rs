//! One site whole: verdict and its reasons, stack, costs, examples, fix.

use super::phrase::{self, FileNames, Place, Processes};
use super::style::{Style, Tone};
use super::{Example, Fix, Frame, Report, Site, saving};
use crate::text::{self, escape_terminal};
use crate::vocabulary::{Attribution, Class};
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
        page.native(),
        page.context(),
        page.costs(),
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

/// `label  text`, labels aligned.
fn labelled(pairs: &[(&str, String)]) -> Vec<String> {
    let width = pairs.iter().map(|(label, _)| text::width(label)).max().unwrap_or(0);
    pairs
        .iter()
        .map(|(label, text)| format!("  {}  {text}", Tone::Faint.paint(format!("{label:width$}"))))
        .collect()
}

impl Page<'_> {
    /// `words` wrapped below a lead of `indent` columns: the lines after the first are indented as deep.
    fn hang(&self, lead: &str, indent: usize, words: &str) -> String {
        let words = escape_terminal(words);
        let lines = match self.style.width {
            Some(width) => text::wrap(&words, width.saturating_sub(indent).max(20)),
            None => vec![words.into_owned()],
        };
        format!("{lead}{}", lines.join(&format!("\n{:indent$}", "")))
    }

    fn symbol_width(&self, indent: usize) -> usize {
        self.style.width.map_or(LONG_SYMBOL, |width| width.saturating_sub(indent).max(20))
    }

    fn head(&self) -> String {
        let site = self.site;
        let verdict = format!("{} {} {}", site.class, site.kind, phrase::confidence(site));
        let place = Place::of(site, &FileNames::of(self.report)).fit(usize::MAX);
        let id = Tone::Strong.paint(escape_terminal(&site.id));
        let mut lines = vec![format!("{id}  {}  {place}", Tone::of(site.class).paint(verdict))];
        lines.push(format!("    {}", Tone::Faint.paint(format!("{}; {}", phrase::call(site), api(site)))));
        lines.join("\n")
    }

    fn evidence(&self) -> String {
        let site = self.site;
        let reason = |evidence: &crate::vocabulary::Evidence| {
            let lead = format!("  {}  ", Tone::Faint.paint(format!("{:4}", evidence.rule)));
            self.hang(&lead, 8, &evidence.text)
        };
        let lines = site.evidence.iter().map(reason).collect();
        section(evidence_title(site.class), lines)
    }

    /// The Python stack in the order of a Python traceback; frames of the user stand out.
    fn stack(&self) -> String {
        let site = self.site;
        let mut lines: Vec<String> = site.frames.iter().rev().flat_map(|frame| self.frame(frame)).collect();
        if let (true, Some(frame)) = (lines.is_empty(), &site.user_frame) {
            lines = self.frame(frame);
        }
        section("stack, most recent call last; > is your code", lines)
    }

    fn frame(&self, frame: &Frame) -> Vec<String> {
        let file = phrase::at_line(&escape_terminal(&frame.file), frame.line);
        let words = format!("{file}  {}", escape_terminal(&frame.function));
        let line =
            if frame.user { format!("  > {words}") } else { format!("    {}", Tone::Faint.paint(words)) };
        let mut lines = vec![line];
        let source = self.site.source.as_deref().filter(|_| self.site.user_frame.as_ref() == Some(frame));
        lines.extend(
            source.map(|source| format!("        {}", Tone::Strong.paint(escape_terminal(source.trim())))),
        );
        lines
    }

    fn native(&self) -> String {
        let name = |function: &String| {
            let function = escape_terminal(function);
            format!("    {}", text::shorten_symbol(&function, self.symbol_width(4)))
        };
        section("native chain, most recent call last", self.site.native.iter().rev().map(name).collect())
    }

    fn context(&self) -> String {
        section("context", labelled(&context(self.report, self.site)))
    }

    fn costs(&self) -> String {
        section("cost", labelled(&costs(self.site)))
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
            let bound = format!("{}{bound}", " ".repeat(bound_width - text::width(bound)));
            let bar = bar(waits, most, room);
            format!("  ≤ {bound}  {count:>count_width$}  {bar}").trim_end().to_owned()
        });
        section("blocked time of a wait", lines.collect())
    }

    /// The waits to look at in the nsys GUI.
    fn examples(&self) -> String {
        let example = |example: &Example| {
            let awaited = example.awaited.as_deref().map(escape_terminal).unwrap_or_default();
            [
                text::timestamp(example.start_ns),
                text::duration(example.end_ns.saturating_sub(example.start_ns)),
                text::duration(example.blocked_ns),
                text::duration(example.drain_ns),
                text::shorten_symbol(&awaited, self.symbol_width(56)).into_owned(),
            ]
        };
        if self.site.examples.is_empty() {
            return String::new();
        }
        let titles = ["at", "duration", "blocked", "drain", "awaited"].map(str::to_owned);
        let rows: Vec<[String; 5]> =
            std::iter::once(titles).chain(self.site.examples.iter().map(example)).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|column| rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0));
        let line = |(index, row): (usize, &[String; 5])| {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let pad = " ".repeat(widths[column] - text::width(cell));
                if column == 4 { cell.clone() } else { format!("{pad}{cell}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            if index == 0 { format!("  {}", Tone::Faint.paint(line)) } else { format!("  {line}") }
        };
        let lines = rows.iter().enumerate().map(line).collect();
        section("examples, at the times of the nsys GUI", lines)
    }

    fn fix(&self) -> String {
        let Some(fix) = &self.site.fix else { return String::new() };
        let Fix { title, why, before, after, caveat, here, confirm, strategy, .. } = fix;
        let mut lines = vec![self.hang("  ", 2, &format!("{title} ({strategy})"))];
        if !why.is_empty() {
            lines.push(self.hang("  ", 2, why));
        }
        if let Some(here) = here {
            lines.push(format!("\n  {}", Tone::Faint.paint("here")));
            lines.push(format!("    - {}", escape_terminal(&here.before)));
            lines.push(format!("    + {}", escape_terminal(&here.after)));
        }
        for (label, code) in [("before", before), ("after", after)] {
            if !code.is_empty() {
                lines.push(format!("\n  {}", Tone::Faint.paint(label)));
                lines.extend(code.lines().map(|line| format!("      {}", escape_terminal(line))));
            }
        }
        if !caveat.is_empty() {
            lines.push(String::new());
            lines.push(self.hang(&format!("  {}  ", Tone::Unsure.paint("mind")), 8, caveat));
        }
        if !confirm.is_empty() {
            lines.push(format!("\n  {}", Tone::Faint.paint("then confirm")));
            lines.extend(confirm.lines().map(|line| format!("      {}", escape_terminal(line))));
        }
        section("what to do", lines)
    }
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
    let mut pairs = vec![("thread", phrase::thread(site))];
    if site.attribution != Attribution::PythonBacktrace {
        let note = escape_terminal(&site.attribution_note);
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        pairs.insert(0, ("placed by", format!("{}{note}", site.attribution)));
    }
    if let Some(processes) = Processes::of(report) {
        pairs.push(("process", processes.label(site)));
    }
    let place = match (site.device, site.stream) {
        (Some(device), Some(stream)) => Some(format!("GPU {device}, stream {stream}")),
        (Some(device), None) => Some(format!("GPU {device}, several streams")),
        (None, Some(stream)) => Some(format!("stream {stream}")),
        (None, None) => None,
    };
    pairs.extend(place.map(|place| ("device", place)));
    if !site.nvtx.is_empty() {
        let ranges: Vec<_> = site.nvtx.iter().map(|range| escape_terminal(range)).collect();
        pairs.push(("NVTX", ranges.join(" › ")));
    }
    if let Some(pattern) = &site.pattern {
        let pattern = escape_terminal(pattern);
        pairs.push(("pattern", format!("{pattern}: sync-report explain {pattern}")));
    }
    if site.blocks_capture {
        pairs.push(("capture", "this wait would make a CUDA graph capture fail".to_owned()));
    }
    pairs.push(("key", escape_terminal(&site.key).into_owned()));
    pairs
}

/// What the waits cost.
pub(super) fn costs(site: &Site) -> Vec<(&'static str, String)> {
    let mut waits = text::count(site.waits);
    if let Some(rate) = site.per_iteration {
        waits.push_str(&format!(", {} per iteration", text::rate(rate)));
    }
    if site.start_up.is_some() {
        waits.push_str(&format!(", {}", phrase::START_UP));
    }
    if site.found_idle > 0 {
        waits.push_str(&format!(", {} found the GPU idle already", text::count(site.found_idle)));
    }
    let blocked = text::duration(site.blocked_ns);
    let each_iteration = site
        .blocked_per_iteration_ns
        .map_or(String::new(), |ns| format!(", {} per iteration", text::duration(ns)));
    let each = format!(
        "median {}, p99 {}, max {}",
        text::duration(site.blocked_p50_ns),
        text::duration(site.blocked_p99_ns),
        text::duration(site.blocked_max_ns)
    );
    let drain = text::duration(site.drain_ns);
    // One wait can hold most of it: the first after a pause, or one that the profiler held up.
    let drain_each = if site.drain_ns > 0 && site.waits > 1 {
        format!("; median {}, max {}", text::duration(site.drain_p50_ns), text::duration(site.drain_max_ns))
    } else {
        String::new()
    };
    let mut pairs = vec![
        ("waits", waits),
        (
            "blocked",
            format!(
                "{blocked}{each_iteration}, {} of the thread's time",
                text::percent(site.blocked_percent)
            ),
        ),
        ("each", each),
        ("drain", format!("{drain}, {} of the GPU's time{drain_each}", text::percent(site.drain_percent))),
    ];
    pairs.extend(saving::in_words(site).map(|words| ("saves", words)));
    if let Some([each, together]) = saving::bounds_in_words(site) {
        pairs.extend([("bounds", each), ("", together)]);
    }
    pairs.extend(site.replayed.as_ref().map(|r| ("measured", saving::replayed_in_words(r))));
    pairs
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
