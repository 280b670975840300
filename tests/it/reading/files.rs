//! Files of any encoding, files that cannot be had, and files that try to hang, crash or mislead the reader.

use super::{Finding, Observed, SourceFiles, SourceRoot, SourceTree, observed, read_site, tree};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};
use sync_report::model::Frame;
use sync_report::verdict::source::Recorded;
use sync_report::vocabulary::Kind;

fn item() -> Observed<'static> {
    observed("item")
}

fn frame(file: &str, line: u32) -> Frame {
    super::frame("", file, line)
}

fn finding(bytes: &[u8], line: u32) -> (Finding, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.py"), bytes).unwrap();
    let tree = tree(dir.path());
    let finding = read_site(&tree, &[frame("/w/a.py", line)], &item());
    (finding, tree.refused().into_iter().map(|refused| refused.reason).collect())
}

#[test]
fn encodings_and_broken_files() {
    let cases: &[(&str, &[u8], u32)] = &[
        ("CRLF", b"x = 1\r\nprint(loss.item())\r\n", 2),
        ("CR", b"x = 1\rprint(loss.item())\r", 2),
        ("tabs", b"def f(loss):\n\tif a:\n\t\tprint(loss.item())\n", 3),
        ("BOM", b"\xef\xbb\xbfprint(loss.item())\n", 1),
        ("latin-1", b"# -*- coding: latin-1 -*-\nname = 'Andr\xe9'\nprint(name, loss.item())\n", 3),
        ("UTF-8", "größe = 1\nprint('größe', loss.item())\n".as_bytes(), 2),
        ("no newline at the end", b"print(loss.item())", 1),
        ("form feed", b"x = 1\n\x0c\nprint(loss.item())\n", 3),
        ("error above", b"def f(:\n    pass\n\nprint(loss.item())\n", 4),
        ("error below", b"print(loss.item())\nclass (\n", 1),
        ("Python 2", b"print 'a', x\nexec 'y'\nlog.info(loss.item())\n", 3),
        ("unclosed string", b"print(loss.item())\nx = 'abc\n", 1),
        ("match statement", b"match a:\n    case 1:\n        print(loss.item())\n", 3),
        ("type syntax", b"type A[T] = list[T]\ndef f[T](x: T) -> T:\n    print(loss.item())\n", 3),
        ("except star", b"try:\n    pass\nexcept* ValueError:\n    print(loss.item())\n", 4),
    ];
    let long = format!("x = [{}]; print(loss.item())\n", "1, ".repeat(200_000));
    for (name, bytes, line) in cases.iter().copied().chain([("a long line", long.as_bytes(), 1)]) {
        let (found, _) = finding(bytes, line);
        assert!(matches!(&found, Finding::Read(reading) if reading.verdict.kind == Kind::Logging), "{name}");
    }
}

#[test]
fn lines_and_files_that_are_not_there() {
    for line in [0, 99] {
        assert!(matches!(finding(b"x = 1\n", line).0, Finding::Stale { .. }));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.py"), "x = 1\n").unwrap();
    let tree = tree(dir.path());
    assert_eq!(read_site(&tree, &[frame("/elsewhere/other.py", 99)], &item()), Finding::NoSource);
    assert_eq!(read_site(&tree, &[], &item()), Finding::NoSource);
}

#[test]
fn special_files_are_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("a.py");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let tree = tree(dir.path());
    assert_eq!(read_site(&tree, &[frame("/w/a.py", 1)], &item()), Finding::NoSource);
    assert_eq!(tree.refused()[0].reason, "is no regular file");
    let device = SourceTree::new(Vec::new()).and_recorded(Recorded::All);
    assert_eq!(read_site(&device, &[frame("/dev/zero", 1)], &item()), Finding::NoSource);
    assert_eq!(read_site(&device, &[frame("/tmp", 1)], &item()), Finding::NoSource);
    assert_eq!(read_site(&device, &[frame("", 1)], &item()), Finding::NoSource);
}

#[test]
fn links_out_of_the_root_are_refused() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret.py"), "print(x.item())\n").unwrap();
    fs::write(inside.path().join("real.py"), "print(x.item())\n").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.py"), inside.path().join("a.py")).unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("real.py", inside.path().join("alias.py")).unwrap();
    std::os::unix::fs::symlink("loop.py", inside.path().join("loop.py")).unwrap();
    let tree = tree(inside.path());
    for path in ["/w/a.py", "/w/sub/secret.py", "../secret.py", "/w/loop.py"] {
        assert_eq!(read_site(&tree, &[frame(path, 1)], &item()), Finding::NoSource, "{path}");
    }
    assert!(tree.refused().iter().all(|refused| refused.reason == "leads out of its source root"));
    assert!(matches!(read_site(&tree, &[frame("/w/alias.py", 1)], &item()), Finding::Read(_)));
}

#[test]
fn parents_in_a_recorded_path_stay_inside() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("a.py"), "print(x.item())\n").unwrap();
    let tree = SourceTree::new(vec![SourceRoot { old: Some("/w".into()), new: dir.path().join("src") }]);
    assert_eq!(read_site(&tree, &[frame("/w/../a.py", 1)], &item()), Finding::NoSource);
    assert_eq!(tree.refused().len(), 1);
}

#[test]
fn roots_replace_whole_components() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("pkg")).unwrap();
    fs::write(dir.path().join("pkg/a.py"), "print(x.item())\n").unwrap();
    fs::write(dir.path().join("a.py"), "y = x.cuda()\n").unwrap();
    let at = |old: Option<&str>, path: &str| {
        let tree =
            SourceTree::new(vec![SourceRoot { old: old.map(str::to_owned), new: dir.path().to_owned() }]);
        match read_site(&tree, &[frame(path, 1)], &item()) {
            Finding::Read(_) => "pkg",
            Finding::Stale { .. } => "top",
            Finding::NoSource => "none",
        }
    };
    // The longest suffix that exists wins.
    assert_eq!(at(None, "/home/me/pkg/a.py"), "pkg");
    assert_eq!(at(None, "/home/me/a.py"), "top");
    assert_eq!(at(None, r"C:\work\pkg\a.py"), "pkg");
    assert_eq!(at(Some("/home/me"), "/home/me/pkg/a.py"), "pkg");
    assert_eq!(at(Some("/home/me/"), "/home/me/a.py"), "top");
    assert_eq!(at(Some("/home/m"), "/home/me/a.py"), "none");
    assert_eq!(at(Some(r"C:\work"), r"C:\work\pkg\a.py"), "pkg");
    let recorded = dir.path().join("a.py").display().to_string();
    let tree = SourceTree::new(Vec::new());
    assert_eq!(read_site(&tree, &[frame(&recorded, 1)], &observed("cuda")), Finding::NoSource);
    assert!(matches!(
        read_site(&tree.and_recorded(Recorded::All), &[frame(&recorded, 1)], &observed("cuda")),
        Finding::NoSource
    ));
    let tree = SourceTree::new(Vec::new()).and_recorded(Recorded::All);
    assert!(matches!(read_site(&tree, &[frame(&recorded, 1)], &observed("cuda")), Finding::Read(_)));
}

#[test]
fn each_file_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.py");
    fs::write(&path, "print(x.item())\n").unwrap();
    let large = dir.path().join("large.py");
    fs::write(&large, vec![b'\n'; (4 << 20) + 1]).unwrap();
    let files = SourceFiles::default();
    let other = |number: usize| {
        let tree = tree(dir.path()).of(&files);
        let read = |path: &str| read_site(&tree, &[frame(path, 1)], &item());
        assert!(matches!(read("/w/a.py"), Finding::Read(_)), "{number}");
        assert_eq!(read("/w/large.py"), Finding::NoSource);
        assert_eq!(tree.refused().len(), 1, "each tree says what it was refused");
    };
    other(1);
    fs::write(&path, "").unwrap();
    fs::write(&large, "print(x.item())\n").unwrap();
    other(2);
}

#[test]
fn large_and_binary_files_are_refused() {
    let (found, reasons) = finding(&vec![b'\n'; (4 << 20) + 1], 1);
    assert_eq!((found, reasons[0].as_str()), (Finding::NoSource, "is larger than 4 MiB"));
    let (found, reasons) = finding(b"x = 1\0\n", 1);
    assert_eq!((found, reasons[0].as_str()), (Finding::NoSource, "binary: it holds NUL bytes"));
    let (found, _) = finding(&vec![b'\n'; 4 << 20], 1);
    assert!(matches!(found, Finding::Stale { .. }));
    let (found, _) = finding(b"", 1);
    assert!(matches!(found, Finding::Stale { .. }));
}

#[test]
fn bombs_end_soon() {
    const N: usize = 100_000;
    let bombs: Vec<String> = vec![
        format!("{}1{}\n", "(".repeat(N), ")".repeat(N)),
        "(".repeat(N),
        "[".repeat(N),
        "{1:".repeat(N),
        format!("x = {}1\n", "-".repeat(N)),
        format!("x = {}1\n", "not ".repeat(N)),
        format!("x = {}1\n", "await ".repeat(N)),
        format!("x = 1{}\n", "+1".repeat(N)),
        format!("x = 1{}\n", "**1".repeat(N)),
        format!("x = a{}\n", ".a".repeat(N)),
        format!("x = a{}\n", "()".repeat(N)),
        format!("x = a{}\n", "[0]".repeat(N)),
        format!("x = {}1\n", "lambda: ".repeat(N)),
        format!("x = {}1\n", "lambda a, b: ".repeat(N)),
        format!("x = {}1\n", "1 if 1 else ".repeat(N)),
        format!("x = {}\n", "f'{".repeat(N)),
        format!("x = {}1{}\n", "f'{".repeat(90), "}'".repeat(90)),
        format!("x = f'{}1{}'\n", "{a:".repeat(1000), "}".repeat(1000)),
        (0..N / 100).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect(),
        "if 1: ".repeat(N),
        "else: ".repeat(N),
        "@".repeat(N),
        format!("match x:\n case {}\n", "[".repeat(N)),
        format!("x = {}\n", "a < ".repeat(N)),
        format!("x = {}1\n", "a and b or ".repeat(N)),
        format!("x = {}'a'\n", "'a' ".repeat(N)),
        format!("{}x\n", "del ".repeat(N)),
        format!("{}1\n", "yield ".repeat(N)),
        format!("{}1\n", "x = ".repeat(N)),
        format!("{}1\n", "x := ".repeat(N)),
        format!("{}\n", "*".repeat(N)),
        format!("x: {}int\n", "a[".repeat(N)),
        format!("if 1:\n  pass\n{}", "elif 1:\n  pass\n".repeat(N / 2)),
        "x = '''".to_owned() + &"a\n".repeat(N),
        "\\\n".repeat(N),
        format!("x = [{}]\nprint(x.item())\n", "1,\n".repeat(N)),
        "print(x.item());".repeat(20_000),
    ];
    for bomb in &bombs {
        // Each is timed alone: a sum says more about the machine.
        let started = Instant::now();
        let (found, reasons) = finding(bomb.as_bytes(), 1);
        let shown: String = bomb.chars().take(30).collect();
        assert!(
            !matches!(found, Finding::NoSource) || reasons == ["nested too deeply"],
            "{shown}: {reasons:?}"
        );
        assert!(started.elapsed() < Duration::from_secs(60), "{shown}");
    }
}

/// After the parser recovers from an error, a tree may be deeper than its tokens suggest. The reader walks,
/// drops or refuses every mix of these words, in the 2 MiB stack of a test thread.
#[test]
fn no_mix_of_words_makes_a_tree_too_deep() {
    const WORDS: [&str; 14] = [
        "1, ",
        "yield 1, ",
        "await ",
        "- ",
        "a ** ",
        "lambda a, b: ",
        "(",
        "{1: ",
        "f'{a:{",
        "x if y else ",
        "a := ",
        "if a: ",
        "for a in b, ",
        "\n",
    ];
    const COUNT: usize = 2000;
    for first in WORDS {
        for second in WORDS {
            let source = format!("x = {}\n", [first, second].concat().repeat(COUNT));
            let (found, reasons) = finding(source.as_bytes(), 1);
            let why = format!("{first:?} {second:?}: {reasons:?}");
            assert!(!matches!(found, Finding::NoSource) || reasons == ["nested too deeply"], "{why}");
        }
    }
}

/// The deepest trees that are let through must fit the 2 MiB stack of a test thread.
#[test]
fn the_deepest_trees_let_through_are_walked() {
    for (open, core, close) in [
        ("", "x.item()", "+1"),
        ("-", "x.item()", ""),
        ("not ", "x.item()", ""),
        ("lambda: ", "x.item()", ""),
        ("1 if 1 else ", "x.item()", ""),
        ("float(", "x.item()", ")"),
        ("", "x.item()", ".a"),
        ("", "x.item()", "()"),
        ("", "x.item()", "[0]"),
        ("[", "x.item()", "]"),
        ("f'{", "x.item()", "}'"),
        ("{1: ", "x.item()", "}"),
        ("[i for i in ", "x.item()", "]"),
    ] {
        let mut deepest = 0;
        for depth in [50, 95, 100, 130, 195, 199, 250, 300, 390] {
            let source = format!("y = {}{core}{}\nprint(y)\n", open.repeat(depth), close.repeat(depth));
            let (found, _) = finding(source.as_bytes(), 1);
            if found != Finding::NoSource {
                deepest = depth;
            }
        }
        assert!(deepest >= 50, "{open}{core}{close}: {deepest}");
    }
    let mut nested: String = (0..99).map(|depth| format!("{}if x.item():\n", " ".repeat(depth))).collect();
    nested += &format!("{}print(x.item())\n", " ".repeat(99));
    let (found, _) = finding(nested.as_bytes(), 100);
    assert!(matches!(found, Finding::Read(_)), "{found:?}");
}

/// Names that refer to each other must not be followed for ever, nor in exponential time.
#[test]
fn tangles_of_names_end_soon() {
    let started = Instant::now();
    let mut source = String::from("def f(x):\n    v0 = x.item()\n");
    for i in 0..2000 {
        source += &format!("    v{} = v{i} + v{}\n", i + 1, i / 2);
    }
    source += "    print(v2000)\n";
    let (found, _) = finding(source.as_bytes(), 2);
    assert!(matches!(found, Finding::Read(_)));
    let mut source = String::from("def g0(a):\n    return g1(a)\n");
    for i in 1..300 {
        source += &format!("def g{i}(a):\n    return g{}(a) + g{}(a)\n", (i + 1) % 300, (i * 7) % 300);
    }
    source += "def f(x):\n    return g0(x.item())\n";
    let lines = source.lines().count() as u32;
    let (found, _) = finding(source.as_bytes(), lines);
    assert!(matches!(found, Finding::Read(_)));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// A body of thousands of statements is judged like a short one, in linear time: cubic work would not end.
#[test]
fn long_bodies_are_judged_as_short_ones() {
    const USE: &str = "def f(x):\n    x = x.cuda()\n    y = x.item()\n    for i in data:\n        print(y)\n";
    let judged = |statement: &str, indented: &str, count: usize| {
        let body = format!("{indented}{statement}\n").repeat(count);
        format!("{:?}", finding(format!("{USE}{body}").as_bytes(), 3))
    };
    for statement in ["x = x + 1", "y = 1", "y = 1 if y else 2", "open(x)"] {
        for indented in ["    ", "        "] {
            let [short, long] = [3, 2000].map(|count| judged(statement, indented, count));
            assert_eq!(short, long, "{indented}{statement}");
        }
    }
    // A value that is used in thousands of places is followed to some of them.
    let said = judged("print(y)", "    ", 2000);
    assert!(said.contains("too many places to follow"), "{said}");
}

#[test]
fn tangles_of_objects_end_soon() {
    let started = Instant::now();
    let mut source =
        String::from("class C(D):\n    def f(self, x):\n        self.a = x.item()\nclass D(C):\n    pass\n");
    for i in 0..1500 {
        let (next, other) = (i + 1, i * 7 % 1500);
        source += &format!(
            "def g{i}(o):\n    o.b{i} = o.b{next}.b{other}\n    o.b{i} = o.b{other}\n    o.b{i}.a += o.b{next}.a\n"
        );
    }
    for i in 0..500 {
        source += &format!(
            "class E{i}(C):\n    def m{i}(self):\n        return self.a\n    def n(self): return self.m{i}()\n"
        );
    }
    let (found, _) = finding(source.as_bytes(), 3);
    assert!(matches!(found, Finding::Read(_)));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
