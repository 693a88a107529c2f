"""Whatever kind of column or table comes in: numbers are used, and all else gets our own words."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from heckmanfa import Heckman, InverseProbabilityWeighted, NaiveOLS, compress
from heckmanfa.errors import (
    HeckmanfaError,
    HeckmanfaWarning,
    InputError,
    InputTypeError,
    MissingValueError,
)
from heckmanfa.model_selection import SelectionKFold

FEATURES = ["educ", "exper", "kids5", "nwifeinc"]


@pytest.fixture(scope="module")
def X(mroz):  # noqa: N802
    return mroz[FEATURES]


@pytest.fixture(scope="module")
def model(X, mroz):
    return Heckman(["educ", "exper"]).fit(X, mroz["lwage"])


def _with_hole(values, hole):
    found = values.astype(object)
    found.iloc[3] = hole
    return found


WHOLE = {
    "Int64": lambda v: v.astype("Int64"),
    "Float64": lambda v: v.astype("Float64"),
    "arrow float": lambda v: v.astype("float64[pyarrow]"),
    "arrow int": lambda v: v.astype("int64[pyarrow]"),
    "arrow decimal": lambda v: v.map(Decimal).astype(pd.ArrowDtype(pa.decimal128(9, 2))),
    "float16": lambda v: v.astype(np.float16),
    "object": lambda v: v.astype(object),
    "Decimal": lambda v: v.map(lambda one: Decimal(int(one))).astype(object),
    "Fraction": lambda v: v.map(lambda one: Fraction(int(one))).astype(object),
    "sparse": lambda v: v.astype(pd.SparseDtype(float, 0.0)),
    "sparse int": lambda v: v.astype(pd.SparseDtype(np.int64, 0)),
    "polars": lambda v: pl.Series("age", v.to_numpy()),
    "polars 128 bits": lambda v: pl.Series("age", v.to_numpy()).cast(pl.Int128),
    "polars 128 bits, unsigned": lambda v: pl.Series("age", v.to_numpy()).cast(pl.UInt128),
    "pyarrow": lambda v: pa.chunked_array([v.to_numpy()]),
    "list": lambda v: v.tolist(),
}
HOLES = {
    "Int64": lambda v: v.astype("Int64").where(v.index != 3),
    "Float64": lambda v: v.astype("Float64").where(v.index != 3),
    "arrow": lambda v: v.astype("int64[pyarrow]").where(v.index != 3),
    "pandas NA": lambda v: _with_hole(v, pd.NA),
    "None": lambda v: _with_hole(v, None),
    "NaT": lambda v: _with_hole(v, pd.NaT),
    "Decimal NaN": lambda v: _with_hole(v.map(lambda one: Decimal(int(one))), Decimal("NaN")),
    "sparse": lambda v: v.astype(float).where(v.index != 3).astype(pd.SparseDtype(float)),
    "masked": lambda v: np.ma.masked_array(v.to_numpy(), v.index == 3),
    "list": lambda v: _with_hole(v, None).tolist(),
}
_DAY = pd.Timestamp("2000-01-01")
REFUSED = {
    "text": (lambda v: v.astype(str), "pandas.to_numeric"),
    "string": (lambda v: v.astype("string"), "pandas.to_numeric"),
    "arrow text": (lambda v: v.astype("string[pyarrow]"), "pandas.to_numeric"),
    "bytes": (lambda v: v.astype(str).str.encode("ascii"), "pandas.to_numeric"),
    "categories of numbers": (
        lambda v: v.astype("category"),
        r"found categories of int64\): name it in categorical_features.* \.astype\(float\)",
    ),
    "categories of text": (
        lambda v: v.astype(str).astype("category"),
        "found categories of (str|object)",
    ),
    "arrow dictionary": (
        lambda v: v.astype(str).astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        "categorical_features",
    ),
    "intervals": (lambda v: pd.cut(v, 3), "categorical_features"),
    "datetimes": (lambda v: _DAY + pd.to_timedelta(v, unit="D"), r"\.dt\.year"),
    "zoned datetimes": (
        lambda v: (_DAY + pd.to_timedelta(v, unit="D")).dt.tz_localize("UTC"),
        r"\.dt\.year",
    ),
    "dates": (lambda v: v.map(lambda _: datetime.date(2000, 1, 1)), r"\.dt\.year"),
    "periods": (
        lambda v: (_DAY + pd.to_timedelta(v, unit="D")).dt.to_period("D"),
        r"\.dt\.year",
    ),
    "timedeltas": (lambda v: pd.to_timedelta(v, unit="D"), "for example to days"),
    "timedelta objects": (
        lambda v: pd.to_timedelta(v, unit="D").astype(object),
        "for example to days",
    ),
    "complex": (lambda v: v.astype(complex), "Complex data not supported"),
    "lists": (lambda v: v.map(lambda one: [one]), r"found list\)"),
}


def _ways(model, X, y):
    """Every way in which a column can come in."""
    yield "fit X", lambda v: Heckman(["educ", "exper"]).fit(_put(X, v), y)
    yield "OLS X", lambda v: NaiveOLS().fit(_put(X, v), y)
    yield "IPW X", lambda v: InverseProbabilityWeighted(["educ"]).fit(_put(X, v), y)
    yield "compress", lambda v: compress(_put(X, v), y)
    other = Heckman(["educ", "exper"]).fit(_put(X, X["exper"].to_numpy() ** 2 % 7), y)
    yield "predict", lambda v: other.predict(_put(X, v), kind="selected")
    yield "margins", lambda v: other.margins(_put(X, v))
    yield "fit y", lambda v: Heckman(["educ", "exper"]).fit(X, v)
    yield "score", lambda v: model.score(X, v)
    yield "log_likelihood", lambda v: model.log_likelihood(X, v)
    yield "weights", lambda v: Heckman(["educ"]).fit(X, y, sample_weight=v)
    yield "selected", lambda v: Heckman(["educ"]).fit(X, y, selected=v)
    yield "groups", lambda v: Heckman(["educ"], cov_type="cluster").fit(X, y, groups=v)


def _put(X, values):
    if isinstance(values, pl.Series):
        return pl.from_pandas(X).with_columns(values.alias("age"))
    if isinstance(values, np.ma.MaskedArray):
        values = pd.Series(values.astype(float).filled(np.nan))
    if isinstance(values, pa.ChunkedArray):
        values = values.to_numpy()
    return X.assign(age=values)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.parametrize("kind", [*(f"{one} with a hole" for one in HOLES), *REFUSED])
def test_no_foreign_error_comes_out_of_any_kind_of_column(kind, model, X, mroz):
    make = HOLES.get(kind.removesuffix(" with a hole")) or REFUSED[kind][0]
    said = {}
    for way, ask in _ways(model, X, mroz["lwage"]):
        try:
            ask(make(mroz["age"]))
        except HeckmanfaError as error:
            said[way] = str(error)
    assert not [way for way, text in said.items() if "\n" in text]


@pytest.mark.parametrize("kind", WHOLE)
def test_every_kind_of_number_is_the_same_number(kind, model, X, mroz):
    age, y = mroz["age"], mroz["lwage"]
    wanted = Heckman(["educ", "age"]).fit(X.assign(age=age), y)
    values = WHOLE[kind](age)
    found = Heckman(["educ", "age"]).fit(_put(X, values), y)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)
    np.testing.assert_allclose(found.predict(_put(X, values)), wanted.predict(_put(X, age)))
    assert model.score(X, values) == pytest.approx(model.score(X, age), rel=1e-12)


@pytest.mark.parametrize("kind", HOLES)
def test_every_kind_of_hole_in_an_outcome_is_a_missing_outcome(kind, X, mroz):
    outcome = mroz["age"].where(mroz["lfp"] == 1)
    wanted = NaiveOLS(["educ"]).fit(X, outcome.where(outcome.index != 3))
    whole = outcome.fillna(0).astype(int)
    values = HOLES[kind](whole)
    found = NaiveOLS(["educ"]).fit(X, values, selected=mroz["lfp"] == 1)
    assert found.row_counts_["left_out_outcome_missing"] == 1
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)


@pytest.mark.parametrize("kind", HOLES)
def test_every_kind_of_hole_in_a_feature_is_counted(kind, X, mroz):
    with pytest.raises(MissingValueError, match=r"'age' \(1 NaN, 0 inf\)"):
        Heckman(["educ"]).fit(_put(X, HOLES[kind](mroz["age"])), mroz["lwage"])


@pytest.mark.parametrize("kind", REFUSED)
def test_what_holds_no_numbers_is_refused_by_name_with_what_to_do(kind, X, mroz):
    make, words = REFUSED[kind]
    values = make(mroz["age"])
    with pytest.raises(InputError, match=words) as caught:
        Heckman(["educ"], categorical_features=None).fit(X.assign(age=values), mroz["lwage"])
    assert "column 'age'" in str(caught.value)
    # What stands beside X is one column: dummies of it are no help.
    with pytest.raises(InputError, match=r"y( \(column 'age'\))? (does not hold|holds)") as caught:
        Heckman(["educ"]).fit(X, values)
    assert "categorical_features" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (sparse.csr_array, "toarray"),
        (sparse.coo_matrix, "toarray"),
        (lambda a: a.astype(complex), "Complex data not supported"),
        (lambda a: a.astype(str), "pandas.to_numeric"),
        (lambda a: a.astype(str).astype(object), "pandas.to_numeric"),
        (lambda a: a.astype(str).tolist(), "pandas.to_numeric"),
        (lambda a: a.astype("datetime64[D]"), r"\.dt\.year"),
        (lambda a: a.astype("timedelta64[D]"), "for example to days"),
        (lambda a: np.ma.masked_array(a, a > 30), "'x3' .*NaN"),
        (lambda a: np.where(a > 30, pd.NA, a.astype(object)), "'x3' .*NaN"),
        (lambda a: np.where(a > 30, None, a.astype(object)).tolist(), "'x3' .*NaN"),
        (lambda a: a[0], "2D array"),
        (lambda a: [[1.0], [1.0, 2.0]], "inhomogeneous"),
        (lambda a: None, "2D array"),
        (lambda a: {"a": 1}, "X is a dictionary"),
    ],
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(make, words, X, mroz):
    array = X.to_numpy(dtype=float)
    for ask in (
        lambda: Heckman([0]).fit(make(array), mroz["lwage"]),
        lambda: InverseProbabilityWeighted([0]).fit(make(array), mroz["lwage"]),
        lambda: compress(make(array), mroz["lwage"]),
    ):
        with pytest.raises(InputError, match=words):
            ask()


def test_objects_that_are_numbers_fit_as_an_array(X, mroz):
    array = X.to_numpy(dtype=float)
    wanted = Heckman([0, 1]).fit(array, mroz["lwage"]).coef_
    decimals = np.vectorize(lambda one: Decimal(repr(float(one))), otypes=[object])(array)
    for one in (array.astype(object), decimals, array.tolist()):
        np.testing.assert_allclose(Heckman([0, 1]).fit(one, mroz["lwage"]).coef_, wanted)


def test_an_infinite_outcome_is_refused_wherever_rows_are_scored(model, X, mroz):
    y = mroz["lwage"].where(mroz.index != 3, np.inf)
    for ask in (model.score, model.log_likelihood, NaiveOLS().fit(X, mroz["lwage"]).score):
        with pytest.raises(InputError, match="y contains infinity"):
            ask(X, y)


def test_groups_that_cannot_be_sorted_are_refused_in_words(X, mroz):
    mixed = mroz["age"].astype(object).where(mroz.index % 2 == 0, "old")
    with pytest.raises(InputTypeError, match="groups mixes int and str"):
        Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=mixed)
    groups = _with_hole(mroz["age"], pd.NA)
    # PyArrow would give the missing category the value of another row.
    stored = pa.array(groups.astype("Int64")).dictionary_encode()
    for given in (groups, pa.chunked_array([stored]), stored):
        with pytest.raises(InputError, match="groups is missing in 1 rows"):
            Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=given)


def test_a_true_and_false_outcome_is_one_of_0_and_1(X, mroz):
    flags = (mroz["age"] > 40).where(mroz["lfp"] == 1).astype("boolean")
    with pytest.warns(UserWarning, match="only 0 and 1"):
        found = Heckman(["educ"]).fit(X, flags)
    with pytest.warns(UserWarning, match="only 0 and 1"):
        wanted = Heckman(["educ"]).fit(X, flags.astype("float64"))
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda v: sparse.csr_matrix(v.to_numpy()[:, None]), r"is a sparse matrix; call \.toarray"),
        (lambda v: np.column_stack([v, v]), r"should be a 1d array, got an array of shape"),
        (lambda v: v.to_frame().assign(other=v), r"should be a 1d array, got an array of shape"),
        (lambda v: "lwage", r"if it names a column, pass (y|selected)=data\["),
        (lambda v: {"a": 1}, "should be a 1d array, got a dict"),
        (lambda v: pl.from_pandas(v.to_frame()).lazy(), "should be a 1d array, got a LazyFrame"),
        (lambda v: [[1.0], [1.0, 2.0]], "inhomogeneous"),
        (lambda v: v[:3], "3"),
    ],
)
def test_what_is_no_column_is_refused_by_its_role(make, words, model, X, mroz):
    values, y = make(mroz["age"]), mroz["lwage"]
    for role, ask in (
        ("y", lambda: Heckman(["educ"]).fit(X, values)),
        ("y", lambda: model.score(X, values)),
        ("y", lambda: model.log_likelihood(X, values)),
        ("selected", lambda: Heckman(["educ"]).fit(X, y, selected=values)),
    ):
        with pytest.raises(InputError, match=words) as caught:
            ask()
        assert role in str(caught.value)


def test_a_column_of_nothing_is_missing_in_every_kind_of_frame(X, mroz):
    empty = pl.Series([None] * len(X))
    with pytest.raises(MissingValueError, match=r"'age' \(753 NaN, 0 inf\)"):
        Heckman(["educ"]).fit(pl.from_pandas(X).with_columns(empty.alias("age")), mroz["lwage"])
    with pytest.raises(InputError, match="no row has an observed outcome"):
        Heckman(["educ"]).fit(X, empty)


NO_NUMBERS = {
    "struct of one field": (lambda v: pl.DataFrame({"a": v}).to_struct("age"), "structs"),
    "lists of one number": (lambda v: pl.Series("age", [[float(one)] for one in v]), "lists"),
    "arrays of one number": (
        lambda v: pl.Series("age", [[float(one)] for one in v], dtype=pl.Array(pl.Float64, 1)),
        "lists",
    ),
    "bytes": (lambda v: pl.Series("age", [str(one).encode() for one in v]), "bytes"),
    "objects": (lambda v: pl.Series("age", [object() for _ in v], dtype=pl.Object), "object"),
    "times of day": (lambda v: pl.Series("age", [datetime.time(one % 24) for one in v]), "time"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_columns_of_polars_that_hold_no_numbers_are_refused_in_every_role(kind, X, mroz):
    make, found = NO_NUMBERS[kind]
    values, y = make(mroz["age"]), mroz["lwage"]
    with pytest.raises(InputError, match=rf"^column 'age' does not hold numbers \(found {found}"):
        Heckman(["educ"]).fit(_put(X, values), y)
    for role, ask in (
        ("y", lambda: Heckman(["educ"]).fit(X, values)),
        ("selected", lambda: Heckman(["educ"]).fit(X, y, selected=values)),
        ("sample_weight", lambda: Heckman(["educ"]).fit(X, y, sample_weight=values)),
    ):
        words = rf"^{role} \(column 'age'\) does not hold numbers \(found {found}"
        with pytest.raises(InputError, match=words) as caught:
            ask()
        assert "categorical_features" not in str(caught.value)
        assert ".dt.year" not in str(caught.value)


@pytest.mark.parametrize("kind", ["struct of one field", "lists of one number"])
def test_formulas_and_groups_refuse_what_is_no_category(kind, X, mroz):
    values = NO_NUMBERS[kind][0](mroz["age"])
    with pytest.raises(InputError, match="column 'age' holds neither numbers nor text"):
        Heckman.from_formula("lwage ~ educ", "educ + age", _put(mroz[["lwage", "educ"]], values))
    with pytest.raises(InputError, match=r"groups holds .* give every group"):
        Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=values)


@pytest.mark.parametrize("wide", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_numbers_in_every_role(wide, X, mroz):
    def cast(name):
        return pl.Series(name, mroz[name].to_numpy()).cast(wide)

    y = mroz["lwage"]
    for given in ({"selected": "lfp"}, {"sample_weight": "lfp"}, {"groups": "educ"}):
        ((role, name),) = given.items()
        make = Heckman(["educ"], cov_type="cluster" if role == "groups" else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeckmanfaWarning)
            found = make.fit(X, y, **{role: cast(name)})
            wanted = clone(make).fit(X, y, **{role: mroz[name]})
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)
        np.testing.assert_allclose(found.vcov(), wanted.vcov(), rtol=1e-12)
    frame = pl.from_pandas(mroz[["lwage", "educ", "kids5"]]).with_columns(pl.col("educ").cast(wide))
    equations = ("lwage ~ educ", "educ + kids5")
    wanted = Heckman.from_formula(*equations, mroz).rho_
    assert Heckman.from_formula(*equations, frame).rho_ == pytest.approx(wanted, rel=1e-12)


def test_groups_of_128_bits_that_no_float_tells_apart_are_two(X, mroz):
    near = pl.Series([2**100 + int(one) for one in mroz["educ"]], dtype=pl.Int128)
    with pytest.warns(HeckmanfaWarning, match="clusters"):
        found = Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=near)
    assert found.n_clusters_ == mroz["educ"].nunique()


def test_a_record_batch_keeps_its_names(X, mroz):
    y = mroz["lwage"]
    batch = pa.RecordBatch.from_pandas(X, preserve_index=False)
    found = Heckman(["educ", "exper"]).fit(batch, y)
    assert list(found.feature_names_in_) == FEATURES
    np.testing.assert_allclose(found.predict(batch), found.predict(X), rtol=1e-12)
    one = pa.RecordBatch.from_pandas(mroz[["lwage"]], preserve_index=False)
    again = Heckman(["educ", "exper"]).fit(batch, one)
    assert again.rho_ == pytest.approx(found.rho_, rel=1e-12)
    equations = ("lwage ~ educ", "educ + kids5")
    whole = pa.RecordBatch.from_pandas(mroz, preserve_index=False)
    wanted = Heckman.from_formula(*equations, mroz).rho_
    assert Heckman.from_formula(*equations, whole).rho_ == pytest.approx(wanted, rel=1e-12)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_groups_may_be_a_frame_of_one_column(X, mroz):
    wanted = Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=mroz["educ"])
    one = mroz[["educ"]]
    for groups in (one, pl.from_pandas(one), pa.Table.from_pandas(one), one.to_numpy()):
        found = Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=groups)
        np.testing.assert_allclose(found.vcov(), wanted.vcov(), rtol=1e-12)
        folds = SelectionKFold(3).split(X, mroz["lwage"], groups=groups)
        for (_, mine), (_, theirs) in zip(
            folds, SelectionKFold(3).split(X, mroz["lwage"], groups=mroz["educ"]), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    three = mroz[["educ", "exper", "age"]]
    with pytest.raises(InputError, match="groups has 3 columns, and errors are clustered by one"):
        Heckman(["educ"], cov_type="cluster").fit(X, mroz["lwage"], groups=three)


def test_masks_and_names_may_be_of_pyarrow(X, mroz):
    for features in (
        pa.array([True, True, False, False]),
        pa.chunked_array([[True, True, False, False]]),
        pa.array(["educ", "exper"]),
        pa.array([0, 1]),
        list(pa.array([True, True, False, False])),
    ):
        assert Heckman(features).fit(X, mroz["lwage"]).prediction_features_ == ["educ", "exper"]


def test_what_was_found_is_said_in_plain_words(X, mroz):
    text = mroz["age"].astype(str).to_numpy(dtype="U40")
    numbered = pa.array(mroz["age"].to_numpy()).dictionary_encode()
    for values, words in (
        (text, r"y does not hold numbers \(found text\): convert it .*HeckmanProbit if it holds"),
        (text.astype("S8"), r"found bytes\)"),
        (pa.chunked_array([numbered]), r"found categories of int64\)"),
        ([{"a": one} for one in mroz["age"]], r"found dict\): pass one number for each row"),
    ):
        with pytest.raises(InputError, match=words):
            Heckman(["educ"]).fit(X, values)
