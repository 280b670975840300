use super::*;
use crate::render::style::Style;
use crate::text;

fn on(width: Option<usize>, blocks: &[Block]) -> String {
    terminal::text(blocks, &Style { width, color: false })
}

/// Two rows: a value in a column, a value below it, a column that can be spared, what to do.
fn table() -> Table {
    let place = |file: &str, name: &str| {
        Cell::Place(Place { file: Some(file.to_owned()), name: name.to_owned(), mark: None })
    };
    let places = [place("train.py:30", "step"), place("data/a_rather_long_name_of_a_file.py:7", "__iter__")];
    let notes = [vec!["4 B D2H"], vec!["2 MiB H2D", "called at train.py:9"]];
    let notes = notes.map(|notes| Cell::Notes(notes.into_iter().map(str::to_owned).collect()));
    let columns = [
        Column::words("id", ["S1", "S2"]),
        Column::places("where", places),
        Column::words("wait", notes).under(),
        Column::numbers("blocked", ["1.20 ms", "30 µs"]).spare(1),
        Column::numbers("saves", ["1 ms", ""]),
        Column::prose(
            "what to do",
            ["read the values in one copy", "pin the loader and copy without blocking"],
        ),
    ];
    Table::new("site", columns)
}

#[test]
fn the_richest_layout_that_fits() {
    let printed = [None, Some(130), Some(90), Some(60), Some(48), Some(20)];
    let printed = printed.map(|width| on(width, &[Block::Table(table())]));
    insta::assert_snapshot!(printed.join("\n\n"));
}

#[test]
fn no_layout_is_wider_than_the_terminal() {
    for width in 48..200 {
        for line in on(Some(width), &[Block::Table(table())]).lines() {
            assert!(text::width(line) <= width, "{width}: {line}");
        }
    }
}

/// A table of numbers alone is parted; each part repeats its words.
#[test]
fn numbers_that_do_not_fit_are_parted() {
    let rows = vec![["512", "fp16", "1 ms", "2 ms", "3 ms"].map(str::to_owned).to_vec()];
    let sheet = Table::sheet(&["size", "type", "stream", "context", "event"], 2, &rows);
    let printed = on(Some(28), &[Block::Table(sheet)]);
    let parts: Vec<&str> = printed.split("\n\n").collect();
    assert_eq!(parts.len(), 2, "{printed}");
    assert!(parts.iter().all(|part| part.contains("512   fp16")), "{printed}");
}

#[test]
fn places_keep_file_and_line() {
    let place = Place {
        file: Some("modeling_llama.py:1204".to_owned()),
        name: "LlamaForCausalLM.prepare_inputs".to_owned(),
        mark: Some("~sampled"),
    };
    assert_eq!(place.fit(80), "modeling_llama.py:1204 LlamaForCausalLM.prepare_inputs ~sampled");
    assert_eq!(place.fit(45), "modeling_llama.py:1204 LlamaF…inputs ~sampled");
    assert_eq!(place.fit(34), "modeling_llama.py:1204 ~sampled");
}

/// Every kind of block with a name that would move a cursor, end a cell or a code span, or close a tag.
fn hostile() -> Vec<Block> {
    const NAME: &str = "\u{1b}[2J|a`b</summary>\n@all";
    let cells = || [Cell::from(NAME), Cell::from(Words::code(NAME))];
    vec![
        Block::Heading(NAME.into()),
        Block::section(NAME, [Block::Paragraph(NAME.into())]),
        Block::lines([NAME]),
        Block::facts([(NAME, NAME), ("", NAME)]),
        Block::values([(NAME, NAME)]),
        Block::List(vec![Words::code(NAME)]),
        Block::Table(Table::new("row", [Column::words("name", cells()), Column::prose("words", cells())])),
        Block::Code("", vec![NAME.into()]),
        Block::Warning(NAME.into(), NAME.to_owned()),
        Block::Fold(Words::code(NAME), vec![Block::Paragraph(NAME.into())]),
        Block::notes([NAME]),
    ]
}

#[test]
fn names_stay_names() {
    for width in [None, Some(30), Some(100)] {
        let printed = on(width, &hostile());
        assert!(printed.chars().all(|c| !c.is_control() || c == '\n'), "{printed}");
    }
    let printed = markdown::text(&hostile(), usize::MAX);
    assert!(printed.chars().all(|c| !c.is_control() || c == '\n'), "{printed}");
    insta::assert_snapshot!(printed);
}

/// Rows and parts go first; the last notes stay, and the text says what is missing.
#[test]
fn a_comment_has_its_size() {
    let fold =
        |n: usize| Block::Fold(format!("part {n}").into(), vec![Block::Paragraph("x".repeat(200).into())]);
    let mut blocks = vec![Block::Heading("a finding".into()), Block::Table(table())];
    blocks.extend((0..9).map(fold));
    blocks.push(Block::notes(["what it means"]));
    for limit in (700..3_000).step_by(53) {
        let printed = markdown::text(&blocks, limit);
        assert!(printed.chars().count() <= limit && printed.contains("what it means"), "{limit}: {printed}");
    }
    let printed = markdown::text(&blocks, 1_500);
    let missing = 9 - printed.matches("<details>").count();
    let said = format!("details of {missing} sites left out: there is no more room");
    assert!(missing > 0 && printed.contains(&said), "{printed}");
    assert!(!markdown::text(&blocks, 9_000).contains("left out"));
}
