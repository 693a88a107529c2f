"""Which of the features kept out of the prediction equation drive selection."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.datasets import load_mroz
from heckmanfa.results.exclusions import find_exclusions


@pytest.fixture(scope="module")
def drawn():
    """Two features that predict, one that selects, one that does nothing, and a category."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((2000, 4)), columns=["a", "b", "strong", "noise"])
    level = rng.integers(0, 4, 2000)
    for one in (1, 2, 3):
        X[f"level{one}"] = (level == one).astype(float)
    w, v = rng.standard_normal((2, 2000))
    index = 0.3 + 0.4 * X["a"] + 0.8 * X["strong"] + 0.5 * X["level2"]
    y = 1 + X["a"] + X["b"] + 0.5 * w + v
    return X, y.where(index + w > 0)


def test_features_that_drive_selection_are_told_from_those_without_evidence(drawn):
    model = Heckman(["a", "b"]).fit(*drawn)
    p = model.tidy().query("equation == 'selection'").set_index("term")["p_value"]
    found = find_exclusions(model.fit_)
    assert found.features == ("strong", "noise", "level1", "level2", "level3")
    assert found.driving == tuple(one for one in found.features if p[one] < 0.05)
    assert "strong" in found.driving
    assert "noise" in found.without_evidence
    said = " ".join(str(model.summary()).split())
    assert "strong and level2 drive selection; there is no evidence that noise, level1" in said


def test_columns_of_a_group_are_tested_together(drawn):
    levels = ["level1", "level2", "level3"]
    model = HeckmanBestSubset(feature_groups=[levels]).fit(*drawn)
    assert model.prediction_features_ == ["a", "b"]
    test = model.wald_test([f"selection.{one} = 0" for one in levels])
    assert test.p_value < 0.05
    assert find_exclusions(model.fit_).driving == ("strong", *levels)
    assert find_exclusions(model.fit_, []).driving == ("strong", "level2")


def test_the_columns_of_a_term_are_tested_together():
    mroz = load_mroz()
    model = Heckman.from_formula("lwage ~ educ", "lfp ~ educ + bs(age, df=4) + kids618", mroz)
    found = find_exclusions(model.fit_)
    spline = [one for one in model.selection_features_ if one.startswith("bs(")]
    terms = model.vcov().index
    matrix = np.array([[1.0 * (term == ("selection", one)) for term in terms] for one in spline])
    assert model.wald_test(matrix).p_value < 0.05
    assert found.driving == tuple(spline)
    assert found.without_evidence == ("kids618",)
    assert (
        max(model.tidy().set_index(["equation", "term"]).loc["selection"].loc[spline].p_value)
        > 0.05
    )


def test_without_a_known_covariance_nothing_is_tested(drawn):
    model = Heckman(["a", "b"]).fit(*drawn)
    model._fit = replace(model.fit_, covariance=np.full_like(model.fit_.covariance, np.nan))
    found = find_exclusions(model.fit_)
    assert (found.driving, found.without_evidence) == ((), ())
    assert found.not_tested == found.features
    said = " ".join(str(model.summary()).split())
    assert "no evidence" not in said
    why = "the covariance of the estimates is not known"
    assert f"Whether they drive selection was not tested: {why}." in said
    line = next(one for one in model.diagnostics().lines() if one[0] == "excluded features")
    assert line[2:] == ("caution", "Whether they drive selection was not tested.")


def test_the_dummies_of_a_column_of_a_file_are_tested_together(drawn, tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet files need the extra parquet")
    from heckmanfa import scan_parquet

    X, y = drawn
    frame = X[["a", "b", "strong", "noise"]].assign(y=y)
    frame["level"] = "level0"
    for one in (1, 2, 3):
        frame.loc[X[f"level{one}"] == 1, "level"] = f"level{one}"
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = scan_parquet(tmp_path / "rows.parquet", outcome="y")
    found = find_exclusions(Heckman(["a", "b"]).fit(rows).fit_)
    # A category whose dummies are all left out is named as one column.
    assert found.features == ("strong", "noise", "level")
    assert found.driving == ("strong", "level")
    assert found.without_evidence == ("noise",)
