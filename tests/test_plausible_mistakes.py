"""Plausible mistakes get advice that is true, and that works when it is followed."""

from datetime import date

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils._param_validation import Options

import heckmanfa
from heckmanfa import Heckman, HeckmanProbit, NaiveOLS, predict_batches, scan, scan_parquet
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import FormulaError, InputError, InputTypeError
from heckmanfa.model_selection import SelectionKFold

MROZ = load_mroz()
FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
X, Y = MROZ[FEATURES], MROZ["lwage"]
WORKS = MROZ["lfp"] == 1
TWO = ["educ", "exper"]


@pytest.fixture(scope="module")
def model():
    return Heckman(TWO).fit(X, Y)


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "mroz.parquet"
    MROZ[[*FEATURES, "lwage"]].to_parquet(path)
    return path


# Rows that are not in memory. ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lazy frame", "relation", "dataset", "path"])
def test_predict_names_what_takes_rows_that_are_not_in_memory(kind, model, parquet):
    import pyarrow.dataset as ds

    relation = duckdb.from_df(MROZ)
    given = {
        "lazy frame": lambda: pl.scan_parquet(parquet),
        "relation": lambda: relation,
        "dataset": lambda: ds.dataset(parquet),
        "path": lambda: parquet,
    }[kind]()
    with pytest.raises(InputError, match=r"predict_batches\(model, X\)") as refused:
        model.predict(given)
    assert "scan(X, outcome=...) to fit" not in str(refused.value)
    batches = list(predict_batches(model, given))
    got = np.concatenate([batch["predicted_marginal"].to_numpy() for batch in batches])
    np.testing.assert_allclose(got, model.predict(X), rtol=1e-12)
    with pytest.raises(InputError, match=r"pass heckmanfa\.scan\(X, outcome=\.\.\.\)"):
        Heckman().fit(given)


@pytest.mark.parametrize(
    ("ending", "advice"),
    [
        (".csv", "scan_csv.*pandas.read_csv"),
        (".csv.gz", "pandas.read_csv"),
        (".xlsx", "pandas.read_excel"),
        (".dta", "pandas.read_stata"),
        (".json", "read it into a data frame"),
    ],
)
def test_a_scan_of_another_format_says_what_reads_it(ending, advice, model, tmp_path):
    path = tmp_path / f"mroz{ending}"
    path.write_bytes(b"educ,lwage\n1,2\n")
    for read in (
        lambda: scan(path),
        lambda: scan(str(path), outcome="lwage"),
        lambda: scan(path.as_uri()),
        lambda: scan_parquet(path, outcome="lwage"),
        lambda: next(predict_batches(model, path)),
    ):
        with pytest.raises(
            InputError, match=f"neither a Parquet nor an Arrow file.*{advice}"
        ) as no:
            read()
        assert "damaged" not in str(no.value)


# Columns beside X. --------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["y", "selected", "sample_weight", "groups"])
@pytest.mark.parametrize("kind", [Heckman, HeckmanProbit, NaiveOLS])
def test_the_name_of_a_column_in_place_of_the_column_is_recognised(kind, role):
    if kind is NaiveOLS and role == "groups":
        pytest.skip("least squares takes no groups")
    clustered = {"cov_type": "cluster"} if role == "groups" else {}
    outcome = (Y > 1.2).astype(float).where(WORKS) if kind is HeckmanProbit else Y
    given = {"y": outcome, role: "age"}
    with pytest.raises(InputTypeError, match=rf"'age' instead: .* pass {role}=data\['age'\]"):
        kind(TWO, **clustered).fit(X, given.pop("y"), **given)


def test_a_splitter_and_a_score_recognise_names_too(model):
    for role, ask in (
        ("groups", lambda: next(SelectionKFold(2).split(X, Y, groups="age"))),
        ("y", lambda: next(SelectionKFold(2).split(X, "age"))),
        ("y", lambda: model.score(X, "age")),
        ("sample_weight", lambda: model.score(X, Y, sample_weight="age")),
    ):
        with pytest.raises(InputTypeError, match=rf"pass {role}=data\['age'\]"):
            ask()


def test_three_columns_of_groups_are_told_which_to_pass():
    # A label for each combination would make independent what is alike.
    model, three = Heckman(TWO, cov_type="cluster"), ["age", "kids5", "kids618"]
    with pytest.raises(InputError, match=r"3 columns.*clustered by one or two: pass these"):
        model.fit(X, Y, groups=MROZ[three])
    model.fit(X, Y, groups=MROZ[three[:2]])
    with pytest.raises(InputError, match=r"names of two for clusters, .* it has shape \(3,\)"):
        Heckman.from_formula("lwage ~ educ", "~ educ + age", MROZ, cov_type="cluster", groups=three)


# Values that are not numbers. ---------------------------------------------------------------------


def test_rows_as_json_gives_them_become_a_data_frame(model):
    want = model.predict(X[:2])
    for rows, advice in (
        (X[:2].to_dict("records"), "list of dictionaries: .* pandas.DataFrame(X)"),
        (X[:2].to_dict("list"), "is a dictionary: .* pandas.DataFrame(X)"),
    ):
        with pytest.raises(InputError, match=advice.replace("(", r"\(").replace(")", r"\)")):
            model.predict(rows)
        np.testing.assert_allclose(model.predict(pd.DataFrame(rows)), want, rtol=1e-12)
    row = X.iloc[0].to_dict()
    with pytest.raises(InputError, match=r"pandas.DataFrame\(\[X\]\)"):
        model.predict(row)
    np.testing.assert_allclose(model.predict(pd.DataFrame([row])), want[:1], rtol=1e-12)


def test_objects_in_an_array_are_named_by_their_column():
    rows = X.to_numpy().astype(object)
    rows[3, 1] = date(2026, 1, 1)
    with pytest.raises(InputError, match=r"column 1 of X does not hold numbers \(found date\)"):
        Heckman().fit(rows, Y)
    rows[3, 1] = object()
    with pytest.raises(InputTypeError, match="columns"):
        Heckman().fit(rows, Y)


def test_choices_are_listed_in_one_order():
    kinds = [getattr(heckmanfa, name) for name in heckmanfa.__all__]
    checks = [
        check
        for kind in kinds
        for checks in getattr(kind, "_parameter_constraints", {}).values()
        for check in checks
        if isinstance(check, Options)
    ]
    assert len(checks) > 50
    assert not [check for check in checks if isinstance(check.options, set | frozenset)]
    with pytest.raises(InputError, match=r"\{'two-step', 'ml', 'series'\}"):
        Heckman(method="x").fit(X, Y)


# Formulas. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "advice"),
    [
        ("offset(age)", "no coefficient can be held at 1"),
        ("cluster(age)", "pass the clusters as groups="),
        ("s(age)", "make such a column in the data before the fit"),
        (".", "name the columns"),
    ],
)
def test_a_function_that_formulas_lack_is_not_taken_for_a_column(term, advice):
    for formulas in (
        (f"lwage ~ educ + {term}", "~ educ + age + kids5"),
        ("lwage ~ educ", f"~ educ + kids5 + {term}"),
    ):
        with pytest.raises(FormulaError, match=advice):
            Heckman.from_formula(*formulas, MROZ)


def test_an_offset_is_subtracted_from_the_outcome():
    data = MROZ.assign(rest=MROZ["lwage"] - 0.01 * MROZ["age"])
    formulas = "~ educ + age + kids5 + nwifeinc"
    told = Heckman.from_formula("I(lwage - 0.01 * age) ~ educ", formulas, data)
    want = Heckman.from_formula("rest ~ educ", formulas, data)
    np.testing.assert_allclose(told.coef_, want.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("left", "advice", "works"),
    [
        ("hours", "such as hours > 0", "hours > 0"),
        ("code", "such as code == 2", "code == 2"),
        ("answer", "as in answer == 'yes'", "answer == 'yes'"),
        ("lwage", "leave it out: '~ ...'", ""),
    ],
)
def test_a_left_side_that_is_not_0_or_1_is_told_what_would_be(left, advice, works):
    data = MROZ.assign(code=1 + WORKS, answer=np.where(WORKS, "yes", "no"))
    right = "~ educ + age + kids5 + nwifeinc"
    with pytest.raises(InputError, match=advice):
        Heckman.from_formula("lwage ~ educ", f"{left} {right}", data)
    told = Heckman.from_formula("lwage ~ educ", f"{works} {right}", data)
    assert told.n_selected_ == WORKS.sum()
