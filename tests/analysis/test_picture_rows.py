"""Pictures of an analysis: the names and the rows of its table, in memory or streamed."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from heckmanfa import Heckman, plots
from heckmanfa.analysis.asking import analyse
from heckmanfa.analysis.request import Question
from heckmanfa.data.columns.column_hints import find_products
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import AllObservedWarning, InputError, NotIdentifiedError

ROW_PICTURES = ("margins", "profiles", "overlap", "residuals")


@pytest.fixture(scope="module")
def table():
    mroz = load_mroz()[["educ", "exper", "expersq", "age", "kids5", "city", "lwage"]]
    towns = np.random.default_rng(5).choice(["a", "b", "c"], len(mroz), p=[0.6, 0.3, 0.1])
    return mroz.assign(town=towns)


@pytest.fixture(scope="module")
def loaded(table):
    return analyse(Question("mroz", "lwage"), frame=table)


def test_an_analysis_names_columns_and_levels_of_its_table(loaded, table):
    margins = loaded.pictures().margins
    names = [driver.name for driver in margins.drivers]
    assert sorted(names) == ["age", "city", "educ", "exper", "kids5", "town"]
    town = next(driver for driver in margins.drivers if driver.name == "town")
    assert [change.words for change in town.changes] == ["b rather than a", "c rather than a"]
    assert "exper moves with its square, expersq" in margins.text().caption
    profile = next(one for one in loaded.pictures().profiles.profiles if one.name == "town")
    shares = (table["town"] == profile.level).groupby(table["lwage"].notna()).mean()
    assert (profile.unselected, profile.selected) == pytest.approx(tuple(shares))


def test_pictures_are_made_once(loaded):
    assert loaded.pictures().margins is loaded.pictures().margins


def test_residuals_are_those_of_the_best_model(loaded, table):
    best = loaded.best_model
    rows = loaded.loaded
    seen = ~np.isnan(rows.y)
    residuals = rows.y[seen] - best.predict(rows.X[seen], kind="selected")
    scaled = residuals / np.sqrt(np.mean(residuals**2))
    bars = loaded.pictures().residuals
    assert bars.source == "the best assignment"
    assert (bars.below, bars.above) == ((scaled < -3).sum(), (scaled > 3).sum())
    assert bars.bars == tuple(np.histogram(np.clip(scaled, *bars.edges[[0, -1]]), bars.edges)[0])
    assert bars.text().title == "Are the errors of lwage normal?"


def test_streamed_rows_have_the_effects_and_averages_of_those_in_memory(loaded, table, tmp_path):
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    question = Question(str(tmp_path / "rows.parquet"), "lwage", stream_above=0.0)
    streamed = analyse(question)
    assert streamed.streamed
    ours, theirs = streamed.pictures(), loaded.pictures()
    assert ours.margins.text().caption == theirs.margins.text().caption
    assert ours.margins.text().table.rows == theirs.margins.text().table.rows
    assert ours.profiles.text().table.rows == theirs.profiles.text().table.rows
    assert ours.overlap is None
    assert ours.residuals is None
    with pytest.raises(InputError, match="needs the rows in memory"):
        plots.overlap(streamed)


def test_squares_and_products_are_found_for_models_from_arrays_too(table):
    X, y = table[["educ", "exper", "expersq", "kids5"]], table["lwage"]
    model = Heckman(["educ"]).fit(X, y)
    drivers = model.pictures(X, y).margins.drivers
    assert sorted(driver.name for driver in drivers) == ["educ", "exper", "kids5"]
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[:, 2] = values[:, 0] * values[:, 1]
    assert find_products(values, ["a", "b", "ab"]) == {"ab": ("a", "b")}


@pytest.mark.parametrize(
    "draw", [plots.selection_margins, plots.profiles, plots.overlap, plots.residuals]
)
def test_functions_draw_an_analysis_and_a_model_with_rows(loaded, table, draw):
    X, y = table[["educ", "exper", "kids5"]], table["lwage"]
    model = Heckman(["educ"]).fit(X, y)
    for panel in (draw(loaded), draw(model, X, y)):
        assert panel.get_xlabel()
        plt.close(panel.figure)
    figure, own = plt.subplots()
    assert draw(model, X, y, ax=own) is own
    plt.close(figure)
    with pytest.raises(InputError, match="pass X and y"):
        draw(model)


def test_without_missing_outcomes_there_is_no_selection_to_draw(table):
    seen = table.dropna()
    with pytest.warns(AllObservedWarning):
        model = Heckman(["educ"]).fit(seen[["educ", "exper"]], seen["lwage"])
    for draw in (plots.selection_margins, plots.profiles, plots.overlap):
        with pytest.raises(NotIdentifiedError, match="no outcome was missing"):
            draw(model, seen[["educ", "exper"]], seen["lwage"])
    panel = plots.residuals(model, seen[["educ", "exper"]], seen["lwage"])
    plt.close(panel.figure)


def test_weights_and_clusters_of_a_table_reach_the_pictures(table):
    draws = np.random.default_rng(2)
    weighed = table.assign(
        w=draws.uniform(0.5, 3.0, len(table)), c=draws.integers(0, 60, len(table))
    )
    question = Question(
        "mroz", "lwage", weights="w", weight_kind="sampling", cluster="c", search="none"
    )
    pictures = analyse(question, frame=weighed).pictures()
    assert "95% intervals clustered by c" in pictures.margins.text().caption
    for name in ROW_PICTURES[1:]:
        assert "sampling weights" in getattr(pictures, name).text().caption
