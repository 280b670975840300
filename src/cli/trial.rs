//! `sync-report try`: a fix measured, not predicted.

use super::args::TryArgs;
use super::{folders, input, options, output};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use sync_report::analysis::Options;
use sync_report::analysis::pricing::Scenario;
use sync_report::formats::Setting;
use sync_report::model::Report;
use sync_report::model::patch::Patch;
use sync_report::model::trial::{TRIAL_VERSION, Trial, TrialEdit, TrialPrediction};
use sync_report::patch::{self, EditChoice};
use sync_report::render::patch as diff;
use sync_report::report as reports;
use sync_report::report::scenario::no_site;
use sync_report::repository::{Repository, checkout_of};
use sync_report::trial::tree::Tree;
use sync_report::trial::{self, Request};
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::{Change, Class};
use sync_report::whole;

/// Tries the edits.
///
/// # Errors
/// One sentence where there is nothing to try, or the program fails as it is.
pub fn run(args: TryArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("the working directory is gone")?;
    let root = checkout_of(&here).unwrap_or(&here).to_owned();
    let trees = [Tree::copy(&root)?, Tree::copy(&root)?];
    let mut edits = match (&args.patch, &args.against) {
        (Some(file), _) => patched(file, &trees[1])?,
        (_, Some(revision)) => against(revision, &root, &trees[0])?,
        _ => advised(&args, &root, &trees[1])?,
    };
    if !edits.list.iter().any(|edit| edit.left_out.is_none()) {
        let reasons =
            edits.list.iter().filter_map(|edit| Some(format!("{}: {}", edit.site, edit.left_out.as_ref()?)));
        bail!("there is no edit to try; {}", reasons.collect::<Vec<_>>().join("; "));
    }
    let request = Request {
        program: args.program.clone(),
        calls: args.calls.clone(),
        metric: args.metric.clone(),
        time: Duration::from_secs(args.seconds),
    };
    let tried = trial::run(&request, [&trees[0], &trees[1]], &|text| say(&args, text))?;
    for edit in edits.list.iter_mut().filter(|edit| edit.left_out.is_none()) {
        edit.loaded = Some(tried.loaded.is_empty() || loads(&tried.loaded, &args, Path::new(&edit.file)));
    }
    let mut notes: Vec<String> = trees[0]
        .shared
        .iter()
        .map(|path| {
            format!("{} is not copied: both programs, and what they write there, share yours", path.display())
        })
        .collect();
    if tried.runs.len() < 6 && tried.failed.is_none() {
        notes.push(format!(
            "{} s were enough for {} pairs of runs; give more with --seconds",
            args.seconds,
            tried.runs.len() / 2
        ));
    }
    let measured = tried.failed.is_none();
    let agrees = edits.predicted.filter(|_| measured).map(|predicted| {
        let of = |ns: i64, whole: i64| ns as f64 / whole.max(1) as f64;
        of(tried.low, tried.unedited) <= of(predicted.high_ns, predicted.ns)
            && of(predicted.low_ns, predicted.ns) <= of(tried.high, tried.unedited)
    });
    let words: Vec<String> =
        args.program.iter().map(|word| sync_report::text::shell_quote(&word.to_string_lossy())).collect();
    let trial = Trial {
        trial_version: TRIAL_VERSION,
        program: words.join(" "),
        unit: tried.unit,
        timed: tried.timed,
        runs: tried.runs,
        unedited_ns: tried.unedited,
        saved_ns: tried.saved,
        low_ns: tried.low,
        high_ns: tried.high,
        resolved: tried.resolved && measured,
        predicted: edits.predicted,
        agrees,
        printed: tried.printed,
        failed: tried.failed,
        edits: edits.list,
        notes,
    };
    output::save(&trial, Path::new(&format!("{}.json", args.output)))?;
    if let Some(diff) = &edits.diff {
        whole::write(Path::new(&format!("{}.patch", args.output)), diff)?;
    }
    let other =
        trial.failed.is_some() || trial.printed.as_ref().is_some_and(|printed| printed.differs.is_some());
    output::print(args.format, &trial, Setting::default(), Path::new("-"), &args.shared)?;
    Ok(ExitCode::from(u8::from(other)))
}

/// Whether the edited runs loaded a file: its module, or it is the program itself.
fn loads(loaded: &std::collections::BTreeSet<PathBuf>, args: &TryArgs, file: &Path) -> bool {
    let is_program = |word: &std::ffi::OsString| Path::new(word).file_name() == file.file_name();
    loaded.contains(file) || args.program.iter().any(is_program)
}

struct Edits {
    list: Vec<TrialEdit>,
    predicted: Option<TrialPrediction>,
    /// As `git apply` takes it; `None` where the user has it.
    diff: Option<Vec<u8>>,
}

/// The advised edits of a capture, made in a tree.
fn advised(args: &TryArgs, root: &Path, tree: &Tree) -> Result<Edits> {
    if !args.profile.exists() {
        bail!(
            "{}: no such capture; make one with `sync-report run -- PROGRAM`, or name another with --profile",
            args.profile.display()
        );
    }
    let exports = input::exports(&folders::exports(std::slice::from_ref(&args.profile))?, &args.shared)?;
    let roots = args.code.sources.roots().into_iter().chain([SourceRoot { old: None, new: root.to_owned() }]);
    let mut options = exports.named(Options {
        without_spread: true,
        source_roots: roots.collect(),
        recorded: args.code.sources.recorded(),
        rules: args.code.rules(),
        ..options::plain(&args.shared)
    });
    let report = reports::run(&exports.paths, &options)?;
    if let Some(id) = args.site.iter().find(|id| report.site(id).is_none()) {
        return Err(no_site(&report, id).into());
    }
    let wanted =
        EditChoice { sites: args.site.clone(), with_unsafe: args.unsafe_fixes, roots: vec![root.to_owned()] };
    let patch = patch::plan(&report, &options.sources(), &wanted);
    let repository = Repository::new(root.to_owned(), args.code.sources.roots());
    for file in &patch.files {
        let relative = file.path.canonicalize()?;
        let relative = relative.strip_prefix(root.canonicalize()?).map(Path::to_owned)?;
        tree.write(&relative, Some(file.after.as_bytes()))?;
    }
    let name = |recorded: &str| repository.path(recorded).unwrap_or_else(|| recorded.to_owned());
    let list = patch.sites.iter().map(|answer| TrialEdit {
        site: answer.site.clone(),
        file: name(&answer.file),
        line: answer.line,
        left_out: (!answer.made).then(|| match (answer.is_unsafe, answer.reason) {
            (true, _) => "only with --unsafe-fixes".to_owned(),
            (_, reason) => reason.map_or("there is none", |reason| reason.help()).to_owned(),
        }),
        loaded: None,
    });
    let list = list.collect();
    let mut text = Vec::new();
    diff::render(&patch, &|recorded| repository.path(recorded), &mut text)?;
    options.scenario = scenario(&report, &patch);
    options.progress = None;
    let priced = reports::run(&exports.paths, &options)?;
    let predicted = priced.totals.iteration.map(|one| TrialPrediction {
        ns: one.ns,
        saved_ns: one.saved_ns,
        low_ns: one.low_ns,
        high_ns: one.high_ns,
    });
    Ok(Edits { list, predicted, diff: Some(text) })
}

/// The edited sites fixed, all others as they are.
fn scenario(report: &Report, patch: &Patch) -> Scenario {
    let made = |id: &str| patch.sites.iter().any(|answer| answer.site == id && answer.made);
    let fixes = report.sites.iter().filter_map(|site| match (made(&site.id), site.class) {
        (true, Class::False) => None,
        (true, _) => Some((site.key.clone(), site.recoverable.as_ref()?.change)),
        (false, Class::False) => Some((site.key.clone(), Change::Keep)),
        _ => None,
    });
    Scenario { fixes: fixes.collect(), ..Scenario::default() }
}

/// A patch, applied to a tree.
fn patched(file: &Path, tree: &Tree) -> Result<Edits> {
    let file = file.canonicalize().with_context(|| format!("{}: cannot be read", file.display()))?;
    let git = |words: &[&OsStr]| git(tree.root(), words);
    let listed = git(&["apply".as_ref(), "--numstat".as_ref(), file.as_os_str()])?;
    git(&["apply".as_ref(), file.as_os_str()])?;
    let files = listed.lines().filter_map(|line| line.splitn(3, '\t').nth(2).map(str::to_owned));
    Ok(Edits { list: files.map(of_file).collect(), predicted: None, diff: None })
}

/// The files of a revision that the working tree has changed, put into the other tree.
fn against(revision: &str, root: &Path, tree: &Tree) -> Result<Edits> {
    if revision.starts_with('-') {
        bail!("{revision}: no revision");
    }
    let changed = git(
        root,
        &["diff".as_ref(), "--name-only".as_ref(), "--no-renames".as_ref(), revision.as_ref(), "--".as_ref()],
    )?;
    for file in changed.lines() {
        let shown =
            Command::new("git").arg("-C").arg(root).args(["show", &format!("{revision}:{file}")]).output()?;
        let text = shown.status.success().then_some(&shown.stdout[..]);
        tree.write(Path::new(file), text)?;
    }
    Ok(Edits { list: changed.lines().map(str::to_owned).map(of_file).collect(), predicted: None, diff: None })
}

fn of_file(file: String) -> TrialEdit {
    TrialEdit { site: String::new(), file, line: 0, left_out: None, loaded: None }
}

/// What git prints; its last line where it fails.
fn git(folder: &Path, words: &[&OsStr]) -> Result<String> {
    let mut command = Command::new("git");
    // A folder below the user's own checkout is none of it.
    command.arg("-C").arg(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    let done = command.args(words).stdin(Stdio::null()).output().context("git cannot be started")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        bail!("git: {}", said.lines().next().unwrap_or("it failed"));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn say(args: &TryArgs, text: &str) {
    if !args.shared.quiet {
        let _ = writeln!(std::io::stderr(), "sync-report: {}", sync_report::text::escape_terminal(text));
    }
}
