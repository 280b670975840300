#!/usr/bin/env python3
"""How wide ranges of savings must be to hold in 80 % of measured programs, and whether that holds for a program left out: ranges.py FILE

FILE has a table with rows "| program | … | predicted (low–high) | measured |", all in % of the iteration.
"""
import re
import statistics
import sys
from pathlib import Path
from typing import List, NamedTuple, Tuple

HELD = 0.8
#: A range is widened by a factor, and by a share of the iteration, in %.
WIDER = [(factor, share) for factor in (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4) for share in (0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3)]
ROW = re.compile(r"\| (.+?) \|.*\| (-?[\d.]+) \((-?[\d.]+)–(-?[\d.]+)\) \| (-?[\d.]+) \|$")


class Program(NamedTuple):
    name: str
    predicted: float
    low: float
    high: float
    measured: float

    def range(self, wider: Tuple[float, float]) -> Tuple[float, float]:
        factor, share = wider
        low = self.predicted - factor * (self.predicted - self.low) - share
        return max(low, 0), self.predicted + factor * (self.high - self.predicted) + share

    def held(self, wider: Tuple[float, float]) -> bool:
        low, high = self.range(wider)
        return low <= max(self.measured, 0) <= high


def width(programs: List[Program], wider: Tuple[float, float]) -> float:
    ranges = [program.range(wider) for program in programs]
    return statistics.median(high - low for low, high in ranges)


def narrowest(programs: List[Program]) -> Tuple[float, float]:
    """The narrowest of WIDER that holds in enough of them."""
    enough = [wider for wider in WIDER if sum(p.held(wider) for p in programs) >= HELD * len(programs)]
    if not enough:
        sys.exit("ranges.py: no width that is tried holds in 80 % of the programs")
    return min(enough, key=lambda wider: (width(programs, wider), wider))


def main() -> None:
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    rows = [row.groups() for row in map(ROW.match, lines) if row]
    programs = [Program(name, *map(float, rest)) for name, *rest in rows]
    for text, wider in (("as printed", (1, 0)), ("narrowest for 80 %", narrowest(programs))):
        held = sum(program.held(wider) for program in programs)
        print(f"{text}: factor {wider[0]}, {wider[1]} % on both sides: {held} of {len(programs)} held, {width(programs, wider):.1f} % wide")
    others = [(program, narrowest([p for p in programs if p is not program])) for program in programs]
    held = [program.held(wider) for program, wider in others]
    print(f"each left out in turn: {sum(held)} of {len(programs)} held")


if __name__ == "__main__":
    main()
