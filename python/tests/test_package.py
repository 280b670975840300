"""The package: what it finds, gives back and refuses."""
import ast
import re
import sqlite3
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import polars
import pytest
import sync_report
from sync_report import _capture

SAMPLE = "sample-profiles/train_mlp_shapes.sqlite"


def test_one_version_for_all():
    cargo = next(line for line in Path("Cargo.toml").read_text().splitlines() if line.startswith("version"))
    version = cargo.split('"')[1]
    assert sync_report.run(["--version"]).stdout.split()[1] == version
    assert sync_report.report(SAMPLE).tool.version == version
    assert 'dynamic = ["version"]' in Path("pyproject.toml").read_text()
    assert f"## {version}" in Path("CHANGELOG.md").read_text()


def test_no_text_installs_what_is_not_published():
    """Such a command fails. docs/release.md says when this test goes."""
    command = re.compile(r"\b(uvx|(pipx?|uv|cargo|docker|podman) [^`\n#]*\b(b?install|run|add|pull)\b[^`\n#]*)[ '\"/]sync-report\b(?!-)")
    texts = [path for folder in ("docs", "src", "python/sync_report", "scripts") for path in Path(folder).rglob("*.*")]
    texts = [path for path in [*Path().glob("*.md"), *texts] if path.suffix in {".md", ".rs", ".py", ".sh", ".json"}]
    assert len(texts) > 200
    found = [(str(path), hit[0]) for path in texts if path != Path("docs/release.md") for hit in command.finditer(path.read_text())]
    assert found == []


def test_a_report_has_what_the_program_printed():
    report = sync_report.report(SAMPLE, options=["--top", "2"])
    assert report.json["sites_omitted"] == report.sites_omitted == 5
    site, printed = report.sites[0], report.json["sites"][0]
    assert (site.class_, site.blocked_ns) == (printed["class"], printed["blocked_ns"])
    assert site.frames[0].line == printed["frames"][0]["line"]
    assert site.recoverable.high_ns == printed["recoverable"]["high_ns"]
    assert report.totals.by_class.false.waits == printed_totals(report)["false"]["waits"]
    with pytest.raises(KeyError, match="no site .S9.; did you mean .S"):
        report.site("S9")


def printed_totals(report):
    return report.json["totals"]["by_class"]


def test_fields_of_another_version_are_none_or_left_out(monkeypatch, tmp_path):
    """A program that knows one field more, and one less."""
    stand_in = tmp_path / "sync-report"
    stand_in.write_text(
        f"#!{sys.executable}\nimport json, subprocess, sys\n"
        f"tree = json.loads(subprocess.run([{sync_report.binary()!r}, *sys.argv[1:]], capture_output=True).stdout)\n"
        "tree['hosts'] = ['a']\ndel tree['sites'][0]['nvtx']\nprint(json.dumps(tree))\n"
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("SYNC_REPORT_BIN", str(stand_in))
    report = sync_report.report(SAMPLE)
    assert report.json["hosts"] == ["a"] and report.sites[0].nvtx is None and report.sites[1].nvtx is not None


def test_tables_and_sites_are_of_the_same_waits():
    report = sync_report.report(SAMPLE, source_root="sample-profiles/programs")
    waits = report.tables.polars("waits")
    of_site = waits.group_by("site").agg(polars.len(), polars.col("blocked_ns").sum())
    assert {row[0]: row[1:] for row in of_site.iter_rows()} == {s.id: (s.waits, s.blocked_ns) for s in report.sites}
    assert report.tables.pandas("sites")["id"].tolist() == [site.id for site in report.sites]
    with pytest.raises(ValueError, match="there is no table"):
        report.tables.polars("sties")


def test_a_damaged_export_is_reported_with_a_warning(tmp_path):
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(Path(SAMPLE).read_bytes())
    with sqlite3.connect(damaged) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 9000000000000000000 WHERE rowid = 100")
    with pytest.warns(sync_report.DamagedExportWarning):
        report = sync_report.report(damaged)
    assert report.totals.waits > 100
    assert report.tables.polars("waits").height == report.totals.waits


def test_bad_input_is_an_error_with_a_sentence(tmp_path):
    text = tmp_path / "text.sqlite"
    text.write_text("no database")
    for call in (sync_report.report, sync_report.open_html):
        with pytest.raises(sync_report.SyncReportError, match="is no SQLite database") as error:
            call(text)
        assert error.value.code == 2
    with pytest.raises(sync_report.SyncReportError, match="--nonsense"):
        sync_report.report(SAMPLE, options=["--nonsense"])


def test_a_call_that_fails_gives_no_page_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    old = tmp_path / "old.html"
    old.write_text("the page of yesterday")
    bad = tmp_path / "empty.sqlite"
    bad.write_bytes(b"")
    program = sync_report.binary()
    for error, named in ((sync_report.SyncReportError, program), (OSError, str(tmp_path / "no-such-program"))):
        monkeypatch.setenv("SYNC_REPORT_BIN", named)
        for output in (None, old):
            with pytest.raises(error):
                sync_report.open_html(bad, output=output)
    assert old.read_text() == "the page of yesterday"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_name_that_looks_like_an_option_is_a_name(tmp_path, monkeypatch):
    tmp_path.joinpath("-q.sqlite").write_bytes(Path(SAMPLE).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert sync_report.report("-q.sqlite").totals.waits == 212


def test_a_page_is_kept_where_asked_and_shown_in_a_frame(tmp_path):
    page = sync_report.open_html(SAMPLE, output=tmp_path / "page.html", height=400)
    assert page.path == tmp_path / "page.html"
    shown = page._repr_html_()
    assert shown.count("<") == 2 and 'sandbox="allow-scripts"' in shown and "height:400px" in shown


def test_a_bracket_skips_the_warm_up_and_marks_steps(surroundings):
    """
    step       0   1   2   3   4
    recorded           [-------]
    """
    with sync_report.capture(skip=2, steps=2) as steps:
        for _ in steps(range(5)):
            surroundings.said.append("work")
    said = surroundings.said
    assert said[:4] == ["push step 0", "work", "pop", "push step 1"]
    assert said[said.index("start") : said.index("stop") + 1] == [
        "start", "push step 2", "work", "pop", "push step 3", "work", "pop", "synchronize", "stop",
    ]  # fmt: skip
    assert said[-3:] == ["push step 4", "work", "pop"] and said.count("start") == said.count("stop") == 1


def test_a_bracket_ends_where_the_loop_breaks_or_raises(surroundings):
    with sync_report.capture(name="batch") as steps:
        for _ in steps(range(5)):
            break
    assert surroundings.said == ["start", "push batch 0", "pop", "synchronize", "stop"]
    surroundings.said.clear()
    with pytest.raises(RuntimeError), sync_report.capture() as steps, steps.step():
        raise RuntimeError
    assert surroundings.said == ["start", "push step 0", "pop", "synchronize", "stop"]


def test_steps_of_a_librarys_loop_begin_and_end_once(surroundings):
    with sync_report.capture() as steps:
        steps.end()
        steps.begin()
        steps.begin()
        steps.end()
        steps.end()
        steps.begin()
    assert surroundings.said == ["start", "push step 0", "pop", "push step 1", "pop", "synchronize", "stop"]
    assert steps.count == 2


def test_a_broken_gpu_does_not_hide_the_exception(surroundings):
    def broken():
        surroundings.said.append("synchronize")
        raise RuntimeError("CUDA error: device-side assert triggered")

    surroundings.synchronize = broken
    with pytest.raises(KeyError) as error, sync_report.capture() as steps, steps.step():
        raise KeyError
    assert error.value.__context__ is None
    assert surroundings.said == ["start", "push step 0", "pop", "synchronize", "stop"]


@pytest.mark.parametrize("available", [True, False])
def test_the_gpu_is_that_of_torch(monkeypatch, available):
    monkeypatch.undo()
    cuda = types.SimpleNamespace(is_available=lambda: available)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert _capture._gpu() is (cuda if available else None)


def test_without_a_gpu_a_bracket_does_nothing(surroundings):
    surroundings.available = False
    with sync_report.capture() as steps:
        assert list(steps("ab")) == ["a", "b"]
    assert surroundings.said == [] and steps.count == 2


def test_each_public_function_shows_an_example():
    """Only nsys can run the recipe. The classes of a report are made from its schema. A trainer calls the hooks."""

    def bare(within):
        for node in within.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith(("_", "on_")):
                yield from [] if ">>>" in (ast.get_docstring(node) or "") else [node.name]
                yield from bare(node) if isinstance(node, ast.ClassDef) else []

    files = set(Path("python/sync_report").glob("*.py")) - {Path("python/sync_report", made) for made in ("sync_report.py", "model.py")}
    assert {path.name: list(bare(ast.parse(path.read_text()))) for path in files} == {path.name: [] for path in files}


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "sync_report", "explain", "A03"]
    assert subprocess.run(command, cwd="python", capture_output=True, text=True).stdout.startswith("A03")
