#!/usr/bin/env bash
# Measures every program (or those named) on this machine's GPU, without a profiler and under the light capture.
#   scripts/pairs/run.sh OUT [CASE...]
# Leaves in OUT, per case: CASE.json (alone), CASE.light.json (captured), CASE.bad.sqlite, CASE.fixed.sqlite.
# Then, anywhere: scripts/pairs/compare.py OUT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
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
  if command -v nsys >/dev/null; then
    nsys profile -t cuda,nvtx -s none --cpuctxsw=none --capture-range=cudaProfilerApi --capture-range-end=repeat:4 \
      --force-overwrite=true -o "$work/$case" python3 measure.py "$case" --capture >"$work/said" 2>"$work/errors" ||
      { cat "$work/errors" >&2; continue; }
    grep '^{' "$work/said" >"$out/$case.light.json"
    nsys export --type sqlite --force-overwrite=true -o "$out/$case.bad.sqlite" "$work/$case.1.nsys-rep" >/dev/null
    nsys export --type sqlite --force-overwrite=true -o "$out/$case.fixed.sqlite" "$work/$case.2.nsys-rep" >/dev/null
  fi
  cat "$out/$case.json"
done
