"""The page for the browser, in a notebook."""
from __future__ import annotations

import html
import tempfile
import webbrowser
from pathlib import Path
from typing import Optional, Sequence, Tuple, Union

from ._binary import PathLike, SyncReportError, run, sentence
from ._report import command_line


class Page:
    """A report as a page: a notebook shows it, `show` opens it in a browser.

    >>> import sync_report
    >>> page = sync_report.open_html("sample-profiles/train_mlp.sqlite")
    >>> page._repr_html_()[:41]
    '<iframe sandbox="allow-scripts" srcdoc="&'
    """

    def __init__(self, path: Path, height: int) -> None:
        self.path = path
        self.height = height

    def show(self) -> bool:
        """Opens it in a browser; whether there is one.

        >>> Page.show.__name__
        'show'
        """
        return webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        # The frame has an origin of its own: names in a capture can do nothing to the notebook.
        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="{style}"></iframe>'


def open_html(
    profile: PathLike,
    *more: PathLike,
    output: Optional[PathLike] = None,
    source_root: Union[PathLike, Sequence[PathLike]] = (),
    options: Sequence[str] = (),
    height: int = 900,
) -> Page:
    """A report as one page: timeline, sites, stacks, fixes. A notebook shows it if it is the last line of a cell.

    ``output`` keeps the page in a file; without, it lies in the folder for temporary files. The rest is as for `report`.

    >>> import sync_report
    >>> page = sync_report.open_html("sample-profiles/train_mlp.sqlite", height=600)
    >>> page.path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    arguments = command_line((profile, *more), source_root, options)
    if output is not None:
        path = Path(output)
    else:
        with tempfile.NamedTemporaryFile(prefix="sync-report-", suffix=".html", delete=False) as file:
            path = Path(file.name)
    try:
        before = _state(path)
        ran = run(["--format", "html", "-o", path, *arguments])
        # The program writes a page of a damaged export too, and then ends with 2. A page that was there before shows another run.
        if ran.returncode < 0 or (ran.returncode > 0 and _state(path) == before):
            raise SyncReportError(sentence(ran), ran.returncode)
    except BaseException:
        if output is None:
            path.unlink()
        raise
    return Page(path, height)


def _state(path: Path) -> Optional[Tuple[int, int, int]]:
    """Changes when a file is written anew; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
