"""Weighting and doubly robust estimates of formulas are those of the same columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import heckmanfa
from heckmanfa import DoublyRobust, Heckman, InverseProbabilityWeighted
from heckmanfa.cli import app
from heckmanfa.errors import (
    HeckmanfaError,
    HeckmanfaWarning,
    InputError,
    MissingValueError,
    UnknownFeatureError,
)

KINDS = {
    InverseProbabilityWeighted: {},
    DoublyRobust: {"random_state": 0, "n_folds": 3},
}
FORMULAS = "y ~ x1 + C(region)", "s ~ x1 + z"


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    n = 500
    d = pd.DataFrame({"x1": rng.normal(size=n), "z": rng.normal(size=n)})
    d["region"] = rng.integers(0, 3, n)
    d["place"] = d["region"].map({0: "east", 1: "north", 2: "south"})
    d["w"], d["g"] = rng.integers(1, 4, n), rng.integers(0, 50, n)
    d["s"] = (0.3 + 0.5 * d["x1"] + d["z"] + rng.normal(size=n) > 0).astype(int)
    d["y"] = (1 + d["x1"] + 0.3 * d["region"] + rng.normal(size=n)).where(d["s"] == 1)
    return d


def columns_of(frame):
    """Return the columns that the formulas make, by hand."""
    columns = {"x1": frame["x1"], "z": frame["z"]}
    columns |= {f"C(region)[T.{k}]": (frame["region"] == k) * 1.0 for k in (1, 2)}
    return pd.DataFrame(columns)


def by_columns(kind, frame, **options):
    """Return an unfitted model of the columns that the formulas make."""
    named = ["x1", "C(region)[T.1]", "C(region)[T.2]"], ["x1", "z"]
    return kind(*named, **KINDS[kind], **options)


def same_estimates(found, expected):
    tables = found.tidy(), expected.tidy()
    pd.testing.assert_frame_equal(*tables, rtol=1e-12, atol=1e-12)
    pd.testing.assert_frame_equal(found.vcov(), expected.vcov(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("by_name", [True, False])
def test_formulas_give_the_estimates_of_the_same_columns(kind, frame, by_name):
    weight, groups = ("w", "g") if by_name else (frame["w"], frame["g"].to_numpy())
    options = {"cov_type": "cluster"}
    found = kind.from_formula(
        *FORMULAS, frame, sample_weight=weight, groups=groups, **options, **KINDS[kind]
    )
    X, expected = columns_of(frame), by_columns(kind, frame, **options)
    expected.fit(X, frame["y"], frame["s"] == 1, frame["w"], frame["g"])
    same_estimates(found, expected)
    np.testing.assert_allclose(found.predict(frame), expected.predict(X), rtol=1e-12)
    scored = expected.score(X, frame["y"], frame["w"], selected=frame["s"] == 1)
    if by_name:
        # The formulas find the outcome, who is selected and the weights in the data.
        assert found.score(frame) == pytest.approx(scored, rel=1e-12)
    else:
        with pytest.raises(InputError, match="came as an array: pass sample_weight"):
            found.score(frame)
        assert found.score(frame, sample_weight=frame["w"]) == pytest.approx(scored, rel=1e-12)


def test_rows_that_lack_a_variable_are_left_out_and_counted(kind, frame):
    frame.loc[:9, "x1"] = np.nan
    frame.loc[10:19, "region"] = np.nan
    found = kind.from_formula(*FORMULAS, frame, **KINDS[kind])
    # Every row needs all features for doubly robust estimates, and selected ones for weighting.
    gone = frame["x1"].isna() | (
        frame["region"].isna() & ((frame["s"] == 1) | (kind is DoublyRobust))
    )
    kept = frame[~gone]
    X = columns_of(kept)
    X.loc[kept["region"].isna(), ["C(region)[T.1]", "C(region)[T.2]"]] = np.nan
    expected = by_columns(kind, frame).fit(X, kept["y"], kept["s"] == 1)
    np.testing.assert_allclose(found.coef_[found.support_], expected.coef_[expected.support_])
    assert found.row_counts_["left_out_regressor_missing"] == gone.sum()
    assert found.row_counts_["total"] == len(frame)
    assert found.row_counts_["selected"] == (kept["s"] == 1).sum()
    assert found.missing_features(frame).columns == {"x1": 10, "region": 10}
    with pytest.raises(MissingValueError, match="'region' \\(10 rows\\)"):
        found.predict(frame)
    predicted = found.predict(frame, missing="nan")
    assert np.isnan(predicted).tolist() == (frame.index < 20).tolist()
    # As in selection models, rows that cannot be predicted are not scored.
    assert found.score(frame) == pytest.approx(found.score(frame[20:]))


def test_text_is_a_category_whose_reference_may_be_named(kind, frame):
    found = kind.from_formula(
        "y ~ x1 + place", "~ x1 + z", frame, reference={"place": "south"}, **KINDS[kind]
    )
    assert found.prediction_features_ == ["x1", "place[T.east]", "place[T.north]"]
    X = frame[["x1", "place", "z"]]
    expected = kind(["x1", "place"], ["x1", "z"], reference={"place": "south"}, **KINDS[kind])
    expected.fit(X, frame["y"])
    np.testing.assert_allclose(found.predict(frame), expected.predict(X), rtol=1e-10)
    new = frame.head(3).assign(place=["west", "north", "south"])
    with pytest.raises(HeckmanfaError, match="west"):
        found.predict(new)
    predicted = found.predict(new, missing="nan", unknown="missing")
    assert np.isnan(predicted).tolist() == [True, False, False]
    assert found.missing_features(new, unknown="missing").columns == {"place": 1}


def test_separation_takes_levels_from_formulas_as_from_columns(frame):
    # Everyone in the east is observed, and east is the first level.
    frame["s"] = frame["s"].where(frame["place"] != "east", 1)
    frame["y"] = frame["y"].where(frame["s"] == 1).mask(frame["s"].eq(1) & frame["y"].isna(), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        found = InverseProbabilityWeighted.from_formula(
            "y ~ x1 + place", "~ x1 + z + place", frame, on_separation="drop"
        )
    X = frame[["x1", "z", "place"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        expected = InverseProbabilityWeighted(["x1", "place"], on_separation="drop").fit(
            X, frame["y"]
        )
    west = frame[frame["place"] != "east"]
    np.testing.assert_allclose(found.predict(west), expected.predict(X.loc[west.index]))
    with pytest.raises(HeckmanfaError, match="east"):
        found.predict(frame)


def test_files_keep_the_formulas(kind, frame, tmp_path, monkeypatch):
    model = kind.from_formula(*FORMULAS, frame, sample_weight="w", **KINDS[kind])
    heckmanfa.save(model, tmp_path / "m.heckmanfa")
    found = heckmanfa.load(tmp_path / "m.heckmanfa")
    np.testing.assert_array_equal(found.predict(frame), model.predict(frame))
    assert found.score(frame) == model.score(frame)
    pd.testing.assert_frame_equal(found.tidy(), model.tidy())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ["predict", "m.heckmanfa", "rows.csv", "--out", "made.csv"]
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, words).exit_code == 0
    made = pd.read_csv("made.csv").filter(like="predicted")
    np.testing.assert_allclose(made.iloc[:, 0], model.predict(frame), rtol=1e-9)


def test_a_later_fit_to_columns_forgets_the_formulas(kind, frame):
    model = kind.from_formula(*FORMULAS, frame, **KINDS[kind])
    X = columns_of(frame)
    model.fit(X, frame["y"])
    np.testing.assert_allclose(
        model.predict(X), by_columns(kind, frame).fit(X, frame["y"]).predict(X)
    )
    assert model.score(X, frame["y"]) > 0


@pytest.mark.parametrize(
    ("formulas", "options"),
    [
        (("~ x1", "~ z"), {}),
        (("y ~ nobody", "~ z"), {}),
        (("y ~ x1 - 1", "~ z"), {}),
        (("y ~ x1", "~ z | x1"), {}),
        (("y ~ log(", "~ z"), {}),
        (("y ~ x1", "~ z"), {"sample_weight": "weights"}),
        (("y ~ x1", "~ z"), {"categorical_features": ["region"]}),
        (("y ~ x1", "~ z"), {"prediction_features": ["x1"]}),
        (("y ~ x1 + place", "~ z"), {"reference": {"place": "west"}}),
        (("y ~ x1", "~ z"), {"cov_type": "cluster"}),
    ],
)
def test_bad_formulas_are_refused_as_by_selection_models(kind, frame, formulas, options):
    with pytest.raises(HeckmanfaError) as expected:
        Heckman.from_formula(*formulas, frame, **options)
    with pytest.raises(type(expected.value)) as found:
        kind.from_formula(*formulas, frame, **options, **KINDS[kind])
    assert str(found.value) == str(expected.value)


def test_data_without_the_outcome_or_the_weights_are_predicted_and_not_scored(kind, frame):
    model = kind.from_formula(*FORMULAS, frame, sample_weight="w", **KINDS[kind])
    assert len(model.predict(frame[["x1", "region"]])) == len(frame)
    with pytest.raises(UnknownFeatureError, match="outcome of the model is 'y'"):
        model.score(frame.drop(columns="y"))
    with pytest.raises(UnknownFeatureError, match="weights from the column 'w'"):
        model.score(frame.drop(columns="w"))


def test_doubly_robust_formulas_refuse_what_is_known_of_the_selected_alone(frame):
    frame["x1"] = frame["x1"].where(frame["s"] == 1)
    with pytest.raises(MissingValueError, match="'x1'"):
        DoublyRobust.from_formula("y ~ x1", "s ~ z", frame)


def test_groups_of_doubly_robust_estimates_are_a_column_of_the_formulas(frame):
    frame["d"] = (frame["region"] == 1).astype(int)
    options = {"over": "d", "random_state": 0}
    found = DoublyRobust.from_formula("y ~ x1", "s ~ x1 + z + d", frame, **options)
    expected = DoublyRobust(["x1"], ["x1", "z", "d"], **options)
    expected.fit(frame[["x1", "z", "d"]], frame["y"], frame["s"] == 1)
    same_estimates(found, expected)
    with pytest.raises(UnknownFeatureError, match="over"):
        DoublyRobust.from_formula("y ~ x1", "s ~ x1 + z", frame, **options)


def test_diagnostics_of_a_frame_say_how_many_rows_are_beyond(frame):
    model = InverseProbabilityWeighted.from_formula(*FORMULAS, frame)
    expected = by_columns(InverseProbabilityWeighted, frame).fit(columns_of(frame), frame["y"])
    far = frame.assign(z=frame["z"] - 3)
    assert str(model.diagnostics(far)) == str(expected.diagnostics(columns_of(far)))


def test_dask_frames_are_predicted_lazily_and_scored(kind, frame):
    dd = pytest.importorskip("dask.dataframe")
    model = kind.from_formula(*FORMULAS, frame, sample_weight="w", **KINDS[kind])
    rows = dd.from_pandas(frame[["x1", "z", "region", "s", "y", "w"]], npartitions=3)
    np.testing.assert_allclose(model.predict(rows).compute(), model.predict(frame))
    assert model.score(rows) == pytest.approx(model.score(frame))
