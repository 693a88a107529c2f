"""``model.report``: the page of a fitted model, with and without its rows."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from tests.scenes import LEVELS, MROZ, TWO, WORKS, X, Y, earns

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbit,
    HeckmanProbitAverage,
    NaiveOLS,
    scan,
)
from heckmanfa.errors import HeckmanfaWarning, InputError

CLASSES = earns(3.0)
COUNTY = np.arange(len(X)) % 40
MODELS = {
    "two-step": (Heckman(TWO), X, Y, {}),
    "ml": (Heckman(TWO, method="ml"), X, Y, {}),
    "robust": (Heckman(TWO, cov_type="robust"), X, Y, {"selected": WORKS}),
    "cluster": (Heckman(TWO, cov_type="cluster"), X, Y, {"groups": COUNTY}),
    "held rho": (Heckman(TWO, rho=0.3), X, Y, {}),
    "categories": (Heckman(["schooling", "exper"]), LEVELS, Y, {}),
    "probit": (HeckmanProbit(TWO), X, CLASSES, {}),
    "best subset": (HeckmanBestSubset(), X, Y, {}),
    "average": (HeckmanAverage(), X, Y, {}),
    "probit average": (HeckmanProbitAverage(), X, CLASSES, {}),
    "observed": (Heckman(TWO), X[WORKS], Y[WORKS], {}),
}
# Pictures that every model with a selection equation has of its rows.
OF_ROWS = ("What moves the probability", "Do those with an outcome cover")


def page(model, path, *rows, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model.report(path, *rows, **given)
    return path.read_text(encoding="utf-8")


def fitted(name):
    model, features, outcome, given = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(features, outcome, **given), features, outcome, given


@pytest.mark.parametrize("name", list(MODELS))
def test_every_selection_model_has_a_report(name, tmp_path):
    model, features, outcome, given = fitted(name)
    alone = page(model, tmp_path / "alone.html")
    whole = page(model, tmp_path / "whole.html", features, outcome, **given)
    corrected = model.fit_.probit is not None
    for html in (alone, whole):
        assert f"<title>{model.fit_.origin.outcome}: {type(model).__name__}" in html
        assert "nan" not in re.sub(r"<[^>]*>", " ", html).lower().split()
    for picture in OF_ROWS:
        assert (picture in whole) is corrected
        assert picture not in alone
    assert "needs the rows of the fit" in alone
    assert "Not shown" not in whole
    assert ("Some checks were not run" in alone) is corrected
    # The estimates are those of the model.
    term = model.tidy().iloc[1]
    assert f"{term['estimate']:.4g}"[:5] in whole
    counts = model.row_counts_
    assert f"{counts['selected']} selected" in whole
    assert f"{counts['total'] - counts['selected'] - counts['unselected']} left out." in whole


def test_formulas_find_their_rows_in_the_frame(tmp_path):
    model = Heckman.from_formula(
        "lwage ~ educ + exper + I(exper**2)", "lfp ~ educ + exper + age + C(city)", MROZ
    )
    html = page(model, tmp_path / "formula.html", MROZ)
    assert all(picture in html for picture in OF_ROWS)
    assert "Not shown" not in html


def test_rows_of_another_fit_are_refused_and_nothing_is_written(tmp_path):
    model = Heckman(TWO).fit(X, Y)
    with pytest.raises(InputError):
        model.report(tmp_path / "page.html", X[:500], Y[:500])
    assert not any(tmp_path.iterdir())


def test_rows_that_are_not_in_memory_are_read_in_passes(tmp_path):
    X.assign(lwage=Y).to_parquet(tmp_path / "women.parquet")
    rows = scan(tmp_path / "women.parquet", "lwage")
    model = Heckman(TWO).fit(rows)
    html = page(model, tmp_path / "page.html", rows)
    assert "What moves the probability" in html
    assert "Not shown: needs all rows in memory." in html


def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    model, path = Heckman(TWO).fit(X, Y), tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(InputError):
        model.report(path)
    assert path.read_text() == "mine"
    model.report(path, title="Wages & <i>more</i>", force=True)
    assert "<title>Wages &amp; &lt;i&gt;more&lt;/i&gt;</title>" in path.read_text()
    with pytest.raises(InputError, match=r"\.pdf"):
        model.report(tmp_path / "page.pdf")


def test_models_without_a_selection_equation_have_none():
    assert not hasattr(NaiveOLS(), "report")
