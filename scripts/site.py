"""Pages of the site that are made from the program, as a hook of MkDocs.

The program is $SYNC_REPORT_BIN, else target/debug/sync-report: build it first. Commands come from --help, patterns, rules and
warnings from `explain --format json`, fields from the JSON Schemas in docs/schema.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SYNC_REPORT_BIN", str(ROOT / "target/debug/sync-report"))
#: Files of the repository that are pages of the site too.
COPIED = {"architecture.md": "ARCHITECTURE.md", "changes.md": "CHANGELOG.md"}
ROLES = {
    "trace": ("Rules of the trace", "The first that applies speaks; whether it then yields to the Python source is said with it."),
    "source": ("Rules of the Python source", "They read the line, where it is at hand and is what ran."),
    "weak": ("Weak rules", "They only lean: if all that fire agree, the report says what is probable, and the verdict stays unknown."),
    "remark": ("Remarks", "They stand beside a verdict and decide nothing."),
}


def run(*arguments: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True, env=environment).stdout


def text(prose: str) -> str:
    """Prose whose signs mean nothing to Markdown; what stands between backticks stays code."""
    parts = re.split(r"(`[^`]*`)", prose)
    plain = [re.sub(r"([\\*_<>\[\]#|])", r"\\\1", part) if index % 2 == 0 else part for index, part in enumerate(parts)]
    return "".join(plain)


def fence(code: str, language: str = "") -> str:
    return f"```{language}\n{code}\n```"


def slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower()).strip("-")


def field(name: str, prose: str) -> str:
    return f"**{name}** {prose}\n\n" if prose else ""


def commands() -> dict[str, str]:
    listed = re.search(r"^Commands:\n(.*?)\n\n", run("-h"), re.S | re.M)
    names = re.findall(r"^  (\w+)  ", listed.group(1), re.M) if listed else []
    pages = {"report": ("sync-report", run("--help"))}
    pages |= {name: (f"sync-report {name}", run(name, "--help")) for name in names if name != "help"}
    made = "The same as `--help` prints, of the version that this site is of."
    return {
        f"commands/{name}.md": f"# {title}\n\n{made}\n\n{fence(help.rstrip())}\n" for name, (title, help) in pages.items()
    }


def pattern(p: dict) -> str:
    page = f"## {p['id']} {text(p['title'])} {{: #{p['id']} }}\n\n"
    page += field("Class", text(p["meaning"]))
    if p["triggers"]:
        page += "**Written as**\n\n" + fence("\n".join(p["triggers"]), "python") + "\n\n"
    page += field("Why", text(p["why"]))
    page += field("In a trace", text(p["trace"]))
    page += field("Operator", f"`{p['operator']}`" if p["operator"] else "")
    page += field("Driver call", f"`{p['driver_api']}`" if p["driver_api"] else "")
    page += field("Versions", text(p["versions"]))
    if p["library"]:
        frames = [f"`{frame['file']} {frame['function']}".rstrip() + "`" for frame in p["library"]["frames"]]
        page += field("Library", text(p["library"]["name"]) + (": " + ", ".join(frames) if frames else ""))
        page += field("Line with", f"`{p['library']['line_text']}`" if p["library"]["line_text"] else "")
        page += field("How often", text(p["library"]["frequency"]))
    fix = p["fix"]
    page += field("Fix", text(fix["title"]) + ("" if fix["leave"] else f" ({fix['strategy']})") if fix["title"] else "")
    if fix["before"]:
        lines = [f"- {line}" for line in fix["before"].splitlines()] + [f"+ {line}" for line in fix["after"].splitlines()]
        page += fence("\n".join(lines), "diff") + "\n\n"
    page += field("Mind", text(fix["caveat"]))
    page += field("Sources", text(p["sources"]))
    return page


def patterns(knowledge: dict) -> dict[str, str]:
    of = defaultdict(list)
    for p in knowledge["patterns"]:
        of[p["category"]].append(p)
    index = "# Patterns that wait\n\nEvery pattern of the catalogue, as `sync-report explain` has it; a report cites them by id.\n"
    pages = {}
    for category, entries in of.items():
        page = slug(category)
        index += f"\n## {text(category)}\n\n| | pattern | class | fix |\n|---|---|---|---|\n"
        for p in entries:
            kind = p["class"] or ("depends" if p["waits"] else "no wait")
            index += f"| [{p['id']}]({page}.md#{p['id']}) | {text(p['title'])} | {kind} | {text(p['fix']['title'])} |\n"
        pages[f"patterns/{page}.md"] = f"# {text(category)}\n\n" + "".join(map(pattern, entries))
    return {"patterns/index.md": index, **pages}


def rules(knowledge: dict) -> str:
    page = "# Rules of evidence\n\nEvery verdict names the rules that it rests on; `sync-report explain R05` shows one.\n\n"
    for role, (heading, about) in ROLES.items():
        page += f"## {heading}\n\n{about}\n\n"
        for rule in (rule for rule in knowledge["rules"] if rule["role"] == role):
            page += f"### {rule['id']} {text(rule['title'])} {{: #{rule['id']} }}\n\n"
            page += field("Looks at", text(rule["looks_at"])) + field("Proves", text(rule["proves"]))
            page += field("Yields to", text(rule["yields_to"]))
            page += field("Confidence", text("; ".join(" ".join(case.split()) for case in rule["confidence"])))
            page += field("Origin", text(rule["origin"])) + field("Counted", text(rule["counted"]))
            page += fence(rule["example"]) + "\n\n" if rule["example"] else ""
    return page


def warnings(knowledge: dict) -> str:
    page = "# Warnings\n\nCodes stay what they mean from version to version: a script can rest on them.\n\n"
    page += "| code | means | what to do |\n|---|---|---|\n"
    for warning in knowledge["warnings"]:
        damage = " Exit code 2." if warning["damage"] else ""
        page += f"| `{warning['code']}` | {text(warning['means'])}.{damage} | {text(warning['advice'])} |\n"
    return page


def kind_of(node: dict) -> str:
    """The type of a field, in words; of a struct or enum, its name."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name})"
    if "anyOf" in node:
        return " or ".join(kind_of(option) for option in node["anyOf"])
    kind = node.get("type", "")
    if isinstance(kind, list):
        return " or ".join(kind_of({**node, "type": one}) for one in kind)
    if kind == "array":
        items = node.get("items", node.get("prefixItems", [{}])[0] if node.get("prefixItems") else {})
        return f"list of {kind_of(items)}" if isinstance(items, dict) else "list"
    return {"boolean": "bool", "integer": "int", "string": "text"}.get(kind, kind)


def prose_of(node: dict) -> str:
    return text(" ".join(node.get("description", "").split("```")[0].split()))


def struct(name: str, node: dict) -> str:
    page = f"### {name} {{: #{name} }}\n\n{prose_of(node)}\n\n" if name else ""
    if "properties" in node:
        page += "| field | type | meaning |\n|---|---|---|\n"
        names = node.get("required", []) + [one for one in node["properties"] if one not in node.get("required", [])]
        for one in names:
            page += f"| `{one}` | {kind_of(node['properties'][one])} | {prose_of(node['properties'][one])} |\n"
        return page + "\n"
    words = [(option.get("const"), prose_of(option)) for option in node.get("oneOf", []) if "const" in option]
    words += [(word, "") for word in node.get("enum", [])]
    return page + "".join(f"- `{word}` {meaning}\n" for word, meaning in words) + "\n"


def fields() -> str:
    page = (
        "# Fields of JSON\n\nEverything that is printed as JSON has a [JSON Schema](https://json-schema.org/draft/2020-12), which CI holds "
        "every output against: fields are added, never renamed. Times are integers in ns, and their names end in `_ns`.\n\n"
        "| what prints it | schema |\n|---|---|\n"
    )
    defs: dict[str, dict] = {}
    parts = ""
    for line in run("schema").splitlines():
        name, command = line.split(maxsplit=1)
        page += f"| [`{command}`](#{name}) | [{name}.json](schema/{name}.json) |\n"
        schema = json.loads((ROOT / f"docs/schema/{name}.json").read_text())
        parts += f"## {name} {{: #{name} }}\n\n`{command}`: {prose_of(schema)}\n\n" + struct("", schema)
        for one, node in schema.get("$defs", {}).items():
            defs.setdefault(one, node)
    parts += "## What they are made of\n\n" + "".join(struct(name, defs[name]) for name in sorted(defs))
    return page + "\n" + parts


def on_files(files, config):
    """Adds the pages."""
    knowledge = json.loads(run("explain", "--format", "json"))
    pages = {
        **commands(),
        **patterns(knowledge),
        "rules.md": rules(knowledge),
        "warnings.md": warnings(knowledge),
        "json.md": fields(),
        **{page: (ROOT / source).read_text() for page, source in COPIED.items()},
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files
