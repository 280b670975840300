#!/usr/bin/env python3
"""Writes what is made from the program: docs/schema/*.json and python/sync_report/model.py. --check only compares.

The program is $SYNC_REPORT_BIN, else target/debug/sync-report: build it first.
"""
from __future__ import annotations

import argparse
import json
import keyword
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = '''"""What a report holds, as classes. Made by scripts/generate.py from the JSON Schema of the report: change the Rust
structs in src/model instead.

Times are integer nanoseconds of the capture's clock, and their names end in ``_ns``.
"""
# fmt: off
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Literal, Optional, Sequence

'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def run(*arguments: str) -> str:
    program = os.environ.get("SYNC_REPORT_BIN", str(ROOT / "target/debug/sync-report"))
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def docstring(text: str, indent: str) -> str:
    text = text.split("```")[0]  # drawings are for the JSON Schema
    wrapped = textwrap.wrap(" ".join(text.split()), 112 - len(indent)) or [""]
    text = f"\n{indent}".join(wrapped).replace("\\", "\\\\").replace('"""', "'''")
    end = f'\n{indent}"""' if len(wrapped) > 1 else '"""'
    return f'{indent}"""{text}{" " if text.endswith(chr(34)) and end == chr(34) * 3 else ""}{end}'


class Model:
    """The classes of a schema."""

    def __init__(self, schema: dict) -> None:
        self.defs = dict(schema["$defs"], Report=schema)
        self.shapes: dict[str, dict[str, str]] = {}

    def is_object(self, name: str) -> bool:
        return "properties" in self.defs[name]

    def annotation(self, node: dict) -> str:
        if "$ref" in node:
            return node["$ref"].rsplit("/", 1)[1]
        if "anyOf" in node:  # an optional struct or word
            (of,) = [option for option in node["anyOf"] if option.get("type") != "null"]
            return f"Optional[{self.annotation(of)}]"
        kind = node.get("type")
        if isinstance(kind, list):
            (of,) = [option for option in kind if option != "null"]
            return f"Optional[{self.annotation({**node, 'type': of})}]"
        if kind == "array":
            items = node.get("items")
            return f"List[{self.annotation(items)}]" if isinstance(items, dict) else "Sequence[int]"
        return SCALARS[kind]

    def words(self, name: str) -> str:
        words = [option["const"] for option in self.defs[name].get("oneOf", [])]
        words += self.defs[name].get("enum", [])
        literal = ", ".join(json.dumps(word) for word in words)
        # A word may hold spaces: only those between words are places to break.
        text = f"{name} = Literal[{literal}]".replace(" ", "\0").replace('",\0"', '", "')
        lines = textwrap.wrap(text, 112, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
        lines = [line.replace("\0", " ") for line in lines]
        doc = docstring(self.defs[name].get("description", ""), "")
        return "\n".join(lines) + "\n" + doc

    def of_class(self, name: str) -> str:
        node = self.defs[name]
        required = node.get("required", [])
        names = required + [field for field in node["properties"] if field not in required]
        lines = ["@dataclass(frozen=True)", f"class {name}:", docstring(node.get("description", ""), "    "), ""]
        shape = {}
        for field in names:
            of = self.annotation(node["properties"][field])
            inner = of.replace("Optional[", "").replace("List[", "").rstrip("]")
            if inner in self.defs and self.is_object(inner):
                shape[field] = inner
            attribute = field + "_" if keyword.iskeyword(field) else field
            if field not in required and not of.startswith("Optional["):
                of = f"Optional[{of}]"
            lines.append(f"    {attribute}: {of}")
            lines.append(docstring(node["properties"][field].get("description", ""), "    "))
        self.shapes[name] = shape
        return "\n".join(lines)

    def text(self) -> str:
        # The report first, below the classes that nothing but it needs to know: annotations are not evaluated.
        objects = sorted(name for name in self.defs if self.is_object(name) and name != "Report")
        words = sorted(name for name in self.defs if not self.is_object(name))
        parts = [self.words(name) for name in words] + [self.of_class(name) for name in ["Report", *objects]]
        shapes = "".join(
            f"    {name}: {{{', '.join(f'{field!r}: {of}' for field, of in fields.items())}}},\n"
            for name, fields in self.shapes.items()
            if fields
        )
        table = f"#: The fields that hold classes, by class.\nSHAPES: Dict[Any, Dict[str, Any]] = {{\n{shapes}}}"
        return HEAD + "\n\n\n".join([*parts, table]) + "\n"


def made() -> dict[Path, str]:
    names = [line.split()[0] for line in run("schema").splitlines()]
    files = {ROOT / f"docs/schema/{name}.json": run("schema", name) for name in names}
    files[ROOT / "python/sync_report/model.py"] = Model(json.loads(run("schema", "report"))).text()
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 where a file is not what would be written")
    args = parser.parse_args()
    files = made()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if args.check:
            print(f"{path.relative_to(ROOT)} is not what the program says; run scripts/generate.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path])
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
