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
  --rounds N       Rounds of measurements (default: 10)
  --sizes N,...    Sides of the benchmark's matrices (default: 8192,512)
  -o, --output DIR Where to put tables and constants (default: gpu-check)
  -h, --help       This text

Without profiles, the samples of this repository are replayed. Prints the tables and keeps them as self-test.txt,
bench.md, constants.json and replay-NAME.md. Ends with 0 if all went well, else with 1 after having tried everything.
TEXT
}

here=$(cd "$(dirname "$0")/.." && pwd)
binary='' output=gpu-check sizes=8192,512
gpu=()
profiles=()
while [ $# -gt 0 ]; do
  case $1 in
    --binary | --lib-dir | --device | --rounds | --sizes | -o | --output)
      [ $# -gt 1 ] || { echo "gpu_check.sh: $1 needs a value" >&2; exit 2; }
      case $1 in
        --binary) binary=$2 ;;
        --sizes) sizes=$2 ;;
        -o | --output) output=$2 ;;
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
[ ${#profiles[@]} -gt 0 ] || profiles=("$here"/sample-profiles/train_mlp.sqlite "$here"/sample-profiles/pairs_h2d_pageable_light.sqlite)
mkdir -p "$output"

failed=0
# step NAME FILE COMMAND...: prints what the command writes and keeps it.
step() {
  local name=$1 file=$2
  shift 2
  printf '\n== %s\n\n' "$name"
  "$@" | tee "$output/$file" || { failed=1; echo "gpu_check.sh: $name failed" >&2; }
}

# Without a GPU that computes right the rest says nothing.
step "self-test" self-test.txt "$binary" bench --self-test ${gpu[@]+"${gpu[@]}"}
[ $failed -eq 0 ] || exit 1
step "what a wait costs" bench.md \
  "$binary" bench --sizes "$sizes" --format markdown --save "$output/constants.json" ${gpu[@]+"${gpu[@]}"}
for profile in "${profiles[@]}"; do
  name=$(basename "$profile" .sqlite)
  step "replay of $name" "replay-$name.md" \
    "$binary" replay "$profile" --format markdown ${gpu[@]+"${gpu[@]}"}
done
exit $failed
