#!/usr/bin/env python3
"""Counts how often each rule of evidence was right on labelled captures, for src/rules/calibration.csv.

  cargo test --test it labelled_snippets -- --nocapture > snippets.log
  scripts/calibrate.py --bin target/release/sync-report --snippets snippets.log \\
      --own patterns.labels.json patterns.sqlite programs/ \\
      --real labels.json captures/ [programs/] --unseen labels.json captures/ programs/ > src/rules/calibration.csv

--own: labels by function, their capture, and the folder with the program. --real: labels by program and line, a folder with
PROGRAM.sqlite, and the folder with the programs as they were under /workspace/blind (without it, those rules are counted that
need no source). --unseen, as often as there are sets: likewise, of programs whose labels were fixed before a verdict was looked at. A
verdict counts for the rule that decided its class; a labelled line counts once for each rule and class that it got, with and without
sources. Lines whose label is open count for nothing, nor do verdicts of unknown. What came of verdicts as sure as they say is
printed beside, by corpus.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

RECORDED = "/workspace"


def report(binary, capture, sources):
    command = [binary, "-q", capture, "--format", "json"]
    if sources:
        command += ["--source-root", sources]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def decider(site):
    return site["evidence"][0]["rule"]


def where(frame, prefix):
    if not frame or not frame.get("file"):
        return None
    return f"{frame['file'].removeprefix(prefix)}:{frame['line']}"


# Lowest confidence of each band, best first.
BANDS = (0.9, 0.8, 0.65, 0)


class Counts:
    def __init__(self):
        self.seen = set()
        self.of = collections.defaultdict(lambda: [0, 0])
        self.bands = collections.defaultdict(lambda: [0, 0])

    def add(self, corpus, place, label, rule, said, confidence=None):
        if label not in ("false", "true", "none") or said == "unknown" or (corpus, place, rule, said) in self.seen:
            return
        self.seen.add((corpus, place, rule, said))
        self.of[rule, corpus][label != said] += 1
        if confidence is not None:
            self.bands[corpus, next(low for low in BANDS if confidence >= low)][label != said] += 1

    def sites(self, corpus, labels, sites, places):
        """Adds the sites that stand on a labelled place, the first of `places(site)` that is one."""
        for site in sites:
            place = next((place for place in places(site) if place in labels), None)
            if place is not None:
                self.add(corpus, place, labels[place], decider(site), site["class"], site["confidence"])

    def print(self):
        print("rule,corpus,right,wrong")
        order = lambda key: (key[0][0], len(key[0]), key)
        for (rule, corpus), (right, wrong) in sorted(self.of.items(), key=lambda item: order(item[0])):
            print(f"{rule},{corpus},{right},{wrong}")
        for (corpus, low), (right, wrong) in sorted(self.bands.items(), reverse=True):
            print(f"{corpus}, confidence from {low}: {right} of {right + wrong} right", file=sys.stderr)


def own(counts, binary, labels, capture, programs):
    with open(labels) as file:
        labels = {name: label["class"] for name, label in json.load(file)["sites"].items()}
    for sources in (f"{RECORDED}={programs}", None):
        functions = lambda site: [frame["function"] for frame in site.get("frames") or []]
        counts.sites("own", labels, report(binary, capture, sources)["sites"], functions)


def real(counts, corpus, binary, labels, captures, programs=None):
    prefix = f"{RECORDED}/blind/"
    with open(labels) as file:
        labels = json.load(file)
    for name, lines in labels.items():
        of = {}
        for line, label in lines.items():
            for place in [line] + label.get("aliases", []):
                of[place] = label["class"]
        capture = os.path.join(captures, f"{name}.sqlite")
        roots = [f"{prefix.rstrip('/')}={programs}", None] if programs else [None]
        for sources in roots:
            frames = lambda site: [
                where(frame, prefix) for frame in [site.get("user_frame")] + (site.get("frames") or [])
            ]
            counts.sites(corpus, of, report(binary, capture, sources)["sites"], frames)


def snippets(counts, log):
    with open(log) as file:
        for line in file:
            if line.startswith("calibration|"):
                _, place, label, rule, said = line.rstrip("\n").split("|")
                counts.add("snippets", place, label, rule, said)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--bin", default="target/release/sync-report")
    parser.add_argument("--own", nargs=3, metavar=("LABELS", "CAPTURE", "PROGRAMS"))
    parser.add_argument("--real", nargs="+", metavar="PATH", help="LABELS CAPTURES [PROGRAMS]")
    parser.add_argument("--unseen", nargs="+", action="append", default=[], metavar="PATH", help="as --real")
    parser.add_argument("--snippets", metavar="LOG")
    arguments = parser.parse_args()
    counts = Counts()
    if arguments.own:
        own(counts, arguments.bin, *arguments.own)
    if arguments.real:
        real(counts, "real", arguments.bin, *arguments.real)
    for paths in arguments.unseen:
        real(counts, "unseen", arguments.bin, *paths)
    if arguments.snippets:
        snippets(counts, arguments.snippets)
    counts.print()


main()
