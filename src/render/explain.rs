//! The catalogue, the rules of evidence and the codes of warnings as text: lists of all, and one entry whole.

use super::style::{Style, Tone};
use crate::catalogue::{self, Category, Outcome, Pattern, Run, Values};
use crate::model::Code;
use crate::rules::grade::{DECIDED, Grade};
use crate::rules::weak::{FALSE, TRUE};
use crate::rules::{self, Lean, Role, Rule, calibration};
use crate::text::{self, counted};
use crate::vocabulary::{Class, RuleId, Strategy};

/// Columns of prose in a pipe.
const PIPED_WIDTH: usize = 100;
/// Narrower than this, wrapping makes text worse.
const MIN_WIDTH: usize = 40;
/// Column where the text of a field begins.
const INDENT: usize = 12;

/// Entries shown whole; more matches are named.
const SHOWN: usize = 3;

/// What was asked for.
#[derive(Default)]
pub struct Entries {
    /// Whether they are to be listed; else each is shown whole.
    pub listed: bool,
    /// Of the catalogue.
    pub patterns: Vec<&'static Pattern>,
    /// Rules of evidence.
    pub rules: Vec<&'static Rule>,
    /// Codes of warnings.
    pub warnings: Vec<Code>,
}

/// The list of the first kind that there is, or the entries whole, the rule whose id it is first; of many patterns, the first.
pub fn text(found: &Entries, style: Style) -> String {
    if found.listed {
        return match (&found.patterns[..], &found.rules[..]) {
            ([_, ..], _) => list(style),
            (_, [_, ..]) => list_rules(style),
            _ => list_warnings(style),
        };
    }
    let mut parts: Vec<String> = found.rules.iter().map(|r| rule(r, style)).collect();
    parts.extend(found.patterns.iter().take(SHOWN).map(|p| pattern(p, style)));
    let more: Vec<&str> = found.patterns.iter().skip(SHOWN).map(|p| p.id.as_str()).collect();
    parts.extend((!more.is_empty()).then(|| format!("Also: {}\n", more.join(", "))));
    parts.extend(found.warnings.iter().map(|&code| warning(code, style)));
    parts.join("\n")
}

/// Every entry of the catalogue under its category, numbered as in NVIDIA's guide to sync-free code.
fn list(style: Style) -> String {
    let mut page = Page::new(style);
    for (index, category) in Category::ALL.iter().enumerate() {
        let number = if index < Category::OF_GUIDE { format!("{}. ", index + 1) } else { String::new() };
        page.lines.push(Tone::Strong.paint(format!("{number}{}", category.help())));
        for p in catalogue::all().filter(|p| p.category == *category) {
            let id = Tone::Strong.paint(format!("{:<5}", p.id));
            let (class, tone) = class_word(p);
            let class = tone.paint(format!("{class:<9}"));
            let ran = Tone::Faint.paint(format!("{:<10}", outcome_word(p)));
            page.row(&format!("  {id}{class}{ran}"), p.title, p.fix.title);
        }
        page.gap();
    }
    let below = [
        "4 → 0: waits of the pair that was run, before → after; later: it waits for less",
        "Rules that verdicts rest on: sync-report explain --rules",
        "Codes of warnings: sync-report explain --warnings",
    ];
    page.lines.extend(below.map(str::to_owned));
    page.finish()
}

/// Every rule of evidence, those of the trace in order of precedence.
fn list_rules(style: Style) -> String {
    let heading = |role: &Role| match role {
        Role::Trace(_) => "Rules of the trace, the most decisive first",
        Role::Source | Role::Guard => "Rules of the Python source",
        Role::Weak(_) | Role::Weighed => "Weak rules: they say what is probable",
        Role::Remark => "Remarks: they decide nothing",
    };
    let mut page = Page::new(style);
    let mut section = "";
    for rule in rules::all() {
        if section != heading(&rule.role) {
            page.lines.extend((!section.is_empty()).then(String::new));
            section = heading(&rule.role);
            page.lines.push(Tone::Strong.paint(section));
        }
        let id = Tone::Strong.paint(format!("{:<11}", rule.id));
        let sure = Tone::Faint.paint(format!("{:<10}", figures(rule)));
        page.row(&format!("  {id}{sure}"), rule.id.title(), "");
    }
    page.finish()
}

/// Every code of a warning, with what it means and what to do.
fn list_warnings(style: Style) -> String {
    let mut page = Page::new(style);
    for code in Code::ALL {
        page.lines.push(Tone::Strong.paint(code.as_str()));
        page.lines.push(page.style.hang("  ", code.help()));
        page.lines.push(page.style.hang("  ", &format!("→ {}", code.advice())));
    }
    page.finish()
}

/// One code of a warning.
fn warning(code: Code, style: Style) -> String {
    let mut page = Page::new(style);
    page.lines.push(Tone::Strong.paint(code.as_str()));
    page.gap();
    page.field("means", code.help());
    page.field("do", code.advice());
    page.field("exit code", if code.is_damage() { "2: what could be read is reported" } else { "" });
    page.finish()
}

/// One entry of the catalogue whole.
fn pattern(p: &Pattern, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(p.id.as_str(), p.title);
    page.field("category", p.category.help());
    page.field("class", &class_sentence(p));
    page.items("written as", p.triggers);
    page.field("why", p.why);
    page.field("in a trace", p.trace);
    page.field("operator", p.op);
    page.field("driver call", p.driver_api);
    page.field("versions", p.versions);
    if let Some(site) = p.library() {
        let frame = |(file, function)| format!("{file} {function}").trim_end().to_owned();
        page.field("library", site.library());
        page.items("code in", &site.places().map(frame).collect::<Vec<_>>());
        page.field("line with", site.line_text);
        page.field("how often", site.frequency);
    }
    page.field("sources", p.confirmed_by());
    page.gap();
    page.field("fix", p.fix.title);
    page.field("for users", p.fix.installed);
    if p.fix.strategy != Strategy::Leave {
        page.field("strategy", p.fix.strategy.as_str());
    }
    if !p.fix.before.is_empty() {
        page.gap();
        page.code(&format!("  {} ", Tone::Avoidable.paint("-")), p.fix.before);
        page.code(&format!("  {} ", Tone::Needed.paint("+")), p.fix.after);
    }
    if !p.fix.alternatives.is_empty() || !p.fix.caveat.is_empty() {
        page.gap();
    }
    page.items("or", p.fix.alternatives);
    page.field("mind", p.fix.caveat);
    page.items("but", &p.elsewhere().collect::<Vec<_>>());
    if let Some(run) = catalogue::run_of(p.id) {
        page.gap();
        page.field("pair", &outcome(run));
    }
    if p.fix.strategy != Strategy::Leave {
        page.gap();
        page.field("confirm", COMPARE);
    }
    page.finish()
}

/// How to see that a fix worked.
const COMPARE: &str = "sync-report diff BEFORE AFTER: whether the wait is gone, moved or still there, and whether the saving is the one predicted";
/// What came of running a pair, in a sentence.
fn outcome(run: &Run) -> String {
    let Some(m) = &run.measured else { return format!("not run: {}", run.why) };
    let (waits, blocked) = (m.waits, m.blocked_us.map(|us| text::duration(us.cast_signed() * 1000)));
    let steps = counted(u64::from(m.steps), "step");
    let came = match run.outcome {
        Outcome::Later => format!("blocked for {} → {} in {steps}", blocked[0], blocked[1]),
        _ => format!("{} → {} in {steps}", counted(u64::from(waits[0]), "wait"), waits[1]),
    };
    let values = match m.values {
        Values::Equal => format!("values equal ({})", m.compared),
        Values::NotCompared => "values not compared".to_owned(),
    };
    let why = if run.why.is_empty() { String::new() } else { format!("; {}", run.why) };
    format!("run on PyTorch {}, {}: {came}, {values}{why}", m.torch, m.gpu)
}

/// The same in a column of the list.
fn outcome_word(p: &Pattern) -> String {
    let Some(run) = catalogue::run_of(p.id) else { return String::new() };
    match (&run.measured, run.outcome) {
        (None, _) => "not run".to_owned(),
        (_, Outcome::Later) => "later".to_owned(),
        (Some(m), _) => format!("{} → {}", m.waits[0], m.waits[1]),
    }
}

/// One rule whole.
fn rule(rule: &Rule, style: Style) -> String {
    let mut page = Page::new(style);
    page.title(rule.id.as_str(), rule.id.title());
    page.field("looks at", rule.looks_at);
    page.field("proves", rule.proves);
    page.field("comes after", &earlier(rule));
    page.field("yields to", &rule.yields_to());
    page.field("decides", if rule.role == Role::Remark { "nothing" } else { "" });
    page.items("confidence", &confidence(rule));
    page.field("origin", &origin(rule));
    page.field("counted", &counted_on_captures(rule.id));
    if !rule.example.is_empty() {
        page.gap();
        page.code("  ", rule.example);
    }
    page.finish()
}

/// Rules of the trace that are asked before this one.
fn earlier(rule: &Rule) -> String {
    let is_trace = |r: &&Rule| matches!(r.role, Role::Trace(_));
    rules::ids(rules::all().filter(is_trace).take_while(|r| is_trace(&rule) && r.id != rule.id))
}

/// The figures of its cases, lowest to highest.
fn figures(rule: &Rule) -> String {
    if let Role::Weak(lean) = rule.role {
        return format!("{:+.2}", lean.weight);
    }
    let mut all: Vec<f64> = rule.grades().map(|grade| grade.confidence).collect();
    all.sort_by(f64::total_cmp);
    match (all.first(), all.last()) {
        (Some(low), Some(high)) if low < high => format!("{:.0}–{}", low * 100.0, text::confidence(*high)),
        (Some(one), _) => text::confidence(*one),
        _ => String::new(),
    }
}

pub(super) fn confidence(rule: &Rule) -> Vec<String> {
    if let Role::Weak(Lean { weight, about, .. }) = rule.role {
        return vec![format!("moves the score by {}, as a witness of {}", leaning(weight), about.help())];
    }
    let case = |grade: &Grade| format!("{}  {}", text::confidence(grade.confidence), grade.when);
    rule.grades().map(|grade| case(grade).trim_end().to_owned()).collect()
}

/// A weight, and the class that it leans to.
fn leaning(weight: f64) -> String {
    format!("{:.2} to {}", weight.abs(), if weight < 0.0 { Class::False } else { Class::True })
}

/// Where its figures come from.
pub(super) fn origin(rule: &Rule) -> String {
    match rule.role {
        Role::Weak(Lean { prior, fired: (0, 0), .. }) => format!(
            "a prior of {}, of which half or less is kept: it fired on none of the sites that the weights were fitted to",
            leaning(prior)
        ),
        Role::Weak(Lean { prior, fired: (on_false, on_true), .. }) => format!(
            "a prior of {}, fitted to {FALSE} false and {TRUE} true sites of labelled programs: it fired on {on_false} and {on_true}",
            leaning(prior)
        ),
        _ if rule.grades().next().is_some() => "what its authors expect, not computed from the counts".into(),
        _ => String::new(),
    }
}

/// Right and wrong verdicts on labelled captures.
pub(super) fn counted_on_captures(id: RuleId) -> String {
    let counts: Vec<_> = calibration::counts().filter(|count| count.rule == id).collect();
    let (right, wrong) = counts.iter().fold((0, 0), |sum, c| (sum.0 + c.right, sum.1 + c.wrong));
    if right + wrong == 0 {
        let decides = rules::row(id).is_some_and(|rule| rule.grades().any(|g| g.confidence >= DECIDED));
        return if decides { "no labelled capture has a verdict of it".into() } else { String::new() };
    }
    let of = |c: &calibration::Count| format!("{} {} of {}", c.corpus, c.right, c.right + c.wrong);
    let parts = counts.iter().map(of).collect::<Vec<_>>().join(", ");
    let all = counted(u64::from(right + wrong), "labelled verdict");
    format!("right on {right} of {all} that it decided ({parts})")
}

/// A page that grows line by line.
struct Page {
    /// Of this width, in a pipe too: prose is to be read.
    style: Style,
    width: usize,
    lines: Vec<String>,
}

impl Page {
    fn new(style: Style) -> Self {
        let width = style.width.unwrap_or(PIPED_WIDTH).max(MIN_WIDTH);
        Self { style: Style { width: Some(width), ..style }, width, lines: Vec::new() }
    }

    fn gap(&mut self) {
        self.lines.push(String::new());
    }

    fn title(&mut self, id: &str, title: &str) {
        let column = (id.len() + 2).max(5);
        let title = self.style.hang(&format!("{id:<column$}"), title);
        self.lines.extend(title.lines().map(|line| Tone::Strong.paint(line)));
        self.gap();
    }

    /// Title and advice beside each other, or the advice on lines of its own where the width is too small.
    fn row(&mut self, head: &str, title: &str, advice: &str) {
        let column = text::width(head);
        let room = self.width / 2 - 10;
        if text::width(title) <= room && column + room + 1 + text::width(advice) <= self.width {
            let line = format!("{head}{title:<room$} {}", Tone::Faint.paint(advice));
            return self.lines.push(line.trim_end().to_owned());
        }
        self.lines.push(self.style.hang(head, title));
        if !advice.is_empty() {
            let indent = column + 2;
            let advice = self.style.wrap(advice, indent);
            let line = |line: &String| format!("{:indent$}{}", "", Tone::Faint.paint(line));
            self.lines.extend(advice.iter().map(line));
        }
    }

    /// A name and its wrapped text; nothing where the text is empty.
    fn field(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            let name = Tone::Faint.paint(format!("{name:<INDENT$}"));
            self.lines.push(self.style.hang(&name, text));
        }
    }

    /// A name and one line per item.
    fn items(&mut self, name: &str, items: &[impl AsRef<str>]) {
        for (i, item) in items.iter().enumerate() {
            self.field(if i == 0 { name } else { " " }, item.as_ref());
        }
    }

    /// Code or a drawing behind a gutter. It is never wrapped: it would no longer be code to copy.
    fn code(&mut self, gutter: &str, source: &str) {
        self.lines.extend(source.lines().map(|line| format!("{gutter}{line}")));
    }

    fn finish(&self) -> String {
        self.style.finish(&(self.lines.join("\n") + "\n"))
    }
}

/// The class in a word, and how it looks.
fn class_word(p: &Pattern) -> (&'static str, Tone) {
    match p.kind.map(|kind| kind.class()) {
        _ if p.category == Category::NotAWait => ("no wait", Tone::Faint),
        Some(class) => (class.as_str(), Tone::of(class)),
        None => ("depends", Tone::of(Class::Unknown)),
    }
}

/// Class and kind in words.
pub(super) fn class_sentence(p: &Pattern) -> String {
    let Some(kind) = p.kind else {
        return match p.category {
            Category::NotAWait => "none: the CPU does not wait".to_owned(),
            _ => "depends on what the program does with the value".to_owned(),
        };
    };
    let meaning = match kind.class() {
        Class::False => "the CPU does not need the GPU's result here",
        Class::True => "the CPU needs the GPU's result",
        Class::Unknown => "the evidence does not say",
    };
    let wanted = if p.intended { "; usually there on purpose" } else { "" };
    format!("{} ({kind}): {meaning}{wanted}", kind.class())
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
