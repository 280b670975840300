"""Everything that is printed as JSON fits its schema, and no field is without a description."""
import json
import os
import subprocess
from pathlib import Path

import pytest
import sync_report
from jsonschema import Draft202012Validator

SAMPLES = sorted(Path("sample-profiles").glob("**/*.sqlite"))
SAMPLE = "sample-profiles/train_mlp_shapes.sqlite"
PAIR = ["sample-profiles/fixed/before.sqlite", "sample-profiles/fixed/after.sqlite"]
#: Bytes that `--brief` stays below.
BRIEF = 20_000


def printed(*arguments: str) -> dict:
    ran = sync_report.run([*arguments, "-q"])
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


def strict(schema):
    """The schema with no room for a field that it does not name."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    # Flattened structs (the sizes of a product, the outcome of a proposal) are open there.
    if "properties" in closed and "oneOf" in closed:
        closed["oneOf"] = [{**part, "unevaluatedProperties": True} for part in closed["oneOf"]]
    if "properties" in closed and "$ref" not in closed and "allOf" not in closed:
        closed["unevaluatedProperties"] = False
    return closed


def hold(name: str, tree: dict) -> None:
    schema = json.loads(Path(f"docs/schema/{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    errors = [
        f"{error.json_path}: {error.message[:200]}"
        for of in (schema, strict(schema))
        for error in Draft202012Validator(of).iter_errors(tree)
    ]
    assert not errors, errors[:5]


def test_what_is_made_from_the_program_is_up_to_date():
    subprocess.run(["python3", "scripts/generate.py", "--check"], check=True)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize("sources", [[], ["--source-root", "sample-profiles/programs"]], ids=["", "sources"])
def test_reports(sample: Path, sources: list):
    hold("report", printed(str(sample), "--format", "json", *sources))
    text = sync_report.run([sample, "--format", "json", "--brief", "-q", *sources]).stdout
    assert len(text.encode()) < BRIEF
    hold("brief", json.loads(text))


def test_a_report_of_several_ranks_is_brief_too():
    text = sync_report.run([*SAMPLES, "--format", "json", "--brief", "-q"]).stdout
    assert len(text.encode()) < BRIEF
    tree = json.loads(text)
    hold("brief", tree)
    assert len(tree["sites"]) > 5 and tree["sites_omitted"] > 0 and tree["profiles_omitted"] == len(SAMPLES) - 3


def test_brief_is_a_form_of_json():
    ran = sync_report.run([SAMPLE, "--brief"])
    assert (ran.returncode, ran.stdout) == (2, "") and "--format json" in ran.stderr


def test_comparisons():
    hold("diff", printed("diff", *PAIR, "--format", "json", "--all"))
    hold("diff", printed("diff", SAMPLE, "sample-profiles/patterns.sqlite", "--format", "json"))


def test_gates(tmp_path: Path):
    hold("check", printed("check", SAMPLE, "--fail-on", "any-false,drain>5%", "--format", "json"))
    hold("check", printed("check", PAIR[1], "--baseline", PAIR[0], "--format", "json"))
    budget = tmp_path / "sync-budget.toml"
    budget.write_text(
        '[limits]\nfalse-waits = 2\n[[allow]]\npath = "train_mlp.py"\nfunction = "main"\nreason = "r"\nexpires = 2099-12-31\n'
    )
    hold("check", printed("check", SAMPLE, "--budget", str(budget), "--format", "json"))


def test_plans():
    for sample in (SAMPLE, "sample-profiles/pairs_h2d_pageable.sqlite"):
        hold("plan", printed("replay", sample, "--plan"))


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A driver and a cuBLAS that pretend to be a GPU, as the tests of replays use them."""
    folder = tmp_path_factory.mktemp("stubs")
    stubs = Path(__file__).parents[2] / "tests/stubs"
    cc = ["cc", "-shared", "-fPIC", "-O2"]
    driver, products = folder / "libcuda.so.1", folder / "libcublas.so.13"
    subprocess.run([*cc, f"-Wl,-soname,{driver.name}", "-o", driver, stubs / "cuda.c", "-lpthread"], check=True)
    subprocess.run([*cc, f"-Wl,-soname,{products.name}", "-o", products, stubs / "cublas.c", driver], check=True)
    return str(folder)


def test_measurements(libraries: str, tmp_path: Path):
    constants = tmp_path / "constants.json"
    bench = ["bench", "--sizes", "16", "--types", "fp16", "--rounds", "1", "--lib-dir", libraries]
    hold("bench", printed(*bench, "--format", "json", "--save", str(constants)))
    hold("constants", json.loads(constants.read_text()))
    replay = ["replay", SAMPLE, "--site", "S1", "--seconds", "1", "--lib-dir", libraries, "--format", "json"]
    measured = tmp_path / "replayed.json"
    measured.write_text(json.dumps(printed(*replay)))
    hold("replay", json.loads(measured.read_text()))
    hold("report", printed(SAMPLE, "--replay-results", str(measured), "--format", "json"))


def test_every_field_has_a_description():
    for path in Path("docs/schema").glob("*.json"):
        schema = json.loads(path.read_text())
        for name, node in [*schema.get("$defs", {}).items(), (path.stem, schema)]:
            missing = [field for field, of in node.get("properties", {}).items() if "description" not in of]
            # The word that tells a kind of act from the others says itself.
            assert not [field for field in missing if field != "act"], (path.name, name, missing)


def test_sources_without_a_capture():
    hold("lint", printed("lint", "sample-profiles/programs", "--format", "json"))


def test_an_unknown_schema_is_a_sentence():
    ran = sync_report.run(["schema", "nothing"])
    assert ran.returncode == 2 and "sync-report schema" in ran.stderr


def test_knowledge():
    tree = printed("explain", "--format", "json")
    hold("explain", tree)
    assert {entry["id"] for entry in tree["patterns"]} > {"A01", "C03", "K01", "L01", "N01"}
    assert {entry["id"] for entry in tree["rules"]} > {"R01", "S01", "X4", "undecided"}
    assert {entry["code"] for entry in tree["warnings"]} > {"events-lost", "profiler-overhead"}
    one = printed("explain", "A03", "--format", "json")
    assert [entry["id"] for entry in one["patterns"]] == ["A03"] and not one["warnings"]
    assert "SYNC_REPORT_BIN" in os.environ, "the tests are of a binary that was named"


def test_ranks_merged(tmp_path: Path):
    folders = [str(tmp_path / f"rank{rank}") for rank in range(2)]
    for folder, sample in zip(folders, PAIR):
        sync_report.run([sample, "--format", "parquet", "-o", folder, "-q"])
    hold("report", printed("merge", *folders, "--format", "json"))
    hold("report", printed("sample-profiles/ranks", "--format", "json"))
