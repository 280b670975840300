//! Whether captures are good enough, for people.

use super::document::{Block, Column, Table, Words};
use crate::model::doctor::{Diagnosis, Examined};

pub(crate) fn document(found: &Diagnosis) -> Vec<Block> {
    found.captures.iter().flat_map(one).collect()
}

fn one(capture: &Examined) -> Vec<Block> {
    let marks = capture.checks.iter().map(|check| if check.good { "ok" } else { "--" });
    let checks = Table::new(
        "check",
        [
            Column::words("", marks),
            Column::words("", capture.checks.iter().map(|check| check.question.as_str())),
            Column::prose("", capture.checks.iter().map(|check| check.answer.as_str())),
        ],
    );
    let mut blocks = vec![Block::Heading(capture.profile.as_str().into()), Block::Table(checks)];
    match &capture.refused {
        Some(why) => blocks.push(Block::Paragraph(why.as_str().into())),
        None => blocks.extend(advice(capture)),
    }
    blocks
}

/// A command that mends several things in a row is printed once.
fn advice(capture: &Examined) -> Vec<Block> {
    if capture.warnings.is_empty() {
        let whole = capture.checks.iter().all(|check| check.good);
        const NOTHING: &str = "Nothing is missing: every wait has its exact line.";
        let said = if whole { NOTHING } else { "Other flags would show no more of this program." };
        return vec![Block::Paragraph(said.into())];
    }
    let mut last = "";
    let mut said = Vec::new();
    for warning in &capture.warnings {
        let command = if warning.fix == last { "" } else { &warning.fix };
        last = if warning.fix.is_empty() { last } else { &warning.fix };
        said.push(Block::Warning(warning.message.as_str().into(), command.to_owned()));
    }
    said.extend(capture.advice.iter().map(|more| Block::Paragraph(Words::from(more.as_str()))));
    said
}
