#!/usr/bin/env bash
# Builds sync-report, checks the GPU of this machine with it, and prints what waits cost here. See --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
Check sync-report on the GPU of this machine: self-test, benchmark, and replays of captures.

usage: gpu_check.sh [OPTIONS] [PROFILE.sqlite...]

  --binary FILE    Use this sync-report instead of building one (cargo build --release --locked)
  --lib-dir DIR    Where CUDA's libraries are, if they are not found (pip: site-packages/nvidia/cu13/lib)
  --device N       Which GPU (default: 0)
  --rounds N       Rounds of the benchmark's measurements (default: 10)
  --seconds N      How long a replay may measure (default: 20)
  --sizes N,...    Sides of the benchmark's matrices (default: 8192,512)
  -o, --output DIR Where to put tables and constants (default: gpu-check)
  -h, --help       This text

Without profiles, the samples of this repository are replayed, each with its recorded host time and without the
profiler's part of it. Prints the tables and keeps them as self-test.txt, bench.md, constants.json, replay-NAME-HOST.md
and .json (for --replay-results). Each is there as soon as it is measured, and what is there already is not measured
again: after an interruption, start it again. Ends with 0 if all went well, else with 1 after having tried everything.
TEXT
}

here=$(cd "$(dirname "$0")/.." && pwd)
binary='' output=gpu-check sizes=8192,512
gpu=() bench=() replay=() profiles=()
while [ $# -gt 0 ]; do
  case $1 in
    --binary | --lib-dir | --device | --rounds | --seconds | --sizes | -o | --output)
      [ $# -gt 1 ] || { echo "gpu_check.sh: $1 needs a value" >&2; exit 2; }
      case $1 in
        --binary) binary=$2 ;;
        --sizes) sizes=$2 ;;
        -o | --output) output=$2 ;;
        --rounds) bench+=("$1" "$2") ;;
        --seconds) replay+=("$1" "$2") ;;
        *) gpu+=("$1" "$2") ;;
      esac
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "gpu_check.sh: no option $1; see --help" >&2; exit 2 ;;
    *) profiles+=("$1"); shift ;;
  esac
done

if [ -z "$binary" ]; then
  (cd "$here" && cargo build --release --locked)
  binary=$here/target/release/sync-report
fi
[ -x "$binary" ] || { echo "gpu_check.sh: $binary is no program" >&2; exit 2; }
[ ${#profiles[@]} -gt 0 ] || profiles=("$here"/sample-profiles/train_mlp.sqlite "$here"/sample-profiles/pairs_h2d_pageable.sqlite)
mkdir -p "$output"

failed=0
# step NAME FILE COMMAND...: prints what the command writes, and keeps it once it is whole.
step() {
  local name=$1 file=$output/$2
  shift 2
  printf '\n== %s\n\n' "$name"
  if [ -s "$file" ]; then
    cat "$file"
  elif "$@" | tee "$file.part"; then
    mv "$file.part" "$file"
  else
    failed=1
    rm -f "$file.part"
    echo "gpu_check.sh: $name failed" >&2
  fi
}

# Without a GPU that copies right the rest says nothing.
rm -f "$output/self-test.txt"
step "self-test" self-test.txt "$binary" bench --self-test ${gpu[@]+"${gpu[@]}"}
[ $failed -eq 0 ] || exit 1
step "what a wait costs" bench.md \
  "$binary" bench --sizes "$sizes" --format markdown --save "$output/constants.json" ${gpu[@]+"${gpu[@]}"} ${bench[@]+"${bench[@]}"}
for profile in "${profiles[@]}"; do
  for host in recorded unprofiled; do
    name=$(basename "$profile" .sqlite)-$host
    step "replay of $name" "replay-$name.md" \
      "$binary" replay "$profile" --host "$host" --format markdown --save "$output/replay-$name.json" \
      ${gpu[@]+"${gpu[@]}"} ${replay[@]+"${replay[@]}"}
  done
done
exit $failed
