"""Levels are those of the rows that are fitted, and the reference is one of them."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    compress,
    load,
    save,
    scan,
    scan_parquet,
)
from heckmanfa.errors import DroppedFeaturesWarning, InputError, UnknownFeatureError

N = 400
LEVELS = ("EU", "US", "AS")


def _rows():
    rng = np.random.default_rng(11)
    x, z, error = rng.normal(size=(3, N))
    g = rng.choice(LEVELS, N)
    selected = 0.4 + 0.8 * x + z + 0.3 * (g == "US") + error > 0
    y = 1 + x + 0.5 * (g == "US") + 0.5 * error + rng.normal(size=N)
    frame = pd.DataFrame({"g": g, "x": x, "z": z})
    return frame, np.where(selected, y, np.nan)


FRAME, Y = _rows()
# Rows that a fit leaves out have a level of their own, the first in the alphabet.
ODD = FRAME.assign(g=FRAME["g"].mask(FRAME.index < 3, "AA"))
WEIGHT = np.where(FRAME.index < 3, 0.0, 1.0)
EXPECTED = Heckman(["g", "x"]).fit(FRAME[3:], Y[3:])


def _lost():
    """Return rows of which one level, the first of all, decides selection."""
    g = FRAME["g"].mask(FRAME.index < 12, "AA")
    return FRAME.assign(g=g), np.where(g == "AA", np.nan, Y)


def _quietly(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedFeaturesWarning)
        return model.fit(*data, **options)


WAYS = {
    "pandas": lambda frame: frame,
    "category": lambda frame: frame.assign(g=frame["g"].astype("category")),
    "polars": pl.from_pandas,
    "enum": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("g").cast(pl.Enum(["AA", "AS", "EU", "US"]))
    ),
    "arrow": pa.Table.from_pandas,
    "array": lambda frame: frame.to_numpy(dtype=object),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_are_left_out_lend_no_level(way):
    named = {"categorical_features": [0]} if way == "array" else {}
    model = Heckman([0, 1], **named).fit(WAYS[way](ODD), Y, sample_weight=WEIGHT)
    assert model.encoding_.levels[model.encoding_.sources[0]] == ("AS", "EU", "US")
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-10)
    with pytest.raises(InputError, match="not fitted with: 'AA'"):
        model.predict(WAYS[way](ODD))


def test_rows_without_an_outcome_they_should_have_lend_no_level():
    selected = ~np.isnan(Y) | (FRAME.index < 3)
    y = np.where(FRAME.index < 3, np.nan, Y)
    model = Heckman(["g", "x"]).fit(ODD, y, selected=selected)
    assert model.row_counts_["left_out_outcome_missing"] == 3
    assert model.encoding_.references == {"g": "AS"}
    # The same rows are still those of the fit.
    assert len(model.bootstrap(ODD, y, selected=selected, n_boot=2, random_state=0).tidy())


def test_levels_of_rows_elsewhere_are_those_that_are_fitted(tmp_path):
    table = ODD.assign(y=Y, weight=WEIGHT)
    table.loc[FRAME.index < 3, "x"] = np.nan
    table.to_parquet(tmp_path / "rows.parquet")
    scans = [
        scan_parquet(tmp_path / "rows.parquet", "y", ["g", "x", "z"], missing="drop"),
        scan(pl.scan_parquet(tmp_path / "rows.parquet"), "y", ["g", "x", "z"], missing="drop"),
    ]
    for rows in scans:
        assert rows.names[0] == "g[AS]"
        model = Heckman(["g", "x"]).fit(rows)
        assert model.encoded_names_.tolist() == ["g[EU]", "g[US]", "x", "z"]
        np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-10)
        assert model.row_counts_["left_out_regressor_missing"] == 3
        named = Heckman(["g", "x"], reference={"g": "US"}).fit(rows)
        assert named.encoded_names_.tolist() == ["g[AS]", "g[EU]", "x", "z"]
    named = scan_parquet(
        tmp_path / "rows.parquet", "y", ["g", "x", "z"], missing="drop", reference={"g": "EU"}
    )
    assert named.names[:3] == ("g[AA]", "g[AS]", "g[US]")
    assert Heckman(["g"]).fit(named).encoding_.levels == {"g": ("EU", "AS", "US")}
    lost = scan_parquet(
        tmp_path / "rows.parquet", "y", ["g", "x", "z"], missing="drop", reference={"g": "AA"}
    )
    with pytest.raises(InputError, match="no row of the fit has the level 'AA' of 'g'"):
        Heckman(["g"]).fit(lost)


def test_levels_of_a_dask_collection_are_those_that_are_fitted():
    dd = pytest.importorskip("dask.dataframe")
    columns = (ODD, pd.Series(Y), pd.Series(WEIGHT))
    X, y, weight = (dd.from_pandas(column, npartitions=3) for column in columns)
    model = Heckman(["g", "x"]).fit(X, y, sample_weight=weight)
    assert model.encoding_.levels == {"g": ("AS", "EU", "US")}
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-10)


def test_formulas_learn_levels_from_the_rows_that_are_fitted():
    data = ODD.assign(y=Y, weight=WEIGHT)
    declared = data.assign(g=pd.Categorical(data["g"], ["none", "AA", "US", "EU", "AS"]))
    for frame, first in ((data, "AS"), (declared, "US")):
        model = Heckman.from_formula("y ~ g + x", "g + x + z", frame, sample_weight="weight")
        dummies = [f"g[T.{level}]" for level in ("AS", "EU", "US") if level != first]
        assert sorted(model.encoded_names_) == sorted([*dummies, "x", "z"])
        assert model.predict(data[3:]) == pytest.approx(EXPECTED.predict(FRAME[3:]), rel=1e-9)
        with pytest.raises(InputError, match="not fitted with: 'AA'"):
            model.predict(data)
        assert len(model.bootstrap(frame, n_boot=2, random_state=0).tidy())
    named = Heckman.from_formula(
        "y ~ g + x", "g + x + z", data, sample_weight="weight", reference={"g": "US"}
    )
    assert named.encoded_names_[:2].tolist() == ["g[T.AS]", "g[T.EU]"]


@pytest.mark.parametrize("estimator", [Heckman, NaiveOLS, InverseProbabilityWeighted])
def test_the_user_names_the_reference(estimator):
    first = estimator(["g", "x"]).fit(FRAME, Y)
    model = estimator(["g", "x"], reference={"g": "US"}).fit(FRAME, Y)
    assert model.encoding_.references == {"g": "US"}
    assert model.encoded_names_[:2].tolist() == ["g[AS]", "g[EU]"]
    np.testing.assert_allclose(model.predict(FRAME), first.predict(FRAME), rtol=1e-9)
    assert model.coef_[0] == pytest.approx(-first.coef_[1], rel=1e-9)
    assert clone(model).reference == {"g": "US"}
    assert "reference={'g': 'US'}" in repr(model)


def test_a_reference_is_a_level_of_a_category(tmp_path):
    def refused(error, words, **options):
        with pytest.raises(error, match=words):
            Heckman(["g", "x"], reference=options.pop("reference")).fit(ODD, Y, **options)

    refused(UnknownFeatureError, "no column 'gg'. Did you mean 'g'", reference={"gg": "EU"})
    refused(InputError, "'g' has no level 'USA'. Did you mean 'US'", reference={"g": "USA"})
    refused(InputError, "names 'x', which is not a category", reference={"x": 1})
    words = "no row of the fit has the level 'AA' of 'g'.*'AS', 'EU', 'US'"
    refused(InputError, words, reference={"g": "AA"}, sample_weight=WEIGHT)
    refused(InputError, "must be an instance of 'dict'", reference="g=EU")
    data = FRAME.assign(y=Y, n=np.arange(N) % 3)
    for formula, reference, error, words in (
        ("g", {"h": "EU"}, UnknownFeatureError, "no category 'h'"),
        ("g", {"g": "USA"}, InputError, "Did you mean 'US'"),
        ("C(n)", {"n": 2}, InputError, r"write C\(n, contr.treatment\(2\)\)"),
    ):
        with pytest.raises(error, match=words):
            Heckman.from_formula(f"y ~ {formula}", "g + x + z", data, reference=reference)


def test_a_category_of_an_array_goes_by_its_position():
    X = FRAME.to_numpy(dtype=object)
    model = Heckman([0, 1], categorical_features=[0], reference={0: "US"}).fit(X, Y)
    assert model.encoded_names_[:2].tolist() == ["x0[AS]", "x0[EU]"]


def test_compressed_rows_have_the_levels_that_are_fitted():
    kept = compress(FRAME[3:], Y[3:]).probit.coef
    np.testing.assert_allclose(compress(ODD, Y, sample_weight=WEIGHT).probit.coef, kept, rtol=1e-9)


def test_a_reference_that_separation_leaves_no_row_of_gives_way_to_one_that_stays():
    X, y = _lost()
    with pytest.warns(DroppedFeaturesWarning) as caught:
        model = Heckman(["g", "x"], on_separation="drop").fit(X, y)
    assert len(caught) == 2
    assert re.match(r"12 rows .*'g\[AA\]'$", str(caught[0].message))
    assert model.encoding_.references == {"g": "AS"}
    assert model.dropped_features_ == ["g[AA]"]
    rest = Heckman(["g", "x"]).fit(X[12:], y[12:])
    np.testing.assert_allclose(model.coef_[[1, 2, 3]], rest.coef_[:3], rtol=1e-6)
    effects = model.margins(X[12:], kind="marginal", features=["g"]).tidy()
    assert effects["change"].tolist() == ["AS to EU", "AS to US"]
    with pytest.raises(InputError, match="leaves no row of 'AA', the reference of 'g'"):
        _quietly(Heckman(["g"], on_separation="drop", reference={"g": "AA"}), X, y)


def _binary(y):
    return np.where(np.isnan(y), np.nan, y > 1)


@pytest.mark.parametrize("first", ["AA", "ZZ"])
@pytest.mark.parametrize(
    "model",
    [
        Heckman(["g", "x"], on_separation="drop"),
        HeckmanBestSubset(on_separation="drop", always=["g"]),
        HeckmanProbit(["g", "x"], on_separation="drop"),
        InverseProbabilityWeighted(["g", "x"], on_separation="drop"),
    ],
)
def test_a_level_that_separation_left_out_is_not_known(model, first, tmp_path):
    X, y = _lost()
    X = X.replace({"g": {"AA": first}})
    y = _binary(y) if isinstance(model, HeckmanProbit) else y
    model = _quietly(clone(model), X, y)
    assert model.row_counts_["left_out_separation"] == 12
    assert first not in model.encoding_.known_levels("g")
    # Rows without the level are predicted as by a fit without it.
    rest = clone(model).fit(X[12:], y[12:])
    np.testing.assert_allclose(model.predict(X[12:]), rest.predict(X[12:]), rtol=1e-5)
    save(model, tmp_path / "model.heckmanfa")
    for fitted in (model, load(tmp_path / "model.heckmanfa")):
        with pytest.raises(InputError, match=f"not fitted with: '{first}' .12 rows"):
            fitted.predict(X)
        missing = fitted.predict(X, unknown="missing", missing="nan")
        assert np.isnan(np.asarray(missing, dtype=float)).nonzero()[0].tolist() == [*range(12)]


def test_formulas_do_not_know_a_level_that_separation_left_out():
    X, y = _lost()
    data = X.assign(y=y)
    for frame in (data, data.replace({"g": {"AA": "ZZ"}})):
        lost = frame["g"][0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DroppedFeaturesWarning)
            model = Heckman.from_formula("y ~ g + x", "g + x + z", frame, on_separation="drop")
        assert model.dropped_features_ == [f"g[T.{lost}]"]
        with pytest.raises(InputError, match=f"not fitted with: '{lost}'"):
            model.predict(frame)
        assert np.isnan(model.predict(frame, unknown="missing", missing="nan")[:12]).all()
        effects = model.margins(frame[12:], kind="marginal", features=["g"]).tidy()
        assert effects["change"].tolist() == ["AS to EU", "AS to US"]


def test_a_level_whose_dummy_is_collinear_is_known():
    X = FRAME.assign(us=(FRAME["g"] == "US").astype(float))[["us", "g", "x", "z"]]
    model = _quietly(Heckman(["us", "g", "x"], on_collinear="drop"), X, Y)
    assert model.dropped_features_ == ["g[US]"]
    first = Heckman(["g", "x"]).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict(X), first.predict(FRAME), rtol=1e-8)


def test_separation_in_files_moves_the_reference(tmp_path):
    X, y = _lost()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    model = _quietly(
        Heckman(["g", "x"], on_separation="drop"), scan(tmp_path / "rows.parquet", "y")
    )
    assert model.encoding_.references == {"g": "AS"}
    memory = _quietly(Heckman(["g", "x"], on_separation="drop"), X, y)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-8, atol=1e-12)


DECLARED = FRAME.assign(g=FRAME["g"].replace({"AS": "NA", "EU": "-"}))


@pytest.mark.parametrize("way", ["category", "enum", "named", "arrow", "dask"])
def test_declared_levels_may_be_marks_of_missing_values(way):
    X, y, options = DECLARED, Y, {}
    if way == "category":
        X = X.assign(g=X["g"].astype("category"))
    elif way == "enum":
        X = pl.from_pandas(X).with_columns(pl.col("g").cast(pl.Enum(["-", "NA", "US"])))
    else:
        options = {"categorical_features": ["g"]}
    if way == "arrow":
        X = pa.Table.from_pandas(X)
    if way == "dask":
        dd = pytest.importorskip("dask.dataframe")
        X, y = (dd.from_pandas(part, npartitions=2) for part in (X, pd.Series(Y)))
    model = Heckman(["g", "x"], **options).fit(X, y)
    assert model.encoding_.levels == {"g": ("-", "NA", "US")}
    expected = Heckman(["g", "x"], reference={"g": "EU"}).fit(FRAME, Y)
    # Plain text is enough later: the model knows its levels.
    np.testing.assert_allclose(model.predict(DECLARED), expected.predict(FRAME), rtol=1e-9)


def test_scanned_levels_may_be_marks_of_missing_values(tmp_path):
    DECLARED.assign(y=Y).to_parquet(tmp_path / "text.parquet")
    typed = DECLARED.assign(y=Y, g=DECLARED["g"].astype("category"))
    typed.to_parquet(tmp_path / "typed.parquet")
    named = scan(tmp_path / "text.parquet", "y", categorical=["g"])
    for rows in (named, scan(tmp_path / "typed.parquet", "y")):
        assert rows.encoding.levels == {"g": ("-", "NA", "US")}
        assert Heckman(["g"]).fit(rows).row_counts_["selected"] == np.count_nonzero(~np.isnan(Y))


def test_what_programs_write_for_missing_is_never_a_level():
    odd = DECLARED["g"].mask(FRAME.index < 3, "nan").mask(FRAME.index == 3, "")
    X = DECLARED.assign(g=odd.astype("category"))
    with pytest.raises(InputError, match=r"'g' \(4 missing\)"):
        Heckman(["g", "x"]).fit(X, Y)
