#!/usr/bin/env python3
"""Makes PyPI's PyTorch importable on a machine without a GPU, from a quarter of its download.

    python3 scripts/cpu_torch.py WHEELS FOLDER     then: PYTHONPATH=FOLDER python3 -c 'import torch'

PyPI's PyTorch for Linux is the one for CUDA: with NVIDIA's libraries 2.6 GB, of which a CPU calls none. WHEELS has the
wheels of torch and of the Python packages that it imports; they are unpacked into FOLDER, and each library of NVIDIA's
that is missing is stood in for: a C file with the names that PyTorch's libraries ask it for, so that the loader finds
them. Each answers that there is no device.
"""

import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

# cudaErrorNoDevice
NO_DEVICE = 100


def readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def wanted(libraries: list[Path]) -> dict[str, dict[str, set[str]]]:
    """Per library that is missing, the symbols asked of it, by version."""
    stubs: dict[str, dict[str, set[str]]] = {}
    present = {path.name for path in libraries}
    names, version_of = set(), {}
    for path in libraries:
        text = readelf("-d", path)
        names |= {n for n in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if re.match(r"lib(cu|nccl|nv)", n)}
        for block in re.split(r"\n(?=\s+0x\w+: Version: )", readelf("-V", path).partition("needs section")[2]):
            for file in re.findall(r"File: (\S+)", block):
                version_of.update({version: file for version in re.findall(r"Name: (\S+)", block)})
    missing = names - present
    for name in missing:
        stubs[name] = defaultdict(set)
    defined, undefined = set(), set()
    for path in libraries:
        for line in readelf("--dyn-syms", path).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK"):
                continue
            name, _, version = fields[7].partition("@")
            (undefined if fields[6] == "UND" else defined).add((name, version.lstrip("@")))
    plain = {name for name, _ in defined}
    for name, version in undefined:
        # Some give their symbols no version: the library's name begins the symbol's.
        named = [m for m in missing if name.lower().startswith(m[3:].split(".")[0].lower())]
        library = version_of.get(version) or max(named, key=len, default=None)
        if library in missing and name not in plain:
            stubs[library][version].add(name)
    return stubs


def build(name: str, symbols: dict[str, set[str]], folder: Path) -> None:
    source, script = folder / f"{name}.c", folder / f"{name}.map"
    every = sorted(set().union(*symbols.values()) if symbols else [])
    text = re.compile("Get(Error|Status)?(String|Name)$")
    answer = {True: 'const char *{}(void) {{ return "no device"; }}\n', False: f"int {{}}(void) {{{{ return {NO_DEVICE}; }}}}\n"}
    source.write_text("".join(answer[bool(text.search(symbol))].format(symbol) for symbol in every))
    nodes = (f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in symbols.items() if version)
    script.write_text("".join(nodes))
    flags = [f"-Wl,--version-script={script}"] if any(symbols) else []
    command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", source, "-o", folder / name, f"-Wl,-soname,{name}"]
    subprocess.run([*command, *flags], check=True)


def main(wheels: str, target: str) -> None:
    folder = Path(target)
    for wheel in sorted(Path(wheels).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    lib = folder / "torch" / "lib"
    for name, symbols in wanted(sorted(lib.glob("*.so*"))).items():
        build(name, symbols, lib)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
