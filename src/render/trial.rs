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

/// `7.6 % (6.9 to 8.3 %)`.
fn share(saved: i64, low: i64, high: i64, of: i64) -> String {
    let percent = |ns: i64| 100.0 * ns as f64 / of.max(1) as f64;
    format!("{:.1} % ({:.1} to {:.1} %)", percent(saved), percent(low), percent(high))
}

fn heading(trial: &Trial) -> String {
    let Trial { saved_ns, low_ns, high_ns, unedited_ns, .. } = *trial;
    if trial.failed.is_some() {
        return "The edited program fails: nothing was measured.".to_owned();
    }
    let (length, share) = (text::duration(unedited_ns), share(saved_ns, low_ns, high_ns, unedited_ns));
    let (verb, amount) = if saved_ns < 0 { ("cost", saved_ns.saturating_neg()) } else { ("save", saved_ns) };
    let amount = text::duration(amount);
    if trial.resolved {
        format!("The edits {verb} {amount} of {} of {length}: {share}, measured.", trial.unit.one())
    } else {
        format!("Not resolved: the edits {verb} about {amount} of {} of {length}: {share}.", trial.unit.one())
    }
}

fn facts(trial: &Trial) -> Vec<(String, String)> {
    let mut facts = vec![("program".to_owned(), trial.program.clone())];
    if let Some(predicted) = &trial.predicted {
        let agrees = match trial.agrees {
            Some(true) => "the intervals meet",
            Some(false) => "the intervals do not meet",
            None => "nothing was measured",
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
    facts.push(("runs".to_owned(), format!("{unedited} unedited, {edited} edited; no profiler")));
    if let Some(printed) = &trial.printed {
        let numbers = text::counted(printed.compared, "number");
        let words = match &printed.differs {
            None => format!("{numbers} of each run compared: the same, within what unedited runs differ"),
            Some(TrialDifference { number, unedited_low, unedited_high, edited }) => {
                format!(
                    "number {number} of {} differs: {edited} edited, {unedited_low} to {unedited_high} unedited",
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
            (None, Some(false)) => "edited, and never loaded: the edit did nothing".to_owned(),
            _ => "edited".to_owned(),
        };
        vec![edit.site.clone(), place, what]
    });
    Block::Table(Table::sheet(&["site", "where", "edit"], 3, &rows.collect::<Vec<_>>()))
}
