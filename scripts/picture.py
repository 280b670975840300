#!/usr/bin/env python3
"""Draws the README's picture, docs/img/report.svg: what the program prints on a terminal. --check only compares.

The program is $SYNC_REPORT_BIN, else target/debug/sync-report.
"""
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/img/report.svg"
COMMAND = "sync-report sample-profiles/train_mlp.sqlite --source-root sample-profiles/programs"
COLUMNS, SIZE, LINE, MARGIN = 110, 13, 18, 16
ADVANCE = SIZE * 0.6
STYLES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
SHEET = (
    "text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d4d7dd}"
    ".bold{font-weight:bold;fill:#fff}.dim{fill:#969ca8}.red{fill:#ff8a80}.green{fill:#8fd694}.yellow{fill:#f2c96d}" % SIZE
)


def printed() -> list[str]:
    program = os.environ.get("SYNC_REPORT_BIN", str(ROOT / "target/debug/sync-report"))
    command = [program, *COMMAND.split()[1:], "--color", "always", "--width", str(COLUMNS)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [f"\x1b[2m$ {COMMAND}\x1b[0m", *ran.stdout.rstrip().split("\n")]


def drawn(line: str, y: int) -> str:
    """A text for each cell of the table. Its length is given, so that every font keeps the columns."""
    cells, column, style = "", 0, ""
    for code, words in re.findall(r"(?:\x1b\[(\d+)m)?([^\x1b]*)", line):
        style = STYLES.get(code, "") if code else style
        for cell in re.finditer(r"\S+(?: \S+)*", words):
            x, length = MARGIN + (column + cell.start()) * ADVANCE, len(cell[0]) * ADVANCE
            of = f' class="{style}"' if style else ""
            cells += f'<text{of} x="{x:.1f}" y="{y}" textLength="{length:.1f}">{escape(cell[0])}</text>\n'
        column += len(words)
    return cells


def picture() -> str:
    lines = printed()
    width, height = round(2 * MARGIN + COLUMNS * ADVANCE), 2 * MARGIN + len(lines) * LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
    body = "".join(drawn(line, MARGIN + SIZE + index * LINE) for index, line in enumerate(lines))
    return f'{head}<style>{SHEET}</style>\n<rect width="100%" height="100%" rx="8" fill="#1d2026"/>\n{body}</svg>\n'


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit("docs/img/report.svg: run scripts/picture.py" if PICTURE.read_text() != picture() else 0)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture())
