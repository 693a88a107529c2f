"""Pictures of who is selected, of overlap and of residuals, against independent computations."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import Heckman, scan_parquet
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import AllObservedWarning, InputError
from heckmanfa.estimators.averaged import HeckmanAverage
from heckmanfa.inference.row_pictures import PictureRows, _variable
from heckmanfa.inference.selection_moves import group_means
from heckmanfa.results.naming import Naming

COLUMNS = ["educ", "exper", "expersq", "city", "kids5", "citykids", "south", "west"]
SQUARES = {"expersq": ("exper",), "citykids": ("city", "kids5")}

# Of columns that do not move by one.
STEPS = {"educ": 0.5, "exper": 10.0}


@pytest.fixture(scope="module")
def frame():
    mroz = load_mroz()
    region = np.random.default_rng(3).choice(
        ["north", "south", "west"], len(mroz), p=[0.5, 0.3, 0.2]
    )
    return mroz.assign(
        citykids=mroz["city"] * mroz["kids5"],
        region=region,
        south=(region == "south") * 1.0,
        west=(region == "west") * 1.0,
    )


@pytest.fixture(scope="module")
def model(frame):
    return Heckman(["educ", "exper"]).fit(frame[COLUMNS], frame["lwage"])


def naming_of(model):
    """Name the dummies as the table that they are from has them."""
    labels = list(model.feature_names_in_)
    dummies = {"south", "west"} & {*labels}
    return Naming(
        outcome="lwage",
        sources=tuple("region" if name in dummies else name for name in labels),
        levels=tuple(name if name in dummies else "" for name in labels),
        references=tuple("north" if name in dummies else "" for name in labels),
        switches=frozenset(),
        steps=tuple(STEPS.get(name, 1.0) for name in labels),
    )


@pytest.fixture(scope="module")
def rows(model, frame):
    return PictureRows(
        model.fit_, naming_of(model), frame[COLUMNS], frame["lwage"], derived=SQUARES
    )


def probability(model, frame, gamma=None):
    """P(selected) of each row, from the coefficients alone."""
    if gamma is None:
        gamma = np.array([model.fit_.selection_intercept, *model.fit_.selection_coef])
    return stats.norm.cdf(gamma[0] + frame[COLUMNS].to_numpy(float) @ gamma[1:])


def with_products(frame):
    """Move the square and the product as the table's own columns would."""
    return frame.assign(expersq=frame["exper"] ** 2, citykids=frame["city"] * frame["kids5"])


def expected_effect(model, frame, name, gamma=None):
    """Change a feature in every row, and compare probabilities of selection."""
    if name in ("educ", "exper", "kids5"):
        step = 1e-4
        up, down = (
            probability(model, with_products(frame.assign(**{name: frame[name] + side})), gamma)
            for side in (step, -step)
        )
        return 100 * STEPS.get(name, 1.0) * np.mean(up - down) / (2 * step)
    if name == "city":
        one, zero = (
            probability(model, with_products(frame.assign(city=level)), gamma) for level in (1, 0)
        )
        return 100 * np.mean(one - zero)
    reference = frame.assign(south=0.0, west=0.0)
    moved = probability(model, reference.assign(**{name: 1.0}), gamma)
    return 100 * np.mean(moved - probability(model, reference, gamma))


def test_effects_are_those_of_changed_rows_with_squares_products_and_levels(model, frame, rows):
    found = {driver.name: driver for driver in rows.margins().drivers}
    assert {*found} == {"educ", "exper", "city", "kids5", "region"}
    for name in ("educ", "exper", "kids5", "city"):
        (change,) = found[name].changes
        assert change.estimate == pytest.approx(expected_effect(model, frame, name), rel=1e-6)
    assert [change.words for change in found["region"].changes] == [
        "south rather than north",
        "west rather than north",
    ]
    for change, name in zip(found["region"].changes, ("south", "west"), strict=True):
        assert change.estimate == pytest.approx(expected_effect(model, frame, name), rel=1e-9)
    assert found["exper"].along == ("its square, expersq",)
    assert found["city"].along == ("its product with kids5, citykids",)
    assert found["city"].changes[0].words == "1 rather than 0"
    words = [found[name].changes[0].words for name in ("educ", "exper", "kids5")]
    assert words == ["0.5 more", "10 more", "one more"]


def test_intervals_follow_the_delta_method(model, frame, rows):
    fit = model.fit_
    gamma = np.array([fit.selection_intercept, *fit.selection_coef])
    place = [i for i, (equation, _) in enumerate(fit.terms) if equation == "selection"]
    covariance = fit.covariance[np.ix_(place, place)]
    found = {driver.name: driver for driver in rows.margins().drivers}
    for name, change in (
        ("educ", found["educ"].changes[0]),
        ("exper", found["exper"].changes[0]),
        ("city", found["city"].changes[0]),
        ("west", found["region"].changes[1]),
    ):
        gradient = np.empty(len(gamma))
        for i in range(len(gamma)):
            step = np.zeros(len(gamma))
            step[i] = 1e-5 * max(abs(gamma[i]), 1e-3)
            there, back = (
                expected_effect(model, frame, name, gamma + side * step) for side in (1, -1)
            )
            gradient[i] = (there - back) / (2 * step[i])
        reach = stats.norm.ppf(0.975) * np.sqrt(gradient @ covariance @ gradient)
        assert change.low == pytest.approx(change.estimate - reach, rel=1e-4)
        assert change.high == pytest.approx(change.estimate + reach, rel=1e-4)


def test_effects_are_sorted_and_a_category_shows_its_furthest_level(rows, frame):
    drivers = rows.margins().drivers
    # Between rows that are one standard deviation apart, as steps are of any length.
    spreads = {
        name: frame[name].std() / STEPS.get(name, 1.0) for name in ("educ", "exper", "kids5")
    }
    sizes = [abs(driver.shown.estimate) * spreads.get(driver.name, 1.0) for driver in drivers]
    assert sizes == sorted(sizes, reverse=True)
    region = next(driver for driver in drivers if driver.name == "region")
    assert abs(region.shown.estimate) == max(abs(one.estimate) for one in region.changes)
    lines = {row.feature: row.under for row in rows.margins().scene().body.rows}
    assert lines["region"] == (region.shown.words,)


def test_experience_with_its_square_moves_selection_by_some_points_a_year():
    mroz = load_mroz()
    names = "kids5 kids618 age educ hushrs husage huseduc huswage motheduc fatheduc unem city exper"
    X = mroz[[*names.split(), "nwifeinc", "expersq"]]
    fit = Heckman(["educ"]).fit(X, mroz["lwage"]).fit_
    rows = PictureRows(fit, Naming.of(fit), X, mroz["lwage"], derived={"expersq": ("exper",)})
    drivers = {driver.name: driver.shown for driver in rows.margins().drivers}
    assert drivers["exper"].words == "one more"
    assert drivers["exper"].estimate == pytest.approx(20.6 / mroz["exper"].std(), abs=0.02)
    assert rows.overlap().n_outside == 24
    residuals = rows.residuals(np.isin(X.columns, ["educ", "exper"]))
    assert (residuals.below, residuals.above) == (5, 4)


def test_formulas_move_terms_as_columns_do(frame):
    by_columns = Heckman(["educ"]).fit(
        frame[["educ", "exper", "expersq", "city", "south", "west"]], frame["lwage"]
    )
    columns = PictureRows(
        by_columns.fit_,
        replace(naming_of(by_columns), steps=()),
        frame[["educ", "exper", "expersq", "city", "south", "west"]],
        frame["lwage"],
        derived=SQUARES,
    )
    formulas = Heckman.from_formula(
        "lwage ~ educ", "educ + exper + I(exper**2) + city + region", frame
    )
    variables = PictureRows(formulas.fit_, Naming.of(formulas.fit_), frame)
    ours, theirs = columns.margins(), variables.margins()
    assert [driver.name for driver in ours.drivers] == [driver.name for driver in theirs.drivers]
    for one, other in zip(ours.drivers, theirs.drivers, strict=True):
        assert (one.kind, len(one.changes)) == (other.kind, len(other.changes))
        for mine, yours in zip(one.changes, other.changes, strict=True):
            assert mine.words == yours.words
            assert (mine.estimate, mine.low) == pytest.approx((yours.estimate, yours.low), rel=1e-4)
    assert columns.profiles().text().table.rows == variables.profiles().text().table.rows
    assert columns.overlap().selected == variables.overlap().selected
    assert columns.residuals().bars == variables.residuals().bars
    assert "all terms of the formulas" in theirs.text().caption
    assert "all terms" not in ours.text().caption


def test_a_category_of_a_formula_is_profiled_by_its_furthest_level(frame):
    # Selection depends on it: "far" lowers the chance most, and is neither first nor last.
    rng = np.random.default_rng(0)
    place = rng.choice(["at home", "far", "near"], len(frame))
    seen = rng.normal(size=len(frame)) > np.where(place == "far", 1.0, 0.0) + 0.2 * (
        place == "near"
    )
    table = frame.assign(place=place, lwage=np.where(seen, frame["educ"] / 10, np.nan))
    table["lwage"] += 0.3 * rng.normal(size=len(frame))
    fit = Heckman.from_formula("lwage ~ educ", "educ + place", table).fit_
    shown = PictureRows(fit, Naming.of(fit), table)
    (driver,) = [one for one in shown.margins().drivers if one.name == "place"]
    assert [change.words for change in driver.changes] == [
        "far rather than at home",
        "near rather than at home",
    ]
    far, near = (change.estimate for change in driver.changes)
    assert far < near
    assert abs(far) > abs(near)
    (profile,) = [one for one in shown.profiles().profiles if one.name == "place"]
    assert profile.level == "far"


def test_the_furthest_level_is_that_of_the_largest_estimate_whatever_its_interval():
    values = pd.Series(["a", "b", "c"] * 4)
    ends = np.array([[-3.0, -4.0, -2.0], [1.0, -9.0, 11.0]])
    averages = partial(group_means, selected=np.arange(12) % 2 == 0, weight=None)
    driver, profile = _variable("place", values, [("a", "b"), ("a", "c")], ends, averages, None)
    assert profile.level == "b"
    assert [change.estimate for change in driver.changes] == [-3.0, 1.0]


def test_profiles_are_means_by_selection_in_standard_deviations(frame, rows):
    table = frame.assign(selected=frame["lwage"].notna())
    for profile in rows.profiles().profiles:
        column = profile.level or profile.name
        means = table.groupby("selected")[column].mean()
        deviations = (means - table[column].mean()) / table[column].std()
        assert (profile.unselected, profile.selected) == pytest.approx(tuple(means))
        assert (profile.outside, profile.inside) == pytest.approx(tuple(deviations))
    order = [driver.name for driver in rows.margins().drivers]
    assert [profile.name for profile in rows.profiles().profiles] == order


def test_overlap_counts_rows_by_probability(model, frame, rows):
    overlap = rows.overlap()
    p, selected = model.predict_selection(frame[COLUMNS]), frame["lwage"].notna().to_numpy()
    edges = np.arange(21) / 20
    assert overlap.selected == tuple(np.histogram(p[selected], edges)[0])
    assert overlap.unselected == tuple(np.histogram(p[~selected], edges)[0])
    assert overlap.range == pytest.approx((p[selected].min(), p[selected].max()))
    share = model.diagnostics(frame[COLUMNS]).share_outside
    assert overlap.share_outside == pytest.approx(share)
    assert overlap.n_outside == round(share * len(frame))
    # lambda has no limit where the probability is zero.
    assert overlap.tooltip(0).startswith("0 to 5%, lambda 2.06 or more\n")
    assert overlap.tooltip(1).startswith("5 to 10%, lambda 2.06 to 1.75\n")


def test_residuals_are_outcomes_less_predictions(model, frame, rows):
    y = frame["lwage"].dropna()
    for assignment, fitted in (
        (None, model),
        (np.isin(COLUMNS, ["educ"]), Heckman(["educ"]).fit(frame[COLUMNS], frame["lwage"])),
    ):
        scaled = y - fitted.predict(frame.loc[y.index, COLUMNS], kind="selected")
        scaled = (scaled / np.sqrt(np.mean(scaled**2))).to_numpy()
        bars = rows.residuals(assignment)
        inside = np.clip(scaled, bars.edges[0], bars.edges[-1])
        assert bars.bars == tuple(np.histogram(inside, bars.edges)[0])
        assert (bars.below, bars.above) == ((scaled < -3).sum(), (scaled > 3).sum())
        assert bars.total == len(y)
        assert bars.normal().sum() == pytest.approx(len(y))


def test_frequency_weights_are_repeated_rows(frame):
    names = ["educ", "exper", "city", "kids5"]
    weight = np.random.default_rng(0).integers(1, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(weight)]
    weighed = Heckman(["educ"]).fit(frame[names], frame["lwage"], sample_weight=weight)
    longer = Heckman(["educ"]).fit(repeated[names], repeated["lwage"])
    ours = PictureRows(
        weighed.fit_, Naming.of(weighed.fit_), frame[names], frame["lwage"], sample_weight=weight
    )
    theirs = PictureRows(longer.fit_, Naming.of(longer.fit_), repeated[names], repeated["lwage"])
    for mine, yours in zip(ours.margins().drivers, theirs.margins().drivers, strict=True):
        assert mine.name == yours.name
        assert mine.shown.estimate == pytest.approx(yours.shown.estimate, rel=1e-6)
        assert mine.shown.low == pytest.approx(yours.shown.low, rel=1e-6)
    assert ours.profiles().text().table.rows == theirs.profiles().text().table.rows
    assert ours.overlap().selected == theirs.overlap().selected
    assert ours.overlap().n_outside == theirs.overlap().n_outside
    assert ours.residuals().bars == theirs.residuals().bars
    for picture in (ours.overlap(), ours.residuals()):
        assert "as often as its weight" in picture.text().caption
    with pytest.raises(InputError, match="weights"):
        PictureRows(weighed.fit_, Naming.of(weighed.fit_), frame[names], frame["lwage"]).margins()


def test_sampling_weights_weigh_averages_and_bars_and_say_so(frame):
    names = ["educ", "exper", "city", "kids5"]
    weight = np.random.default_rng(0).uniform(0.5, 4.0, len(frame))
    model = Heckman(["educ"], weight_kind="sampling", cov_type="robust").fit(
        frame[names], frame["lwage"], sample_weight=weight
    )
    rows = PictureRows(
        model.fit_, Naming.of(model.fit_), frame[names], frame["lwage"], sample_weight=weight
    )
    chosen = frame["lwage"].notna().to_numpy()
    for profile in rows.profiles().profiles:
        mean = np.average(frame.loc[chosen, profile.name], weights=weight[chosen])
        assert profile.selected == pytest.approx(mean)
    assert sum(rows.overlap().selected) == pytest.approx(weight[chosen].sum() / weight.mean())
    assert "sampling weights" in rows.overlap().text().caption
    assert "whatever their sampling weights" in rows.residuals().text().caption
    assert rows.residuals().total == chosen.sum()
    assert "sampling weights" in rows.profiles().text().caption
    assert "robust 95% intervals" in rows.margins().text().caption
    effect = model.margins(frame[names], "selection", sample_weight=weight).tidy()
    slope = effect.set_index("term").loc["educ"]
    driver = next(driver for driver in rows.margins().drivers if driver.name == "educ")
    assert driver.shown.words == "one more"
    assert driver.shown.estimate == pytest.approx(100 * slope["estimate"])
    assert driver.shown.high == pytest.approx(100 * slope["ci_high"])


def test_streamed_rows_give_the_same_numbers_without_overlap_and_residuals(frame, tmp_path):
    table = frame[["educ", "exper", "expersq", "city", "region", "lwage"]]
    table.iloc[:300].to_parquet(tmp_path / "a.parquet")
    table.iloc[300:].to_parquet(tmp_path / "b.parquet")
    stored = scan_parquet(tmp_path, outcome="lwage")
    streamed = Heckman(["educ"]).fit(stored)
    encoded = stored.encoding.transform(table)
    loaded = Heckman(["educ"]).fit(encoded, table["lwage"])
    naming = Naming.of(streamed.fit_)
    ours = PictureRows(streamed.fit_, naming, stored, derived=SQUARES)
    theirs = PictureRows(loaded.fit_, naming, encoded, table["lwage"], derived=SQUARES)
    assert ours.overlap() is None
    assert ours.residuals() is None
    for mine, yours in zip(ours.margins().drivers, theirs.margins().drivers, strict=True):
        assert (mine.name, mine.shown.words) == (yours.name, yours.shown.words)
        assert mine.shown.estimate == pytest.approx(yours.shown.estimate, rel=1e-8)
        assert mine.shown.high == pytest.approx(yours.shown.high, rel=1e-6)
    for mine, yours in zip(ours.profiles().profiles, theirs.profiles().profiles, strict=True):
        assert (mine.inside, mine.outside) == pytest.approx((yours.inside, yours.outside), rel=1e-9)


def test_an_average_by_likelihood_has_effects_of_its_mixture(frame):
    names = ["educ", "exper", "kids5", "city"]
    model = HeckmanAverage(method="ml").fit(frame[names], frame["lwage"])
    rows = PictureRows(model.fit_, Naming.of(model.fit_), frame[names], frame["lwage"])
    table = model.margins(frame[names], "selection").tidy().set_index("term")
    found = {driver.name: driver.shown for driver in rows.margins().drivers}
    for name in names:
        # A year, a child, and a city rather than none.
        assert found[name].estimate == pytest.approx(100.0 * table.loc[name, "estimate"])
        assert found[name].low == pytest.approx(100.0 * table.loc[name, "ci_low"])
    p = model.predict_selection(frame[names])
    counts = np.histogram(p[frame["lwage"].notna()], 20, (0, 1))[0]
    assert rows.overlap().selected == tuple(counts)


def test_without_missing_outcomes_only_residuals_are_left(frame):
    observed = frame.dropna(subset=["lwage"])
    with pytest.warns(AllObservedWarning):
        model = Heckman(["educ", "exper"]).fit(observed[COLUMNS], observed["lwage"])
    rows = PictureRows(model.fit_, naming_of(model), observed[COLUMNS], observed["lwage"])
    assert rows.margins() is None
    assert rows.profiles() is None
    assert rows.overlap() is None
    residuals = rows.residuals()
    assert residuals.total == len(observed)
    assert "least squares" in residuals.text().caption


def test_rows_that_are_not_those_of_the_fit_are_refused(model, frame):
    other = frame.iloc[:-10]
    rows = PictureRows(model.fit_, naming_of(model), other[COLUMNS], other["lwage"])
    with pytest.raises(InputError, match="not those of the fit"):
        rows.margins()


def places(svg, shape, attribute):
    """Read where the marks of the rows are, by the name of the row."""
    root = ET.fromstring(svg)
    space = {"s": "http://www.w3.org/2000/svg"}
    return {
        group.get("data-f"): [
            float(mark.get(attribute)) for mark in group.findall(f"s:{shape}", space)
        ]
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if group.get("data-f")
    }


def number(cell):
    return float(cell.replace("\N{MINUS SIGN}", "-").replace(",", ""))


@pytest.mark.parametrize("width", [540, 358])
def test_tables_hold_what_pictures_show(rows, width):
    margins, profiles = rows.margins(), rows.profiles()
    shown = {}
    for line in margins.text().table.rows:
        points = number(line[2])
        if abs(points) >= abs(shown.get(line[0], 0.0)):
            shown[line[0]] = points
    drawn = {name: marks[0] for name, marks in places(margins.svg(width), "circle", "cx").items()}
    assert [*drawn] == [driver.name for driver in margins.rows]
    check_same_scale([shown[name] for name in drawn], [*drawn.values()], 0.06)
    pairs = places(profiles.svg(width), "circle", "cx")
    cells = {line[0]: (number(line[3]), number(line[2])) for line in profiles.text().table.rows}
    check_same_scale(
        [value for name in pairs for value in cells[name]],
        [place for marks in pairs.values() for place in marks],
        0.006,
    )
    for picture, column in ((rows.overlap(), 1), (rows.residuals(), 1)):
        heights = [
            float(bar.get("height"))
            for bar in ET.fromstring(picture.svg(width)).iter("{http://www.w3.org/2000/svg}rect")
            if bar.get("class") == "bar this"
        ]
        counts = [number(line[column]) for line in picture.text().table.rows[:-1]]
        check_same_scale([count for count in counts if count], heights, 0.4)


def check_same_scale(numbers, places, slack):
    """Numbers and where they are drawn differ by a straight line, but for rounding."""
    slope, shift = np.polyfit(places, numbers, 1)
    assert np.abs(np.polyval([slope, shift], places) - numbers).max() < slack


HOSTILE = ["<script>alert(1)</script>", "a\u202eb\x1b[2J", "=1+1", "$x_{", "n" * 300]


def test_hostile_names_are_harmless_in_words_drawings_and_axes(frame):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    X = frame[["educ", "exper", "kids5", "city", "south"]].set_axis(HOSTILE, axis=1)
    model = Heckman([HOSTILE[0]]).fit(X, frame["lwage"])
    naming = Naming(
        outcome=HOSTILE[0],
        sources=tuple(HOSTILE),
        levels=("", "", "", "", "</svg><b>"),
        references=("", "", "", "", "\u202e" * 5),
        switches=frozenset(),
    )
    rows = PictureRows(model.fit_, naming, X, frame["lwage"])
    for picture in (rows.margins(), rows.profiles(), rows.overlap(), rows.residuals()):
        text = picture.text()
        assert len(text.alt) <= 300
        words = [
            text.title,
            text.alt,
            text.caption,
            *(cell for line in text.table.rows for cell in line),
        ]
        assert not any(re.search("[\u202e\x1b]", word) for word in words)
        for width in (540, 358):
            svg = picture.svg(width)
            assert "<script" not in svg
            assert "<b>" not in svg
            ET.fromstring(svg)
        panel = picture.draw()
        panel.figure.canvas.draw()
        plt.close(panel.figure)


def test_hundreds_of_features_show_the_fifteen_largest(frame):
    draws = np.random.default_rng(1).standard_normal((len(frame), 40))
    X = pd.DataFrame(draws, columns=[f"x{i}" for i in range(40)]).assign(educ=frame["educ"])
    model = Heckman(["educ"]).fit(X, frame["lwage"])
    rows = PictureRows(model.fit_, Naming.of(model.fit_), X, frame["lwage"])
    margins = rows.margins()
    assert len(margins.rows) == 15
    assert len(places(margins.svg(540), "circle", "cx")) == 15
    assert len(margins.text().table.rows) == 41
    assert "The 15 of 41 features that move it most" in margins.text().caption
