//! Whether captures are good enough, for people.

use super::style::Style;
use crate::model::Warning;
use crate::model::doctor::{Diagnosis, Examined};
use crate::text::escape_terminal;
use std::io::{self, Write};

/// Prints what each capture has and lacks.
pub fn table(found: &Diagnosis, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    found.captures.iter().try_for_each(|capture| one(capture, *style, out))
}

fn one(capture: &Examined, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", escape_terminal(&capture.profile))?;
    for check in &capture.checks {
        let mark = if check.good { "ok " } else { "-- " };
        writeln!(out, "  {mark} {:<30} {}", check.question, escape_terminal(&check.answer))?;
    }
    writeln!(out)?;
    match &capture.refused {
        Some(why) => writeln!(out, "{}", escape_terminal(why)),
        None => writeln!(out, "{}", advice(capture, style)),
    }
}

/// What is missing, and the commands that mend it; one command often mends several things: it stands once.
fn advice(capture: &Examined, style: Style) -> String {
    if capture.warnings.is_empty() {
        let whole = capture.checks.iter().all(|check| check.good);
        let nothing = "Nothing is missing: every wait has its exact line.";
        return if whole { nothing } else { "Other flags would show no more of this program." }.to_owned();
    }
    let mut lines = Vec::new();
    let mut last = "";
    for Warning { message, fix, .. } in &capture.warnings {
        lines.push(style.hang("", &escape_terminal(message)));
        if !fix.is_empty() && fix != last {
            lines.push(format!("    {}", escape_terminal(fix)));
            last = fix;
        }
    }
    lines.extend(capture.advice.iter().map(|more| format!("\n{}", style.hang("", more))));
    lines.join("\n")
}
