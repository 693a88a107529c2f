"""What the command line says speaks of its options."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa.datasets import make_selection

# Parameters of Python: two words joined by an underscore, or a value given by "=".
PARAMETER = re.compile(
    r"\b(on_\w+|\w+_features|rho_range|feature_groups|sample_weight|weight_kind|cov_type|random_state)\b|\w=['\"]"
)


@pytest.fixture
def table(shell):
    data = make_selection(400, 4, 2, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a", "b", "c", "d"]).assign(y=data.y)
    # Few rows have it, and these are all selected.
    frame["rare"] = np.where(frame["y"].notna() & (np.arange(400) % 20 == 0), 1, 0)
    frame["w"] = 1.5
    frame.to_csv("in.csv", index=False)
    return frame


BASE = ("fit", "in.csv", "--outcome", "y", "--exclude", "w")


def test_separation_is_dropped_on_the_command_line(shell, table):
    error = shell.refuses(*BASE, "--search", "none", "--predict-with", "a,b")
    assert "pass --on-separation drop to leave out" in error
    assert not PARAMETER.search(error)
    words = (*BASE, "--search", "none", "--predict-with", "a,b", "--on-separation", "drop")
    text = shell.runs(*words, "--json", "j.json", "--verbose")
    assert "Left out: 'rare' is collinear" in text
    assert "10 have a feature that determines selection exactly" in text
    found = shell.json("j.json")
    assert "--on-separation drop" in found["command"]
    assert "rare" not in [one["term"] for one in found["estimates"]]
    assert "--on-separation must be one of" in shell.refuses(*BASE, "--on-separation", "leave")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rho-range", "0.5", "0.4"), "--rho-range"),
        (("--rho-range", "-2", "2"), "--rho-range -0.999 0.999"),
        (("--rho-range", "0.99", "0.995"), "Widen --rho-range"),
        (("--always", "a", "--select-only", "a"), "--select-only"),
        (("--always", "a", "--predict-with", "b,c"), "--always"),
        (("--predict-with", "a", "--select-only", "a"), "--"),
    ],
)
def test_errors_name_options(shell, table, words, said):
    error = shell.refuses(*BASE, "--on-separation", "drop", *words)
    assert said in error
    assert not PARAMETER.search(error), error


def test_warnings_and_diagnostics_name_options_on_the_console_in_json_and_in_the_report(
    shell, table
):
    words = (*BASE, "--exclude", "rare", "--search", "none")
    text = shell.runs(*words, "--json", "j.json", "--report", "r.html")
    assert "name it with --select-only" in text
    said = (shell.folder / "j.json").read_text()
    found = json.loads(said)
    texts = [*found["warnings"], *(one["meaning"] for one in found["diagnostics"])]
    page = (shell.folder / "r.html").read_text(encoding="utf-8").split("<script")[0]
    page = re.sub(r"<[^>]*>", " ", page.split("</style>")[1])
    for one in (text, *texts, page):
        assert not PARAMETER.search(one), PARAMETER.search(one)
        assert "uncertainty_interval(" not in one


def test_a_reference_is_named_by_column_and_level(shell, table):
    group = np.where(np.arange(400) % 3 == 0, "a", np.where(np.arange(400) % 3 == 1, "b", "c, d"))
    frame = table.drop(columns=["rare", "w"]).assign(group=group)
    # A row without features ends the table, as a total does.
    total = pd.DataFrame({"y": [frame["y"].sum()], "group": ["A total"]})
    pd.concat([frame, total]).to_csv("in.csv", index=False)
    words = ("fit", "in.csv", "--outcome", "y", "--search", "none", "--json", "j.json", "--force")
    for option, level in ((), "a"), (("--reference", '"group=c, d"'), "c, d"):
        shell.runs(*words, *option, "--report", "page.html", "--save", "model.heckmanfa")
        answer = shell.json("j.json")
        assert answer["reference_levels"] == {"group": level}
        assert "A total" not in (shell.folder / "page.html").read_text(encoding="utf-8")
    assert "no level 'e'" in shell.refuses(*words, "--reference", "group=e")
    error = shell.refuses(*words, "--reference", "group=A total")
    assert error.startswith("error: --reference: no row of the fit has the level 'A total'")
    error = shell.refuses("predict", "model.heckmanfa", "in.csv", "--out", "p.csv")
    assert "not fitted with: 'A total' (1 row" in error
    shell.runs("predict", "model.heckmanfa", "in.csv", "--out", "p.csv", "--unknown", "missing")
    assert pd.read_csv("p.csv").iloc[:, 0].isna().tolist() == [False] * 400 + [True]
