use super::*;
use crate::model::sample;
use crate::render::head;
use serde_json::Value;

fn data(report: &Report) -> Value {
    let page = sample::printed(|out| render(report, out));
    let (_, rest) = page.split_once("id=\"data\">").expect("the data");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

/// The headline is the finding; the other lines of the head follow; GPU time is drawn.
#[test]
fn the_head_is_that_of_the_table() {
    let report = sample::sample();
    let page = data(&report);
    let lines = page["lines"].as_array().expect("lines").iter().map(|line| line[1].clone());
    let said: Vec<Value> = std::iter::once(page["headline"].clone()).chain(lines).collect();
    let table = head::lines(&report).into_iter().filter(|(label, _)| *label != head::GPU_TIME);
    assert_eq!(said, table.map(|(_, words)| Value::from(words)).collect::<Vec<_>>());
    assert_eq!(page["what"], head::title(&report));
}

#[test]
fn without_savings_the_headline_says_what_was_found() {
    let page = data(&sample::single());
    assert!(page["headline"].as_str().is_some_and(|words| words.starts_with("1,234 waits at 12 sites")));
    let page = data(&sample::empty());
    assert_eq!(page["headline"], page["nothing"]);
    assert!(page["nothing"].as_str().is_some_and(|words| words.starts_with("No waits")));
}

/// Every way to place a site, numbers that are not finite, names that attack a terminal.
#[test]
fn every_site_is_there_in_words() {
    let report = sample::sample();
    let page = data(&report);
    let sites = page["sites"].as_array().expect("sites");
    assert_eq!(sites.len(), report.sites.len());
    assert_eq!(sites[0]["place"], serde_json::json!(["train_mlp.py:18", "step", "", ""]));
    assert_eq!(sites[1]["place"][3], "_tensor.py:42 __bool__");
    let called = sites[1]["reasons"].as_array().and_then(|all| all.last()).expect("callers");
    assert_eq!(called["section"], "called from");
    assert_eq!(called["parts"][0]["facts"][0][1], "train_mlp.py:70 fit");
    assert_eq!(sites[4]["place"][3], "model.py:9 embed (EmbeddingBackward0)");
    assert_eq!(sites[2]["place"][2], "~sampled");
    assert_eq!(sites[0]["cells"]["saves"], "912 µs/iter");
    assert_eq!(sites[0]["snippet"]["first_line"], 17);
    assert_eq!(sites[6]["sort"]["confidence"], 0.0);
    let text = page.to_string();
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}', '\u{7}']));
    assert!(text.contains("5 more sites not shown"));
}

#[test]
fn commands_are_said_once() {
    let mut report = sample::sample();
    report.warnings.push(report.warnings[0].clone());
    let page = data(&report);
    let fixes: Vec<bool> =
        page["warnings"].as_array().expect("warnings").iter().map(|w| w["fix"] != "").collect();
    assert_eq!(fixes, [true, false, false]);
}

#[test]
fn deep_stacks_keep_both_ends() {
    let mut report = sample::sample();
    let frame = report.sites[0].frames[0].clone();
    let deep = (0..5_000).map(|line| crate::model::Frame { line, ..frame.clone() });
    report.sites[0].frames = deep.collect();
    let page = data(&report);
    let stack = page["sites"][0]["stack"].as_array().expect("frames");
    assert_eq!(page["sites"][0]["frames_left_out"].as_u64(), Some(5_000 - stack.len() as u64));
    assert_eq!(stack[0]["file"], "/home/ada/mlp/train_mlp.py:4999");
    assert_eq!(stack[stack.len() - 1]["file"], "/home/ada/mlp/train_mlp.py");
}
