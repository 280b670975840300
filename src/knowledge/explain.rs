//! The catalogue, the rules of evidence and the codes of warnings as text: lists of all, and whole entries.

use crate::catalogue::{self, Category, Outcome, Pattern, Run, Values};
use crate::model::Code;
use crate::render::document::{Block, Column, Table, Words, terminal};
use crate::render::style::{Style, Tone};
use crate::rules::grade::Grade;
use crate::rules::{self, Role, Rule, calibration};
use crate::text::{self, counted};
use crate::vocabulary::{Class, RuleId, Strategy};
use std::collections::BTreeMap;

/// Columns of prose in a pipe.
const PIPED_WIDTH: usize = 100;
/// Narrower than this, wrapping makes text worse.
const MIN_WIDTH: usize = 40;

/// Entries shown whole; more matches are named.
const SHOWN: usize = 3;

#[derive(Default)]
pub struct Entries {
    /// Listed; else each is shown whole.
    pub listed: bool,
    pub patterns: Vec<&'static Pattern>,
    pub rules: Vec<&'static Rule>,
    pub warnings: Vec<Code>,
}

/// A list, or whole entries: rules first, of many patterns only the first.
pub fn text(found: &Entries, style: Style) -> String {
    // Prose needs a width in a pipe too.
    let style = Style { width: Some(style.width.unwrap_or(PIPED_WIDTH).max(MIN_WIDTH)), ..style };
    terminal::text(&document(found), &style) + "\n"
}

fn document(found: &Entries) -> Vec<Block> {
    if found.listed {
        return match (&found.patterns[..], &found.rules[..]) {
            ([_, ..], _) => list(),
            (_, [_, ..]) => list_rules(),
            _ => list_warnings(),
        };
    }
    let mut blocks: Vec<Block> = found.rules.iter().flat_map(|r| rule(r)).collect();
    blocks.extend(found.patterns.iter().take(SHOWN).flat_map(|p| pattern(p)));
    let more: Vec<&str> = found.patterns.iter().skip(SHOWN).map(|p| p.id.as_str()).collect();
    blocks.extend((!more.is_empty()).then(|| Block::Paragraph(format!("Also: {}", more.join(", ")).into())));
    blocks.extend(found.warnings.iter().flat_map(|&code| warning(code)));
    blocks
}

/// Categories are numbered as in NVIDIA's guide to sync-free code.
fn list() -> Vec<Block> {
    let section = |(index, category): (usize, &Category)| {
        let number = if index < Category::OF_GUIDE { format!("{}. ", index + 1) } else { String::new() };
        let all: Vec<&Pattern> = catalogue::all().filter(|p| p.category == *category).collect();
        let class = |p: &&Pattern| {
            let (class, tone) = class_word(p);
            tone.cell(class)
        };
        let table = Table::new(
            "entry",
            [
                Column::words("", all.iter().map(|p| Tone::Strong.cell(p.id.as_str()))),
                Column::words("", all.iter().map(class)),
                Column::words("", all.iter().map(|p| Tone::Faint.cell(outcome_word(p)))),
                Column::prose("", all.iter().map(|p| p.title)),
            ],
        );
        Block::section(format!("{number}{}", category.help()), [Block::Table(table)])
    };
    let mut blocks: Vec<Block> = Category::ALL.iter().enumerate().map(section).collect();
    blocks.push(Block::lines([
        "4 → 0: waits of the pair that was run, before → after; later: it waits for less",
        "One entry with its fix: sync-report explain A01",
        "Rules that verdicts rest on: sync-report explain --rules",
        "Codes of warnings: sync-report explain --warnings",
    ]));
    blocks
}

/// Rules of the trace are in order of precedence.
fn list_rules() -> Vec<Block> {
    let heading = |role: &Role| match role {
        Role::Trace(_) => "Rules of the trace, the most decisive first",
        Role::Source | Role::Guard => "Rules of the Python source",
        Role::Weak => "Weak rules: they say what is probable",
        Role::Remark => "Remarks: they decide nothing",
    };
    let all: Vec<&Rule> = rules::all().collect();
    let section = |rules: &[&Rule]| {
        let table = Table::new(
            "rule",
            [
                Column::words("", rules.iter().map(|rule| Tone::Strong.cell(rule.id.as_str()))),
                Column::words("", rules.iter().map(|rule| Tone::Faint.cell(figures(rule)))),
                Column::prose("", rules.iter().map(|rule| rule.id.title())),
            ],
        );
        Block::section(heading(&rules[0].role), [Block::Table(table)])
    };
    all.chunk_by(|a, b| heading(&a.role) == heading(&b.role)).map(section).collect()
}

fn list_warnings() -> Vec<Block> {
    let one = |code: &Code| {
        let lines = [code.help().to_owned(), format!("→ {}", code.advice())];
        Block::section(code.as_str(), [Block::lines(lines)])
    };
    Code::ALL.iter().map(one).collect()
}

/// Leaves out empty texts.
fn fields<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Block {
    Block::facts(pairs.into_iter().filter(|(_, text)| !text.is_empty()))
}

/// A line for each item, the name on the first.
fn items<'a>(name: &'a str, all: &'a [impl AsRef<str>]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let label = move |at: usize| if at == 0 { name } else { "" };
    all.iter().enumerate().map(move |(at, item)| (label(at), item.as_ref()))
}

fn warning(code: Code) -> [Block; 2] {
    let damage = if code.is_damage() { "2: what could be read is reported" } else { "" };
    let fields = fields([("means", code.help()), ("do", code.advice()), ("exit code", damage)]);
    [Block::Heading(code.as_str().into()), fields]
}

fn pattern(p: &Pattern) -> Vec<Block> {
    let (class, sources) = (class_sentence(p), p.confirmed_by());
    let mut about = vec![("category", p.category.help()), ("class", &*class)];
    about.extend(items("written as", p.triggers));
    about.extend([("why", p.why), ("in a trace", p.trace), ("operator", p.op)]);
    about.extend([("driver call", p.driver_api), ("versions", p.versions)]);
    let frame = |(file, function)| format!("{file} {function}").trim_end().to_owned();
    let places: Vec<String> = p.library().iter().flat_map(|site| site.places()).map(frame).collect();
    if let Some(site) = p.library() {
        about.push(("library", site.library()));
        about.extend(items("code in", &places));
        about.extend([("line with", site.line_text), ("how often", site.frequency)]);
    }
    about.push(("sources", sources));
    let fixed = p.fix.strategy != Strategy::Leave;
    let strategy = if fixed { p.fix.strategy.as_str() } else { "" };
    let fix = [("fix", p.fix.title), ("for users", p.fix.installed), ("strategy", strategy)];
    let signed = |tone: Tone, sign: &'static str, code: &'static str| {
        code.lines()
            .map(move |line| Words::from("  ").then(Words::toned(tone, sign)).then(format!(" {line}")))
    };
    let code = signed(Tone::Avoidable, "-", p.fix.before).chain(signed(Tone::Needed, "+", p.fix.after));
    let code = code.filter(|_| !p.fix.before.is_empty()).collect();
    let elsewhere: Vec<_> = p.elsewhere().collect();
    let mut mind: Vec<(&str, &str)> = items("or", p.fix.alternatives).collect();
    mind.push(("mind", p.fix.caveat));
    mind.extend(items("but", &elsewhere));
    let pair = catalogue::run_of(p.id).map(outcome).unwrap_or_default();
    let confirm = if fixed { COMPARE } else { "" };
    vec![
        titled(p.id.as_str(), p.title),
        fields(about),
        fields(fix),
        Block::Code("diff", code),
        fields(mind),
        fields([("pair", &*pair), ("confirm", confirm)]),
    ]
}

fn titled(id: &str, title: &str) -> Block {
    Block::Heading(format!("{id:<3}  {title}").into())
}

const COMPARE: &str = "sync-report diff BEFORE AFTER: whether the wait is gone, moved or still there, and whether the saving is the one predicted";
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

/// [`outcome`] for a column of the list.
fn outcome_word(p: &Pattern) -> String {
    let Some(run) = catalogue::run_of(p.id) else { return String::new() };
    match (&run.measured, run.outcome) {
        (None, _) => "not run".to_owned(),
        (_, Outcome::Later) => "later".to_owned(),
        (Some(m), _) => format!("{} → {}", m.waits[0], m.waits[1]),
    }
}

fn rule(rule: &Rule) -> Vec<Block> {
    let (earlier, yields, sure) = (earlier(rule), rule.yields_to(), confidence(rule));
    let (origin, counted) = (origin(rule), counted_on_captures(rule.id));
    let mut about = vec![
        ("looks at", rule.looks_at),
        ("proves", rule.proves),
        ("comes after", &*earlier),
        ("yields to", &*yields),
        ("decides", if rule.role == Role::Remark { "nothing" } else { "" }),
    ];
    about.extend(items("confidence", &sure));
    about.extend([("origin", &*origin), ("counted", &*counted)]);
    vec![
        titled(rule.id.as_str(), rule.id.title()),
        fields(about),
        Block::section("example", [Block::code("", rule.example)]),
    ]
}

fn earlier(rule: &Rule) -> String {
    let is_trace = |r: &&Rule| matches!(r.role, Role::Trace(_));
    rules::ids(rules::all().filter(is_trace).take_while(|r| is_trace(&rule) && r.id != rule.id))
}

fn figures(rule: &Rule) -> String {
    let bounds = || rule.grades().filter_map(Grade::bounds);
    let low = bounds().map(|(low, _)| low).min_by(f64::total_cmp);
    let high = bounds().map(|(_, high)| high).max_by(f64::total_cmp);
    low.zip(high).map(range).unwrap_or_default()
}

/// "84–95 %", or one figure.
fn range((low, high): (f64, f64)) -> String {
    let (low, high) = (text::confidence(low), text::confidence(high));
    if low == high { low } else { format!("{}–{high}", low.trim_end_matches(" %")) }
}

pub(super) fn confidence(rule: &Rule) -> Vec<String> {
    rule.grades().map(case).collect()
}

/// "88 %  the values decide the size  (18 of 19)"; the count only if known.
fn case(grade: &Grade) -> String {
    let sure = match (grade.bounds(), grade.kind) {
        (None, _) => "open".to_owned(),
        (Some(bounds), Some(_)) => range(bounds),
        (Some(_), None) => {
            let sure =
                |class: Class| format!("{} {}", class.in_words(), text::confidence(grade.confidence(class)));
            format!("{}, {}", sure(Class::True), sure(Class::False))
        }
    };
    let counts = match calibration::on_programs(|count| count.case == grade.case) {
        (0, 0) => String::new(),
        (right, all) => format!("({right} of {all})"),
    };
    let parts = [&sure, grade.when, &counts].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("  ")
}

pub(super) fn origin(rule: &Rule) -> String {
    match rule.role {
        Role::Weak => "the share of labelled reads on which it leans the right way; where they are few, that of all weak rules weighs in".into(),
        _ if rule.grades().next().is_some() => "the share of right verdicts on labelled programs; where they are few, those of the rule and of its class weigh in".into(),
        _ => String::new(),
    }
}

pub(super) fn counted_on_captures(id: RuleId) -> String {
    let mut of: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for count in calibration::counts().filter(|count| count.rule == id) {
        let (right, all) = of.entry(count.corpus).or_default();
        (*right, *all) = (*right + count.right, *all + count.right + count.wrong);
    }
    let snippets = of.remove("snippets");
    let (right, all) = of.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let row = rules::row(id);
    let mut words = if all > 0 {
        let parts = of.iter().map(|(corpus, (right, all))| format!("{corpus} {right} of {all}"));
        let weak = row.is_some_and(|rule| rule.role == Role::Weak);
        let what = counted(u64::from(all), if weak { "labelled read" } else { "labelled verdict" });
        format!("right on {right} of {what} of programs ({})", parts.collect::<Vec<_>>().join(", "))
    } else if row.is_some_and(|rule| rule.grades().any(|grade| !grade.is_open())) {
        "no labelled program has a verdict of it: the share of its class stands in".to_owned()
    } else {
        return String::new();
    };
    if let Some((right, all)) = snippets {
        words += &format!("; {right} of {all} on snippets, which make nothing surer");
    }
    words
}

fn class_word(p: &Pattern) -> (&'static str, Tone) {
    match p.kind.map(|kind| kind.class()) {
        _ if p.category == Category::NotAWait => ("no wait", Tone::Faint),
        Some(class) => (class.in_words(), Tone::of(class)),
        None => ("depends", Tone::of(Class::Unknown)),
    }
}

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
    format!("{}, {}: {meaning}{wanted}", kind.class().in_words(), kind.in_words())
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
