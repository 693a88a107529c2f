"""The paper's tables: printed figures come out, and what differs says why."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from heckmanfa.paper import BEYOND, DETERMINISTIC, TABLES, Options, PaperTable
from heckmanfa.paper import experiments as paper_experiments
from heckmanfa.paper.protocol import COLUMNS, COMPAS, CRIME, Figure, Reason, Row

QUICK = ("selfeatures", "sampling", "topjfeats", "moretopj")
FA = {
    "CRIME": "features 1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 21, 22, 23, 24",
    "COMPAS": "features 1, 2, 3, 5, 7, 10",
}
FA_STAR = {"CRIME": "features 2, 3, 8, 12, 16, 18, 21, 24", "COMPAS": "features 2, 5, 6, 8"}
HECKMAN_C = [0.0490, 0.0563, 0.0479, 0.0500, 0.0498, 0.0555, 0.0524]


@pytest.fixture(scope="module")
def quick(paper_files):
    return {name: TABLES[name](Options(quick=True)) for name in TABLES}


@pytest.fixture(scope="module")
def as_published(paper_files):
    options = Options(quick=True, as_published=True)
    return {name: TABLES[name](options) for name in QUICK}


def figure(frame, dataset, row, quantity):
    """The one value of a table with this name, to the digits that the paper prints."""
    here = (frame["dataset"] == dataset) & (frame["row"] == row) & (frame["quantity"] == quantity)
    (found,) = frame.loc[here, "ours"]
    return round(found, 4)


# The deterministic figures. -----------------------------------------------------------------------


def test_every_deterministic_row_matches_or_differs_for_a_reason(quick, as_published):
    for tables in (quick, as_published):
        for name in QUICK:
            frame = tables[name]
            known = frame[frame["part"] == "paper"]
            assert len(known) > 0
            assert set(known["status"]) <= {"match", "differs"}, name
            assert (known.loc[known["status"] == "differs", "note"] != "").all()


def test_what_takes_seeds_is_left_out_of_a_quick_run(quick):
    assert [name for name in TABLES if len(quick[name])] == list(QUICK)
    for name in QUICK:
        assert set(quick[name]["status"]) <= {"match", "differs", "beyond"}


def test_tables_are_tidy(quick):
    for frame in quick.values():
        assert list(frame.columns) == COLUMNS
        assert frame.index.tolist() == list(range(len(frame)))
        assert not frame.duplicated(["dataset", "row", "quantity"]).any()
        for name in ("ours", "printed", "spread"):
            assert pd.api.types.is_numeric_dtype(frame[name]) or frame.empty
        assert frame["ours"].notna().all()
        assert frame.loc[frame["part"] == "beyond", "printed"].isna().all()


def test_each_table_has_a_title_and_rows():
    for table in TABLES.values():
        assert table.title
        assert len(table.rows) > 0
    assert DETERMINISTIC == QUICK
    assert BEYOND == ("beyond", "splits")


@pytest.mark.parametrize(
    ("table", "rows", "dataset", "quantity", "expected"),
    [
        ("sampling", FA, "CRIME", "rho", 0.0423),
        ("sampling", FA, "CRIME", "adjusted R2", 0.4780),
        ("sampling", FA, "CRIME", "Naive train MSE", 0.0159),
        ("sampling", FA, "CRIME", "Naive test MSE", 0.0218),
        ("sampling", FA, "CRIME", "train MSE", 0.0159),
        ("sampling", FA, "CRIME", "test MSE", 0.0200),
        ("sampling", FA, "COMPAS", "rho", 0.3179),
        ("sampling", FA, "COMPAS", "adjusted R2", 0.3454),
        ("sampling", FA, "COMPAS", "Naive train MSE", 0.0761),
        ("sampling", FA, "COMPAS", "Naive test MSE", 0.2568),
        ("sampling", FA, "COMPAS", "train MSE", 0.0759),
        ("sampling", FA, "COMPAS", "test MSE", 0.2504),
        ("topjfeats", FA_STAR, "CRIME", "rho", 0.0609),
        ("topjfeats", FA_STAR, "CRIME", "adjusted R2", 0.4375),
        ("topjfeats", FA_STAR, "CRIME", "Naive train MSE", 0.0172),
        ("topjfeats", FA_STAR, "CRIME", "Naive test MSE", 0.0236),
        ("topjfeats", FA_STAR, "CRIME", "train MSE", 0.0172),
        ("topjfeats", FA_STAR, "CRIME", "test MSE", 0.0215),
        ("topjfeats", FA_STAR, "COMPAS", "rho", 0.3489),
        ("topjfeats", FA_STAR, "COMPAS", "adjusted R2", 0.3392),
        ("topjfeats", FA_STAR, "COMPAS", "Naive train MSE", 0.0769),
        ("topjfeats", FA_STAR, "COMPAS", "Naive test MSE", 0.2577),
        ("topjfeats", FA_STAR, "COMPAS", "train MSE", 0.0767),
        ("topjfeats", FA_STAR, "COMPAS", "test MSE", 0.2495),
    ],
)
def test_figures_of_the_papers_features(quick, table, rows, dataset, quantity, expected):
    assert figure(quick[table], dataset, rows[dataset], quantity) == expected


def test_figures_as_published(as_published):
    sampling, top = as_published["sampling"], as_published["topjfeats"]
    assert figure(sampling, "CRIME", FA["CRIME"], "test MSE") == 0.0204
    assert figure(sampling, "COMPAS", FA["COMPAS"], "test MSE") == 0.2504
    assert figure(top, "CRIME", FA_STAR["CRIME"], "test MSE") == 0.0216
    assert figure(top, "COMPAS", FA_STAR["COMPAS"], "rho") == 0.3551
    assert figure(top, "CRIME", FA_STAR["CRIME"], "rho") == 0.0609
    # The lost sign is that of the top-J sets only.
    assert figure(sampling, "COMPAS", FA["COMPAS"], "rho") == 0.3179


def test_heckman_c_has_the_printed_errors_for_every_number_of_features(quick):
    frame = quick["moretopj"]
    found = [figure(frame, "CRIME", f"Heckman-C, J = {j}", "test MSE") for j in range(6, 13)]
    assert found == HECKMAN_C
    notes = frame.loc[frame["quantity"] == "test MSE", "note"]
    assert notes.str.contains("outside the window").all()


def test_features_are_listed_in_the_order_of_the_file(quick):
    frame = quick["selfeatures"]
    places = frame[frame["quantity"] == "place"]
    for dataset, k in (("CRIME", 26), ("COMPAS", 10)):
        here = places[places["dataset"] == dataset]
        assert here["ours"].tolist() == list(range(1, k + 1))
        assert sorted(here["printed"]) == list(range(1, k + 1))
    moved = places[places["status"] == "differs"]
    assert moved["row"].tolist() == [
        *("blackPerCap", "indianPerCap", "AsianPerCap", "OtherPerCap", "HispPerCap")
    ]
    assert figure(frame, "CRIME", "rows", "training rows") == 1395
    assert figure(frame, "COMPAS", "rows", "selected rows") == 2585


# What a row says. ---------------------------------------------------------------------------------


def stub(*figures, **settings):
    """A table of one row, whose experiment finds these figures."""
    return PaperTable("A stub", (Row(CRIME, "a row", lambda *_: figures, **settings),))


@pytest.mark.parametrize(
    ("ours", "printed", "expected", "status"),
    [
        (0.04234, 0.0423, None, "match"),
        (0.04236, 0.0423, None, "OFF"),
        (float("nan"), 0.0423, None, "OFF"),
        (0.02001, 0.0203, 0.0200, "differs"),
        (0.02030, 0.0203, 0.0200, "OFF"),
        (0.04234, 0.0423, 0.0423, "match"),
    ],
)
def test_a_value_matches_to_its_digits_or_is_off(ours, printed, expected, status):
    reasons = {} if expected is None else {"rho": Reason(expected, "a reason")}
    table = stub(Figure("rho", ours), printed={"rho": printed}, reasons=reasons, deterministic=True)
    (row,) = table().to_dict("records")
    assert row["status"] == status
    assert row["printed"] == printed
    assert row["part"] == "paper"
    assert row["note"] == ("" if expected is None else "a reason")


def test_integers_must_match_exactly():
    for rows, status in ((1395, "match"), (1394, "OFF")):
        figure = Figure("training rows", rows)
        frame = stub(figure, printed={"training rows": 1395}, deterministic=True)()
        assert frame["status"].tolist() == [status]


def test_rows_of_seeds_times_and_beyond_have_a_status_of_their_own():
    frame = stub(
        Figure("test MSE", 0.02, spread=0.001),
        Figure("seconds", 1.0, is_time=True),
        Figure("marginal test MSE", 0.03),
        printed={"test MSE": 0.0203, "seconds": 5.32},
    )()
    assert frame["status"].tolist() == ["random", "time", "beyond"]
    assert frame["part"].tolist() == ["paper", "paper", "beyond"]
    nothing = stub()()
    assert list(nothing.columns) == COLUMNS
    assert nothing.empty


def test_another_printed_value_would_be_off(paper_files):
    first, *others = [row for row in TABLES["sampling"].rows if row.dataset is COMPAS]
    wrong = replace(first, printed={**first.printed, "adjusted R2": 0.3455})
    frame = PaperTable("wrong", (wrong, *others))(Options(quick=True))
    off = frame[frame["status"] == "OFF"]
    assert off[["dataset", "quantity"]].to_numpy().tolist() == [["COMPAS", "adjusted R2"]]


# Tables that take seeds. --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param("testingmsespi0", marks=pytest.mark.study), "executiontimes"]
)
def test_searches_over_settings_have_errors_near_the_printed_ones(paper_files, name):
    said = []
    frame = TABLES[name](Options(seeds=1, ru=False, say=said.append))
    assert list(frame.columns) == COLUMNS
    assert not (frame["status"] == "OFF").any()
    errors = frame[frame["quantity"] == "test MSE"]
    assert len(errors) == {"testingmsespi0": 24, "executiontimes": 18}[name]
    assert len(said) == len(errors)
    # A search may find nothing in the window; the note then says so.
    missing = errors["ours"].isna()
    assert errors.loc[missing, "note"].str.startswith("0 of 1 seeds").all()
    assert missing.mean() < 0.5
    gap = np.abs(errors["ours"] / errors["printed"] - 1)[~missing]
    assert gap.median() < 0.05
    if name == "executiontimes":
        times = frame[frame["status"] == "time"]
        assert len(times) == 18
        assert (times["ours"] > 0).all()


def test_methods_beyond_the_paper_are_on_its_split(paper_files):
    frame = TABLES["beyond"](Options(seeds=1))
    assert (frame["part"] == "beyond").all()
    assert not frame.duplicated(["dataset", "row", "quantity"]).any()
    for dataset in ("CRIME", "COMPAS"):
        here = frame[frame["dataset"] == dataset]
        assert {"OLS, all features", "IPW, all features", "HeckmanLasso"} <= set(here["row"])
        assert figure(frame, dataset, "OLS, all features", "test MSE") == (
            figure(frame, dataset, "OLS, all features", "marginal test MSE")
        )
    row = "best subset, adjusted R2, window"
    assert 0.01 <= figure(frame, "CRIME", row, "rho") <= 0.1
    assert figure(frame, "CRIME", row, "number of features") == 12


@pytest.mark.study
def test_random_splits_have_means_with_their_uncertainty(paper_files):
    frame = TABLES["splits"](Options(seeds=1, splits=2))
    assert (frame["part"] == "beyond").all()
    assert frame["quantity"].str.endswith(", random splits").all()
    always = frame[frame["row"] == "OLS, all features"]
    assert always["note"].str.startswith("2 of 2 random splits; ").all()
    assert (always["spread"] > 0).all()
    assert set(frame["dataset"]) == {"CRIME", "COMPAS"}


def test_seeds_are_searched_and_ru_is_run_only_where_asked_for(paper_files, monkeypatch):
    seeds = []

    def errors(split, features, seed):
        seeds.append(seed)
        return {"RU train MSE": 0.01 + seed, "RU test MSE": 0.02 + seed}

    monkeypatch.setattr(paper_experiments, "ru_errors", errors)
    frame = TABLES["topjfeats"](Options(seeds=1, ru=False))
    assert seeds == []
    assert not frame["quantity"].str.startswith("RU").any()
    found = frame[frame["row"] == "found by rank"]
    assert set(found["dataset"]) == {"CRIME", "COMPAS"}
    assert set(found["status"]) == {"random", "beyond"}
    printed = TABLES["sampling"].rows[0].printed
    row = Row(CRIME, "RU", partial(paper_experiments.ru_regression, features=(1, 2)), printed)
    frame = PaperTable("RU", (row,))(Options(seeds=2))
    assert seeds == [0, 1]
    assert frame["quantity"].tolist() == ["RU train MSE", "RU test MSE"]
    np.testing.assert_allclose(frame["ours"], [0.51, 0.52])
    np.testing.assert_allclose(frame["spread"], np.sqrt(0.5))
    assert frame["printed"].tolist() == [0.0109, 0.0212]


def test_ru_errors_are_those_of_the_two_networks(paper_files):
    pytest.importorskip("torch", reason="RU regression needs Torch")
    errors = paper_experiments.ru_errors(COMPAS.split(), COMPAS.fa_star_features, 0)
    assert errors["RU train MSE"] == pytest.approx(0.0764, abs=0.003)
    assert errors["RU test MSE"] == pytest.approx(0.2590, abs=0.02)
