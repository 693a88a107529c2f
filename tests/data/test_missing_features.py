"""A row to predict for that lacks a feature: one rule for arrays, formulas, Dask and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heckmanfa import Heckman, InverseProbabilityWeighted, NaiveOLS, predict_parquet, scan_parquet
from heckmanfa.errors import HeckmanfaWarning, InputError, MissingValueError

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
KINDS = ("marginal", "selected", "unselected")


@pytest.fixture(scope="module")
def whole(mroz):
    """Rows to predict for."""
    return mroz.iloc[::6].reset_index(drop=True)[[*FEATURES, "lwage"]].astype(float)


@pytest.fixture(scope="module")
def holed(whole):
    """Rows 2 and 5 lack a feature of both equations, row 5 and 9 one that only selects."""
    holed = whole.copy()
    holed.loc[[2, 5], "educ"] = np.nan
    holed.loc[[5, 9], "age"] = np.nan
    return holed


@pytest.fixture(scope="module")
def plain(mroz):
    return Heckman(["educ", "exper"]).fit(mroz[FEATURES], mroz["lwage"])


@pytest.fixture(scope="module")
def formula(mroz):
    return Heckman.from_formula(
        "lwage ~ educ + exper", "~ educ + exper + age + kids5 + nwifeinc", mroz
    )


@pytest.fixture(params=["plain", "formula"])
def asked(request):
    """A model, and the columns of the rows that it takes."""
    columns = FEATURES if request.param == "plain" else [*FEATURES, "lwage"]
    return request.getfixturevalue(request.param), columns


def _answers(model, X, **options):
    """Each prediction there is, by what it is."""
    yield "marginal", model.predict(X, **options)
    yield "selected", model.predict(X, kind="selected", **options)
    values, interval = model.predict(X, "selected", "prediction", **options)
    yield "selected", values
    yield "selected", interval[:, 0]
    yield "selection", model.predict_selection(X, **options)
    yield "selection", model.inverse_mills(X, **options)


def _rows_without(kind):
    return {"marginal": [2, 5], "selected": [2, 5, 9], "selection": [2, 5, 9]}[kind]


def test_arrays_and_formulas_refuse_with_counts_by_column(asked, holed):
    model, features = asked
    X = holed[features]
    for ask in (
        lambda: model.predict(X, kind="selected"),
        lambda: model.predict(X, kind="selected", return_interval="confidence"),
        lambda: model.predict_selection(X),
        lambda: model.inverse_mills(X),
    ):
        with pytest.raises(MissingValueError) as caught:
            ask()
        text = str(caught.value)
        assert "'educ' (2 rows)" in text
        assert "'age' (2 rows)" in text
        assert ": 3 of 126 rows cannot be predicted" in text
        assert "missing='nan'" in text
    with pytest.raises(MissingValueError, match=r"'educ' \(2 rows\): 2 of 126 rows"):
        model.predict(X)


def test_asked_for_nan_they_predict_all_other_rows_alike(asked, whole, holed):
    model, features = asked
    wanted = _answers(model, whole[features])
    answers = _answers(model, holed[features], missing="nan")
    for (kind, found), (_, complete) in zip(answers, wanted, strict=True):
        assert [*np.flatnonzero(np.isnan(found))] == _rows_without(kind), kind
        there = ~np.isnan(found)
        np.testing.assert_allclose(found[there], complete[there], rtol=1e-12)


def test_every_kind_of_table_in_memory_follows_the_rule(plain, mroz, holed):
    X = holed[FEATURES]
    nameless = Heckman([0, 1]).fit(mroz[FEATURES].to_numpy(), mroz["lwage"])
    wanted = plain.predict(X, kind="selected", missing="nan")
    torch = pytest.importorskip("torch")
    for model, one in (
        (plain, pl.from_pandas(X, nan_to_null=True)),
        (plain, pa.Table.from_pandas(X)),
        (nameless, X.to_numpy()),
        (nameless, torch.tensor(X.to_numpy())),
    ):
        with pytest.raises(MissingValueError, match="3 of 126 rows cannot be predicted"):
            model.predict(one, kind="selected")
        found = np.asarray(model.predict(one, kind="selected", missing="nan"))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_regressions_without_selection_follow_the_rule(mroz, holed):
    for model in (NaiveOLS(["educ"]), InverseProbabilityWeighted(["educ"])):
        model.fit(mroz[FEATURES], mroz["lwage"])
        with pytest.raises(MissingValueError, match=r"'educ' \(2 rows\): 2 of 126 rows"):
            model.predict(holed[FEATURES])
        found = model.predict(holed[FEATURES], missing="nan")
        assert [*np.flatnonzero(np.isnan(found))] == [2, 5]


def test_dask_follows_the_rule_when_it_is_computed(asked, holed):
    dd = pytest.importorskip("dask.dataframe")
    model, features = asked
    X = dd.from_pandas(holed[features], npartitions=2)
    lazy = model.predict(X, kind="selected")
    with pytest.raises(MissingValueError, match=r"rows cannot be predicted"):
        lazy.compute(scheduler="synchronous")
    found = model.predict(X, kind="selected", missing="nan").compute(scheduler="synchronous")
    np.testing.assert_allclose(
        found, model.predict(holed[features], "selected", missing="nan"), rtol=1e-12
    )
    found = model.predict_selection(X, missing="nan").compute(scheduler="synchronous")
    assert [*np.flatnonzero(np.isnan(found))] == [2, 5, 9]


def test_a_file_has_a_row_for_each_and_says_how_many_are_empty(asked, holed, tmp_path):
    model, _ = asked
    place, out = tmp_path / "new.parquet", tmp_path / "p.parquet"
    pq.write_table(pa.Table.from_pandas(holed, preserve_index=False), place, row_group_size=50)
    for kind, words in (
        ("marginal", r"2 of 126 rows lack a feature, .* 'educ' \(2 rows\)"),
        ("selected", r"3 of 126 rows lack a feature, .* 'age' \(2 rows\)"),
        ("selection", r"3 of 126 rows lack a feature"),
    ):
        with pytest.warns(HeckmanfaWarning, match=words):
            assert predict_parquet(model, place, out, kind=kind, force=True) == len(holed)
        found = pd.read_parquet(out)[f"predicted_{kind}"]
        assert [*np.flatnonzero(found.isna())] == _rows_without(kind)
    out.unlink()
    with pytest.raises(MissingValueError, match=r"2 of 126 rows cannot be predicted"):
        predict_parquet(model, place, out, missing="error")
    assert not out.exists()


def test_a_file_of_predictions_of_a_regression_follows_the_rule(mroz, holed, tmp_path):
    model = NaiveOLS(["educ"]).fit(mroz[FEATURES], mroz["lwage"])
    holed.to_parquet(tmp_path / "new.parquet")
    with pytest.warns(HeckmanfaWarning, match="2 of 126 rows"):
        predict_parquet(model, tmp_path / "new.parquet", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")["predicted_marginal"]
    np.testing.assert_allclose(found, model.predict(holed[FEATURES], missing="nan"), rtol=1e-12)
    with pytest.raises(InputError, match="NaiveOLS does not model selection"):
        predict_parquet(model, tmp_path / "new.parquet", tmp_path / "q.parquet", kind="selection")


def test_infinity_is_refused_whatever_is_asked(plain, formula, mroz, whole):
    X = whole.assign(exper=whole["exper"].where(whole.index != 4, np.inf))
    for missing in ("error", "nan"):
        with pytest.raises(MissingValueError, match=r"infinity in 'exper' \(1 row\)"):
            plain.predict(X[FEATURES], missing=missing)
        with pytest.raises(MissingValueError, match="infinite"):
            formula.predict(X, missing=missing)
    with pytest.raises(MissingValueError, match="infinity in 'exper'"):
        NaiveOLS().fit(mroz[FEATURES], mroz["lwage"]).predict(X[FEATURES], missing="nan")


def test_another_answer_is_refused(plain, whole, tmp_path):
    X = whole[FEATURES]
    for ask in (plain.predict, plain.predict_selection, plain.inverse_mills):
        with pytest.raises(InputError, match="missing must be 'error' or 'nan'; got 'drop'"):
            ask(X, missing="drop")
    with pytest.raises(InputError, match="missing must be 'error' or 'nan'"):
        predict_parquet(plain, tmp_path / "in.parquet", tmp_path / "p.parquet", missing="drop")


def test_diagnostics_count_rows_that_miss_a_feature_in_every_model(asked, holed):
    model, features = asked
    assert "3 rows lack a feature" in str(model.diagnostics(holed[features]))


# Rows that are not in memory. ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(mroz, tmp_path_factory):
    place = tmp_path_factory.mktemp("rows") / "mroz.parquet"
    mroz[[*FEATURES, "lwage"]].to_parquet(place)
    return scan_parquet(place, outcome="lwage")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m, r: m.predict(r), "predict_parquet.model, rows, out, kind='marginal'. writes"),
        (lambda m, r: m.predict(r, "selected"), "kind='selected'"),
        (lambda m, r: m.predict(r, return_interval="prediction"), "predict_parquet"),
        (lambda m, r: m.predict_selection(r), "predict_parquet.*kind='selection'"),
        (lambda m, r: m.inverse_mills(r), "pandas.read_parquet"),
        (lambda m, r: m.score(r, r), "these rows already define y"),
        (lambda m, r: m.margins(r), "pandas.read_parquet"),
        (lambda m, r: m.diagnostics(r), "pandas.read_parquet"),
        (lambda m, r: m.bootstrap(r, n_boot=5), "needs the rows in memory"),
    ],
)
def test_rows_of_files_are_refused_in_one_sentence_that_says_what_to_do(ask, words, rows, plain):
    with pytest.raises(InputError, match=words) as caught:
        ask(plain, rows)
    assert "\n" not in str(caught.value)


def test_what_works_in_passes_works_on_rows_of_files(rows, plain, mroz):
    X, y = mroz[FEATURES], mroz["lwage"]
    assert plain.exclusion_test(rows).tidy()["p_value"].tolist() == pytest.approx(
        plain.exclusion_test(X, y).tidy()["p_value"].tolist(), rel=1e-6
    )
    assert str(plain.specification_tests(rows)) == str(plain.specification_tests(X, y))


def test_a_regression_on_rows_of_files_is_that_on_rows_in_memory(rows, mroz):
    X, y = mroz[FEATURES], mroz["lwage"]
    for make in (NaiveOLS, lambda: InverseProbabilityWeighted(["educ", "exper"], clip=3.0)):
        memory, passes = make().fit(X, y), make().fit(rows)
        np.testing.assert_allclose(passes.coef_, memory.coef_, rtol=1e-9)
        assert passes.adjusted_r2_ == pytest.approx(memory.adjusted_r2_, rel=1e-9)
        assert getattr(passes, "n_clipped_", 0) == getattr(memory, "n_clipped_", 0)
        assert getattr(passes, "max_weight_", 1.0) == pytest.approx(
            getattr(memory, "max_weight_", 1.0), rel=1e-9
        )
        with pytest.raises(InputError, match="predict_parquet"):
            memory.predict(rows)
        assert memory.score(rows) == pytest.approx(memory.score(X, y), rel=1e-9)
