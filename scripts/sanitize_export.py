#!/usr/bin/env python3
"""Copy an Nsight Systems export without what it tells about the machine, so that it can be shared.

Removed: environment variables, host and user names, other processes and their threads, output streams, hardware ids,
strings that no event points to (nsys stores whole environments there). Rewritten everywhere: home folders, URLs and
the path prefixes given with --rename. Kept: the command line, file and function names, NVTX texts, GPU model, times:
read them before you share the result. What still looks like a credential is listed, and the exit status is 1.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

HARMLESS_SYSTEM_FACTS = ("CpuDescription", "CpuCores", "NvDriverVersion", "CudaDriverVersion", "OsDescription",
                         "HardwarePlatform")
# Not worth hiding, and likely to be words of the program too.
ORDINARY_NAMES = {b"", b"host", b"user", b"root", b"admin", b"localhost", b"device", b"python", b"torch"}
HARDWARE_IDS = ("uuid", "busLocation", "pciBusId", "luid", "chipSerial")
# References to StringIds in exports that do not declare them (2020 and 2021).
REFERENCES = {"nameId", "textId", "jsonTextId", "symbol", "module", "demangledName", "shortName", "mangledName",
              "filenameId", "contentId", "argumentsId"}
GENERAL_RULES = [
    (rb"https?://[^\s\"'<>]+", b"https://example.org"),
    (rb"(?i)\b([a-z]:[\\/]+users[\\/]+)[^\\/\s\"':,;]+", rb"\1user"),
    (rb"/(home|Users)/[^/\s\"':,;]+", rb"/\1/user"),
    (rb"[\w.+-]+@[\w-]+\.[\w.-]*[a-z]", b"user@example.org"),
]
CREDENTIAL = re.compile(rb"(?i)(api_?key|secret|passw(or)?d|access_key|auth_?token|_token)\s*[=:]|\bghp_\w{20}|\bhf_\w{20}"
                        rb"|\bsk-\w{20}|\bAKIA[A-Z0-9]{12}|-----BEGIN [A-Z ]*PRIVATE KEY")


class Sanitizer:
    """Works in place on a copy."""

    def __init__(self, db: sqlite3.Connection, renames: list[tuple[bytes, bytes]]) -> None:
        self.db = db
        db.text_factory = bytes  # texts are not always UTF-8
        self.columns = {
            name.decode(): {row[1].decode(): row[2].decode() for row in db.execute(f'PRAGMA table_info("{name.decode()}")')}
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }
        self.rules = [(re.compile(re.escape(old)), new.replace(b"\\", rb"\\")) for old, new in renames]
        self.rules += [(re.compile(rb"(?<!\w)" + re.escape(name) + rb"(?!\w)"), b"host") for name in self.machine_names()]
        self.rules += [(re.compile(pattern), new) for pattern, new in GENERAL_RULES]

    def run(self) -> None:
        self.remove_environment()
        self.remove_identities()
        self.remove_other_processes()
        self.remove_unused_strings()
        self.rewrite_texts()

    # --- parts --------------------------------------------------------------------------------------------------

    def machine_names(self) -> list[bytes]:
        """Host and user names that the export states, to be replaced wherever they occur as words."""
        names = set()
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            names |= self.values(table, "value", "name IN ('EXPORT_HOST', 'EXPORT_USER')")
        names |= self.values("TARGET_INFO_SYSTEM_ENV", "value", "lower(name) IN ('hostname', 'username')")
        return sorted((name for name in names if name not in ORDINARY_NAMES), key=len, reverse=True)

    def remove_environment(self) -> None:
        self.delete("META_DATA_CAPTURE", "name LIKE '%ENVIRONMENT%' OR name LIKE '%USER%' OR name LIKE '%HOST%'")
        self.update("META_DATA_CAPTURE", "value", "'device'", "name = 'DEVICE_DISPLAY_NAME'")
        facts = ", ".join(f"'{fact}'" for fact in HARMLESS_SYSTEM_FACTS)
        self.delete("TARGET_INFO_SYSTEM_ENV", f"name NOT IN ({facts})")
        for table in ("ProcessStreams", "ANALYSIS_FILE"):
            self.delete(table, "1")

    def remove_identities(self) -> None:
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            self.update(table, "value", "'host'", "name = 'EXPORT_HOST'")
            self.update(table, "value", "'user'", "name = 'EXPORT_USER'")
        for table in [name for name in self.columns if name.startswith("TARGET_INFO_")]:
            for column in HARDWARE_IDS:
                self.update(table, column, "NULL", f'"{column}" IS NOT NULL')

    def remove_other_processes(self) -> None:
        """Only processes that recorded an event stay; without any, there is nothing to tell them apart by."""
        used: set[int] = set()
        for table in self.columns:
            if table.startswith(("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API")):
                used |= self.values(table, "globalTid & ~0xFFFFFF", "globalTid IS NOT NULL")
        if used:
            listed = ", ".join(map(str, sorted(used)))
            self.delete("PROCESSES", f"globalPid NOT IN ({listed})")
            self.delete("ThreadNames", f"(globalTid & ~0xFFFFFF) NOT IN ({listed})")

    def remove_unused_strings(self) -> None:
        """Empties them, so that ids stay what they are."""
        if "StringIds" not in self.columns:
            return
        self.db.execute("CREATE TEMP TABLE used (id INTEGER PRIMARY KEY)")
        for table, column in self.references():
            self.db.execute(f'INSERT OR IGNORE INTO used SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
        self.db.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((i,) for i in self.payload_strings()))
        self.update("StringIds", "value", "''", "id NOT IN (SELECT id FROM temp.used)")

    def references(self) -> Iterable[tuple[str, str]]:
        """Columns that point to StringIds: nsys says so in comments of the declarations."""
        for name, sql in self.db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            declared = set(re.findall(r"^\s*(\w+)\s.*REFERENCES StringIds", sql.decode(errors="replace"), re.MULTILINE))
            for column in self.columns[name.decode()]:
                if column in declared or column in REFERENCES:
                    yield name.decode(), column

    def payload_strings(self) -> Iterable[int]:
        """The function and file names of Python frames, which only payloads point to."""
        columns = self.columns.get("NVTX_EVENTS", {})
        if "jsonText" in columns:
            for (text,) in self.db.execute("SELECT jsonText FROM NVTX_EVENTS WHERE jsonText IS NOT NULL"):
                yield from map(int, re.findall(rb'"(?:Function|File)":(\d{1,18})', text))
        if "binaryData" in columns:
            for (blob,) in self.db.execute("SELECT binaryData FROM NVTX_EVENTS WHERE typeof(binaryData) = 'blob'"):
                yield from frame_strings(blob)

    def rewrite_texts(self) -> None:
        for table, columns in self.columns.items():
            for column in [name for name, kind in columns.items() if kind.upper() == "TEXT"]:
                changed = []
                for row, value in self.rows(table, column):
                    new = self.clean(value)
                    if new != value:
                        changed.append((new, row))
                self.db.executemany(f'UPDATE "{table}" SET "{column}" = CAST(? AS TEXT) WHERE rowid = ?', changed)

    def clean(self, value: bytes) -> bytes:
        for pattern, new in self.rules:
            value = pattern.sub(new, value)
        return value

    def leftovers(self) -> list[str]:
        """Columns that still hold what looks like a credential; never the value itself."""
        found = []
        for table, columns in self.columns.items():
            for column in [name for name, kind in columns.items() if kind.upper() == "TEXT"]:
                count = sum(1 for _, value in self.rows(table, column) if CREDENTIAL.search(value))
                if count:
                    found.append(f"{table}.{column}: {count} rows")
        return found

    # --- the database -------------------------------------------------------------------------------------------

    def rows(self, table: str, column: str) -> Iterable[tuple[int, bytes]]:
        query = f"SELECT rowid, \"{column}\" FROM \"{table}\" WHERE typeof(\"{column}\") = 'text'"
        return self.db.execute(query)

    def values(self, table: str, expression: str, condition: str) -> set:
        if table not in self.columns:
            return set()
        return {v for (v,) in self.db.execute(f'SELECT DISTINCT {expression} FROM "{table}" WHERE {condition}') if v is not None}

    def delete(self, table: str, condition: str) -> None:
        if table in self.columns:
            self.db.execute(f'DELETE FROM "{table}" WHERE {condition}')

    def update(self, table: str, column: str, value: str, condition: str) -> None:
        if column in self.columns.get(table, {}):
            self.db.execute(f'UPDATE "{table}" SET "{column}" = {value} WHERE {condition}')


def frame_strings(blob: bytes) -> Iterable[int]:
    """String ids in a Python payload: a header of 32 bytes, one of 16, then 24 bytes a frame."""
    for offset in range(48, len(blob) - 19, 24):
        yield from (number for number in struct.unpack_from("<QQ", blob, offset) if number < 1 << 62)


def rename_rule(text: str) -> tuple[bytes, bytes]:
    old, separator, new = text.partition("=")
    if not old or not separator:
        raise argparse.ArgumentTypeError("expected OLD=NEW")
    return old.encode(), new.encode()


def sanitize(source: Path, target: Path, renames: list[tuple[bytes, bytes]]) -> list[str]:
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.copyfile(source, unfinished)
    try:
        db = sqlite3.connect(unfinished)
        db.executescript("PRAGMA secure_delete = ON; PRAGMA journal_mode = OFF;")
        sanitizer = Sanitizer(db, renames)
        sanitizer.run()
        leftovers = sanitizer.leftovers()
        db.commit()
        db.execute("VACUUM")  # what was deleted must not stay behind in free pages
        db.close()
        os.replace(unfinished, target)
        return leftovers
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="an export (.sqlite)")
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--rename", metavar="OLD=NEW", type=rename_rule, action="append", default=[],
                        help="replace this text everywhere, such as a path prefix; may be repeated, first come first")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    arguments = parser.parse_args()
    if not arguments.input.is_file():
        parser.error(f"{arguments.input} is no file")
    if arguments.output.exists() and (not arguments.force or arguments.output.samefile(arguments.input)):
        parser.error(f"{arguments.output} exists")
    try:
        leftovers = sanitize(arguments.input, arguments.output, arguments.rename)
    except sqlite3.Error as error:
        raise SystemExit(f"sanitize_export.py: {arguments.input}: {error}") from error
    for place in leftovers:
        print(f"sanitize_export.py: looks like a credential: {place}", file=sys.stderr)
    sys.exit(1 if leftovers else 0)


if __name__ == "__main__":
    main()
