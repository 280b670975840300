#!/bin/bash
here=$(dirname "$0")
printf '%s\n' "$*" >>"$here/arguments"
for word in "$@"; do case $word in --output=*) output=${word#*=} ;; esac; done
case "$*" in
  *--help*) echo "  --include-json=" ;;
  status*) cat "$here/status" 2>/dev/null || echo "CPU Profiling Environment (process-tree): OK" ;;
  profile*)
    env -0 >"$here/environment"
    trap 'touch "$here/stopped"' INT
    [ ! -e "$here/runs" ] || { NSYS_PROFILING_SESSION_ID=1 "${@: -2}"; sleep 1.5; }
    [ ! -e "$here/records" ] || echo recording >"${output//%%/%}.$(cat "$here/records")"
    exit "$(cat "$here/exit" 2>/dev/null || echo 0)"
    ;;
  launch*)
    env -0 >"$here/environment"
    touch "$here/launched"
    "${@: -2}"
    exit "$(cat "$here/exit" 2>/dev/null || echo 0)"
    ;;
  sessions*) echo "ID TIME STATE LAUNCH NAME"; [ ! -e "$here/launched" ] || echo "1 00:13 Launched 1 web" ;;
  start*)
    echo "$output" >"$here/starts"
    ;;
  stop*)
    [ ! -e "$here/ended" ] || { echo "There are no active sessions." >&2; (sleep 1; echo recording >"$(cat "$here/starts").$(cat "$here/records")") & exit 1; }
    echo recording >"$(cat "$here/starts").$(cat "$here/records")"
    ;;
  export*)
    [ ! -e "$here/sample" ] || { cp "$(cat "$here/sample")" "$output"; exit; }
    [ ! -e "$here/half" ] || { cp "$here/environment" "$output"; echo "disk full" >&2; exit 1; }
    [ ! -e "$here/broken" ] || { echo "no database, but long enough to be taken for one" >"$output"; exit; }
    python3 - "$output" "$here/environment" <<'PYTHON'
import json, sqlite3, sys
block = open(sys.argv[2], "rb").read().rstrip(b"\0")
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT)")
db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
db.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT NOT NULL, value TEXT NOT NULL)")
insert = "INSERT INTO META_DATA_CAPTURE VALUES (?, CAST(? AS TEXT))"
for entry in block.split(b"\0"):
    name, _, value = entry.partition(b"=")
    db.execute(insert, ("PROCESS_0:ENVIRONMENT_VARIABLE", name + b'="' + value + b'"'))
for n, word in enumerate((b"--key=sk-anargumentofthecommand", b"--api-key=0a1b2c3d4e5f", b"--password", b"correcthorse", b"--lr=0.1")):
    db.execute(insert, (f"PROCESS_0:ARGUMENT_{n + 1}", word))
db.execute("CREATE TABLE OTHER (data BLOB, json)")
signing = dict(entry.split(b"=", 1) for entry in block.split(b"\0")).get(b"SIGNING", b"").decode()
db.execute("INSERT INTO OTHER VALUES (?, ?)", (b"x" + b"0123456789abcdef0123" + b"y", json.dumps(signing)))
other = b"LANG=C\0DAEMON_TOKEN=of-another-process\0N=\xff"
for text in (block, other, b"lr=0.1", b"step \xff", b"/work/train.py"):
    db.execute("INSERT INTO StringIds (value) VALUES (CAST(? AS TEXT))", (text,))
db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('DeviceEnvironment', CAST(? AS TEXT))", (block.replace(b"\0", b";"),))
db.commit()
PYTHON
    ;;
esac
