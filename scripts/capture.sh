#!/usr/bin/env bash
# Captures a PyTorch program with Nsight Systems and exports what sync-report reads. See --help.
set -euo pipefail

usage() {
  cat <<'TEXT'
Capture a program with Nsight Systems and export it for sync-report.

usage: capture.sh [OPTIONS] [--] PROGRAM [ARGUMENT...]

  --full           Python and C++ backtraces of every wait, copy and allocation (default). Names the line of each
                   wait. Slow: PyTorch needs one to three minutes more, and a traced call takes 10-100 us longer.
  --light          Timing only: seconds instead of minutes, an export of a few MB, times close to the bare run.
  --both           Run the program twice, first --full, then --light. A report of NAME.sqlite takes its lines from the
                   one and its times from the other, NAME.light.sqlite, which it finds beside it. What the program
                   writes (checkpoints, logs) it writes twice.
  --range RANGE    What to record:
                     none              the whole run (default)
                     cudaProfilerApi   from torch.cuda.profiler.start() to .stop(); leave the warm-up out this way
                     nvtx:NAME         the first NVTX range of that name
  -o, --output NAME  Write NAME.nsys-rep and NAME.sqlite (default: sync-report); with --both also
                     NAME.light.nsys-rep and NAME.light.sqlite
  --force          Overwrite them
  --keep VAR       Pass this environment variable on too; may be repeated, * matches any text
  --keep-env       Pass the whole environment on
  --print          Print the commands instead of running them
  -h, --help       This text

nsys stores the environment of the program in the report, tokens and passwords included. Therefore the program gets
only PATH, HOME, LANG, LC_*, TMPDIR, LD_LIBRARY_PATH, VIRTUAL_ENV, CONDA_PREFIX and what begins with CUDA, NVIDIA_,
PYTHON, PYTORCH_, TORCH, NCCL_ or OMP_, unless --keep or --keep-env say otherwise.

nsys is taken from $NSYS, the PATH, /opt/nvidia/nsight-systems or, last, from inside Nsight Compute, whose copy does
not convert its recording by itself: QdstrmImporter of the same folder does. If that misses libraries (libdw, libelf,
libpfm, ...), name the folder that has them in $IMPORTER_LIBS.

Then: sync-report NAME.sqlite
TEXT
}

# Every call gets a backtrace: of several kinds (sync:0,memory:0,…) nsys 2025.3 kept the last one only. The threshold
# of 0 ns matters: many versions of nsys default to 80 us, which is longer than most waits of an .item().
# Backtraces need CPU sampling switched on; frame pointers are what PyTorch's wheels can be unwound with cheaply.
readonly FULL=("--trace=cuda,nvtx" "--cudabacktrace=all:0" --python-backtrace=cuda
  --sample=process-tree --backtrace=fp)
readonly LIGHT=("--trace=cuda,nvtx" --sample=none --cpuctxsw=none)
readonly KEPT=(PATH HOME LANG 'LC_*' TMPDIR LD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX 'CUDA*' 'NVIDIA_*' 'PYTHON*'
  'PYTORCH_*' 'TORCH*' 'NCCL_*' 'OMP_*')

fail() {
  printf 'capture.sh: %s\n' "$*" >&2
  exit 2
}

# --- what was typed ---------------------------------------------------------------------------------------------

kinds=(full)
range=none
name=sync-report
force=false
print=false
keep_env=false
keep=()

value() { # OPTION REMAINING-COUNT: an option at the end of the line has no value
  [ "$2" -gt 1 ] || fail "$1 needs a value"
}

while [ $# -gt 0 ]; do
  case $1 in
    --full) kinds=(full) ;;
    --light) kinds=(light) ;;
    --both) kinds=(full light) ;;
    --range) value "$1" $#; range=$2; shift ;;
    --range=*) range=${1#*=} ;;
    -o | --output) value "$1" $#; name=${2%.sqlite}; shift ;;
    --output=*) name=${1#*=}; name=${name%.sqlite} ;;
    --keep) value "$1" $#; keep+=("$2"); shift ;;
    --keep=*) keep+=("${1#*=}") ;;
    --keep-env) keep_env=true ;;
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

stem() { # KIND: what its files are called. A capture that is made alone has the name as given.
  if [ "${#kinds[@]}" -gt 1 ] && [ "$1" = light ]; then printf '%s.light\n' "$name"; else printf '%s\n' "$name"; fi
}

# All of them before the first run: the second one must not find out after minutes that its file is there.
for kind in "${kinds[@]}"; do
  for file in "$(stem "$kind").nsys-rep" "$(stem "$kind").sqlite"; do
    "$force" || "$print" || [ ! -e "$file" ] || fail "$file exists (--force overwrites it)"
  done
done

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

# --- the environment ----------------------------------------------------------------------------------------------

kept() { # VARIABLE: whether the program gets it
  local pattern
  for pattern in "${keep[@]}"; do
    # shellcheck disable=SC2254 # the patterns are meant to match
    case $1 in $pattern) return 0 ;; esac
  done
  case $1 in *TOKEN* | *SECRET* | *PASSW* | *_KEY) return 1 ;; esac
  for pattern in "${KEPT[@]}"; do
    # shellcheck disable=SC2254
    case $1 in $pattern) return 0 ;; esac
  done
  return 1
}

environment=()
names=()
if ! "$keep_env"; then
  environment=(env -i)
  while IFS= read -r variable; do
    if kept "$variable"; then
      names+=("$variable")
      environment+=("$variable=${!variable}")
    fi
  done < <(compgen -e)
fi

# --- the commands of a capture -----------------------------------------------------------------------------------

show() { # a command as one would type it
  local word
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,+@%-]* | '') printf '%q ' "$word" ;;
      *) printf '%s ' "$word" ;;
    esac
  done
  printf '\n'
}

show_environment() { # names, not values: the line can be pasted anywhere and shows nobody's paths
  local variable
  printf 'env -i '
  for variable in "${names[@]}"; do
    printf '%s="$%s" ' "$variable" "$variable"
  done
}

profile() { # KIND NAME
  local flags=("${FULL[@]}")
  [ "$1" = full ] || flags=("${LIGHT[@]}")
  local command=("$nsys" profile "--output=$2" --force-overwrite=true "${flags[@]}" "${ranged[@]}" "${program[@]}")
  if ! "$print"; then
    "${environment[@]}" "${command[@]}"
    return
  fi
  "$keep_env" || show_environment
  show "${command[@]}"
}

import() { # NAME
  local importer libraries
  importer=$(newest "$(dirname "$(dirname "$nsys")")"/linux-desktop-*/QdstrmImporter)
  [ -n "$importer" ] || fail "nsys left $1.qdstrm, and there is no QdstrmImporter next to $nsys to convert it"
  libraries=$(dirname "$importer")${IMPORTER_LIBS:+:$IMPORTER_LIBS}
  LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    "$importer" --input-file "$1.qdstrm" --output-file "$1.nsys-rep"
  rm -f "$1.qdstrm" # with backtraces it holds every mapped binary: 2 GB for PyTorch
}

export_sqlite() { # KIND NAME
  local command=("$nsys" export --type=sqlite --force-overwrite=true)
  # Without this flag the export drops the Python frames. Versions before 2024.5 do not know it.
  # The help goes through a variable: under pipefail, grep -q ending early would make nsys fail.
  local help=--include-json
  "$print" || help=$("$nsys" export --help 2>&1 || true)
  if [[ $help == *--include-json* ]]; then
    command+=(--include-json=true)
  elif [ "$1" = full ]; then
    printf 'capture.sh: this nsys cannot export Python frames; 2025.1 or newer can\n' >&2
  fi
  command+=("--output=$2.sqlite" "$2.nsys-rep")
  if "$print"; then show "${command[@]}"; else "${command[@]}"; fi
}

capture() { # KIND: writes its files; leaves the program's exit status in $status, if it is the first that is not 0
  local to ended=0
  to=$(stem "$1")
  "$print" || rm -f "$to.nsys-rep" "$to.qdstrm" "$to.sqlite"
  profile "$1" "$to" || ended=$?
  if ! "$print"; then
    [ -e "$to.nsys-rep" ] || [ ! -e "$to.qdstrm" ] || import "$to"
    [ -e "$to.nsys-rep" ] || fail "nsys recorded nothing (exit status $ended). With --range the program must reach" \
      "the range: torch.cuda.profiler.start(), or an NVTX range of that name"
  fi
  export_sqlite "$1" "$to"
  "$print" || printf 'capture.sh: wrote %s.nsys-rep and %s.sqlite\n' "$to" "$to" >&2
  [ "$status" -ne 0 ] || status=$ended
}

status=0
for kind in "${kinds[@]}"; do
  capture "$kind"
done
if ! "$print" && [ "${kinds[*]}" = full ] && [ -e "$name.light.sqlite" ]; then
  printf 'capture.sh: %s is of another run, and reports of %s take times from it: --both makes both anew\n' \
    "$name.light.sqlite" "$name.sqlite" >&2
fi
exit "$status"
