"""The command line in a folder of its own, with tables to try it on."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.testing
from typer.testing import CliRunner

from heckmanfa.analysis import methods_compared, refits
from heckmanfa.cli import app
from heckmanfa.datasets import load_mroz

# The command line is read from its functions once, not in every call.
typer.testing._get_command = functools.cache(typer.main.get_command)

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc"]


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    """Checks search again in a few samples of the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "N_BOOT", 3)
        yield


class Shell:
    """A folder, and commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object) -> tuple[int, str]:
        """The exit status and all that was printed, without colours and line ends."""
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        text = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
        return result.exit_code, " ".join(text.split())

    def runs(self, *arguments: object) -> str:
        """All that a command printed, which must end well."""
        status, text = self(*arguments)
        assert status == 0, text
        return text

    def json(self, name: str) -> Any:
        """What a file in the folder holds as JSON."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def results(self, *arguments: object) -> tuple[dict[str, Any], str]:
        """The results of a fit as JSON, and what it printed."""
        text = self.runs("fit", *arguments, "--json", "results.json", "--force")
        return self.json("results.json"), text

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def refuses(self, *arguments: object) -> str:
        """A command that must end with status 2, one error, and no file more than before."""
        before = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        result = CliRunner().invoke(app, [str(one) for one in arguments])
        assert result.exit_code == 2, result.output
        # What else is wrong with the table, and the command with every option, are further lines.
        further = ("also: ", "run: ", "after that: ")
        lines = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]
        errors = [line for line in lines if not line.startswith(further)]
        assert len(errors) == 1, result.stderr
        assert errors[0].startswith("error: ")
        after = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        assert after == before
        return errors[0]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


@pytest.fixture
def untrained(monkeypatch):
    """Comparisons without the two methods that train, which take most of their time."""

    def fewer(*args, **options):
        found = methods(*args, **options)
        return {name: one for name, one in found.items() if not name.startswith("Heckman-FA")}

    methods = methods_compared.methods
    monkeypatch.setattr(methods_compared, "methods", fewer)


@pytest.fixture
def briefly_trained(monkeypatch):
    """Comparisons in which the two methods that train do so for a few epochs."""

    def brief(*args, **options):
        found = methods(*args, **options)
        for name in ("Heckman-FA", "Heckman-FA*"):
            found[name].set_params(epochs=20)
        return found

    methods = methods_compared.methods
    monkeypatch.setattr(methods_compared, "methods", brief)


@pytest.fixture
def mroz(shell):
    """mroz.csv with a few features, and the frame in it."""
    frame = load_mroz()[["lwage", *FEATURES]]
    frame.to_csv(shell.folder / "mroz.csv", index=False)
    return frame


@pytest.fixture
def rich_table(shell):
    """towns.csv: categories, an identifier, a constant, gaps, weights and groups."""
    frame = load_mroz()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "woman": [f"w{place:04d}" for place in range(len(frame))],
            "wage": frame["lwage"],
            "works": np.where(frame["lfp"] == 1, "yes", "no"),
            "educ": frame["educ"].astype(float),
            "exper": frame["exper"],
            "kids5": frame["kids5"],
            "age": frame["age"],
            "region": rng.choice(["north", "south", "west"], len(frame), p=[0.5, 0.3, 0.2]),
            "town": rng.integers(0, 40, len(frame)),
            "weight": rng.integers(1, 4, len(frame)),
            "share": rng.uniform(0.5, 2.0, len(frame)),
            "country": "US",
        }
    )
    table.loc[[3, 400], "educ"] = np.nan
    table.to_csv(shell.folder / "towns.csv", index=False)
    return table
