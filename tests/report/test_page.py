"""The page itself: its order, its numbers, and that it needs nothing else."""

from __future__ import annotations

import base64
import os
import re
import sys

import numpy as np
import pytest

from heckmanfa.data.files.outputs import sha256_of
from heckmanfa.errors import InputError, MissingExtraError
from heckmanfa.report import render, write_report
from heckmanfa.results.checks import check_of_finding
from heckmanfa.results.render_html import signed
from heckmanfa.text.option_names import in_options
from heckmanfa.text.wording import number, p_value

get_plotlyjs = pytest.importorskip(
    "plotly.offline", reason="the report needs the extra plots"
).get_plotlyjs

SECTIONS = ["asked", "rows", "answer", "coefficients", "selection", "diagnostics", "pictures"]
SPECIFIED = {"search": "none", "predict_with": ("educ", "exper", "expersq")}
WINDOW = {"search": "fa", "criterion": "bic", "rho_range": (-0.3, 0.3)}
CATEGORY = {"features": ("region", "educ", "kids5", "age", "gaps", "person")}
QUESTIONS = [
    {},
    WINDOW,
    {"search": "fa-star"},
    SPECIFIED,
    {"search": "none"},
    {"method": "ml", **SPECIFIED},
    {"honest": True},
    {"weights": "weight", **SPECIFIED},
    CATEGORY,
]


def floats(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def flags(text, *shape):
    raw = np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8))
    return raw[: np.prod(shape)].astype(bool).reshape(shape)


@pytest.mark.parametrize("options", QUESTIONS, ids=str)
def test_sections_come_in_order(page_of, options):
    page = page_of(**options)
    assert list(page.sections) == [*SECTIONS, "cite"]
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "for"):
            if name in attributes:
                assert attributes[name] in ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


@pytest.mark.parametrize("options", QUESTIONS, ids=str)
def test_every_figure_has_words_and_a_table(page_of, options):
    page = page_of(**options)
    plots = [one for _, one in page.elements if one.get("class") == "picture"]
    names = [one["name"] for one in page.payload["figures"]]
    assert [one["id"] for one in plots] == [f"plot-{name}" for name in names]
    for one in plots:
        assert one["role"] == "img"
        assert re.search(r"\d", one["aria-label"])
    assert sum(tag == "figcaption" for tag, _ in page.elements) == len(plots)
    assert sum(tag == "details" for tag, _ in page.elements) == len(plots)
    searched = options.get("search") != "none"
    trained = options.get("search") in ("fa", "fa-star")
    assert ("curve" in names) == searched
    assert ("path" in names) == trained
    assert {"lambda", "predicted", "over-rho"} <= set(names)


@pytest.mark.parametrize("options", QUESTIONS, ids=str)
def test_coefficients_are_those_of_tidy(ask, page_of, options):
    analysis, page = ask(**options), page_of(**options)
    tidy = analysis.model.tidy()
    labels = {"imr": "lambda"}
    for table, equations in (
        ("coefficients-table", ["prediction", "errors"]),
        ("selection-table", ["selection"]),
    ):
        shown = [row for row in page.tables[table] if len(row) > 2]
        wanted = []
        for row in tidy[tidy["equation"].isin(equations)].to_dict("records"):
            name = row["term"]
            label = labels.get(name, name) if row["equation"] == "errors" else name
            z = row["statistic"]
            cells = [
                number(row["estimate"]),
                number(row["std_error"]),
                "" if np.isnan(z) else f"{z:.2f}",
                p_value(row["p_value"]),
                number(row["ci_low"]),
                number(row["ci_high"]),
            ]
            wanted.append([label, *(signed(one) for one in cells)])
        start = [row[0] for row in shown].index("Intercept")
        if table == "coefficients-table":
            # The selection equation stands between the two in tidy, and elsewhere on the page.
            assert [row[:7] for row in shown[start : start + len(wanted)]] == wanted
        else:
            assert [row[:7] for row in shown[start:]] == wanted


def test_points_are_the_candidates(ask, page_of):
    analysis, page = ask(**WINDOW), page_of(**WINDOW)
    found, frame = page.payload["candidates"], analysis.model.candidates_
    assert found["n"] == len(frame)
    ordered = frame.sort_values("bic", kind="stable").reset_index(drop=True)
    np.testing.assert_allclose(floats(found["value"]), ordered["bic"], rtol=1e-6)
    np.testing.assert_allclose(floats(found["rho"]), ordered["rho"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(flags(found["inside"], found["n"]), ordered["in_range"])
    masks = flags(found["masks"], found["n"], len(found["labels"]))
    for row, features in zip(masks, ordered["features"], strict=True):
        held = {found["labels"][one] for one in np.flatnonzero(row)}
        assert held == set(features)
    chosen = ordered["features"][found["chosen"]]
    assert list(chosen) == analysis.model.prediction_features_


def test_coefficients_over_candidates_are_those_of_the_search(ask, page_of):
    analysis, page = ask(), page_of()
    figure = next(one for one in page.payload["figures"] if one["name"] == "coefficients-over")
    frame = analysis.model.candidates_.sort_values("bic", kind="stable")
    names = list(analysis.loaded.X.columns)
    masks = np.array([[name in one for name in names] for one in frame["features"]])
    coef = analysis.model.fit_.moments.solve(masks).coef
    educ = names.index("educ")
    shown = floats(figure["options"][0]["data"][0]["y"]["$f"])
    np.testing.assert_allclose(shown, coef[masks[:, educ], educ], rtol=1e-6)


def test_figures_are_valid_for_plotly(page_of):
    from plotly.graph_objects import Figure

    def revive(part, n):
        if isinstance(part, list):
            return [revive(one, n) for one in part]
        if not isinstance(part, dict):
            return part
        if "$c" in part:
            return "#000000"
        if "$f" in part:
            return floats(part["$f"])
        if {"$rank", "$take", "$names"} & set(part):
            return [0.0] * n
        part = {key: revive(one, n) for key, one in part.items()}
        return part | ({"type": "scattergl"} if part.get("type") == "points" else {})

    for options in QUESTIONS[:2]:
        page = page_of(**options)
        n = page.payload["candidates"]["n"]
        for figure in page.payload["figures"]:
            for one in figure.get("options", [figure]):
                Figure(data=revive(one["data"], n), layout=revive(one["layout"], n))


def test_hostile_names_are_text(read_page, hostile):
    html = render(hostile, title="<img src=x onerror=alert(2)>")
    page = read_page(html)
    rest = html.replace(get_plotlyjs(), "")
    assert "<script>alert" not in rest
    assert "<img" not in rest
    assert "<b>name" not in rest
    assert len(page.scripts) == 3
    terms = [row[0] for row in page.tables["selection-table"]]
    for name in hostile.loaded.X.columns:
        assert name in terms
    assert "<img src=x onerror=alert(2)>" in dict(page.headings)["h1"]
    assert hostile.question.outcome in page.said("answer")
    # In hover texts Plotly reads tags, so that they are escaped once more.
    labels = page.payload["candidates"]["labels"]
    assert not any("<" in one for one in labels)


def test_nothing_is_read_from_elsewhere(ask, page_of):
    html, page = render(ask(**WINDOW)), page_of(**WINDOW)
    rest = html.replace(get_plotlyjs(), "")
    assert "http" not in rest.replace("http-equiv", "")
    assert not re.search(r"\bsrc\s*=|@import|url\(|<link|fetch\(|XMLHttpRequest", rest)
    policy = next(one["content"] for _, one in page.elements if "http-equiv" in one)
    assert policy.startswith("default-src 'none'")
    assert html.count("plotly.js v") == 1
    assert len(rest) < 400_000


def test_tables_can_be_read_aloud(page_of):
    page = page_of()
    assert page.elements[0] == ("html", {"lang": "en"})
    scopes = [one.get("scope") for tag, one in page.elements if tag == "th"]
    assert all(scope in ("row", "col", "rowgroup", "colgroup") for scope in scopes)
    boxes = [one for _, one in page.elements if one.get("class") == "scroll"]
    assert len(boxes) == len(page.tables)
    assert all(one["tabindex"] == "0" and one["role"] == "region" for one in boxes)


def test_rows_and_columns_are_accounted_for(ask, page_of):
    analysis, page = ask(**CATEGORY), page_of(**CATEGORY)
    rows = {row[0]: row[1] for row in page.tables["rows-table"]}
    assert rows["All rows of the table"] == "753"
    assert rows["Left out: a feature is missing"] == "76"
    said = page.said("rows")
    assert list(analysis.encoding.left_out) == ["person"]
    for name, why in analysis.encoding.left_out.items():
        assert name in said
        assert why in said
    assert page.tables["missing-table"][1] == ["gaps", "76", "10.1%"]
    reference = analysis.encoding.references["region"]
    assert page.tables["references-table"][1][:2] == ["region", reference]


def test_it_can_be_cited_and_run_again(ask, page_of, mroz_file):
    analysis, page = ask(**WINDOW), page_of(**WINDOW)
    said = page.said("cite")
    assert "arXiv:2309.08043" in said
    assert "Heckman (1979)" in said
    assert analysis.question.command() in said
    made = {row[0]: row[1] for row in page.tables["versions-table"]}
    assert made["SHA-256 of it"] == sha256_of(mroz_file)
    assert made["numpy"] == np.__version__
    assert {"Seed", "Python", "heckmanfa", "scipy", "scikit-learn", "pandas"} <= set(made)


@pytest.mark.parametrize("options", QUESTIONS, ids=str)
def test_diagnostics_say_what_they_mean_and_what_to_do(ask, page_of, options):
    analysis, page = ask(**options), page_of(**options)
    said = page.said("diagnostics")
    for check in analysis.model.diagnostics(analysis.loaded.X).checks():
        assert f"{check.verdict}{check.name}: {check.value}{in_options(check.meaning)}" in said
        if check.verdict != "ok":
            assert check_of_finding(check, "the outcome").do in said
    for warning in analysis.warnings:
        assert warning in said


def test_the_same_analysis_gives_the_same_page(ask, tmp_path):
    write_report(ask(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(ask())


def test_a_report_never_replaces_its_data_nor_a_device(ask, mroz_file, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(mroz_file)
    before = mroz_file.read_bytes()
    for path in (mroz_file, link):
        with pytest.raises(InputError, match="which the analysis reads"):
            write_report(ask(), path)
    assert mroz_file.read_bytes() == before
    os.mkfifo(tmp_path / "fifo.html")
    with pytest.raises(InputError, match="is a FIFO"):
        write_report(ask(), tmp_path / "fifo.html")


def test_without_plotly_the_extra_is_named(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heckmanfa\[plots\]'"):
        render(ask())


def test_a_report_of_many_candidates_stays_small(read_page, crime_analysis):
    html = render(crime_analysis)
    assert len(html.encode()) < 8_000_000
    assert read_page(html).payload["candidates"]["n"] == 10_000
