"""Effects, chances and assignments: pictures, their words and their tables say the same."""

from __future__ import annotations

import html
import math
import re
import warnings
from collections.abc import Iterator
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, plots
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.inference.pictures import Pictures
from heckmanfa.plots.assignment_columns import MIXED, AssignmentColumns, n_drawn
from heckmanfa.plots.chance_bars import ChanceRow, Chances, RoleRow, shown_rows
from heckmanfa.plots.forest_intervals import Estimate, Forest, ForestRow, Series
from heckmanfa.plots.svg_shapes import NARROW, WIDE
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.evidence_pictures import chances_of, columns_of, forest_of
from heckmanfa.search.averaging.members import Members
from heckmanfa.text.option_words import at_command_line
from heckmanfa.text.passage import Name

SVG = "{http://www.w3.org/2000/svg}"
FEATURES = ["educ", "exper", "expersq", "age", "kids5", "nwifeinc", "city", "motheduc"]
HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnp.exe\x1b[2J",
    "=cmd|' /C calc'!A0",
    "n" * 300,
    'a" onload="x',
    "年収と学歴と経験年数と",
    "e\u0301\u0301\u0301\u0301\u0301\u0301x",
    " ",
]
NAN = math.nan


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    mroz = load_mroz()
    return mroz[FEATURES], mroz["lwage"]


@pytest.fixture(scope="module")
def average(rows):
    return HeckmanAverage().fit(*rows)


@pytest.fixture(scope="module")
def pictures(average) -> Pictures:
    return average.pictures()


def _groups(svg: str, cls: str = "row") -> list[ElementTree.Element]:
    return [
        item for item in ElementTree.fromstring(svg).iter(SVG + "g") if item.get("class") == cls
    ]


def _all(pictures: Pictures) -> Iterator[Forest | Chances | AssignmentColumns]:
    for picture in (pictures.forest, pictures.chances, pictures.assignments):
        if picture is not None:
            yield picture


# What every picture keeps to. -------------------------------------------------------------------


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_drawings_hold_classes_only_and_rows_that_speak(pictures: Pictures, width: int) -> None:
    for picture in _all(pictures):
        svg = picture.svg(width)
        root = ElementTree.fromstring(svg)
        assert root.get("width") == str(width)
        assert root.get("role") == "group"
        assert root.get("aria-label") == picture.text().alt
        assert not re.search(r'\b(style|fill|stroke|font[a-z-]*|id)="|#[0-9a-f]{3}\b|rgb\(', svg)
        found = _groups(svg)
        assert found
        for row in found:
            title = row.find(SVG + "title")
            assert row.get("role") == "img"
            # A drawing for phones leaves tooltips to the script, and has the words all the same.
            assert (title is None) == (width == NARROW)
            assert row.get("aria-label")
            if title is not None:
                assert row.get("aria-label") == "; ".join((title.text or "").split("\n"))
            assert row.get("data-f") in FEATURES
            hit = next(item for item in row.iter(SVG + "rect") if item.get("class") == "hit")
            assert (hit.get("x"), hit.get("width")) == ("0", str(width))
        assert all(float(number) < 2000 for number in re.findall(r'\b[xy][12]?="([\d.]+)"', svg))
        # The style of a file that stands alone is the style sheet's own.
        words = r'aria-label="[^"]*"|<title>[^<]*</title>|<desc>[^<]*</desc>|<style>[^<]*</style>'
        assert not re.search(r"\d\.\d\d", re.sub(words, "", svg))


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_tables_hold_the_numbers_of_the_drawings(pictures: Pictures, width: int) -> None:
    for picture in _all(pictures):
        text = picture.text()
        lines = {line[0]: line for line in text.table.rows}
        head = [column.title for column in text.table.columns]
        assert [column.is_feature for column in text.table.columns][:2] == [True, False]
        for row in _groups(picture.svg(width)):
            cells = lines[row.get("data-f")]
            assert len(cells) == len(head)
            spoken = (row.get("aria-label") or "").removeprefix(row.get("data-f") or "")
            numbers = set(re.findall(r"[\N{MINUS SIGN}<>]*\d[\d.,]*%?", spoken)) - {"0.0%"}
            said = set(re.findall(r"[\N{MINUS SIGN}<>]*\d[\d.,]*%?", " ".join(cells[1:])))
            # Every number that is spoken is in the table, and the other way round.
            assert numbers == said - {"0.0%"}, (spoken, cells)
            written = [item.text for item in row.iter(SVG + "text")]
            for words in written[1:]:
                assert words in cells or words.removeprefix("chance ") in cells


def test_alternatives_are_short_and_point_to_the_table(pictures: Pictures) -> None:
    for picture in _all(pictures):
        text = picture.text()
        assert len(text.alt) <= 300
        assert text.alt.endswith("All numbers are in the table.")
        assert not re.search(r"\b(blue|green|red|grey|pink|orange)\b", text.alt + text.caption)
        assert text.legend
        assert text.tables[0] is text.table


def test_hostile_names_are_harmless_in_every_picture(rows) -> None:
    X, y = rows
    model = HeckmanAverage().fit(X.set_axis(HOSTILE, axis=1), y)
    keys = {Name(name).key for name in HOSTILE}
    for picture in _all(model.pictures()):
        for width in (WIDE, NARROW):
            svg = picture.svg(width)
            root = ElementTree.fromstring(svg)
            tags = {item.tag.removeprefix(SVG) for item in root.iter()}
            shapes = {"text", "rect", "path", "line", "circle"}
            assert tags <= {"svg", "g", "title", "desc", "style", *shapes}
            assert {row.get("data-f") for row in _groups(svg)} <= keys
            assert not re.search("[\x00-\x08\x1b\u202e]", html.unescape(svg))
        assert len(picture.text().alt) <= 300
        plt.close(picture.draw().figure)


# P1. --------------------------------------------------------------------------------------------


def _forest(*rows: ForestRow, **others) -> Forest:
    series = (
        Series("this", "this", "circle"),
        Series("least squares", "ols", "diamond"),
        Series("all", "all", "square"),
    )
    return Forest("y", series[: len(rows[0].estimates) if rows else 1], rows, "About.", **others)


def _row(name: str, *estimates: tuple[float, float, float], **others) -> ForestRow:
    return ForestRow(name, "one SD more", tuple(Estimate(*item) for item in estimates), **others)


def test_forest_shows_what_tidy_says_per_step(average, pictures) -> None:
    table = average.tidy()
    table = table[table["equation"] == "prediction"].set_index("term")
    assert len(pictures.forest.drawn) == 5
    for row in pictures.forest.rows:
        step = 200.0 if row.name == "expersq" else 1.0
        expected = step * table.loc[row.name, ["estimate", "ci_low", "ci_high"]].astype(float)
        own = row.estimates[0]
        assert (own.value, own.low, own.high) == pytest.approx(tuple(expected))
        assert row.is_switch == (row.name == "city")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_marks_of_the_forest_are_where_the_axis_says(pictures: Pictures, width: int) -> None:
    forest = pictures.forest
    ends = [
        end
        for row in forest.drawn
        for one in row.estimates[:2]
        for end in (one.value, one.low, one.high)
    ]
    root = ElementTree.fromstring(forest.svg(width))
    grid = sorted(
        float(item.get("x1", "")) for item in root if item.get("class") in ("line", "zero")
    )
    labels = [item.text or "" for item in root if item.get("class") == "tick"]
    values = [float(label.replace("\N{MINUS SIGN}", "-")) for label in labels]
    ticks = dict(zip(sorted(values), grid, strict=True))
    low, high = min(ticks), max(ticks)
    per = (ticks[high] - ticks[low]) / (high - low)
    for row, drawn in zip(forest.drawn, _groups(forest.svg(width)), strict=True):
        (circle,) = drawn.iter(SVG + "circle")
        at = ticks[0.0] + per * row.estimates[0].value
        assert float(circle.get("cx", "")) == pytest.approx(at, abs=0.3)
        assert circle.get("class") == ("mark this" if row.is_sure else "hollow this")
        line = next(
            item for item in drawn.iter(SVG + "line") if item.get("class") == "interval ols"
        )
        for name, end in (("x1", row.estimates[1].low), ("x2", row.estimates[1].high)):
            assert float(line.get(name, "")) == pytest.approx(ticks[0.0] + per * end, abs=0.3)
    axis = forest.scale(0.0, 1.0)
    tenth = 0.1 * (max(*ends, 0) - min(*ends, 0))
    assert axis.low <= min(*ends, 0) - 0.99 * tenth
    assert axis.high >= max(*ends, 0) + 0.99 * tenth


def test_what_lies_beyond_the_first_two_series_is_clipped_with_an_arrow() -> None:
    forest = _forest(
        _row("a", (1, 0, 2), (1, 0.5, 1.5), (9, -50, 60)),
        _row("b", (0, -1, 1), (0, 0, 0), (70, 65, 80)),
    )
    first, second = _groups(forest.svg(WIDE))
    arrows = [item.get("class") for item in first.iter(SVG + "path")]
    assert arrows.count("interval arrow all") == 2
    assert not [item for item in first.iter(SVG + "rect") if item.get("class") == "mark all"]
    assert [item.get("class") for item in second.iter(SVG + "path")].count(
        "interval arrow all"
    ) == 1
    assert "An arrow: the interval runs on." in forest.text().caption


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (_row("a", (NAN, NAN, NAN)),),
        (_row("a", (0.0, 0.0, 0.0)),),
        (_row("a", (1e290, -1e300, 1e300)),),
        (_row("a", (1.0, -math.inf, math.inf), (NAN, NAN, NAN)),),
    ],
)
def test_forests_of_odd_numbers_are_drawn(rows: tuple[ForestRow, ...]) -> None:
    forest = _forest(*rows)
    for width in (WIDE, NARROW):
        svg = forest.svg(width)
        # A row without any estimate is left to the table.
        known = [row for row in rows if row.is_known]
        assert len(_groups(svg)) == len(known)
        assert not re.search(r'[a-z0-9]="(nan|-?inf)|[MLlhm](nan|-?inf)', svg)
    assert forest.text().alt.endswith("All numbers are in the table.")
    plt.close(forest.draw().figure)


def test_five_of_many_features_are_drawn_and_all_are_in_the_table() -> None:
    forest = _forest(*(_row(f"x{k}", (1, 0, 2)) for k in range(600)))
    text = forest.text()
    assert len(_groups(forest.svg(WIDE))) == 5
    assert len(text.table.rows) == 500
    assert "The 5 likeliest of 600 features." in text.caption
    assert "the first 500; all: `pictures().forest.rows`." in text.caption
    with at_command_line():
        assert "the first 500; all: `--save-table`." in forest.text().caption


# P2. --------------------------------------------------------------------------------------------


def test_chances_are_the_bic_shares_of_the_average(average, pictures) -> None:
    table = average.inclusion_.set_index("feature")
    for row in pictures.chances.rows:
        assert row.share == pytest.approx(table.loc[row.name, "bic"])
        assert row.by_aic == pytest.approx(table.loc[row.name, "aic"])
    roles = [row.role for row in pictures.chances.rows]
    assert roles == sorted(roles, key=list(dict.fromkeys(roles)).index)
    assert (
        "A feature that says nothing gets about 5% on its own with 428 rows."
        in pictures.chances.text().caption
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_bars_are_as_long_as_the_chances(pictures: Pictures, width: int) -> None:
    svg = pictures.chances.svg(width)
    root = ElementTree.fromstring(svg)
    cuts = sorted({float(item.get("x1", "")) for item in root if item.get("class") == "cut"})
    per = (cuts[1] - cuts[0]) / 0.8
    zero = cuts[0] - 0.1 * per
    for row, drawn in zip(pictures.chances.rows, _groups(svg), strict=True):
        bar = next(item for item in drawn.iter(SVG + "rect") if item.get("class") == "bar this")
        assert float(bar.get("x", "")) == pytest.approx(zero, abs=0.3)
        assert float(bar.get("width", "")) == pytest.approx(row.share * per, abs=0.3)
        tip = next(item for item in drawn.iter(SVG + "path") if item.get("class") == "mark ols")
        at = float(re.match(r"M([\d.]+)", tip.get("d", ""))[1])
        assert at == pytest.approx(zero + row.least_squares * per, abs=0.3)


def _many(shares: list[float]) -> list[RoleRow]:
    return [RoleRow(f"x{k}", "cannot be told" if s >= 0.1 else "", s) for k, s in enumerate(shares)]


@pytest.mark.parametrize(
    ("shares", "drawn", "rest"),
    [
        ([0.05] * 30, 30, ""),
        ([0.95] * 3 + [0.08] * 297, 5, "+295 below 10%, none above 8%"),
        ([0.5] * 10 + [0.004] * 290, 10, "+290 below 10%, none above 1%"),
        ([0.5] * 10 + [0.081] * 290, 10, "+290 below 10%, none above 9%"),
        ([0.5] * 10 + [0.097] * 290, 10, "+290 below 10%"),
        ([0.5] * 40 + [0.02] * 10, 30, "+20 more, none above 50%"),
    ],
)
def test_many_features_become_one_line(shares: list[float], drawn: int, rest: str) -> None:
    shown = shown_rows(_many(shares))
    assert (len(shown.rows), shown.rest) == (drawn, rest)


def test_chances_and_assignments_share_rows_order_and_heights(pictures: Pictures) -> None:
    places = []
    for picture in (pictures.chances, pictures.assignments):
        rows = _groups(picture.svg(WIDE))
        hits = [next(row.iter(SVG + "rect")) for row in rows]
        tops = [float(hit.get("y", "")) for hit in hits]
        places.append(
            [(row.get("data-f"), top - tops[0]) for row, top in zip(rows, tops, strict=True)]
        )
        assert {hit.get("height") for hit in hits} == {"24"}
    assert places[0] == places[1]
    # A heading above the rows of each role, and no line of the grid through it.
    root = ElementTree.fromstring(pictures.chances.svg(WIDE))
    heads = [float(item.get("y", "")) for item in root if item.get("class") == "head"]
    assert len(heads) == len({row.role for row in pictures.chances.rows})
    cuts = [item for item in root if item.get("class") == "cut"]
    assert len(cuts) == 2 * len(heads)
    for line in cuts:
        top, bottom = float(line.get("y1", "")), float(line.get("y2", ""))
        assert bottom - top >= 24
        assert not any(top < head < bottom for head in heads)


# P3. --------------------------------------------------------------------------------------------


def _runs(path: ElementTree.Element) -> list[tuple[float, float]]:
    """Read the strokes of a row: where each begins and ends."""
    found, here = [], 0.0
    for command, x in re.findall(r"([Mmh])([\d.]+)", path.get("d", "")):
        start = float(x) if command == "M" else here + float(x)
        if command == "h":
            found.append((here, start))
        here = start
    return found


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_cells_cover_the_weight_that_holds_a_feature(average, pictures, width: int) -> None:
    picture, found = pictures.assignments, weights_of(average.fit_).mixture
    n = n_drawn(found.leading_weight)
    assert picture.n == n
    assert found.leading_weight[: n - 1].sum() < 0.9 <= found.leading_weight[:n].sum()
    svg = picture.svg(width)
    root = ElementTree.fromstring(svg)
    ticks = [float(item.get("x1", "")) for item in root if item.get("class") == "axis"]
    per = ticks[-1] - ticks[0]
    states = found.leading_states[:n]
    members = Members(average.fit_.average.form, states, found.leading_weight[:n])
    for row, drawn in zip(picture.rows, _groups(svg), strict=True):
        column = FEATURES.index(row.name)
        held = found.leading_masks[:n, column]
        for sign, cls in ((1, "cell pos"), (-1, "cell neg")):
            weight = found.leading_weight[:n][
                held & (np.sign(members.estimates[:, 1 + column]) == sign)
            ]
            paths = [item for item in drawn.iter(SVG + "path") if item.get("class") == cls]
            length = sum(end - start for path in paths for start, end in _runs(path))
            assert length == pytest.approx(per * weight.sum(), abs=0.1 + 0.05 * len(weight))


def test_the_table_of_assignments_is_that_of_the_average(rows) -> None:
    model = HeckmanAverage(weights="bic").fit(*rows)
    picture, frame = columns_of(model.pictures().evidence), model.assignments_
    assert picture is not None
    expected = frame.head(picture.n)
    assert picture.weight == pytest.approx(expected["weight"].to_numpy())
    assert picture.bic == pytest.approx(expected["bic"].to_numpy())
    assert picture.rho == pytest.approx(expected["rho"].to_numpy())
    assert picture.imr_p == pytest.approx(expected["imr_p_value"].to_numpy(), nan_ok=True)
    for column, line in enumerate(picture.text().tables[1].rows):
        assert {*picture.members(column)} == {*expected["features"].iloc[column]}
        assert line[0] == str(column + 1)
    tips = [item.find(SVG + "title").text for item in _groups(picture.svg(WIDE), "columns")]
    assert tips[0].startswith("Number 1: ")
    lines = picture.text().tables[1].rows
    for tip in tips:
        line = lines[int(re.match(r"Number (\d+)", tip)[1]) - 1]
        assert all(cell in tip for cell in line[2:])
    assert len(tips) == len(lines) == max((picture.weight >= 0.005).sum(), min(10, picture.n))


def _columns(cells: list[list[int]], weight: list[float], **others) -> AssignmentColumns:
    n, rows = len(weight), [RoleRow(f"x{k}", "", 0.5) for k in range(len(cells))]
    array = np.array(cells, dtype=np.int8).reshape(len(cells), n)
    values = {"bic": np.zeros(n), "rho": np.zeros(n), "imr_p": np.full(n, 0.5)}
    settings = {"n_others": 3, "n_half": 1} | others
    return AssignmentColumns(tuple(rows), np.array(weight), array, **values, **settings)


def test_signs_turn_and_groups_may_have_both() -> None:
    picture = _columns([[1, 1], [1, -1], [0, 0], [MIXED, 0], [-1, 0]], [0.5, 0.3])
    assert [picture.sign(place) for place in range(5)] == ["+", "±", "", "±", "\N{MINUS SIGN}"]
    text = picture.text()
    assert [item.label for item in text.legend][2:] == ["both, by level", "not in", "3 others"]
    assert text.table.rows[3][-1] == "50%"


@pytest.mark.parametrize("weight", [[], [1.0], [0.95, 0.05], [1e-9] * 3])
def test_any_number_of_columns_is_drawn(weight: list[float]) -> None:
    picture = _columns([[1] * len(weight)], weight)
    for width in (WIDE, NARROW):
        assert len(_groups(picture.svg(width))) == 1
    # Its style knows hatches, whether or not there is one.
    hatched = "hatch" in re.sub(r"<style>[^<]*</style>", "", picture.svg(WIDE))
    assert hatched == (sum(weight) < 1)
    plt.close(picture.draw().figure)


def test_a_picture_of_400_columns_keeps_to_its_size() -> None:
    random = np.random.default_rng(0)
    weight = np.sort(random.exponential(size=400))[::-1]
    cells = random.choice([0, 0, 1], size=(30, 400)).tolist()
    picture = _columns(cells, (0.9 * weight / weight.sum()).tolist())
    assert n_drawn(np.full(1000, 1e-3)) == 400
    assert len(picture.text().tables[1].rows) == picture.n_told
    assert len(picture.svg(WIDE)) < 50_000


# Special cases. ---------------------------------------------------------------------------------


def test_without_a_search_marks_are_filled_and_there_are_no_chances(rows) -> None:
    X, y = rows
    model = Heckman(["educ", "exper"]).fit(X, y)
    pictures = model.pictures()
    assert pictures.chances is None
    assert pictures.assignments is None
    assert all(row.is_sure and not row.share for row in pictures.forest.rows)
    assert [one.cls for one in pictures.forest.series] == ["this", "ols", "all"]
    for draw in (plots.chances, plots.assignments):
        with pytest.raises(NotIdentifiedError, match="nothing was searched"):
            draw(model)


def test_with_nothing_missing_the_forest_has_one_series(rows) -> None:
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Heckman(["educ", "exper"]).fit(X[y.notna()], y.dropna())
    forest = model.pictures().forest
    assert [one.label for one in forest.series] == ["least squares"]
    assert len(_groups(forest.svg(WIDE))) == 2


def test_with_sampling_weights_chances_are_withheld(rows) -> None:
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = HeckmanAverage(weight_kind="sampling", cov_type="robust").fit(
        X, y, sample_weight=weight
    )
    pictures = model.pictures()
    assert pictures.chances is None
    assert pictures.assignments is None
    with pytest.raises(NotIdentifiedError, match=r"(?i)sampling weights"):
        plots.chances(model)


def test_an_honest_search_counts_halves_and_never_says_chance(rows) -> None:
    X, y = rows
    model = HeckmanBestSubset(honest=True, n_splits=10, random_state=0).fit(X[FEATURES[:5]], y)
    evidence = model.pictures().evidence
    honest = model.fit_.search.halves
    chances, columns, forest = chances_of(evidence), columns_of(evidence), forest_of(evidence)
    assert chances is not None
    assert columns is not None
    for row in chances.rows:
        n = int(honest.support[:, FEATURES.index(row.name)].sum())
        assert chances.value(row) == f"{n} of 10"
    assert columns.weight[0] == max(columns.weight)
    assert float(columns.weight.sum()) > 0.9 - 1e-9
    for picture in (forest, chances, columns):
        text = picture.text()
        words = [text.title, text.alt, text.caption, picture.svg(WIDE)]
        words += [column.title for table in text.tables for column in table.columns]
        words += [item.label for item in text.legend]
        assert "chance" not in " ".join(words).lower()


def test_a_group_is_one_row_and_levels_are_in_the_table(rows) -> None:
    X, y = rows
    region = np.random.default_rng(1).integers(0, 3, len(X))
    X = X[FEATURES[:4]].assign(north=(region == 1) * 1.0, south=(region == 2) * 1.0)
    groups = [["north", "south"], ["exper", "expersq"]]
    model = HeckmanAverage(feature_groups=groups, always=["age"]).fit(X, y)
    pictures = model.pictures()
    assert pictures.chances is not None
    names = [row.name for row in pictures.chances.rows]
    assert len(names) == 4
    assert "north + south" in names
    (forced,) = [row for row in pictures.chances.rows if row.is_forced]
    assert pictures.chances.value(forced) == "always"
    assert len(_groups(pictures.assignments.svg(WIDE))) == 4
    lines = [line for line in pictures.forest.text().table.rows if line[0] == "north + south"]
    assert len(lines) == 2
    assert sum(row.name == "north + south" for row in pictures.forest.drawn) == 1


def test_pictures_that_need_rows_say_so(average) -> None:
    with pytest.raises(InputError, match="'margins' needs the rows of the fit"):
        _ = average.pictures().margins


def test_sources_without_pictures_are_refused(average) -> None:
    for draw in (plots.forest, plots.chances, plots.assignments, plots.rho_by_assignment):
        with pytest.raises(InputError, match="a fitted Heckman model, a search or an Analysis"):
            draw("model")
    with pytest.raises(NotFittedError):
        plots.forest(HeckmanAverage())


def test_matplotlib_draws_the_same_numbers(average, pictures) -> None:
    axes = plots.forest(average)
    centres = [
        line.get_xdata()[0]
        for line in axes.lines
        if line.get_marker() == "o" and len(line.get_xdata())
    ]
    assert centres == pytest.approx([row.estimates[0].value for row in pictures.forest.drawn])
    plt.close(axes.figure)
    axes = plots.chances(average)
    widths = [100 * row.share for row in pictures.chances.rows]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(widths)
    plt.close(axes.figure)
    figure, given = plt.subplots()
    assert plots.assignments(average, given) is given
    covered = [
        sum(path.vertices[:, 0].max() - path.vertices[:, 0].min() for path in bars.get_paths())
        for bars in given.collections
    ]
    picture = pictures.assignments
    expected = [
        100 * picture.weight[picture.cells[place] == sign].sum()
        for place in range(len(picture.rows))
        for sign in (1, -1)
        if (picture.cells[place] == sign).any()
    ]
    assert covered == pytest.approx(expected)
    plt.close(figure)


def test_chance_rows_without_least_squares_have_no_diamond() -> None:
    picture = Chances((ChanceRow("a", "predicts", 0.95),))
    assert "mark ols" not in picture.svg(WIDE)
    assert [item.label for item in picture.text().legend] == ["this model"]
