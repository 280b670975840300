#!/usr/bin/env python3
"""Copies an export without the NVTX ranges that mark iterations: what is left must show the loop by itself.

    scripts/strip_ranges.py IN.sqlite OUT.sqlite

All ranges go; marks stay, since the Python frames of a call hang on one.
"""
import shutil
import sqlite3
import sys

RANGES = "(59, 60, 70, 71)"  # push/pop, start/end, and their older forms


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    shutil.copyfile(sys.argv[1], sys.argv[2])
    db = sqlite3.connect(sys.argv[2])
    gone = db.execute(f"DELETE FROM NVTX_EVENTS WHERE eventType IN {RANGES}").rowcount
    db.commit()
    db.execute("VACUUM")
    print(f"{gone} ranges removed", file=sys.stderr)


if __name__ == "__main__":
    main()
