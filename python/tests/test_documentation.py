"""The Python of the documentation passes `mypy --strict`. The blocks of a page are one module, as cells of a notebook are."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.S | re.M)
#: Names that examples use without giving them a value.
ASSUMED = "from typing import Any; after: Any; before: Any; batch: Any; loader: Any; model: Any; step: Any; train: Any"


def module(page: str) -> str:
    """The blocks, each on its lines of the page. The first line of a page is its title."""
    lines = [""] * len(page.splitlines())
    lines[0] = ASSUMED
    for block in BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(2))
        for index, line in enumerate(block[2].splitlines(), first):
            lines[index] = line.removeprefix(block[1])
    return "\n".join(lines) + "\n"


def complaints(pages: dict, folder: Path) -> str:
    files = []
    for name, page in pages.items():
        files.append(folder / f"{name}.py")
        files[-1].write_text(module(page))
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--strict", "--no-error-summary", *files]
    ran = subprocess.run(command, capture_output=True, text=True, env={"MYPYPATH": "python"})
    return ran.stderr + ran.stdout.replace(f"{folder}/", "").replace(".py:", ".md:")


def test_examples_are_typed(tmp_path):
    pages = {path.stem: path.read_text() for path in [Path("README.md"), *Path("docs").glob("*.md")]}
    pages = {name: page for name, page in pages.items() if BLOCK.search(page)}
    assert {"SKILL", "python"} <= set(pages)
    assert complaints(pages, tmp_path) == ""


@pytest.mark.parametrize("code", ["sync_report.reprot", "sync_report.report('a').sites[0].clas", "undeclared"])
def test_an_example_with_a_mistake_is_found_on_its_line(tmp_path, code):
    page = f"# Title\n\n1. A list.\n\n   ```python\n   import sync_report\n   {code}\n   ```\n"
    assert complaints({"page": page}, tmp_path).startswith("page.md:7: error: ")
