"""A report of each capture of the repository: every field, every site, both tables."""
import dataclasses
import re
from pathlib import Path

import pytest
import sync_report

FOLDER = Path("sample-profiles")
#: Each capture, and two ranks as a folder and as a list.
SAMPLES = [*sorted(FOLDER.glob("**/*.sqlite")), FOLDER / "ranks", sorted(FOLDER.glob("ranks/*.sqlite"))]


def name(sample):
    return "list" if isinstance(sample, list) else str(sample.relative_to(FOLDER))


@pytest.fixture(scope="module", params=SAMPLES, ids=name)
def report(request):
    return sync_report.report(request.param, source_root=FOLDER / "programs")


def differences(value, printed, path="report"):
    """Paths of the fields that are not as the program printed them."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.name not in ("json", "arguments")]
        return [
            found
            for field in fields
            for found in differences(getattr(value, field), printed.get(field.rstrip("_")), f"{path}.{field}")
        ]
    if isinstance(value, list):
        same = isinstance(printed, list) and len(value) == len(printed)
        pairs = enumerate(zip(value, printed)) if same else []
        return [found for i, (a, b) in pairs for found in differences(a, b, f"{path}[{i}]")] if same else [path]
    return [] if value == printed and type(value) is type(printed) else [path]


def test_every_field_is_as_printed(report):
    assert differences(report, report.json) == []
    assert report.totals.waits == sum(site.waits for site in report.sites) > 0


def test_every_site_has_its_names(report):
    assert report.sites_omitted == 0
    for site in report.sites:
        assert report.site(site.id) is site
        assert report.site(site.key).key == site.key
        if site.user_frame is not None:
            line = f"{site.user_frame.file}:{site.user_frame.line}"
            found = report.site(line).user_frame
            assert f"{found.file}:{found.line}" == line


def test_it_shows_itself_in_a_line_and_in_a_notebook(report):
    assert re.fullmatch(r"<Report: \d+ waits at \d+ sites, \d+ of them avoidable>", repr(report))
    shown = report._repr_html_()
    assert shown.count("<tr>") == 1 + len(report.sites) and shown.count("<td>") == 5 * len(report.sites)
    assert re.sub(r"</?(p|table|tr|th|td)>", "", shown).count("<") == 0


def test_both_tables_load_in_each_library(report):
    rows = {"waits": report.totals.waits, "sites": len(report.sites)}
    for table, count in rows.items():
        frame = report.tables.polars(table)
        pandas = report.tables.pandas(table)
        assert frame.height == len(pandas) == report.tables.arrow(table).num_rows == count
        assert list(pandas.columns) == frame.columns
        for column in ("blocked_ns", "drain_ns"):
            assert frame[column].sum() == pandas[column].sum()
    assert report.tables.polars("waits")["blocked_ns"].sum() == report.totals.blocked_ns
