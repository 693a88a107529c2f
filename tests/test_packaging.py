"""What is shipped: metadata said in several places agree, and files hold what they should."""

import re
import runpy
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from heckmanfa import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {
    "dask": "dask-core",
    "duckdb": "python-duckdb",
    "matplotlib": "matplotlib-base",
    "torch": "pytorch",
}


@pytest.fixture(scope="module")
def lowest():
    """The script that reads lower bounds off pyproject.toml."""
    return runpy.run_path(str(ROOT / "requirements" / "lowest.py"))


@pytest.fixture(scope="module")
def yaml():
    return pytest.importorskip("yaml")


def read(yaml, path):
    if not (ROOT / path).exists():
        pytest.skip(f"{path} is not part of the sdist")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_command_line_runs_as_a_module():
    run = subprocess.run(
        [sys.executable, "-m", "heckmanfa", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "Usage: python -m heckmanfa [OPTIONS] COMMAND" in run.stdout
    assert run.stderr == ""


def test_the_version_is_the_same_everywhere(yaml):
    citation = read(yaml, "CITATION.cff")
    recipe = read(yaml, "recipe/recipe.yaml")
    versions = {PROJECT["version"], __version__, citation["version"], recipe["context"]["version"]}
    assert len(versions) == 1
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert {PROJECT["license"], citation["license"], recipe["about"]["license"]} == {"BSD-3-Clause"}


def test_the_citation_has_what_its_format_asks_for(yaml):
    citation = read(yaml, "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["authors"] == PROJECT["authors"]
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()


def test_the_recipe_has_the_dependencies_of_the_project(yaml, lowest):
    recipe = read(yaml, "recipe/recipe.yaml")
    needed = recipe["requirements"]
    python, *run = needed["run"]
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    assert run == [line.replace(">=", " >=", 1) for line in PROJECT["dependencies"]]
    extras = lowest["lower_bounds"]({**PROJECT, "dependencies": []})
    expected = {CONDA_NAMES.get(name, name): version for name, version in extras.items()}
    assert dict(line.split(" >=") for line in needed["run_constraints"]) == expected
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script == " = ".join(next(iter(PROJECT["scripts"].items())))


def test_the_workflow_runs_every_supported_python_and_the_two_commands(yaml):
    jobs = read(yaml, ".github/workflows/ci.yml")["jobs"]
    supported = [
        found[1]
        for line in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]
    assert PROJECT["requires-python"] == f">={supported[0]}"
    commands = {
        name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()
    }
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported
    both = ["make PYTHON=python demo", "make PYTHON=python test"]
    assert commands["test"] == [*both, "make PYTHON=python check"]
    assert jobs["install"]["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    assert commands["build"] == ["make PYTHON=python dist"]
    constrain, *others = commands["lowest"]
    assert "requirements/lowest.py" in constrain
    assert others == both


def test_the_workflow_needs_no_secret(yaml):
    workflow = read(yaml, ".github/workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in (ROOT / ".github/workflows/ci.yml").read_text()


def test_lowest_versions_are_those_of_the_project(lowest):
    bounds = lowest["lower_bounds"](PROJECT)
    assert all(f"{name}>={bounds[name]}" in PROJECT["dependencies"] for name in ("numpy", "typer"))
    assert bounds["dask"] == bounds["distributed"]
    assert {"duckdb", "fsspec", "polars", "pyarrow", "torch"} < bounds.keys()
    with pytest.raises(SystemExit, match="'numpy<3' of pyproject"):
        lowest["lower_bounds"]({**PROJECT, "dependencies": ["numpy<3"]})


@pytest.mark.parametrize("file", ["test", "bench"])
def test_what_the_tests_install_has_the_bounds_of_the_project(lowest, file):
    bounds = lowest["lower_bounds"](PROJECT)
    lines = (ROOT / "requirements" / f"{file}.txt").read_text().splitlines()
    found = dict(
        match.groups()
        for line in lines
        if (match := re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line))
    )
    shared = bounds.keys() & found.keys()
    assert {"dask", "pyarrow"} <= shared
    assert {name: found[name] for name in shared} == {name: bounds[name] for name in shared}


def test_every_extra_is_in_all():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    others = sorted(PROJECT["optional-dependencies"].keys() - {"all"})
    assert everything == f"heckmanfa[{','.join(others)}]"


def files_of(builder):
    """What hatchling would put in, by the path inside the archive."""
    return {Path(file.distribution_path).as_posix() for file in builder.recurse_included_files()}


def test_the_wheel_holds_the_package_and_nothing_else():
    wheel = pytest.importorskip("hatchling.builders.wheel")
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "heckmanfa").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files_of(wheel.WheelBuilder(str(ROOT))) == expected
    assert {"heckmanfa/py.typed", "heckmanfa/datasets/data/mroz.csv"} <= expected
    assert {path.rpartition(".")[2] for path in expected} <= {
        *("py", "typed", "md", "csv", "txt", "css", "html", "js"),
    }


def test_the_sdist_holds_what_its_users_need():
    sdist = pytest.importorskip("hatchling.builders.sdist")
    files = files_of(sdist.SdistBuilder(str(ROOT)))
    # The licence, README.md and pyproject.toml are in every sdist of hatchling.
    needed = ["CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "SECURITY.md"]
    needed += ["recipe/recipe.yaml", "requirements/lowest.py", "docs/api.md"]
    needed += ["src/heckmanfa/py.typed", "tests/conftest.py", "tests/oracles/stata18.json"]
    assert set(needed) <= files
    assert not {file for file in files if file.startswith((".venv", "dist", "site", "reports"))}


@pytest.mark.study
def test_the_built_files_install_into_empty_environments_and_run(tmp_path):
    pytest.importorskip("build")
    pytest.importorskip("twine")
    python = sys.executable
    subprocess.run([python, "-m", "build", "--outdir", tmp_path / "dist", ROOT], check=True)
    files = sorted((tmp_path / "dist").iterdir())
    subprocess.run([python, "-m", "twine", "check", "--strict", *files], check=True)
    for file in files:
        if file.suffix == ".whl":
            with zipfile.ZipFile(file) as archive:
                assert archive.testzip() is None
        empty = tmp_path / f"empty{file.suffix}"
        venv.create(empty, with_pip=True)
        inside = [empty / "bin" / "python", "-I", "-m"]
        subprocess.run([*inside, "pip", "install", "--quiet", file], check=True)
        subprocess.run([*inside, "pip", "check"], check=True)
        subprocess.run([*inside, "heckmanfa", "demo", tmp_path / file.suffix[1:]], check=True)
