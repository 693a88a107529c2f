"""Rows that lack a feature: which columns cost them, wherever the rows are and are told of."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, NaiveOLS, scan
from heckmanfa.analysis import analyse, methods_compared
from heckmanfa.cli import app
from heckmanfa.data.missing_features import _SETS_KEPT, GapCounts
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    CollinearError,
    InputError,
    MissingFeaturesWarning,
    TooFewRowsError,
)
from heckmanfa.report import write_report

NUMBERS = ["x0", "x1", "x2"]
SPARSE = ["s0", "s1", "s2"]
LEVELS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def table():
    """Three columns known in the same 100 of 800 rows, a category with gaps, and one gap."""
    data = make_selection(800, 3, 2, prediction_features=[0], random_state=5)
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(data.X, columns=NUMBERS).assign(y=data.y)
    known = np.arange(800) % 8 == 0
    for name in SPARSE:
        frame[name] = np.where(known, rng.normal(size=800), np.nan)
    frame["color"] = pd.Series(rng.choice(LEVELS, 800), dtype=object)
    frame.loc[frame.index % 50 == 0, "color"] = None
    frame.loc[3, "x2"] = np.nan
    return frame


def kept_without(frame, names):
    """What pandas keeps of the rows if some columns are left out."""
    return len(frame.drop(columns=["y", *names], errors="ignore").dropna())


def words_of(table):
    without = kept_without(table, SPARSE)
    lost = len(table) - kept_without(table, [])
    return (
        f"{lost} of 800 rows",
        "'s0', 's1', 's2' (700 missing each)",
        f"without these 3 columns, {without} of 800 rows would be kept",
    )


# The count itself. -------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [1, 7])
def test_what_leaving_columns_out_keeps_is_what_pandas_keeps(chunks):
    rng = np.random.default_rng(1)
    shares = [0.6, 0.02, 0.3, 0.0, 0.1, 0.3, 0.01, 0.05, 0.2, 0.001]
    gaps = rng.random((3_000, 10)) < shares
    gaps[:, 5] |= gaps[:, 2]
    frame = pd.DataFrame(np.where(gaps, np.nan, 1.0), columns=list("abcdefghij"))
    parts = [GapCounts.of(part) for part in np.array_split(gaps, chunks)]
    lost = sum(parts, GapCounts()).lost(list(frame.columns))
    missing = frame.isna().sum()
    assert lost.n_rows == 3_000
    assert lost.n_lost == 3_000 - len(frame.dropna())
    assert dict(lost.columns) == missing[missing > 0].to_dict()
    assert [gaps for _, gaps in lost.columns] == sorted(dict(lost.columns).values(), reverse=True)
    names = [name for name, _ in lost.columns]
    assert list(lost.kept) == [
        len(frame.drop(columns=names[: place + 1]).dropna()) for place in range(len(names))
    ]
    # The fewest that keep four fifths.
    assert lost.kept[lost.n_costly - 1] >= 2_400 > lost.kept[lost.n_costly - 2]


def test_dummies_of_a_category_are_one_column_and_no_gap_is_no_loss():
    gaps = np.array([[False, True, True], [True, False, False], [False, False, False]])
    lost = GapCounts.of(gaps).lost(["a", "color", "color"])
    assert dict(lost.columns) == {"a": 1, "color": 1}
    assert lost.kept == (2, 3)
    nothing = GapCounts.of(np.zeros((5, 3), dtype=bool)).lost(["a", "b", "c"])
    assert (nothing.n_rows, nothing.n_lost, nothing.columns, nothing.advice) == (5, 0, (), "")
    assert GapCounts.of(np.zeros((5, 0), dtype=bool)).lost([]).n_lost == 0


def test_more_sets_of_columns_than_are_kept_are_not_promised():
    gaps = np.random.default_rng(2).random((3 * _SETS_KEPT, 40)) < 0.5
    lost = (GapCounts.of(gaps[:9_000]) + GapCounts.of(gaps[9_000:])).lost(
        [str(k) for k in range(40)]
    )
    assert lost.n_lost == gaps.any(axis=1).sum()
    assert lost.kept[-1] < lost.n_rows
    assert len(GapCounts.of(gaps).sets) == _SETS_KEPT


# Wherever rows are left out. ---------------------------------------------------------------------

FORMULAS = ("y ~ x0 + s0 + s1 + s2", "x0 + x1 + x2 + C(color) + s0 + s1 + s2")


def scanned(table, tmp_path, **options):
    path = tmp_path / "rows.parquet"
    table.to_parquet(path)
    return scan(path, "y", missing="drop", **options)


def test_a_fit_of_formulas_or_scanned_rows_warns_of_the_columns_that_cost_rows(table, tmp_path):
    with pytest.warns(MissingFeaturesWarning) as said:
        Heckman.from_formula(*FORMULAS, table)
    with pytest.warns(MissingFeaturesWarning) as said_of_scan:
        model = Heckman(["x0"]).fit(scanned(table, tmp_path))
    for warning in (said[0], said_of_scan[0]):
        for words in words_of(table):
            assert words in str(warning.message)
        assert warning.message.lost.n_rows == 800
    assert model.row_counts_["left_out_regressor_missing"] == said_of_scan[0].message.lost.n_lost
    # Few rows are lost without these columns, and nobody has to hear of it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = scanned(table.drop(columns=SPARSE), tmp_path)
        assert Heckman(["x0"]).fit(rows).row_counts_["left_out_regressor_missing"] == 17
        Heckman.from_formula("y ~ x0", "x0 + x1 + x2 + C(color)", table)


def test_a_variable_that_only_predicts_costs_selected_rows_only(table):
    data = table.assign(s0=table["s0"].where(table["y"].isna() | (table.index % 8 == 0), np.nan))
    with pytest.warns(MissingFeaturesWarning) as said:
        Heckman.from_formula("y ~ x0 + s0", "x0 + x1 + x2", data)
    lost = said[0].message.lost
    needed = data["y"].notna() & data["s0"].isna()
    assert dict(lost.columns) == {"s0": needed.sum(), "x2": 1}


def test_errors_about_too_few_rows_name_the_columns_that_cost_them(table, tmp_path):
    few = table.assign(**{name: table[name].where(table.index < 60) for name in SPARSE})
    wide = [f"w{place}" for place in range(12)]
    few = few.join(pd.DataFrame(np.random.default_rng(3).normal(size=(800, 12)), columns=wide))
    said = (
        r"there are \d+\..*'s0', 's1', 's2' \(792 missing each\): without these 3 columns, 7\d\d of"
    )
    path = tmp_path / "few.csv"
    few.to_csv(path, index=False)
    with pytest.raises(InputError, match=said):
        analyse(str(path), outcome="y")
    with pytest.raises(TooFewRowsError, match=said):
        Heckman(["x0"]).fit(scanned(few, tmp_path))
    right = " + ".join([*NUMBERS, *SPARSE, *wide])
    with pytest.raises(TooFewRowsError, match=said), pytest.warns(MissingFeaturesWarning):
        Heckman.from_formula("y ~ x0", right, few)
    # Columns may be collinear only because few rows are left.
    twins = table.assign(s1=table["s0"] * 2)
    pattern = "without these 3 columns"
    with (
        pytest.raises(CollinearError, match=pattern) as refused,
        pytest.warns(MissingFeaturesWarning, match=pattern),
    ):
        Heckman.from_formula("y ~ x0", f"x0 + {' + '.join(SPARSE)}", twins)
    assert refused.value.reason


@pytest.mark.parametrize("stream_above", [1.0, 0.0])
def test_an_analysis_says_so_in_its_checks_and_its_report(table, tmp_path, stream_above):
    path = tmp_path / "rows.parquet"
    table.to_parquet(path)
    analysis = analyse(str(path), outcome="y", search="none", stream_above=stream_above)
    assert analysis.streamed == (stream_above == 0.0)
    check = next(check for check in analysis.checks if check.key == "many_rows_lost")
    assert check.level == "caution"
    write_report(analysis, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in words_of(table)[1:]:
        assert words in check.words
        assert words.replace("'", "&#x27;") in page or words in page


def test_the_command_line_says_so_on_the_screen_and_as_json(table, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    run = CliRunner().invoke(app, ["fit", str(path), "--outcome", "y", "--search", "none"])
    words = words_of(table)
    assert words[-1] in " ".join(run.output.split())
    options = ["--outcome", "y", "--search", "none", "--json", "-"]
    found = json.loads(CliRunner().invoke(app, ["fit", str(path), *options]).stdout)
    assert words[-1] in json.dumps(found)
    monkeypatch.setattr(methods_compared, "methods", lambda *_: {"naive": NaiveOLS()})
    compared = CliRunner().invoke(
        app, ["compare", str(path), "--outcome", "y", "--folds", "2", "--repeats", "1"]
    )
    assert words[-1] in " ".join(compared.output.split())
