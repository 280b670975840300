"""``python -m sync_report``: the command, where its folder is not on the PATH."""
import subprocess
import sys

from ._binary import SyncReportError, binary

if __name__ == "__main__":
    try:
        sys.exit(subprocess.call([binary(), *sys.argv[1:]]))
    except SyncReportError as error:
        print(f"sync-report: {error}", file=sys.stderr)
        sys.exit(2)
