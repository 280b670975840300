#!/usr/bin/env bash
# Measures every program (or those named) on this machine's GPU, both variants in alternating windows: without a profiler,
# then under a light capture; without names also the loops that the profiler's figures come from.
#   scripts/pairs/run.sh OUT [CASE...]
# Leaves CASE.json (measured alone) and CASE.sqlite (the capture, which holds the windows' times) in OUT. Then, anywhere:
# scripts/pairs/compare.py OUT
# What capture.sh heeds ($NSYS, $IMPORTER_LIBS) is heeded here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { echo "usage: run.sh OUT [CASE...]" >&2; exit 2; }
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$here"
cases=("$@")
whole=
if [ ${#cases[@]} -eq 0 ]; then
  whole=1
  mapfile -t cases < <(python3 -c 'from measure import CASES; print(*CASES, sep="\n")')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

captured() { # NAME COMMAND...
  local name=$1
  shift
  # nsys ends the program after the range, which capture.sh then reports: what counts is the export.
  ../capture.sh --light --range cudaProfilerApi -o "$work/$name" python3 "$@" --capture >"$work/said" 2>&1 || true
  mv "$work/$name.sqlite" "$out/$name.sqlite" || { cat "$work/said" >&2; return 1; }
  rm -f "$work/$name".*
}

if [ -n "$whole" ]; then
  python3 overhead.py >"$out/overhead.alone.json"
  captured overhead overhead.py
fi
for case in "${cases[@]}"; do
  python3 measure.py "$case" >"$out/$case.json"
  cat "$out/$case.json"
  captured "$case" measure.py "$case"
done
