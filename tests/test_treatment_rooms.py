"""What treatment models do with rows, formulas, files and bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heckmanfa
import heckmanfa.plots
from heckmanfa import TreatmentModel, scan_parquet
from heckmanfa.analysis import compare_methods
from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    CollinearError,
    ConstantOutcomeError,
    FormulaError,
    InputError,
    MissingValueError,
    NoExclusionWarning,
    NoOutcomeError,
    SeparationError,
    TooFewRowsError,
    UnknownFeatureError,
)

REGIMES = ["common", "separate"]
NUMBERS = ["estimate", "std_error"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 500
    x1, x2, z, u, v = rng.normal(size=(5, n))
    region = rng.choice(["east", "north", "west"], n)
    d = 0.3 * x1 + z + u > 0
    y = 1.0 + x1 - x2 + 0.5 * (region == "north") + 1.5 * d + 0.6 * u + v
    return pd.DataFrame({"x1": x1, "x2": x2, "z": z, "region": region, "d": d * 1, "y": y})


def _fit(frame: pd.DataFrame, **options: Any) -> Any:
    model = TreatmentModel(["x1", "x2"], ["x1", "z"], **options)
    return model.fit(frame[["x1", "x2", "z"]], frame["y"], treated=frame["d"])


def _values(table: pd.DataFrame) -> Floats:
    return np.asarray(table[NUMBERS].to_numpy(dtype=float))


# Rooms. --------------------------------------------------------------------------------------


def test_rows_need_an_outcome_and_a_treatment(frame: pd.DataFrame) -> None:
    lacking = frame.copy()
    lacking.loc[:9, "y"] = np.nan
    lacking["d"] = lacking["d"].astype(float)
    lacking.loc[10:29, "d"] = np.nan
    model, whole = _fit(lacking), _fit(frame[30:])
    counts = model.row_counts_
    assert counts["left_out_outcome_missing"] == 10
    assert counts["left_out_treatment_missing"] == 20
    assert counts["selected"] + counts["unselected"] == 470
    assert _values(model.effects()) == pytest.approx(_values(whole.effects()), rel=1e-12)
    text = str(model.summary())
    assert "10 rows left out: the outcome is missing." in text
    assert "20 rows left out: the treatment is missing." in text
    # The outcome's own features are needed in every row, treated or not.
    lacking.loc[frame.index[frame["d"] == 0][40:43], "x2"] = np.nan
    with pytest.raises(MissingValueError, match=r"x2.*3 NaN"):
        _fit(lacking)


@pytest.mark.parametrize("regimes", REGIMES)
def test_formulas_with_categories_are_the_same_model(frame: pd.DataFrame, regimes: str) -> None:
    options: dict[str, Any] = {"regimes": regimes, "method": "ml"}
    model = TreatmentModel.from_formula("y ~ x1 + x2 + region", "d ~ x1 + z", frame, **options)
    columns = ["x1", "x2", "z", "region"]
    arrays = TreatmentModel(["x1", "x2", "region"], ["x1", "z"], **options)
    arrays = arrays.fit(frame[columns], frame["y"], treated=frame["d"] == 1)
    assert _values(model.effects()) == pytest.approx(_values(arrays.effects()))
    assert arrays.predict(frame[columns], regime=1) == pytest.approx(model.predict(frame, regime=1))
    by = model.effects(frame, treated="d", by="region")
    assert by["group"].unique().tolist() == ["east", "north", "west"]
    assert model.score(frame) == pytest.approx(
        arrays.score(frame[columns], frame["y"], treated=frame["d"])
    )
    lacking = frame.assign(d=frame["d"].astype(float))
    lacking.loc[:9, "y"] = np.nan
    lacking.loc[10:29, "d"] = np.nan
    untreated = frame.index[frame["d"] == 0][50:54]
    lacking.loc[untreated, "x2"] = np.nan
    model = TreatmentModel.from_formula("y ~ x1 + x2", "d ~ x1 + z", lacking, regimes=regimes)
    counts = model.row_counts_
    assert counts["left_out_regressor_missing"] == 4
    assert counts["left_out_outcome_missing"] == 10
    assert counts["left_out_treatment_missing"] == 20
    used = lacking.drop(index=[*range(30), *untreated]).reset_index(drop=True)
    assert _values(model.effects()) == pytest.approx(_values(_fit(used, regimes=regimes).effects()))
    assert len(str(model.summary())) > 0


@pytest.mark.parametrize("regimes", REGIMES)
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_parquet_file_and_a_model_file_give_the_same(
    frame: pd.DataFrame, tmp_path: Path, regimes: str, method: str
) -> None:
    pytest.importorskip("pyarrow")
    lacking = frame.assign(d=frame["d"].astype(float))
    lacking.loc[:9, "y"] = np.nan
    lacking.loc[10:29, "d"] = np.nan
    lacking.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    rows = scan_parquet(
        tmp_path / "rows.parquet", outcome="y", selected="d", features=["x1", "x2", "z"]
    )
    options: dict[str, Any] = {"regimes": regimes, "method": method, "cov_type": "robust"}
    model = TreatmentModel(["x1", "x2"], ["x1", "z"], **options).fit(rows)
    memory = _fit(lacking, **options)
    assert model.row_counts_ == memory.row_counts_
    assert _values(model.effects()) == pytest.approx(_values(memory.effects()), rel=1e-8)
    heckmanfa.save(model, tmp_path / "model.heckmanfa")
    again = heckmanfa.load(tmp_path / "model.heckmanfa")
    assert again.tidy().equals(model.tidy())
    assert again.effects().equals(model.effects())
    assert str(again.summary()) == str(model.summary())
    X = frame[["x1", "x2", "z"]]
    assert np.array_equal(again.predict(X, regime=0), model.predict(X, regime=0))


def test_a_frame_of_polars_and_tensors_are_read(frame: pd.DataFrame) -> None:
    polars = pytest.importorskip("polars")
    whole = _fit(frame)
    model = TreatmentModel(["x1", "x2"], ["x1", "z"])
    data = polars.from_pandas(frame)
    model.fit(data.select("x1", "x2", "z"), data["y"], treated=data["d"])
    assert _values(model.effects()) == pytest.approx(_values(whole.effects()))
    torch = pytest.importorskip("torch")
    X = torch.tensor(frame[["x1", "x2", "z"]].to_numpy())
    for method in ("two-step", "ml"):
        model = TreatmentModel([0, 1], [0, 2], regimes="separate", method=method)
        model.fit(X, torch.tensor(frame["y"].to_numpy()), treated=frame["d"].to_numpy())
        other = _fit(frame, regimes="separate", method=method)
        assert _values(model.effects()) == pytest.approx(_values(other.effects()))


def test_diagnostics_test_rho_and_the_instrument(frame: pd.DataFrame) -> None:
    for regimes in REGIMES:
        model = _fit(frame, regimes=regimes, method="ml")
        found = model.diagnostics()
        assert found.instruments == ("z",)
        expected = model.wald_test("selection.z = 0")
        assert found.instruments_wald.statistic == pytest.approx(expected.statistic)
        ratio, n = found.rho_lr, 1 if regimes == "common" else 2
        assert (ratio.df, found.rho_wald.df) == (n, n)
        # Without correlations, the likelihood is that of a probit and of least squares.
        held = _log_likelihood_apart(frame, regimes == "separate")
        assert ratio.statistic == pytest.approx(2.0 * (model.log_likelihood_ - held), abs=1e-6)
        # Each is tested on the scale of atanh rho, as in tables.
        table = model.tidy().set_index("term")["statistic"]
        for name, test in found.rho_walds.items():
            assert test.statistic == pytest.approx(table[name] ** 2)
        two_step = _fit(frame, regimes=regimes).diagnostics()
        assert two_step.rho_lr is None
        assert two_step.rho_wald.p_value < 0.01
        assert "instruments" in str(found)
        far = frame[["x1", "x2", "z"]].assign(z=np.where(frame["d"] == 1, 50.0, frame["z"]))
        lines = model.diagnostics(far).to_frame().set_index("diagnostic")
        share = 100.0 * frame["d"].mean()
        assert lines.loc["rows outside the range", "value"] == f"{share:.1f}%"


def _log_likelihood_apart(frame: pd.DataFrame, separate: bool) -> float:
    from scipy import optimize, stats

    d = frame["d"].to_numpy() == 1
    z = np.column_stack([np.ones(len(d)), frame["x1"], frame["z"]])
    sign = np.where(d, 1.0, -1.0)
    best = optimize.minimize(lambda g: -stats.norm.logcdf(sign * (z @ g)).sum(), np.zeros(3))
    x = np.column_stack([np.ones(len(d)), frame["x1"], frame["x2"]])
    y, height = frame["y"].to_numpy(), -float(best.fun)
    parts = [(x[d], y[d]), (x[~d], y[~d])] if separate else [(np.column_stack([x, d]), y)]
    for design, outcome in parts:
        rest = outcome - design @ np.linalg.lstsq(design, outcome, rcond=None)[0]
        height += stats.norm.logpdf(rest, scale=np.sqrt(np.mean(rest**2))).sum()
    return height


def test_one_regime_is_a_model_that_predicts_and_has_margins(frame: pd.DataFrame) -> None:
    model = _fit(frame, regimes="separate")
    own, X = model.of_regime(1), frame[["x1", "x2", "z"]]
    assert own.predict(X, kind="selected") == pytest.approx(model.predict(X, 1, 1))
    table = own.margins(X, kind="marginal").tidy().set_index("term")
    slope = model.tidy().query("equation == 'regime1' and term == 'x1'")
    assert table.loc["x1", NUMBERS].to_numpy(dtype=float) == pytest.approx(_values(slope)[0])


# Bad input. ----------------------------------------------------------------------------------


Change = Callable[[pd.DataFrame], pd.DataFrame]
BAD: list[tuple[str, dict[str, Any], Change, type[Exception], str]] = [
    (
        "a third value",
        {},
        lambda f: f.assign(d=f["d"].where(f.index > 2, 2)),
        InputError,
        "such as '2'",
    ),
    ("nobody", {}, lambda f: f.assign(d=0), InputError, "nobody is treated among the 500 rows"),
    ("everybody", {}, lambda f: f.assign(d=1), InputError, "everybody is treated"),
    ("no outcome", {}, lambda f: f.assign(y=np.nan), NoOutcomeError, "both an outcome"),
    ("a constant outcome", {}, lambda f: f.assign(y=3.0), ConstantOutcomeError, "is 3 in all"),
    ("no treatment", {}, lambda f: f.assign(d=np.nan), NoOutcomeError, "the treatment in 500"),
    (
        "a column that decides",
        {},
        lambda f: f.assign(z=np.where(f["d"] == 1, 1.0, -1.0) + 0.1 * f["z"].abs()),
        SeparationError,
        "'z' separates treated from untreated rows completely",
    ),
    (
        "a constant outcome of the treated",
        {"regimes": "separate"},
        lambda f: f.assign(y=f["y"].where(f["d"] == 0, 3.0)),
        ConstantOutcomeError,
        "all .* treated rows",
    ),
    (
        "few treated",
        {"regimes": "separate"},
        lambda f: pd.concat([f[f["d"] == 0], f[f["d"] == 1][:4]]),
        TooFewRowsError,
        "the treated have an equation of their own with 4 coefficients",
    ),
    (
        "collinear among the untreated",
        {"regimes": "separate"},
        lambda f: f.assign(x2=np.where(f["d"] == 0, f["x1"], f["x2"])),
        CollinearError,
        "untreated rows.*x2.*out of outcome_features",
    ),
    (
        "the treatment among the features",
        {"regimes": "common"},
        lambda f: f.assign(x2=1.0 - 2.0 * f["d"]),
        CollinearError,
        "x2.*treatment",
    ),
]


def _formula(frame: pd.DataFrame, **options: Any) -> Any:
    return TreatmentModel.from_formula("y ~ x1 + x2", "d ~ x1 + z", frame, **options)


def _scan(frame: pd.DataFrame, **options: Any) -> Any:
    polars = pytest.importorskip("polars")
    rows = heckmanfa.scan(polars.from_pandas(frame).lazy(), "y", ["x1", "x2", "z"], selected="d")
    return TreatmentModel(["x1", "x2"], ["x1", "z"], **options).fit(rows)


WAYS = {"fit": _fit, "formula": _formula, "scan": _scan}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("case", "options", "change", "error", "words"), BAD, ids=[bad[0] for bad in BAD]
)
def test_bad_input_is_refused(
    frame: pd.DataFrame,
    way: str,
    case: str,
    options: Any,
    change: Change,
    error: type[Exception],
    words: str,
) -> None:
    if (way, case) == ("formula", "a third value"):
        words = "left side holds 2"
    if way != "fit" and case == "no outcome":
        words = "outcome"
    with pytest.raises(error, match=f"(?s){words}"):
        WAYS[way](change(frame).reset_index(drop=True), **options)


def test_text_for_a_treatment_is_refused_or_says_yes(frame: pd.DataFrame) -> None:
    text = frame.assign(d=np.where(frame["d"] == 1, "yes", "no"))
    with pytest.raises(InputError, match=r"treated.*column == 'yes'"):
        _fit(text)
    with pytest.raises(FormulaError, match=r"treatment formula, d, .*d == '(yes|no)'"):
        _formula(text)
    # Scans read words for true and false, as those of files are.
    assert _values(_scan(text).effects()) == pytest.approx(_values(_fit(frame).effects()))


def test_methods_that_need_rows_ask_who_is_treated(frame: pd.DataFrame) -> None:
    model, X = _fit(frame), frame[["x1", "x2", "z"]]
    with pytest.raises(InputError, match="does not say who is treated: pass treated="):
        model.bounds(X, frame["y"])
    for method in (model.what_if, model.uncertainty_interval):
        with pytest.raises(InputError, match="the treatment model has no"):
            method(X, frame["y"])


def test_calls_that_cannot_be_meant_are_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    model, X = _fit(frame), frame[["x1", "x2", "z"]]
    rows: dict[str, Any] = {"X": X, "y": frame["y"], "selected": frame["d"]}
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: TreatmentModel().fit(X, frame["y"]), "treated is missing"),
        (lambda: TreatmentModel(["x9"]).fit(X, frame["y"], frame["d"]), "outcome_features.*x9"),
        (lambda: TreatmentModel(["x1"], "z").fit(X, frame["y"], frame["d"]), "treatment_features"),
        (lambda: TreatmentModel(regimes="both").fit(X, frame["y"], frame["d"]), "regimes"),  # type: ignore[arg-type]
        (lambda: TreatmentModel.from_formula("y ~ x1", "~ z", frame), "no left side"),
        (
            lambda: TreatmentModel.from_formula("y ~ x1", "x2 ~ z", frame),
            "treatment formula's left side",
        ),
        (
            lambda: TreatmentModel.from_formula("y ~ x1", "d ~ z", frame, outcome_features=["x1"]),
            "no parameter",
        ),
        (lambda: model.predict(X, regime=2), "regime must be 0, 1 or None"),
        (lambda: model.of_regime(3), "regime must be 1"),
        (lambda: model.effects(by="region"), "needs X with by"),
        (lambda: model.effects(X[:0]), "X has 0 rows"),
        (lambda: model.effects(X, by="nothing"), "nothing"),
        (lambda: model.margins(X), r"use of_regime\(1\)"),
        (lambda: model.log_likelihood(**rows), r"use of_regime\(1\)"),
        (lambda: model.profile_rho(**rows), "no profiles"),
        (lambda: model.what_if(**rows), "no fits with other features"),
        (lambda: model.uncertainty_interval(**rows), "no profiles"),
        (lambda: model.exclusion_test(**rows), "no fits with other features"),
        (lambda: model.specification_tests(**rows), "no specification tests"),
        (lambda: model.report(tmp_path / "a.html", by="region"), "needs X with by"),
        (lambda: _fit(frame, regimes="separate", method="ml", start=0.3), "rho1 and rho0"),
        (lambda: [*heckmanfa.predict_batches(model, tmp_path)], r"use of_regime\(1\)"),
        (lambda: heckmanfa.plots.coefficients(model), r"use of_regime\(1\)"),
        (
            lambda: compare_methods(X, frame["y"], estimators={"own": TreatmentModel()}),
            r"use of_regime\(1\)",
        ),
    ]
    for call, words in calls:
        with pytest.raises((InputError, FormulaError, UnknownFeatureError), match=words):
            call()
    assert not (tmp_path / "a.html").exists()


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoOutsideWarning")
@pytest.mark.parametrize("way", WAYS)
def test_an_instrument_that_does_nothing_is_a_warning(frame: pd.DataFrame, way: str) -> None:
    idle = frame.assign(z=np.random.default_rng(1).normal(size=len(frame)))
    with pytest.warns(NoExclusionWarning, match="no evidence that the instrument 'z' drives"):
        model = WAYS[way](idle)
    assert model.diagnostics().to_frame().loc[0, "verdict"] == "problem"
    with pytest.warns(NoExclusionWarning, match="every selection feature"):
        TreatmentModel().fit(frame[["x1", "x2"]], frame["y"], frame["d"])


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_common_regimes_need_no_variation_in_each(
    frame: pd.DataFrame, method: str, tmp_path: Path
) -> None:
    untreated = frame.index[frame["d"] == 0]
    dummy = np.zeros(len(frame))
    dummy[untreated[:40]] = 1.0
    rows = frame.assign(x2=dummy, y=frame["y"] + dummy)
    model = _fit(rows, method=method)
    own = model.tidy().query("term == 'x2'").iloc[0]
    assert abs(own["estimate"] - 1.0) < 4.0 * own["std_error"]
    heckmanfa.save(model, tmp_path / "model.heckmanfa")
    assert heckmanfa.load(tmp_path / "model.heckmanfa").effects().equals(model.effects())
    with pytest.raises(CollinearError, match=r"among the treated rows.*'x2' is constant"):
        _fit(rows, method=method, regimes="separate")
    few = pd.concat([frame[frame["d"] == 0], frame[frame["d"] == 1][:3]]).reset_index(drop=True)
    assert np.isfinite(_fit(few, method="two-step").effects()["std_error"]).all()


def test_what_decides_treatment_can_be_dropped(frame: pd.DataFrame) -> None:
    sure = np.where(frame["x1"] > 1.0, 1.0, 0.0)
    rows = frame.assign(sure=sure, d=np.where(sure == 1.0, 1, frame["d"]))
    model = TreatmentModel(["x1", "x2"], ["x1", "z", "sure"], on_separation="drop")
    with pytest.warns(heckmanfa.errors.DroppedFeaturesWarning, match="sure"):
        model.fit(rows[["x1", "x2", "z", "sure"]], rows["y"], treated=rows["d"])
    left = rows[rows["sure"] == 0.0].reset_index(drop=True)
    assert _values(model.effects()) == pytest.approx(_values(_fit(left).effects()))
    assert model.effects()["n_rows"].tolist()[0] == len(left)


@pytest.mark.parametrize("regimes", REGIMES)
def test_starts_lead_to_the_same_maximum(frame: pd.DataFrame, regimes: str) -> None:
    model = _fit(frame, regimes=regimes, method="ml")
    again = _fit(frame, regimes=regimes, method="ml", start=model.params_)
    assert again.params_ == pytest.approx(model.params_, abs=1e-7)
    if regimes == "common":
        other = _fit(frame, method="ml", start=-0.5)
        assert other.params_ == pytest.approx(model.params_, abs=1e-6)
    with pytest.raises(InputError, match="start has 2 entries"):
        _fit(frame, regimes=regimes, method="ml", start=[0.0, 1.0])


# The picture. --------------------------------------------------------------------------------


def test_the_picture_has_effects_beside_naive_ones(frame: pd.DataFrame) -> None:
    model, X = _fit(frame, regimes="separate"), frame[["x1", "x2", "z"]]
    picture = model.effect_picture()
    values = [row.value for row in picture.rows]
    assert values[:4] == pytest.approx(model.effects()["estimate"].tolist())
    design = np.column_stack([np.ones(len(frame)), frame[["x1", "x2"]], frame["d"]])
    coef, (sse,) = np.linalg.lstsq(design, frame["y"], rcond=None)[:2]
    error = np.sqrt(sse / (len(frame) - 4) * np.linalg.inv(design.T @ design)[3, 3])
    naive = picture.rows[4]
    assert [naive.value, naive.high] == pytest.approx([coef[3], coef[3] + 1.959964 * error])
    means = frame.groupby("d")["y"].mean()
    assert picture.rows[5].value == pytest.approx(means[1] - means[0])
    svg = picture.svg(480)
    assert "Difference of means" in svg
    assert svg.count("<title>") >= 1
    robust = _fit(frame, cov_type="robust").effect_picture().rows[4]
    rest = frame["y"] - design @ coef
    inverse = np.linalg.inv(design.T @ design)
    spread = inverse @ (design * (rest**2).to_numpy()[:, None]).T @ design @ inverse
    error = np.sqrt(spread[3, 3] * len(frame) / (len(frame) - 1))
    assert robust.high == pytest.approx(coef[3] + 1.959964 * error)
    pytest.importorskip("matplotlib")
    by = np.where(frame["x1"] > 0, "high", "low")
    axes = heckmanfa.plots.treatment_effects(model, X, treated=frame["d"], by=by)
    assert "high" in [text.get_text() for text in axes.get_yticklabels()]
    with pytest.raises(InputError, match="TreatmentModel"):
        heckmanfa.plots.treatment_effects(heckmanfa.Heckman())  # type: ignore[arg-type]
