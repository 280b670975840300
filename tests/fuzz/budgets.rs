//! Budgets in TOML: a gate's verdict, or one sentence.

use crate::random::Random;
use crate::{printed, reports, runner};
use std::collections::BTreeMap;
use sync_report::check::budget::Budget;
use sync_report::check::{self, Rules};
use sync_report::formats::CHECK;

#[test]
fn budgets() {
    runner::run("budgets", 0..200, &[], case);
}

const BUDGET: &str = r#"per = "iteration"

[limits] # the whole program
waits = 2.5
false-waits = 0
blocked = "1.5ms"
drain = "200us"

[[limit]]
path = "w/**"
function = "st*"
nvtx = "step"
drain = "1us"

[[limit]]
function = "step"
waits = 1

[[allow]]
path = "train.py"
reason = "the loss goes into the progress bar; see #12"
expires = 2026-12-31

[[allow]]
pattern = "C03"
key = "0123456789abcdef"
reason = "é"
expires = "2027-01-01"
"#;

const PIECES: [&str; 40] = [
    "[",
    "]",
    "[[",
    "]]",
    "[limits]\n",
    "[[limit]]\n",
    "[[allow]]\n",
    "=",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "#",
    "\n",
    "\r\n",
    "\r",
    "\\",
    "{",
    "}",
    ",",
    ".",
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e309",
    "9223372036854775808",
    "0x7fffffffffffffff",
    "true",
    "\"99999999999999999999s\"",
    "\"1e300ms\"",
    "2026-02-30",
    "9999-12-31",
    "-0001-01-01",
    "\"{{{{{{**\"",
    "\"[!\"",
    "\"run\"",
    "\u{0}",
    "\u{1b}[31m",
    "名",
];

fn case(r: &Random) -> Result<(), String> {
    let mut text = BUDGET.to_owned();
    for _ in 0..r.pick(&[0, 1, 1, 2, 4]) {
        text = mutated(&text, r);
    }
    let budget = match Budget::parse(&text) {
        Ok(budget) => budget,
        Err(error) => {
            let said = error.to_string();
            let is_sentence = !said.trim().is_empty() && !said.contains('\n');
            return if is_sentence { Ok(()) } else { Err(format!("no sentence: {said:?}")) };
        }
    };
    let [report, inside] = reports::bases();
    let ranges = BTreeMap::from([("step".to_owned(), inside.clone())]);
    let today = "2026-12-01".parse().expect("a day");
    let rules = Rules { budget: Some(&budget), fail_on: &[], baseline: None, today };
    let Ok(outcome) = check::check(report, &ranges, &rules) else { return Ok(()) };
    CHECK.iter().try_for_each(|format| printed::print(format, &outcome, r))
}

fn mutated(text: &str, r: &Random) -> String {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = places[r.below(places.len())];
    let (before, after) = text.split_at(at);
    let mut lines: Vec<&str> = text.split('\n').collect();
    let line = r.below(lines.len());
    match r.below(8) {
        0 | 1 => return format!("{before}{}{after}", r.pick(&PIECES)),
        2 => return before.to_owned() + &after.chars().skip(r.pick(&[1, 1, 3, 20])).collect::<String>(),
        3 => lines.insert(line, lines[line]),
        4 => drop(lines.remove(line)),
        5 => {
            let other = r.below(lines.len());
            lines.swap(line, other);
        }
        _ => {
            // Another value for the key.
            let (key, _) = lines[line].split_once('=').unwrap_or((lines[line], ""));
            let changed = format!("{key}= {}", r.pick(&PIECES));
            lines[line] = &changed;
            return lines.join("\n");
        }
    }
    lines.join("\n")
}
