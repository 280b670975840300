#!/usr/bin/env bash
# Captures a PyTorch program with Nsight Systems and exports what sync-report reads. See --help.
set -euo pipefail

# The environment as it came. The program gets it unchanged, whatever variables this script sets.
mapfile -d '' -t given < <(env -0)
LC_ALL=C # Values may hold any bytes.

usage() {
  cat <<'TEXT'
Capture a program with Nsight Systems and export it for sync-report.

usage: capture.sh [OPTIONS] [--] PROGRAM [ARGUMENT...]

By default every synchronising call gets its Python line. PyTorch programs run a little slower than alone, and nsys
needs 10 to 60 seconds after their end.

  --full             Backtraces of all CUDA calls, launches and allocations too: iterations take 2 to 3 times as long
  --light            No backtraces: times closest to the bare run, but no lines
  --range RANGE      What to record. nsys ends the program at the end of the range:
                       none              the whole run (default)
                       cudaProfilerApi   from torch.cuda.profiler.start() to .stop(); this leaves the warm-up out
                       nvtx:NAME         the first NVTX range of that name
  -o, --output NAME  Write NAME.nsys-rep and NAME.sqlite (default: sync-report). As in nsys, %q{VAR} is replaced by an
                     environment variable, %h by the host's name and %% by %: torchrun ... -o rank_%q{RANK} ...
  --force            Replace NAME.nsys-rep and NAME.sqlite once the new capture is complete
  --withhold VAR     Do not pass this environment variable on; may be repeated, * matches any text.
                     "secrets" stands for all variables that look like secrets.
  --print            Print the commands instead of running them
  -h, --help         This text

The program gets the whole environment. nsys stores that environment in its report, and also those of other processes
that you may read. The script removes secrets (tokens, keys, passwords) from NAME.sqlite and lists their names.
NAME.nsys-rep still holds them: do not share that file.

nsys is taken from $NSYS, the PATH, /opt/nvidia/nsight-systems or, last, from inside Nsight Compute. That copy does not
convert its recording by itself: QdstrmImporter of the same folder does. If QdstrmImporter misses libraries (libdw,
libelf, libpfm, ...), name their folder in $IMPORTER_LIBS.

Without the right to take backtraces, the script samples Python instead. Its lines are then probable, not exact.

Then: sync-report NAME.sqlite
TEXT
}

# One kind of backtrace only: of several (sync:0,memory:0) nsys 2025.3 kept the first or none. PyTorch's blocking copies
# end in a synchronising call, so their lines come too. The threshold of 0 ns matters: many versions of nsys default to
# 80 us, which is longer than most waits of an .item(). Backtraces need CPU sampling switched on; frame pointers are what
# PyTorch's wheels can be unwound with cheaply.
readonly STACKS=(--python-backtrace=cuda --sample=process-tree --backtrace=fp)
readonly SAMPLED=(--python-sampling=true --sample=none --cpuctxsw=none)
readonly LIGHT=(--sample=none --cpuctxsw=none)

# What looks like a secret. bash and Python read these expressions alike. In SECRET_VALUE the last group is the secret.
readonly SECRET_NAME='TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_KEY|CONNECTION_STRING|COOKIE'\
'|_(KEY|PAT|PASS|PWD)$|(^|_)DSN$'
# NAME=VALUE, in capitals, of variables that only sound like secrets
readonly PLAIN='TOKENIZER[^=]*=|TOKENS[^=]*=[0-9]+$|=(TRUE|FALSE|YES|NO|ON|OFF|NONE|[01]?)$'
readonly SECRET_VALUE='(^|[^A-Za-z0-9])(hf_[A-Za-z0-9]{12,}|gh[opsur]_[A-Za-z0-9]{12,}|github_pat_[A-Za-z0-9_]{12,}'\
'|xox[abeprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{12,}|AKIA[A-Z0-9]{16}'\
'|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.?[A-Za-z0-9_-]*)'\
'|(^|[^A-Za-z0-9_/.-])(sk-[A-Za-z0-9_-]{16,})|(-----BEGIN [A-Z ]*PRIVATE KEY.*)|://[^/@: ]*:([^/ ]+)@'

say() { printf 'capture.sh: %s\n' "$*" >&2; }

status=2 # what the script ends with if the capture fails
interrupted=false
fail() {
  ! "$interrupted" || status=130
  say "$@"
  exit "$status"
}

# --- what was typed ---------------------------------------------------------------------------------------------

kind=sync
range=none
name=sync-report
force=false
print=false
withhold=()

value() { # OPTION REMAINING-COUNT: an option at the end of the line has no value
  [ "$2" -gt 1 ] || fail "$1 needs a value"
}

while [ $# -gt 0 ]; do
  case $1 in
    --full) kind=full ;;
    --light) kind=light ;;
    --range) value "$1" $#; range=$2; shift ;;
    --range=*) range=${1#*=} ;;
    -o | --output) value "$1" $#; name=$2; shift ;;
    --output=*) name=${1#*=} ;;
    --withhold) value "$1" $#; withhold+=("$2"); shift ;;
    --withhold=*) withhold+=("${1#*=}") ;;
    --force) force=true ;;
    --print) print=true ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -*) fail "unknown option $1 (see --help)" ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || fail "which program? (see --help)"
program=("$@")

ranged=()
case $range in
  none) ;;
  cudaProfilerApi) ranged=(--capture-range=cudaProfilerApi) ;;
  # PyTorch's ranges are not registered strings, which nsys ignores here unless told.
  nvtx:?*) ranged=(--capture-range=nvtx "--nvtx-capture=${range#nvtx:}" --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0) ;;
  *) fail "--range is none, cudaProfilerApi or nvtx:NAME, not $range" ;;
esac

given_value() { # VARIABLE: its value in the environment as it came
  local entry
  for entry in "${given[@]}"; do
    [ "${entry%%=*}" != "$1" ] || { printf '%s' "${entry#*=}"; return; }
  done
  return 1
}

expand() { # NAME: with %q{VAR}, %h and %% replaced, into $name
  local rest=$1 variable replaced
  name=
  while [[ $rest == *%* ]]; do
    name+=${rest%%\%*}
    rest=${rest#*\%}
    case $rest in
      q\{*\}*)
        variable=${rest#q\{}
        variable=${variable%%\}*}
        replaced=$(given_value "$variable") || fail "-o has %q{$variable}, and $variable is not set"
        name+=$replaced
        rest=${rest#*\}}
        ;;
      h*) name+=$(uname -n); rest=${rest#h} ;;
      %*) name+=%; rest=${rest#%} ;;
      *) fail "-o takes %q{VAR}, %h and %%, not %${rest:0:1}" ;;
    esac
  done
  name+=$rest
}

name=${name%.sqlite}
expand "${name%.nsys-rep}"

# Under these names until the capture is complete: a failed run leaves the files of the last one alone.
part=$name.unfinished-$$
if ! "$print"; then
  folder=$(dirname -- "$name")
  [ -w "$folder" ] || fail "cannot write to the folder $folder"
  for file in "$name.nsys-rep" "$name.sqlite"; do
    "$force" || [ ! -e "$file" ] || fail "$file exists (--force replaces it)"
  done
fi

# --- where nsys is ------------------------------------------------------------------------------------------------

newest() { # the last existing path of a list of globs, which the shell sorts
  local path found=
  for path in "$@"; do
    [ ! -x "$path" ] || found=$path
  done
  [ -z "$found" ] || printf '%s\n' "$found"
}

find_nsys() {
  if [ -n "${NSYS:-}" ]; then
    printf '%s\n' "$NSYS"
  else
    command -v nsys || newest /opt/nvidia/nsight-compute/*/host/target-linux-*/nsys \
      /usr/local/cuda/bin/nsys /opt/nvidia/nsight-systems/*/bin/nsys
  fi
}

nsys=$(find_nsys)
if [ -z "$nsys" ]; then
  "$print" || fail "nsys not found: install Nsight Systems, or say where it is in \$NSYS"
  nsys=nsys
fi
importer=$(newest "$(dirname "$(dirname "$nsys")")"/linux-desktop-*/QdstrmImporter)

# --- what is recorded ---------------------------------------------------------------------------------------------

may_unwind() { # whether nsys may take backtraces; says so if not
  local answer level='not known'
  answer=$("$nsys" status -e 2>&1 || true)
  [[ $answer == *'(process-tree): Fail'* ]] || return 0
  [[ ! $answer =~ Paranoid\ Level\ =\ (-?[0-9]+) ]] || level=${BASH_REMATCH[1]}
  say "nsys may not take backtraces here (kernel.perf_event_paranoid is $level): Python is sampled instead, and its" \
    "lines are probable, not exact."
  say "For exact lines run \`sudo sysctl kernel.perf_event_paranoid=2\`, or run as root, in a container with" \
    "--cap-add=SYS_ADMIN."
  return 1
}

[ "$kind" = light ] || "$print" || may_unwind || kind=sampled
flags=("--trace=cuda,nvtx")
case $kind in
  sync) flags+=(--cudabacktrace=sync:0 "${STACKS[@]}") ;;
  full) flags+=(--cudabacktrace=all:0 "${STACKS[@]}") ;;
  sampled) flags+=("${SAMPLED[@]}") ;;
  light) flags+=("${LIGHT[@]}") ;;
esac
stacks=false
[ "$kind" != sync ] && [ "$kind" != full ] || stacks=true

# --- the environment ----------------------------------------------------------------------------------------------

looks_secret() { # NAME=VALUE
  [[ ${1#*=} =~ $SECRET_VALUE ]] && return
  local capitals=${1^^}
  [[ ${capitals%%=*} =~ $SECRET_NAME && ! $capitals =~ $PLAIN ]]
}

withheld() { # NAME SECRET: whether the program does not get this variable
  local pattern
  for pattern in "${withhold[@]}"; do
    [ "$pattern" != secrets ] || ! "$2" || return 0
    # shellcheck disable=SC2254 # the patterns are meant to match
    case $1 in $pattern) return 0 ;; esac
  done
  return 1
}

secrets=()   # names
kept_back=() # names
for entry in "${given[@]}"; do
  secret=false
  ! looks_secret "$entry" || { secret=true; secrets+=("${entry%%=*}"); }
  ! withheld "${entry%%=*}" "$secret" || kept_back+=("${entry%%=*}")
done

listed() { # NAME...: in one line, each once
  printf '%s\n' "$@" | sort -u | paste -sd , | sed 's/,/, /g'
}

settings=()
for variable in "${kept_back[@]}"; do
  settings+=(-u "$variable")
done
if "$stacks"; then
  # With backtraces nsys writes gigabytes of libraries. Its default compression takes one to two minutes for them.
  directives=$(given_value NSYS_CONFIG_DIRECTIVES || true)
  [[ $directives == *UseLZ4* ]] || directives+=${directives:+ }UseLZ4HighCompression=false
  settings+=("NSYS_CONFIG_DIRECTIVES=$directives")
fi

overwritten() { # into $restored: variables of the environment whose names this script uses for its own
  local entry
  local -A passed=()
  while IFS= read -r -d '' entry; do
    passed[$entry]=1
  done < <(env -0)
  restored=()
  for entry in "${given[@]}"; do
    [[ -n ${passed[$entry]:-} || " ${kept_back[*]} " == *" ${entry%%=*} "* ]] || restored+=("$entry")
  done
}

# --- the commands of a capture -----------------------------------------------------------------------------------

profile() { # NAME OVERWRITE: the command, into $command. nsys replaces %% in this name.
  command=("$nsys" profile "--output=${1//\%/%%}" "--force-overwrite=$2" "${flags[@]}" "${ranged[@]}" "${program[@]}")
}

export_sqlite() { # NAME OVERWRITE HELP-OF-EXPORT: the command, into $command
  command=("$nsys" export --type=sqlite "--force-overwrite=$2")
  # Without this flag the export drops the Python frames. Versions before 2024.5 do not know it.
  if [[ $3 == *--include-json* ]]; then
    command+=(--include-json=true)
  elif "$stacks"; then
    say "this nsys cannot export Python frames; 2025.1 or newer can"
  fi
  command+=("--output=$1.sqlite" "$1.nsys-rep")
}

import() { # NAME: the command, into $command
  local libraries
  libraries=$(dirname "$importer")${IMPORTER_LIBS:+:$IMPORTER_LIBS}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  command=(env "LD_LIBRARY_PATH=$libraries" "$importer" --input-file "$1.qdstrm" --output-file "$1.nsys-rep")
}

# --- printing them ------------------------------------------------------------------------------------------------

masked() { # WORD: with *** for its secrets
  local word=$1 entry secret='' group
  for entry in "${given[@]}"; do
    secret=${entry#*=}
    [ ${#secret} -lt 6 ] || [ -e "$secret" ] || ! looks_secret "$entry" || word=${word//"$secret"/***}
  done
  while [[ $word =~ $SECRET_VALUE ]]; do
    for group in "${BASH_REMATCH[@]:1}"; do
      secret=${group:-$secret}
    done
    [ "$secret" != '***' ] || break
    word=${word//"$secret"/***}
  done
  printf '%s' "$word"
}

show() { # a command as one would type it
  local word
  for word in "$@"; do
    word=$(masked "$word"; printf .) # a command substitution would drop line ends
    word=${word%.}
    case $word in
      *[!A-Za-z0-9_./:=,+@%-]* | '') printf '%q ' "$word" ;;
      *) printf '%s ' "$word" ;;
    esac
  done
}

if "$print"; then
  [ ${#secrets[@]} -eq 0 ] ||
    printf '# The environment has secrets, which capture.sh removes from the export: %s\n' "$(listed "${secrets[@]}")"
  [ ${#kept_back[@]} -eq 0 ] || printf 'env '
  [ ${#settings[@]} -eq 0 ] || show "${settings[@]}"
  profile "$name" "$force"
  show "${command[@]}"
  echo
  if [ -n "$importer" ]; then
    import "$name"
    show "${command[@]}"
    echo
  fi
  export_sqlite "$name" "$force" --include-json
  show "${command[@]}"
  echo
  exit 0
fi

# --- the run ------------------------------------------------------------------------------------------------------

traced() { # PID: the process below this one that nsys traces. nsys marks its environment.
  local child children
  children=$(cat "/proc/$1"/task/*/children 2>/dev/null) || true
  for child in $children; do
    if grep -qsaz '^NSYS_PROFILING_SESSION_ID=' "/proc/$child/environ"; then
      echo "$child"
      return
    fi
    traced "$child"
  done
}

watch() { # prints the second in which the program ended, and tells what nsys does then
  local pid='' tries=60
  while [ -z "$pid" ]; do
    [ $((tries--)) -gt 0 ] || return # a version of nsys that marks nothing
    sleep 0.5
    pid=$(traced $$)
  done
  pid=${pid%%$'\n'*}
  while [ -d "/proc/$pid" ]; do sleep 0.5; done
  printf '%s\n' "$SECONDS"
  if "$stacks"; then
    say "the program has ended; nsys copies the program's libraries into its report: 10 to 60 s"
  else
    say "the program has ended; nsys writes its report: some seconds"
  fi
}

watcher=
# shellcheck disable=SC2329 # the trap calls it
clean_up() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  rm -f "$part.sqlite" "$part.sqlite-journal"
  local file
  for file in "$part.nsys-rep" "$part.qdstrm"; do
    [ ! -e "$file" ] || say "$file holds what was recorded"
  done
}

scrub() { # SQLITE: removes secrets from an export and prints the names of their variables
  python3 -I - "$1" "$SECRET_NAME" "$PLAIN" "$SECRET_VALUE" "${kept_back[@]}" <<'PYTHON'
import os, re, sqlite3, sys

path, *rules = sys.argv[1:5]
NAME, PLAIN, VALUE = (re.compile(rule.encode(), re.DOTALL) for rule in rules)
unset = {os.fsencode(name) for name in sys.argv[5:]}
removed = set()  # names
anywhere = {}  # value that is removed wherever it occurs: name
entries = {}  # NAME=VALUE whose value is too short, or too ordinary, to be removed elsewhere: (new text, name)


def note(name, value):
    found = [match[match.lastindex] for match in VALUE.finditer(value)]
    if NAME.search(name.upper()) and not PLAIN.search((name + b"=" + value).upper()):
        found.append(value)
    hidden = value
    for secret in found:
        if len(secret) >= 6 and not os.path.exists(secret):
            anywhere[secret] = name
        hidden = hidden.replace(secret, b"***")
    if name in unset:
        hidden = b"***"
    if hidden != value:
        entries[name + b"=" + value] = name + b"=" + hidden, name
        entries[name + b'="' + value + b'"'] = name + b'="' + hidden + b'"', name


def rows(query):
    try:
        return db.execute(query).fetchall()
    except sqlite3.OperationalError:  # older exports lack the table
        return []


def collect():
    blocks = [b"\0".join(name + b"=" + value for name, value in os.environb.items())]
    blocks += [value for (value,) in rows("SELECT value FROM StringIds WHERE instr(CAST(value AS BLOB), x'00')")]
    blocks += [value.replace(b";", b"\0") for (value,) in rows(
        "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name LIKE '%Environment%'")]
    for entry in b"\0".join(blocks).split(b"\0"):
        name, _, value = entry.partition(b"=")
        note(name, value)
    for name, value in rows("SELECT name, value FROM META_DATA_CAPTURE WHERE value IS NOT NULL"):
        if name.endswith(b":ENVIRONMENT_VARIABLE"):
            name, _, value = value.partition(b"=")
            note(name, value[1:-1] if value[:1] == b'"' else value)
        elif b":ARGUMENT_" in name:
            note(b"an argument of the program", value)


def one_of(texts):
    return b"|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)) or rb"(?!)"


def entry_without_secret(match):
    new, name = entries[match[0]]
    removed.add(name)
    return new


def nothing(match):
    removed.add(anywhere[match[0]])
    return b"***"


def replace():
    whole = re.compile(rb"(?<![^\0;])(?:" + one_of(entries) + rb")(?![^\0;])")
    part = re.compile(one_of(anywhere))
    for (table,) in rows("SELECT replace(name, '\"', '\"\"') FROM sqlite_master WHERE type = 'table'"):
        for _, column, kind, *_ in rows(f'PRAGMA table_info("{table.decode()}")'):
            if kind.upper() != b"TEXT":
                continue
            where, changed = f'"{table.decode()}"', []
            column = column.decode()
            for row, text in db.execute(f'SELECT rowid, "{column}" FROM {where} WHERE typeof("{column}") = \'text\''):
                new = part.sub(nothing, whole.sub(entry_without_secret, text))
                if new != text:
                    changed.append((new, row))
            db.executemany(f'UPDATE {where} SET "{column}" = CAST(? AS TEXT) WHERE rowid = ?', changed)


try:
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = bytes  # texts may hold NUL, and need not be UTF-8
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA journal_mode = MEMORY")
    collect()
    db.execute("BEGIN")
    replace()
    db.execute("COMMIT")
    if removed:
        db.execute("VACUUM")
    db.close()
except (sqlite3.Error, OSError, MemoryError) as error:
    sys.exit(f"capture.sh: {path}: {error}")
for name in sorted(removed):
    print(name.decode(errors="replace"))
PYTHON
}

finish() { # STEM: gives the files of this run their names
  local extension
  for extension in nsys-rep sqlite; do
    "$force" || [ ! -e "$1.$extension" ] ||
      fail "$1.$extension was made meanwhile: give each rank a name of its own, -o NAME_%q{RANK}"
  done
  mv -f "$part.sqlite" "$1.sqlite"
  mv -f "$part.nsys-rep" "$1.nsys-rep"
}

trap clean_up EXIT
trap 'interrupted=true' INT TERM HUP

exec {watched}< <(watch)
watcher=$!
profile "$part" true
overwritten
ended=0
(exec {watched}<&- env "${settings[@]}" "${restored[@]}" "${command[@]}") || ended=$?
kill "$watcher" 2>/dev/null || true
watcher=
read -r -u "$watched" since || since=
[ "$ended" -eq 0 ] || status=$ended
! "$interrupted" || fail "interrupted"

if [ ! -e "$part.nsys-rep" ] && [ -e "$part.qdstrm" ]; then
  [ -n "$importer" ] || fail "nsys left a .qdstrm file, and there is no QdstrmImporter next to $nsys to convert it"
  import "$part"
  "${command[@]}" || fail "QdstrmImporter failed"
  rm -f "$part.qdstrm" # with backtraces it holds every mapped binary: 2 GB for PyTorch
fi
[ -e "$part.nsys-rep" ] || fail "nsys recorded nothing (exit status $ended). With --range the program must reach" \
  "the range: torch.cuda.profiler.start(), or an NVTX range of that name"
# SIGTERM: nsys ended the program at the end of the range.
[ "$range" = none ] || [ "$ended" -ne 143 ] || { ended=0; status=2; }
# The help goes through a variable: under pipefail, grep -q ending early would make nsys fail.
help=$("$nsys" export --help 2>&1 || true)
export_sqlite "$part" true "$help"
"${command[@]}" || fail "nsys could not export its report"

if ! removed=$(scrub "$part.sqlite"); then
  ! "$interrupted" || fail "interrupted"
  [ "$ended" -ne 0 ] || status=1
  finish "$name.unscrubbed"
  fail "removing the secrets needs python3 and did not succeed. $name.unscrubbed.nsys-rep and" \
    "$name.unscrubbed.sqlite hold them: $(listed "${secrets[@]:-none that this script can see}")"
fi
finish "$name"
say "wrote $name.nsys-rep and $name.sqlite${since:+, $((SECONDS - since)) s after the end of the program}"
if [ -n "$removed" ]; then
  say "removed from $name.sqlite: $(listed "$removed"). $name.nsys-rep still holds them: do not share that file."
fi
exit "$ended"
