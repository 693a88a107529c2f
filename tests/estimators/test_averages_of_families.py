"""Averages of treatments, ordered outcomes, t errors and series, with all that models take."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanOrdered,
    HeckmanOrderedAverage,
    TreatmentAverage,
    TreatmentModel,
)
from heckmanfa.errors import DroppedFeaturesWarning, InputError, NoExclusionWarning

N = 600
KINDS = {
    "ordered": (HeckmanOrderedAverage, {}),
    "t": (HeckmanAverage, {"method": "ml", "errors": "t"}),
    "series": (HeckmanAverage, {"method": "series", "n_terms": 2}),
    "common": (TreatmentAverage, {"method": "ml"}),
    "separate": (TreatmentAverage, {"regimes": "separate"}),
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    X, u, v = rng.normal(size=(N, 3)), *rng.normal(size=(2, N))
    place = rng.choice(["city", "town", "village"], N)
    d = 0.2 + 0.5 * X[:, 0] + X[:, 2] + u > 0
    y = 1.0 + 0.8 * X[:, 0] + 0.6 * (place == "town") + 0.5 * u + 0.8 * v
    data = pd.DataFrame(X, columns=["a", "b", "z"]).assign(place=place, d=d * 1.0)
    data["seen"] = np.where(d, y, np.nan)
    data["grade"] = np.where(d, np.digitize(y, [0.6, 1.8]).astype(float), np.nan)
    data["all"] = y + 1.5 * d
    return data.assign(weight=rng.integers(1, 4, N), group=rng.integers(0, 40, N))


def _fit(name: str, frame: pd.DataFrame, columns: Any = ("a", "b", "z"), **options: Any) -> Any:
    kind, own = KINDS[name]
    features = [column for column in columns if column != "z"]
    rows = {key: frame[options.pop(key)] for key in ("sample_weight", "groups") if key in options}
    parameters = {kind.roles[0]: features} | own | options
    if kind is TreatmentAverage:
        return kind(**parameters).fit(frame[[*columns]], frame["all"], treated=frame["d"], **rows)
    outcome = frame["grade" if name == "ordered" else "seen"]
    return kind(**parameters).fit(frame[[*columns]], outcome, **rows)


@pytest.mark.parametrize("name", KINDS)
def test_formulas_are_the_same_average(name, frame):
    kind, own = KINDS[name]
    outcome = {"ordered": "grade", "common": "all", "separate": "all"}.get(name, "seen")
    treats = kind is TreatmentAverage
    model = kind.from_formula(f"{outcome} ~ a + b", f"{'d ' * treats}~ a + b + z", frame, **own)
    plain = _fit(name, frame)
    assert model.inclusion_["bic"].to_numpy() == pytest.approx(plain.inclusion_["bic"].to_numpy())
    assert model.prediction_features_ == plain.prediction_features_


@pytest.mark.parametrize("name", KINDS)
def test_dummies_of_a_category_move_as_one(name, frame):
    model = _fit(name, frame, ("a", "place", "z"))
    table = model.inclusion_
    assert table["feature"].tolist()[:2] == ["a", "place"]
    states = model.fit_.average.mixture.leading_masks
    assert np.array_equal(states[:, 1], states[:, 2])
    assert np.isfinite(model.predict_selection(frame[["a", "place", "z"]])).all()


@pytest.mark.parametrize("name", KINDS)
def test_a_weight_of_two_is_two_rows(name, frame):
    weighted = _fit(name, frame, sample_weight="weight")
    repeated = frame.loc[frame.index.repeat(frame["weight"])].reset_index(drop=True)
    own, other = weighted.inclusion_, _fit(name, repeated).inclusion_
    assert own["bic"].to_numpy() == pytest.approx(other["bic"].to_numpy(), abs=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_clusters_and_sampling_weights_go_into_the_covariance(name, frame):
    clustered = _fit(name, frame, cov_type="cluster", groups="group")
    assert clustered.n_clusters_ == 40
    sampled = _fit(name, frame, cov_type="robust", weight_kind="sampling", sample_weight="weight")
    assert np.isfinite(sampled.tidy()["estimate"].iloc[1:]).all()
    assert clustered.tidy()["std_error"].iloc[1] > 0


@pytest.mark.parametrize("name", KINDS)
def test_a_model_file_keeps_the_average(name, frame, tmp_path):
    model = _fit(name, frame)
    heckmanfa.save(model, tmp_path / "model.json")
    again = heckmanfa.load(tmp_path / "model.json")
    pd.testing.assert_frame_equal(again.tidy(), model.tidy())
    pd.testing.assert_frame_equal(again.assignments_, model.assignments_)
    pd.testing.assert_frame_equal(again.inclusion_, model.inclusion_)
    if hasattr(model, "effects"):
        pd.testing.assert_frame_equal(again.effects(), model.effects())


@pytest.mark.parametrize("name", KINDS)
def test_the_bootstrap_averages_again(name, frame):
    model = _fit(name, frame)
    columns = frame[["a", "b", "z"]]
    options = {"n_boot": 4, "random_state": 0}
    if hasattr(model, "effects"):
        boot = model.bootstrap(columns, frame["all"], treated=frame["d"], **options)
    else:
        boot = model.bootstrap(columns, frame["grade" if name == "ordered" else "seen"], **options)
    assert len(boot.replicates.estimates) == 4


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_a_file_are_the_same_average(name, frame, tmp_path):
    kind, own = KINDS[name]
    outcome = {"ordered": "grade", "common": "all", "separate": "all"}.get(name, "seen")
    columns = ["a", "b", "z", outcome, "d"]
    frame[columns].to_parquet(tmp_path / "rows.parquet")
    treats = {"selected": "d"} if kind is TreatmentAverage else {}
    rows = heckmanfa.scan_parquet(
        tmp_path / "rows.parquet", outcome=outcome, features=["a", "b", "z"], **treats
    )
    model = kind(**{kind.roles[0]: ["a", "b"]} | own).fit(rows)
    plain = _fit(name, frame)
    assert model.inclusion_["bic"].to_numpy() == pytest.approx(plain.inclusion_["bic"].to_numpy())
    if treats:
        ends = ["estimate", "ci_low", "ci_high"]
        one, other = (each.effects()[ends].to_numpy() for each in (model, plain))
        assert one == pytest.approx(other)


@pytest.mark.parametrize("name", KINDS)
def test_summary_and_diagnostics_say_what_was_averaged(name, frame):
    model = _fit(name, frame)
    said = str(model.summary())
    assert "Estimates are averaged over all" in " ".join(said.split())
    assert "average over assignments" in str(model.diagnostics())
    assert model.score(
        frame[["a", "b", "z"]],
        frame[{"ordered": "grade", "common": "all", "separate": "all"}.get(name, "seen")],
        **({"treated": frame["d"]} if hasattr(model, "effects") else {}),
    )
    assert not model._repr_html_().startswith("<p>The answer cannot be shown")


@pytest.mark.parametrize("kind", ["ordered", "t", "series"])
def test_margins_of_the_one_assignment_allowed_are_those_of_that_fit(kind, frame):
    average = _fit(kind, frame, always=["a", "b"], correction="always")
    columns, own = frame[["a", "b", "z"]], KINDS[kind][1]
    plain = {"ordered": HeckmanOrdered}.get(kind, Heckman)(["a", "b"], **own)
    plain.set_params(cov_type="robust" if kind == "series" else None)
    plain.fit(columns, frame["grade" if kind == "ordered" else "seen"])
    for options in ({}, {"what": "predictions", "kind": "selected"}):
        one, other = (each.margins(columns, **options).tidy() for each in (average, plain))
        for name in ("estimate", "std_error"):
            assert one[name].to_numpy() == pytest.approx(other[name].to_numpy(), rel=1e-5)


def test_margins_of_a_class_average_over_the_assignments(frame):
    model, columns = _fit("ordered", frame), frame[["a", "b", "z"]]
    levels = model.margins(columns, what="predictions").tidy().query("target == 'marginal'")
    shares = model.predict_proba(columns).mean(axis=0)
    assert levels["estimate"].to_numpy() == pytest.approx(shares, rel=1e-3)


def test_normal_errors_have_infinite_degrees_of_freedom_in_every_assignment():
    rng = np.random.default_rng(1)
    X, u, v = rng.normal(size=(900, 3)), *rng.uniform(-1.7, 1.7, size=(2, 900))
    y = np.where(X[:, 2] + u > 0, X[:, 0] + v, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HeckmanAverage(prediction_features=[0, 1], method="ml", errors="t").fit(X, y)
    row = model.tidy().set_index("term").loc["df"]
    assert np.isinf(row["estimate"])
    assert np.isnan(row["std_error"])
    assert np.isfinite(model.predict(X, return_interval="confidence")[1]).all()
    assert np.isfinite(model.tidy().query("term != 'df'")["ci_low"]).all()


def test_a_series_keeps_the_number_of_terms_of_the_model_of_all_features(frame):
    columns = frame[["a", "b", "z"]]
    model = HeckmanAverage(prediction_features=["a", "b"], method="series")
    model.fit(columns, frame["seen"])
    plain = heckmanfa.Heckman(["a", "b"], method="series").fit(columns, frame["seen"])
    assert model.n_terms_ == plain.n_terms_
    level = HeckmanAverage(
        prediction_features=["a", "b"], method="series", intercept="at infinity"
    ).fit(columns, frame["seen"])
    assert np.isnan(model.intercept_)
    assert np.isfinite(level.intercept_)


def test_both_equations_are_averaged_where_there_is_a_likelihood(frame):
    for name in ("ordered", "t"):
        model = _fit(name, frame, search_in="both")
        table = model.inclusion_.query("equation == 'selection'").set_index("feature")
        assert table.loc["z", "bic"] > 0.99
        assert table.loc["b", "bic"] < 0.5
    with pytest.raises(InputError, match="needs the joint likelihood"):
        _fit("series", frame, search_in="both")


def test_collinear_features_are_found_in_either_regime(frame):
    # Among the untreated alone, b is a.
    copied = frame.assign(b=np.where(frame["d"] == 1, frame["b"], frame["a"]))
    with pytest.raises(heckmanfa.errors.CollinearError, match="among the untreated rows"):
        _fit("separate", copied)
    with pytest.warns(DroppedFeaturesWarning, match="among the untreated rows"):
        dropped = _fit("separate", copied, on_collinear="drop")
    assert dropped.inclusion_["feature"].tolist() == ["a", "correction"]


def test_what_an_average_of_these_does_not_have_is_refused_in_a_sentence(frame):
    model = _fit("separate", frame)
    with pytest.raises(InputError, match="has no model of one"):
        model.of_regime(1)
    X = frame[["a", "b", "z"]]
    for refused in (
        lambda: model.margins(X),
        lambda: heckmanfa.plots.coefficients(model),
        lambda: [*heckmanfa.predict_batches(model, "rows.parquet")],
    ):
        with pytest.raises(InputError, match=r"use predict\(X, regime=1\)") as caught:
            refused()
        assert "of_regime" not in str(caught.value)
    with pytest.raises(InputError, match="no rho"):
        _fit("series", frame, rho_range=(-0.5, 0.5))
    with pytest.raises(InputError, match="needs method='ml'"):
        HeckmanAverage(errors="t").fit(frame[["a", "z"]], frame["seen"])
    with pytest.raises(InputError, match="it is not in outcome_features"):
        TreatmentAverage(outcome_features=["a"], always=["z"]).fit(
            frame[["a", "z"]], frame["all"], treated=frame["d"]
        )


def test_an_instrument_that_predicts_is_said_to_exclude_nothing(frame):
    moved = frame.assign(all=frame["all"] + 2.0 * frame["z"])
    columns = moved[["a", "z"]]
    model = TreatmentAverage(regimes="common", treatment_features=["z"])
    with pytest.warns(NoExclusionWarning, match="probably predicts as well"):
        model.fit(columns, moved["all"], treated=moved["d"])
    assert "z" in model.prediction_features_


def test_an_average_is_cloned_and_its_groups_are_those_of_the_user(frame):
    model = TreatmentAverage(
        feature_groups=[["a", "b"]], outcome_features=["a", "b"], regimes="separate"
    )
    again = clone(model).fit(frame[["a", "b", "z"]], frame["all"], treated=frame["d"])
    assert again.inclusion_["feature"].tolist() == [("a", "b"), "correction"]
    plain = TreatmentModel(["a", "b"], regimes="separate").fit(
        frame[["a", "b", "z"]], frame["all"], treated=frame["d"]
    )
    assert again.effects()["estimate"][0] == pytest.approx(plain.effects()["estimate"][0], abs=0.2)
