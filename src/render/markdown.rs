//! The report as Markdown, to be pasted into a pull request: summary, table, collapsed details.

use super::markdown_text::{self as md, Limited};
use super::view::{SiteView, Views};
use super::{head, phrase, ranks, saving};
use crate::model::edit::Block;
use crate::model::ranks::{RankSite, Ranks};
use crate::model::{Frame, Report, Site};
use crate::text;
use crate::vocabulary::Class;
use std::io::{self, Write};

/// Kept free for the sentence on what is left out.
const RESERVE: usize = 300;
/// Frames of a stack that a reviewer reads.
const FRAMES: usize = 12;

/// Prints the report in the size of a GitHub comment.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", text_of(report, md::COMMENT))
}

/// The report in at most `limit` characters: first all rows of the table, then as many details as fit.
pub fn text_of(report: &Report, limit: usize) -> String {
    const TITLES: [&str; 10] = [
        "id",
        "verdict",
        "where",
        "call",
        ">waits",
        ">/iter",
        ">blocked",
        ">idle after",
        ">saves",
        "what to do",
    ];
    let mut text = Limited::new(limit, RESERVE);
    text.add(&head(report));
    let views = Views::of(report);
    let rows: Vec<SiteView> = report.sites.iter().map(|site| views.site(site)).collect();
    let rows_left = match &report.ranks {
        Some(ranks) => ranks.sites_omitted + over_ranks(ranks, &mut text),
        None => report.sites_omitted + text.table(&TITLES, rows.iter().map(row)),
    };
    let sets = report.together.iter().skip(1).map(saving::together);
    saving::basis(&report.totals).into_iter().chain(sets).for_each(|words| text.sentence(&words));
    text.warnings(&report.warnings);
    let listed =
        |id: &str| report.ranks.as_ref().is_none_or(|ranks| ranks.sites.iter().any(|over| over.id == id));
    let sites = report.sites.iter().zip(&rows).filter(|(site, _)| listed(&site.id));
    let details = sites.map(|(site, row)| details(site, row, phrase::call_paths(site, &views.files)));
    let details_left = text.add_all(&details.collect::<Vec<_>>());
    let tail = format!("<sub>{}</sub>\n", phrase::COSTS);
    let more = text::counted(rows_left as u64, "more site");
    let hidden = text::counted(details_left as u64, "site");
    let room = "there is no more room; `--format json` has all";
    text.close(&match (rows_left, details_left) {
        (0, 0) => tail,
        (_, 0) => format!("{more} not listed; `--top 0` lists all.\n\n{tail}"),
        (0, _) => format!("Details of {hidden} left out: {room}.\n\n{tail}"),
        _ => format!("{more} not listed, details of {hidden} left out: {room}.\n\n{tail}"),
    })
}

/// The finding as a heading, what was run, and the rest of the head.
fn head(report: &Report) -> String {
    let (finding, lines) = head::parted(report);
    let sites = || text::counted(report.totals.sites, "site");
    let finding = finding.unwrap_or_else(|| match (report.totals.sites, report.totals.avoidable_sites) {
        _ if report.sites.is_empty() && report.ranks.is_some() => "waits over ranks".to_owned(),
        (0, _) => "nothing makes the CPU wait for the GPU".to_owned(),
        (_, 0) => format!("no avoidable wait at {}", sites()),
        (_, n) => format!("{n} of {} avoidable", sites()),
    });
    let mut out =
        format!("### sync-report: {}\n\n{}\n\n", md::plain(&finding), md::plain(&head::title(report)));
    let ranks = report.ranks.iter().flat_map(ranks::facts);
    for (label, words) in lines.into_iter().map(|(label, words)| (label.to_owned(), words)).chain(ranks) {
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        out += &format!("- {label}{}\n", md::plain(&words));
    }
    let left_out = text::counted(report.waits_filtered_out, "wait");
    out.extend((report.waits_filtered_out > 0).then(|| format!("- {left_out} left out by filters\n")));
    out + "\n"
}

/// Sites over ranks, and who comes late. Returns how many sites are left out.
fn over_ranks(over: &Ranks, text: &mut Limited) -> usize {
    const TITLES: [&str; 8] =
        ["id", "verdict", "where", ">waits", ">blocked", ">idle after", ">saves", "what to do"];
    let row = |site: &RankSite| {
        let amounts = ranks::amounts(site, over).map(|[median, range, most]| {
            [median, range, most].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("<br>")
        });
        let notes = ranks::notes(site, over.list.len()).join("; ");
        let place = md::code_cell(&site.place) + "<br>" + &md::plain(&notes);
        let sure = phrase::confidence(site.class, site.confidence);
        let verdict =
            format!("{} {} {sure}, {}", sign(site.class), site.class.in_words(), site.kind.in_words());
        let fix = site.fix.as_deref().map(md::plain).unwrap_or_default();
        let [waits, blocked, drain, saves] = amounts;
        md::row(&[md::plain(&site.id), verdict, place, waits, blocked, drain, saves, fix])
    };
    let left = text.table(&TITLES, over.sites.iter().map(row));
    ranks::more_late(over).chain(ranks::signs(over)).for_each(|words| text.sentence(&words));
    left
}

const fn sign(class: Class) -> &'static str {
    match class {
        Class::False => "🔴",
        Class::Unknown => "🟡",
        Class::True => "⚪",
    }
}

fn row(site: &SiteView) -> String {
    let mark = if site.finding { sign(site.class) } else { sign(Class::True) };
    let (who, cells) = (&site.who, &site.cells);
    let mut place = md::code_cell(&site.place.fit(usize::MAX));
    place.extend(site.place.inner().map(|inner| format!("<br>in {}", md::code_cell(&inner.fit(usize::MAX)))));
    let called = who.called().collect::<Vec<_>>().join(", ");
    place.extend((!called.is_empty()).then(|| format!("<br>{}", md::plain(&called))));
    place.extend(who.process.as_ref().map(|process| format!("<br>{}", md::code_cell(process))));
    md::row(&[
        site.id.clone(),
        format!("{mark} {} {}, {}", site.verdict, site.confidence, site.kind),
        place,
        md::plain(&site.call),
        cells.waits.clone(),
        cells.per_iteration.clone().unwrap_or_default(),
        cells.blocked[0].clone(),
        cells.drain[0].clone(),
        cells.saves.clone().unwrap_or_default(),
        md::plain(&site.advice),
    ])
}

/// A site whole, collapsed.
fn details(site: &Site, view: &SiteView, (paths, more): (Vec<(String, String)>, usize)) -> String {
    let place = view.place.fit_both(usize::MAX);
    let summary = format!("{} {}, {}", md::html(&site.id), site.class.in_words(), site.kind.in_words());
    let mut out = format!("<details><summary>{summary}, <code>{}</code></summary>\n\n", md::html(&place));
    for evidence in &site.evidence {
        out += &format!("- {} ({})\n", md::plain(&evidence.text), evidence.rule);
    }
    let frame = |f: &Frame| {
        let sign = if f.user { ">" } else { " " };
        // Never bare at the start of a line: in a log, `::` there begins a command.
        format!("{sign} {}  {}", phrase::at_line(&f.file, f.line), f.function)
    };
    let source = site.source.iter().map(|source| format!("| {}", source.trim()));
    let mut stack: Vec<String> = source.chain(site.frames.iter().take(FRAMES).map(frame)).collect();
    let left = site.frames.len().saturating_sub(FRAMES);
    stack.extend((left > 0).then(|| format!("  … {left} more frames")));
    if stack.is_empty() {
        stack = site.native.iter().take(FRAMES).map(|f| format!("  {f}")).collect();
    }
    out.extend((!stack.is_empty()).then(|| format!("\n{}", md::block("", &stack))));
    if !paths.is_empty() {
        let mut lines: Vec<String> = paths.iter().map(|(place, cost)| format!("  {cost}: {place}")).collect();
        lines.extend((more > 0).then(|| format!("  and {}", text::counted(more as u64, "more path"))));
        out += &format!("\nCalled from\n\n{}", md::block("", &lines));
    }
    let [blocked, drain] = [site.blocked_ns, site.drain_ns].map(text::duration);
    out += &format!("\nBlocked {blocked} in all; {}. GPU idle after them {drain}.", phrase::each(site));
    out.extend(saving::in_words(site).map(|words| format!(" Saves {}.", md::plain(&words))));
    out + "\n\n" + &fix(site) + "</details>\n"
}

fn fix(site: &Site) -> String {
    let Some(fix) = &site.fix else { return String::new() };
    let mut out = format!("**{}.** {}\n\n", md::plain(&fix.title), md::plain(&fix.why));
    let (before, after) = match &fix.here {
        Some(here) => (&here.before, &here.after),
        None => (&fix.before, &fix.after),
    };
    let signed = before.lines().map(|line| format!("- {line}"));
    let lines: Vec<String> = signed.chain(after.lines().map(|line| format!("+ {line}"))).collect();
    if let Some(suggested) = suggestions(site) {
        out += &suggested;
    } else if !lines.is_empty() {
        out += &md::block("diff", &lines);
        out.push('\n');
    }
    out.extend(fix.alternatives.iter().map(|way| format!("Or: {}.\n\n", md::plain(way))));
    out.extend((!fix.caveat.is_empty()).then(|| format!("Mind: {}\n\n", md::plain(&fix.caveat))));
    out
}

/// The edit of the site's file as blocks that a review comment on those lines can apply; `None` where there is none, or its text
/// has what would not arrive as it is.
fn suggestions(site: &Site) -> Option<String> {
    let edit = site.proposal.as_ref()?.outcome.edit()?;
    let file = md::code(text::path_end(&site.location()?.file, 1));
    let plain = |line: &str| text::escape_terminal(line) == line;
    let block = |Block { first, last, text }: &Block| {
        let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        let plain = text.lines().all(|line| plain(line.trim_start_matches('\t')));
        plain.then(|| format!("{file}, {lines}:\n\n{}\n", md::suggestion(text)))
    };
    let blocks: String = edit.blocks.iter().map(block).collect::<Option<_>>()?;
    let mind = edit.mind.map(|mind| format!("Unsafe: {}.\n\n", mind.help()));
    Some(blocks + &mind.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    #[test]
    fn two_ranks_and_a_capture_without_waits() {
        let reports = [sample::sample(), sample::empty()];
        insta::assert_snapshot!(reports.map(|report| text_of(&report, md::COMMENT)).join("\n"));
    }

    #[test]
    fn little_room_keeps_the_head_and_says_what_is_missing() {
        let short = text_of(&sample::sample(), 1_500);
        assert!(short.chars().count() <= 1_500);
        assert!(short.contains("more sites not listed, details of 7 sites left out"), "{short}");
        for limit in (0..4_000).step_by(37) {
            // The last sentence alone needs what is reserved for it.
            assert!(text_of(&sample::sample(), limit).chars().count() <= limit.max(RESERVE), "{limit}");
        }
    }
}
