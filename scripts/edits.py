#!/usr/bin/env python3
"""edits.py [--bin SYNC_REPORT] CAPTURE=ROOT...: what became of each site that is avoidable or undecided, as tables for docs/fixing.md.

ROOT is what --source-root takes ([OLD=]NEW); several are separated by commas. First a row for each kind of edit: proposed (of those unsafe), refused, why. Then the
sites for which no kind was looked at. With --list, each refused site of a kind with its reason and whether the advice shows its line rewritten.
"""
import argparse
import ast
import collections
import json
import os
import subprocess
import sys


def sites(binary, capture, roots):
    command = [binary, capture, "--top", "0", "--format", "json"]
    for root in roots.split(","):
        command += ["--source-root", root]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return [site for site in report["sites"] if site["class"] != "true"]


def is_rewritten(site):
    """Whether the advice ends in code that says what the line's own expression says."""
    words = site["proposal"]["expression"].replace("(", ".").split(".")
    text = (site.get("fix") or {}).get("title", "").rsplit(": ", 1)[-1]
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return "(" in text and bool(words[0]) and words[0] in text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="sync-report")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("captures", nargs="+", metavar="CAPTURE=ROOT")
    args = parser.parse_args()
    proposed, unsafe, refused = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
    listed, programs = [], 0
    for pair in args.captures:
        capture, _, roots = pair.partition("=")
        programs += 1
        for site in sites(args.bin, capture, roots):
            proposal = site.get("proposal") or {"refused": {"kind": None, "reason": "no line of the user"}}
            if edit := proposal.get("edit"):
                proposed[edit["kind"]] += 1
                unsafe[edit["kind"]] += edit["safety"] == "unsafe"
                continue
            kind, reason = proposal["refused"]["kind"], proposal["refused"]["reason"]
            refused[kind][reason] += 1
            if kind:
                frame = site["user_frame"]
                place = f"{os.path.basename(capture)} {os.path.basename(frame['file'])}:{frame['line']}"
                listed.append((place, proposal["expression"], kind, reason, is_rewritten(site)))
    why = lambda counts: ", ".join(f"`{reason}` {count}" for reason, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
    print(f"{programs} captures\n\n| edit | proposed | of those unsafe | refused | why |\n|---|--:|--:|--:|---|")
    kinds = sorted(set(proposed) | {kind for kind in refused if kind}, key=lambda kind: (-proposed[kind], kind))
    for kind in kinds:
        print(f"| `{kind}` | {proposed[kind]} | {unsafe[kind]} | {sum(refused[kind].values())} | {why(refused[kind])} |")
    print(f"| none looked at | | | {sum(refused[None].values())} | {why(refused[None])} |")
    if args.list:
        for place, expression, kind, reason, rewritten in listed:
            print(f"{place}\t{expression[:60]}\t{kind}\t{reason}\t{'REWRITTEN' if rewritten else 'general advice'}")


if __name__ == "__main__":
    sys.exit(main())
