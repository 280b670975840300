"""The recipe of nsys: ``NSYS_RECIPE_PATH=... nsys recipe sync_report --input DIR``.

The folder of this package is the recipe's folder; `NSYS_RECIPE_PATH` names the one around it:

    export NSYS_RECIPE_PATH=$(python -c "import pathlib, sync_report; print(pathlib.Path(sync_report.__file__).parents[1])")
"""
from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any, List

from nsys_recipe import log
from nsys_recipe.lib import recipe
from nsys_recipe.lib.args import Option
from nsys_recipe.log import logger

from sync_report import _ranks


class BadInput(SystemExit):
    """Ends nsys with the program's exit code, and keeps what could be read."""


class SyncReport(recipe.Recipe):
    """Maps the program over reports, and reduces with its `merge`."""

    @staticmethod
    def _mapper_func(report_path: str, parsed_args: Any) -> _ranks.Part:
        return _ranks.read(str(_ranks.export_of(Path(report_path))), parsed_args.options.split(), parsed_args.binary)

    @log.time("Mapper")
    def mapper_func(self, context: Any) -> List[_ranks.Part]:
        captures = [str(path) for path in _ranks.without_light([Path(path) for path in self._parsed_args.input])]
        mapped = context.map(self._mapper_func, captures, parsed_args=self._parsed_args)
        parts: List[_ranks.Part] = context.wait(mapped)
        return parts

    @log.time("Reducer")
    def reducer_func(self, results: List[_ranks.Part]) -> int:
        # Here, not where it happened: what a worker of Dask logs stays there.
        for part in results:
            for line in part.said.splitlines():
                logger.error(line)
        parts = [part for part in results if not part.failed]
        if not parts:
            raise BadInput(2)
        ranks = str(Path(self.add_output_file("ranks", "Data")))
        shutil.rmtree(ranks, ignore_errors=True)
        program = self._parsed_args.binary
        for number, (name, kind) in enumerate((("report.html", "html"), ("report.json", "json"))):
            output = self.add_output_file(name, "Data")
            # The results are kept once: `sync-report merge` of those folders gives any other format.
            merged = _ranks.merge(parts, ["--format", kind, "-o", str(output)], program, ranks if number == 0 else None)
            if merged.returncode and number == 0:
                logger.error(merged.stderr.decode(errors="replace").strip())
        return merged.returncode or (2 if any(part.said for part in results) else 0)

    def save_analysis_file(self) -> None:
        self._analysis_dict.update(
            {"EndTime": str(datetime.now()), "InputFiles": self._parsed_args.input, "Outputs": self._output_files}
        )
        self.create_analysis_file()

    def run(self, context: Any) -> None:
        super().run(context)
        code = self.reducer_func(self.mapper_func(context))
        self.save_analysis_file()
        if code:
            logger.info(f"Generated: {self.output_dir}")
            raise BadInput(code)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if exc_type is not BadInput:  # the framework deletes what a failed recipe wrote
            super().__exit__(exc_type, exc_value, traceback)

    @classmethod
    def get_argument_parser(cls) -> Any:
        parser = super().get_argument_parser()
        parser.add_recipe_argument(Option.INPUT, required=True)
        parser.add_recipe_argument(Option.OUTPUT)
        parser.add_recipe_argument(Option.FORCE_OVERWRITE)
        parser.add_recipe_argument(
            "--binary",
            default=os.environ.get("SYNC_REPORT_BIN", "sync-report"),
            help="sync-report on every worker",
        )
        parser.add_recipe_argument(
            "--options", default="", help="options of each reading, e.g. '--source-root OLD=NEW'"
        )
        return parser
