#!/usr/bin/env python3
"""Counts how often each rule of evidence was right on labelled captures, for src/rules/calibration.csv.

  cargo test --test it labelled_snippets -- --nocapture > snippets.log
  scripts/calibrate.py --bin target/release/sync-report --snippets snippets.log --own patterns.labels.json patterns.sqlite programs/ \\
      --real labels.json captures/ [programs/] --adversarial FOLDER --frameworks FOLDER [site-packages/] \\
      --keep src/rules/calibration.csv > counted.csv && mv counted.csv src/rules/calibration.csv

--own: labels by function, their capture, and the folder with the program. --real: labels by program and line, a folder with
PROGRAM.sqlite, and the folder with the programs as they were under /workspace/blind (without it, those rules are counted that
need no source). --adversarial: a folder with programs, captures and labels.json by file and line. --frameworks: likewise, with
labels by the lines of libraries. --keep: corpora that are not counted now keep their rows.

A verdict counts for the case of the rule that decided its class; a labelled line counts once for each case and class that it got,
with and without sources, also where it is printed as unknown because too few were right. Lines whose label is open count for
nothing, nor do verdicts that leave the class open; weak rules count by the class that they lean to. How often verdicts were right by
the confidence that they gave is printed beside, by corpus.
"""
import argparse
import collections
import csv
import json
import os
import re
import subprocess
import sys

RECORDED = "/workspace"
HEAD = ["rule", "case", "said", "corpus", "right", "wrong"]
# The words of a weak rule, and the class that they mean.
LEAN = re.compile(r"^(?:probably [a-z ]+, so|leans to) (avoidable|needed)")
CLASS = {"avoidable": "false", "needed": "true"}
# Lowest confidence of each band, best first.
BANDS = (0.9, 0.8, 0.65, 0)


def report(binary, capture, roots):
    command = [binary, "-q", capture, "--format", "json"]
    for root in roots:
        command += ["--source-root", root]
    if not roots:
        command.append("--no-source")
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["sites"]


class Counts:
    def __init__(self, binary):
        self.binary = binary
        self.seen = set()
        self.of = collections.defaultdict(lambda: [0, 0])
        self.bands = collections.defaultdict(lambda: [0, 0])

    def add(self, corpus, place, label, rule, case, said, confidence=None):
        if label not in ("false", "true", "none") or said == "unknown" or (corpus, place, case, said) in self.seen:
            return
        self.seen.add((corpus, place, case, said))
        self.of[rule, case, said, corpus][label != said] += 1
        if confidence is not None:
            self.bands[corpus, next(low for low in BANDS if confidence >= low)][label != said] += 1

    def capture(self, corpus, path, roots, place_of):
        """Adds the sites that stand on a labelled place: `place_of(frames)` gives the place and its label, or none."""
        for given in [roots, []] if roots else [[]]:
            for site in report(self.binary, path, given):
                found = place_of([site["user_frame"]] * bool(site.get("user_frame")) + (site.get("frames") or []))
                if found:
                    place = (os.path.basename(path), found[0])
                    cases = [reason for reason in site["evidence"] if "case" in reason]
                    leaning = [(weak, lean[1]) for weak in cases if (lean := LEAN.search(weak["text"]))]
                    for weak, word in leaning:
                        self.add(corpus, place, found[1], weak["rule"], weak["case"], CLASS[word])
                    decider = next((reason for reason in cases if not LEAN.search(reason["text"])), None)
                    said = site["class"]
                    if said == "unknown":
                        said = next(filter(None, map(unsure, site["evidence"])), said)
                    if decider:
                        self.add(
                            corpus, place, found[1], decider["rule"], decider["case"], said, site["confidence"]
                        )

    def keep(self, path):
        counted = {corpus for *_, corpus in self.of}
        with open(path) as file:
            for row in csv.DictReader(file):
                if row["corpus"] not in counted:
                    self.of[row["rule"], row["case"], row["said"], row["corpus"]] = [row["right"], row["wrong"]]

    def print(self):
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(HEAD)
        order = lambda key: (key[0][0], len(key[0]), key)
        for key, counts in sorted(self.of.items(), key=lambda item: order(item[0])):
            rows.writerow([*key, *counts])
        for (corpus, low), (right, wrong) in sorted(self.bands.items(), reverse=True):
            print(f"{corpus}, confidence from {low}: {right} of {right + wrong} right", file=sys.stderr)


def unsure(reason):
    """The class that was not printed, because too few verdicts of the case were right."""
    return reason["rule"] == "unsure" and reason["text"].split("would make it ")[1].split()[0]


def load(path):
    with open(path) as file:
        return json.load(file)


def first(frames, place_of, labels):
    places = (place_of(frame) for frame in frames)
    return next(((place, labels[place]) for place in places if place in labels), None)


def own(counts, labels, capture, programs):
    labels = {name: label["class"] for name, label in load(labels)["sites"].items()}
    place_of = lambda frames: first(frames, lambda frame: frame["function"], labels)
    counts.capture("own", capture, [f"{RECORDED}={programs}"], place_of)


def real(counts, labels, captures, programs=None):
    prefix = f"{RECORDED}/blind/"
    for name, lines in load(labels).items():
        of = {place: label["class"] for line, label in lines.items() for place in [line, *label.get("aliases", [])]}
        where = lambda frame: f"{(frame.get('file') or '').removeprefix(prefix)}:{frame.get('line')}"
        roots = [f"{prefix.rstrip('/')}={programs}"] if programs else []
        counts.capture("real", f"{captures}/{name}.sqlite", roots, lambda frames: first(frames, where, of))


def adversarial(counts, folder):
    labels = load(f"{folder}/labels.json")
    of = {(file, int(line)): label["class"] for file, lines in labels.items() for line, label in lines.items()}
    where = lambda frame: (os.path.basename(frame.get("file") or ""), frame.get("line"))
    for file in labels:
        capture = f"{folder}/{file.removesuffix('.py')}.sqlite"
        if os.path.exists(capture):
            roots = [f"{RECORDED}/adv={folder}"]
            counts.capture("adversarial", capture, roots, lambda frames: first(frames, where, of))


def frameworks(counts, folder, site=None):
    roots = [f"/venv/lib/python3.12/site-packages={site}", f"{RECORDED}/frameworks={folder}"] if site else []
    short = lambda path: path.split("/site-packages/")[-1].replace("pytorch_lightning/", "lightning/pytorch/")
    for name, labels in load(f"{folder}/labels.json").items():

        def place_of(frames):
            for frame in frames:
                for label in labels:
                    of = label["library"].replace("pytorch_lightning/", "lightning/pytorch/")
                    inside = any(low <= frame["line"] <= high for low, high in label["statements"])
                    if inside and short(frame.get("file") or "") == of:
                        return f"{of}:{label['statements']}", label["class"]
            return None

        counts.capture("frameworks", f"{folder}/{name}.sqlite", roots, place_of)


def snippets(counts, log):
    with open(log) as file:
        for line in file:
            if line.startswith("calibration|"):
                _, place, label, rule, case, said = line.rstrip("\n").split("|")
                counts.add("snippets", place, label, rule, case, said)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--bin", default="target/release/sync-report")
    corpora = {"own": own, "real": real, "adversarial": adversarial, "frameworks": frameworks, "snippets": snippets}
    for name in corpora:
        parser.add_argument(f"--{name}", nargs="+", metavar="PATH")
    parser.add_argument("--keep", metavar="CSV")
    arguments = parser.parse_args()
    counts = Counts(arguments.bin)
    for name, count in corpora.items():
        if paths := getattr(arguments, name):
            count(counts, *paths)
    if arguments.keep:
        counts.keep(arguments.keep)
    counts.print()


main()
