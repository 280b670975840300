//! `sync-report try`: a fix measured, not predicted.

use super::args::TryArgs;
use super::{folders, input, options, output};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use sync_report::analysis::Options;
use sync_report::analysis::pricing::Scenario;
use sync_report::capture::{Heard, typed};
use sync_report::formats::Setting;
use sync_report::model::Report;
use sync_report::model::patch::Patch;
use sync_report::model::trial::{TRIAL_VERSION, Trial, TrialEdit, TrialPrediction, TrialUnit};
use sync_report::patch::{self, EditChoice};
use sync_report::render::patch as diff;
use sync_report::report as reports;
use sync_report::report::scenario::no_site;
use sync_report::repository::{Repository, checkout_of};
use sync_report::trial::tree::Tree;
use sync_report::trial::{self, Request, Tried};
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::{Change, Class};
use sync_report::whole;

/// Tries the edits.
///
/// # Errors
/// One sentence where there is nothing to try, or the program fails as it is.
pub fn run(args: TryArgs) -> Result<ExitCode> {
    super::threads::reserve()?;
    super::own::read()?;
    let here = std::env::current_dir().context("the working directory is gone")?;
    let folder = Path::new(&args.output).parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(missing) = folder.filter(|folder| !folder.is_dir()) {
        bail!("{}: there is no such folder", missing.display());
    }
    let root = checkout_of(&here).unwrap_or(&here).to_owned();
    let heard = Heard::listen()?;
    let trees = [Tree::copy(&root, &heard)?, Tree::copy(&root, &heard)?];
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
    let tried =
        trial::run(&request, [&trees[0], &trees[1]], &heard, &|text| output::tell(&args.shared, text))?;
    let diff = edits.diff.take();
    let trial = result(&args, &trees, edits, tried);
    let other =
        trial.failed.is_some() || trial.printed.as_ref().is_some_and(|printed| printed.differs.is_some());
    output::print(args.format, &trial, Setting::default(), Path::new("-"), &args.shared)?;
    output::save(&trial, Path::new(&format!("{}.json", args.output)))?;
    if let Some(diff) = &diff {
        whole::write(Path::new(&format!("{}.patch", args.output)), diff)?;
    }
    Ok(ExitCode::from(u8::from(other)))
}

/// Puts the measured saving beside the predicted one.
fn result(args: &TryArgs, trees: &[Tree; 2], mut edits: Edits, tried: Tried) -> Trial {
    for edit in edits.list.iter_mut().filter(|edit| edit.left_out.is_none()) {
        let file = Path::new(&edit.file);
        let is_python = file.extension() == Some(OsStr::new("py")) && trees[1].path(file).is_file();
        let loaded = tried.loaded.as_ref().filter(|_| is_python);
        edit.loaded = loaded.map(|loaded| loaded.contains(file) || is_program(args, &trees[1], file));
    }
    let mut notes: Vec<String> = trees[0]
        .shared
        .iter()
        .map(|path| format!("{} is linked, not copied: both programs read and write yours", path.display()))
        .collect();
    if edits.list.iter().any(|edit| edit.loaded == Some(false)) {
        notes.push("an installed package runs as it is installed, and not from the copies".to_owned());
    }
    let all = edits.list.iter().all(|edit| edit.left_out.is_some() || edit.loaded == Some(true));
    let comparable = tried.unit == TrialUnit::Iteration && tried.failed.is_none() && all;
    let agrees =
        edits.predicted.zip(tried.saved).filter(|_| comparable).map(|(predicted, [_, low, high])| {
            let of = |ns: i64, whole: i64| ns as f64 / whole.max(1) as f64;
            of(low, tried.unedited) <= of(predicted.high_ns, predicted.ns)
                && of(predicted.low_ns, predicted.ns) <= of(high, tried.unedited)
        });
    Trial {
        trial_version: TRIAL_VERSION,
        // In a pull request it must show no secret.
        program: typed(&args.program, &[]).trim_end().to_owned(),
        unit: tried.unit,
        timed: tried.timed,
        runs: tried.runs,
        unedited_ns: tried.unedited,
        saved_ns: tried.saved.map(|saved| saved[0]),
        low_ns: tried.saved.map(|saved| saved[1]),
        high_ns: tried.saved.map(|saved| saved[2]),
        resolved: tried.resolved,
        predicted: edits.predicted,
        agrees,
        printed: tried.printed,
        failed: tried.failed,
        edits: edits.list,
        notes,
    }
}

/// Whether a file is the program itself, which is imported under no name.
fn is_program(args: &TryArgs, tree: &Tree, file: &Path) -> bool {
    let path = tree.path(file);
    args.program.iter().any(|word| tree.inside(Path::new(word)).is_some_and(|inside| inside == path))
}

struct Edits {
    list: Vec<TrialEdit>,
    predicted: Option<TrialPrediction>,
    /// The edits as `git apply` takes them; `None` where the user has them.
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
    let listed = text(git(&["apply".as_ref(), "--numstat".as_ref(), file.as_os_str()])?);
    git(&["apply".as_ref(), file.as_os_str()])?;
    let files = listed.lines().filter_map(|line| line.splitn(3, '\t').nth(2).map(str::to_owned));
    Ok(Edits { list: files.map(of_file).collect(), predicted: None, diff: None })
}

/// The files of a revision that the working tree has changed, put into the other tree.
fn against(revision: &str, root: &Path, tree: &Tree) -> Result<Edits> {
    let git = |words: &[&str]| git(root, words);
    let commit =
        git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("{revision}: no revision"))?;
    let commit = text(commit);
    let commit = commit.trim();
    // `:mode mode hash hash status`, then the name.
    let changed = text(git(&["diff", "--raw", "-z", "--no-renames", commit, "--"])?);
    let words: Vec<&str> = changed.split('\0').filter(|word| !word.is_empty()).collect();
    let mut list = Vec::new();
    for entry in words.chunks_exact(2) {
        let (mode, file) = (entry[0].trim_start_matches(':').split(' ').next().unwrap_or_default(), entry[1]);
        match mode {
            "000000" => tree.write(Path::new(file), None)?,
            "100644" | "100755" => {
                tree.write(Path::new(file), Some(&git(&["show", &format!("{commit}:{file}")])?))?;
                let mode = if mode == "100755" { 0o755 } else { 0o644 };
                std::fs::set_permissions(tree.path(Path::new(file)), std::fs::Permissions::from_mode(mode))?;
            }
            _ => bail!("{file}: no plain file in {revision}"),
        }
        list.push(of_file(file.to_owned()));
    }
    if list.is_empty() {
        bail!("the working tree is as {revision}: there is no edit to try");
    }
    Ok(Edits { list, predicted: None, diff: None })
}

fn of_file(file: String) -> TrialEdit {
    TrialEdit { site: String::new(), file, line: 0, left_out: None, loaded: None }
}

/// Runs git: its output.
///
/// # Errors
/// The first line that git says of its failure.
fn git(folder: &Path, words: &[impl AsRef<OsStr>]) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    // A folder below the user's own checkout is none of it.
    command.arg("-C").arg(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    let done = command.args(words).stdin(Stdio::null()).output().context("git cannot be started")?;
    if !done.status.success() {
        bail!("git: {}", text(done.stderr).lines().next().unwrap_or("it failed"));
    }
    Ok(done.stdout)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
