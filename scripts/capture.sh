#!/usr/bin/env bash
# Captures a program with Nsight Systems: another name of `sync-report run --no-report`. See --help.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
for tool in "${SYNC_REPORT_BIN:-}" "$(dirname -- "$0")/sync-report" "$here"/../target/{release,debug}/sync-report; do
  [ ! -x "$tool" ] || [ -d "$tool" ] || exec "$tool" run --no-report "$@"
done
exec sync-report run --no-report "$@"
