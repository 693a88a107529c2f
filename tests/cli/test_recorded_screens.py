"""What commands print is what they printed when it was recorded; see `tests/recorded.py`."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from tests.recorded import compare, path_of
from typer.testing import CliRunner

from heckmanfa.cli import app
from heckmanfa.datasets import load_mroz

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc"]
SCREENS = {
    "fit, average": ["fit", "mroz.csv", "--outcome", "lwage"],
    "fit, search": ["fit", "mroz.csv", "--outcome", "lwage", "--search", "best-subset"],
    "fit, honest": ["fit", "mroz.csv", "--outcome", "lwage", "--honest"],
    "fit, linear": [
        *("fit", "mroz.csv", "--outcome", "lwage", "--search", "none", "--robust"),
        *("--select-only", "age,kids5,kids618,nwifeinc"),
    ],
    "fit, held rho": ["fit", "mroz.csv", "--outcome", "lwage", "--search", "none", "--rho", "0.3"],
    "fit, log": ["fit", "wages.csv", "--outcome", "wage", "--outcome-transform", "log"],
    "fit, binary": ["fit", "binary.csv", "--outcome", "paid"],
    "fit, binary, average": ["fit", "binary.csv", "--outcome", "paid", "--search", "average"],
    "fit, categories, ml": [
        *("fit", "regions.csv", "--outcome", "lwage", "--method", "ml", "--search", "none"),
        *("--select-only", "age,kids5"),
    ],
    "fit, files": [
        *("fit", "mroz.csv", "--outcome", "lwage", "--search", "none", "--select-only", "age"),
        *("--json", "a.json", "--save", "a.heckmanfa", "--save-table", "a.csv"),
    ],
    "compare": [
        *("compare", "mroz.csv", "--outcome", "lwage", "--folds", "2", "--repeats", "1"),
        "--no-ru",
    ],
    "compare, binary": [
        *("compare", "binary.csv", "--outcome", "paid", "--folds", "2", "--repeats", "1"),
    ],
}


@pytest.fixture
def tables(shell):
    mroz = load_mroz()
    few = mroz[[*FEATURES, "lwage"]]
    few.to_csv("mroz.csv", index=False)
    wage = mroz["wage"].where(mroz["lfp"] == 1)
    mroz[FEATURES].assign(wage=wage).to_csv("wages.csv", index=False)
    paid = mroz["wage"].ge(4).map({True: "well", False: "low"}).where(mroz["lfp"] == 1)
    mroz[FEATURES[:4]].assign(paid=paid).to_csv("binary.csv", index=False)
    places = pd.Series(["north", "south", "east"] * 251)
    few.assign(region=places, gaps=mroz["unem"].where(mroz.index % 9 > 0)).to_csv(
        "regions.csv", index=False
    )


@pytest.mark.usefixtures("tables", "untrained")
@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_is_the_recorded_one(name):
    result = CliRunner().invoke(app, SCREENS[name], env={"COLUMNS": "100"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    said = f"status {result.exit_code}\n{result.stdout}== stderr\n{result.stderr}"
    # The last column of a comparison is seconds, and the frame is as wide as they are.
    said = re.sub(r"^[┏┡└].*\n", "", said, flags=re.MULTILINE)
    held_out, title, estimates = said.partition("Estimates for everyone")
    held_out = re.sub(r"[│┃][^│┃]*[│┃]$", "│", held_out, flags=re.MULTILINE)
    said = held_out + title + estimates
    compare(f"screens/{name}", re.sub(r"[ \t]+$", "", said, flags=re.MULTILINE).rstrip())


def test_no_screen_has_a_hyphen_for_a_minus():
    for name in SCREENS:
        said = path_of(f"screens/{name}").read_text(encoding="utf-8")
        # A minus before a number or its exponent; options, names and ranges keep their hyphens.
        assert re.findall(r"(?<![\w.-])-\.?\d|\de-\d", said) == [], name
        assert "chi2" not in said
