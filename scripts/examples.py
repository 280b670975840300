#!/usr/bin/env python3
"""Runs the examples of the documentation, and compares what they print with what stands there. --write brings them up to date.

An example is a fenced block whose first line is `$ sync-report ...` (a line that ends in a backslash goes on in the next): the rest is what it
prints; a last line `…` stands for all that follows. Blocks of commands alone are not run. Comments before a block:

  <!-- width 80 -->           columns of the terminal, 110 without
  <!-- file NAME -->          the block is that file; later examples of the page find it where they run
  <!-- made SCRIPT ARG... --> that script of scripts/ is run before

Where a command ends in `2>&1`, what it prints on stderr comes after what it prints on stdout.

Links of the files outside of docs/, which MkDocs does not see, must name files that are there.
"""
from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"]
WIDTH = "110"
BLOCK = re.compile(r"(?:<!-- (?P<what>width|file|made) (?P<value>.+?) -->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.S | re.M)


def program() -> str:
    return os.environ.get("SYNC_REPORT_BIN", str(ROOT / "target/debug/sync-report"))


def printed(command: str, width: str, folder: Path) -> list[str]:
    """What the command prints: on stdout, or where that is empty on stderr."""
    words = shlex.split(command)
    assert words[0] == "sync-report", command
    both = words[-1] == "2>&1"
    words = words[:-1] if both else words
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("CI", "GITHUB_"))}
    environment["NO_COLOR"] = "1"
    command = [program(), *words[1:], "--width", width]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    text = ran.stdout + ran.stderr if both else ran.stdout or ran.stderr
    return text.rstrip("\n").split("\n")


def brought_up_to_date(body: str, width: str, folder: Path) -> str:
    """The block with what its command prints."""
    lines = body.rstrip("\n").split("\n")
    ends = next(index for index, line in enumerate(lines) if not line.endswith("\\")) + 1
    shown = lines[ends:]
    if not shown or any(line.startswith("$ ") for line in shown):
        return body
    command = " ".join(line.rstrip("\\").strip() for line in lines[:ends])[2:]
    new = printed(command, width, folder)
    if shown[-1].strip() == "…":
        new = new[: len(shown) - 1] + [shown[-1]]
    return "\n".join(lines[:ends] + new) + "\n"


def page(path: Path, folder: Path) -> tuple[str, str, int]:
    """A page as it stands, as it should, and how many examples it has."""
    text = path.read_text()
    count = 0

    def block(match: re.Match) -> str:
        nonlocal count
        if match["what"] == "file":
            folder.joinpath(match["value"]).write_text(match["body"])
        if match["what"] == "made":
            script, *words = shlex.split(match["value"])
            subprocess.run([sys.executable, str(ROOT / "scripts" / script), *words], cwd=folder, check=True, capture_output=True)
        if not match["body"].startswith("$ sync-report"):
            return match[0]
        width = match["value"] if match["what"] == "width" else WIDTH
        new = brought_up_to_date(match["body"], width, folder)
        count += 1
        return match[0].replace(match["body"], new)

    return text, BLOCK.sub(block, text), count


def missing_links(path: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    return [target for target in local if not (path.parent / target).exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write what the program prints into the pages")
    args = parser.parse_args()
    bad = total = 0
    for path in [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            # A copy: annotations name only files inside the folder that they are made in.
            shutil.copytree(ROOT / "sample-profiles", Path(folder, "sample-profiles"))
            old, new, count = page(path, Path(folder))
        total += count
        if old != new and args.write:
            path.write_text(new)
            print(f"wrote {path.relative_to(ROOT)}")
        elif old != new:
            bad += 1
            name = str(path.relative_to(ROOT))
            sys.stderr.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "what it prints", n=1))
        for target in missing_links(path) if path.name in OUTSIDE else []:
            bad += 1
            print(f"{path.relative_to(ROOT)}: {target} is not there", file=sys.stderr)
    if bad:
        print("examples.py: run scripts/examples.py --write, and read what it changed", file=sys.stderr)
    else:
        print(f"{total} examples print what the documentation says")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
