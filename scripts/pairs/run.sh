#!/usr/bin/env bash
# Measures every program (or those named) on this machine's GPU: both variants without a profiler, then a light capture of
# the one that waits.
#   scripts/pairs/run.sh OUT [CASE...]
# Leaves CASE.json (measured) and CASE.bad.sqlite (captured) in OUT. Then, anywhere: scripts/pairs/compare.py OUT
# What capture.sh heeds ($NSYS, $IMPORTER_LIBS) is heeded here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { echo "usage: run.sh OUT [CASE...]" >&2; exit 2; }
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$here"
cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
  mapfile -t cases < <(python3 -c 'from programs import CASES; print(*CASES, sep="\n")')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for case in "${cases[@]}"; do
  python3 measure.py "$case" >"$out/$case.json"
  cat "$out/$case.json"
done
for case in "${cases[@]}"; do
  # nsys ends the program after the first window, which capture.sh then reports: what counts is the export.
  ../capture.sh --light --range cudaProfilerApi -o "$work/$case" python3 measure.py "$case" --capture \
    >"$work/said" 2>&1 || true
  mv "$work/$case.sqlite" "$out/$case.bad.sqlite" || { cat "$work/said" >&2; exit 1; }
  rm -f "$work/$case".*
done
