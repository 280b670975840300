//! A fix measured: the program as it is and edited.

use super::document::{Block, Table};
use crate::model::trial::{Trial, TrialDifference};
use crate::text;

pub(crate) fn document(trial: &Trial) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(heading(trial).into()), Block::facts(facts(trial))];
    if let Some(said) = &trial.failed {
        blocks.push(Block::section("the edited program failed", [Block::code("", said)]));
    }
    blocks.push(edits(trial));
    blocks.extend(trial.notes.iter().map(|note| Block::Warning(note.clone().into(), String::new())));
    blocks
}

/// `7.6 % (6.9 % to 8.3 %)`.
fn share(saved: i64, low: i64, high: i64, of: i64) -> String {
    let [saved, low, high] = [saved, low, high].map(|ns| text::share(ns, of.max(1)));
    format!("{saved} ({low} to {high})")
}

fn heading(trial: &Trial) -> String {
    if trial.failed.is_some() {
        return "The edited program fails.".to_owned();
    }
    let Trial { saved_ns: Some(saved), low_ns: Some(low), high_ns: Some(high), unedited_ns, .. } = *trial
    else {
        return "Nothing was measured: two pairs of runs are needed.".to_owned();
    };
    let of = format!("{} of {}", trial.unit.one(), text::duration(unedited_ns));
    if low > 0 {
        format!("The edits save {} of {of}: {}.", text::duration(saved), share(saved, low, high, unedited_ns))
    } else if high < 0 {
        let [saved, low, high] = [saved, high, low].map(i64::saturating_neg);
        format!("The edits cost {} of {of}: {}.", text::duration(saved), share(saved, low, high, unedited_ns))
    } else {
        let [low, high] = [low, high].map(|ns| text::share(ns, unedited_ns.max(1)));
        format!("No difference is seen: the edits save {low} to {high} of {of}.")
    }
}

fn facts(trial: &Trial) -> Vec<(String, String)> {
    let mut facts = vec![("program".to_owned(), trial.program.clone())];
    if let Some(predicted) = &trial.predicted {
        let agrees = match trial.agrees {
            Some(true) => "the intervals meet",
            Some(false) => "the intervals do not meet",
            None => "not comparable with this measurement",
        };
        let predicted = share(predicted.saved_ns, predicted.low_ns, predicted.high_ns, predicted.ns);
        facts.push((
            "predicted".to_owned(),
            format!("{predicted} of an iteration, from the capture; {agrees}"),
        ));
    }
    let [edited, unedited] = [true, false].map(|edited| {
        let runs: Vec<i64> = trial.runs.iter().filter(|run| run.edited == edited).map(|run| run.ns).collect();
        let ends = runs.iter().min().zip(runs.iter().max());
        let ends = ends.map_or_else(|| "none".to_owned(), |(low, high)| text::durations(*low, *high));
        format!("{} of {ends}", text::counted(runs.len() as u64, "run"))
    });
    let exact = if trial.resolved { "" } else { "; not resolved to 1 %" };
    facts.push(("runs".to_owned(), format!("{unedited} unedited, {edited} edited; no profiler{exact}")));
    if let Some(printed) = &trial.printed {
        let numbers = text::counted(printed.compared, "number");
        let words = match &printed.differs {
            None => format!("{numbers} of each run compared: the same, within what unedited runs differ"),
            Some(TrialDifference { edited: None, unedited_low: None, .. }) => {
                "only one of the two programs prints numbers".to_owned()
            }
            Some(TrialDifference { number, unedited_low, unedited_high, edited }) => {
                let shown =
                    |n: &Option<f64>| n.map_or_else(|| "no finite number".to_owned(), |n| n.to_string());
                let [edited, low, high] = [edited, unedited_low, unedited_high].map(shown);
                format!(
                    "number {number} of {} differs: {edited} edited, {low} to {high} unedited",
                    printed.compared
                )
            }
        };
        facts.push(("printed".to_owned(), words));
    }
    facts
}

fn edits(trial: &Trial) -> Block {
    let rows = trial.edits.iter().map(|edit| {
        let place = if edit.line > 0 { format!("{}:{}", edit.file, edit.line) } else { edit.file.clone() };
        let what = match (&edit.left_out, edit.loaded) {
            (Some(reason), _) => format!("no edit: {reason}"),
            (None, Some(false)) => {
                "edited, and never imported: this edit changed nothing that was timed".to_owned()
            }
            _ => "edited".to_owned(),
        };
        vec![edit.site.clone(), place, what]
    });
    Block::Table(Table::sheet(&["site", "where", "edit"], 3, &rows.collect::<Vec<_>>()))
}
