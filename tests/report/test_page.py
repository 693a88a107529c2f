"""The page itself: its order, its numbers, and that it needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from html import unescape
from importlib.resources import files

import numpy as np
import pytest
from tests.recorded import compare

from heckmanfa import Heckman
from heckmanfa.data.files.outputs import sha256_of
from heckmanfa.errors import InputError, NoExclusionWarning
from heckmanfa.report import page as page_module
from heckmanfa.report import render, write_report
from heckmanfa.report.settings import today
from heckmanfa.results.render_html import css_string
from heckmanfa.text.passage import Name
from heckmanfa.text.wording import chance_text, number, p_value, true_minus

SECTIONS = ["answer", "which", "people", "who", "matter", "trust", "claims", "details"]
# Pictures of each special case; the others have nothing to show there.
PICTURES = {
    "average": "forest chances assignments people margins profiles rho imr over_rho overlap "
    "residuals",
    "none": "forest people margins profiles imr over_rho overlap residuals",
    "observed": "forest people residuals",
    "streamed": "forest chances assignments margins profiles rho imr over_rho",
    "sampling": "forest people margins profiles imr over_rho overlap residuals",
    "ordered": "forest class_effects people margins profiles overlap class_shares",
    "series": "forest people margins profiles correction overlap",
    "binary": "forest chances assignments people margins profiles rho over_rho overlap calibration",
}
CASES = [*PICTURES, "honest", "category", "hostile", "no exclusion"]


@pytest.mark.parametrize("name", [*CASES, "ml", "window", "cluster", "clear"])
def test_the_words_of_a_page_are_the_recorded_ones(page_of, mroz_file, name):
    said = "\n".join(" ".join(line.split()) for line in page_of(name).lines if line.strip())
    said = said.replace(str(mroz_file.parent), "FOLDER")
    said = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", said)
    said = re.sub(r"\b(Python|heckmanfa|\w+) \d+\.\d+(\.\d+)+\S*", r"\1 VERSION", said)
    compare(f"pages/{name}", said)


@pytest.mark.parametrize("name", CASES)
def test_sections_come_in_order(page_of, name):
    page = page_of(name)
    dropped = {"who", "matter"} if name == "observed" else set()
    assert list(page.sections) == [one for one in SECTIONS if one not in dropped]
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert levels.count(2) == len(page.sections)
    assert max(np.diff(levels)) <= 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.elements:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


WIDE = pytest.param("wide", marks=pytest.mark.study)


@pytest.mark.parametrize("name", [*CASES, "ml", "window", "cluster", WIDE, "long", "clear"])
def test_every_report_is_small_and_asks_for_nothing(page_of, name):
    page = page_of(name)
    assert len(page.html.encode()) <= 400_000
    assert len(page.scripts) == 1
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "img")
        for value in (attributes.get("src"), attributes.get("href")):
            assert value is None or value.startswith("#")


@pytest.mark.parametrize("name", PICTURES)
def test_each_case_has_its_pictures_with_words_and_tables(case, page_of, name):
    page, pictures, held = page_of(name), case(name).pictures(), case(name).held_out
    kinds = [one["class"] for tag, one in page.elements if tag == "figure"]
    assert sorted(kinds) == sorted(PICTURES[name].split())
    assert sum(tag == "figcaption" for tag, _ in page.elements) == len(kinds)
    drawn = [one for tag, one in page.elements if tag == "svg" and one.get("role") == "group"]
    scenes = [
        held.picture.scene() if kind == "calibration" else pictures.known(kind).scene()
        for kind in kinds
    ]
    across = {"over_rho": ["1112", "540", "358"], "chances": ["1112", "358"]}
    expected = [across[one.kind] if one.body.is_across else ["540", "358"] for one in scenes]
    assert [one["width"] for one in drawn] == [width for widths in expected for width in widths]
    looks = page.with_class("look")
    assert len(looks) == len(kinds)
    for scene in scenes:
        look = scene.text.look
        assert look.startswith("Look ")
        assert look.endswith(".")
        assert len(look) <= 80
        assert re.search(r"rho = 0|BIC|lambda|weight", look) is None
    for one in drawn:
        assert len(one["aria-label"]) <= 300
    for kind in kinds:
        text = (held.picture if kind == "calibration" else getattr(pictures, kind)).text()
        for table in text.tables:
            assert table.name in page.tables
            first = next(row for row in table.rows if not isinstance(row, str))
            shown = next(row for row in page.tables[table.name] if row and row[0] == first[0])
            assert shown[1:] == [true_minus(cell) for cell in first[1:]]


@pytest.mark.parametrize("name", ["average", "none", "honest", "category", "binary"])
def test_coefficients_are_those_of_tidy(case, page_of, name):
    analysis, page = case(name), page_of(name)
    tidy = analysis.model.tidy()
    labels = {"imr": "lambda"}
    for table, equations in (
        ("coefficients-table", ["prediction", "errors"]),
        ("selection-table", ["selection"]),
    ):
        shown = [row for row in page.tables[table] if len(row) > 2]
        wanted = []
        for row in tidy[tidy["equation"].isin(equations)].to_dict("records"):
            term = row["term"]
            label = labels.get(term, term) if row["equation"] == "errors" else term
            z = row["statistic"]
            cells = [
                number(row["estimate"]),
                number(row["std_error"]),
                "" if np.isnan(z) else f"{z:.2f}",
                p_value(row["p_value"]),
                number(row["ci_low"]),
                number(row["ci_high"]),
            ]
            wanted.append([label, *(true_minus(one) for one in cells)])
        # Columns without a number are left out, as the z and p of averages.
        kept = [place for place, cells in enumerate(zip(*wanted, strict=True)) if any(cells)]
        wanted = [[row[place] for place in kept] for row in wanted]
        start = [row[0] for row in shown].index("Intercept")
        assert [row[: len(kept)] for row in shown[start : start + len(wanted)]] == wanted


def test_chances_of_every_kind_are_those_of_the_average(case, page_of):
    model, page = case("average").model, page_of("average")
    rows = {row[0]: row for row in page.tables["chances-table"][1:]}
    for row in model.inclusion_[:-1].to_dict("records"):
        feature = row["feature"]
        name = feature[0] if isinstance(feature, tuple) else feature
        shown = [rows[name][place] for place in (2, 4, 5)]
        assert shown == [chance_text(row[kind]) for kind in ("bic", "aic", "ebic")]


def test_the_best_assignment_stands_beside_the_average(case, page_of):
    analysis, page = case("average"), page_of("average")
    names = list(analysis.evidence.best.names)
    terms = {row[0]: row for row in page.tables["best-table"][2:]}
    assert [
        name for name, row in terms.items() if row[1] and name not in ("lambda", "rho")
    ] == names
    # It does not hold the correction: least squares of its features, by the form.
    assert not analysis.evidence.best.corrected
    X, y = analysis.loaded.X[names], analysis.loaded.y
    seen = np.isfinite(y)
    design = np.column_stack([np.ones(seen.sum()), X[seen]])
    coef = np.linalg.lstsq(design, y[seen], rcond=None)[0]
    assert float(terms[names[0]][1]) == pytest.approx(coef[1], abs=5e-3)
    assert terms["rho"][1] == ""
    whole = analysis.model.tidy().query("equation == 'prediction'").set_index("term")
    beside = {row[0]: row for row in page.tables["coefficients-table"][2:]}
    with pytest.warns(NoExclusionWarning):
        full = (
            Heckman(cov_type="robust")
            .fit(analysis.loaded.X, y)
            .tidy()
            .query("equation == 'prediction'")
        )
    for row in full.to_dict("records"):
        shown = beside[row["term"]][-1].replace("\N{MINUS SIGN}", "-")
        low, high = (float(end) for end in shown.split(" to "))
        assert (low, high) == pytest.approx((row["ci_low"], row["ci_high"]), rel=5e-3, abs=5e-3)
    assert {*whole.index} <= {*beside}


def test_hostile_names_are_text(read_page, case):
    analysis = case("hostile")
    html = render(analysis, title="<img src=x onerror=alert(2)>")
    page = read_page(html)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "<b>name" not in html
    assert "<i>" not in html
    assert not re.search("[\u202a-\u202e\x00-\x08\x0b-\x1f]", html)
    assert len(page.scripts) == 1
    names = {Name(feature.name).key for feature in analysis.evidence.features}
    assert names <= {row[0] for row in page.tables["margins-table"]}
    marked = {one["data-f"] for _, one in page.elements if "data-f" in one}
    assert names <= marked
    assert analysis.question.outcome in page.headings[0][1]


def test_names_that_nobody_can_read_are_cut_in_pictures_and_whole_in_tables(case, page_of):
    analysis, page = case("long"), page_of("long")
    longest = max((feature.name for feature in analysis.evidence.features), key=len)
    assert len(longest) > 250
    assert longest in {row[0] for row in page.tables["margins-table"]}
    # A panel of coefficients over rho has room for a longer title.
    html = re.sub(r'<figure class="over_rho".*?</figure>', "", page.html, flags=re.DOTALL)
    labels = re.findall(r'<text class="lab"[^>]*>([^<]*)</text>', html)
    assert "…" in "".join(labels)
    assert max(map(len, labels)) <= 14


def test_nothing_is_read_from_elsewhere(page_of):
    for name in ("average", "hostile"):
        html = page_of(name).html
        rest = html.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in rest
        assert not re.search(r"\bsrc\s*=|@import|url\(|<link|fetch\(|XMLHttpRequest", rest)
        policy = next(one["content"] for _, one in page_of(name).elements if "http-equiv" in one)
        assert policy.startswith("default-src 'none'")
        assert "unsafe-eval" not in policy


def test_the_script_is_one_of_short_files(page_of):
    (script,) = page_of("average").scripts
    parts = list(files("heckmanfa.report").joinpath("script").iterdir())
    for part in parts:
        text = part.read_text(encoding="utf-8")
        code = [line.strip() for line in text.splitlines()]
        assert "\n".join(line for line in code if not line.startswith("//")) in script
        assert len(text.splitlines()) <= 60
        assert max(map(len, text.splitlines())) <= 110
    assert len(script) <= 20_000


def test_drawings_have_no_colours_of_their_own(page_of):
    drawn = re.findall(r"<svg.*?</svg>", page_of("average").html, re.DOTALL)
    assert len(drawn) > 20
    for one in drawn:
        assert not re.search(r"\b(style|fill|stroke)=|#[0-9a-f]{3,6}\b", one)


@pytest.mark.parametrize("limit", [200_000, 90_000])
def test_a_page_that_is_too_large_gives_way_by_rule(case, monkeypatch, read_page, limit):
    monkeypatch.setattr(page_module, "LIMIT", limit)
    html = render(case("average"))
    page = read_page(html)
    # The answer and the checks always stay.
    assert list(page.sections) == SECTIONS
    assert page.with_class("forest")
    assert not page.with_class("what-if")
    assert len(html) < 330_000
    assert "<code>tidy()</code> and JSON have the estimates of all." in html
    if limit == 90_000:
        assert not page.with_class("assignments")


def test_tables_can_be_read_aloud(page_of):
    page = page_of("average")
    assert page.elements[0] == ("html", {"lang": "en"})
    scopes = [one.get("scope") for tag, one in page.elements if tag == "th"]
    assert all(scope in ("row", "col", "rowgroup", "colgroup") for scope in scopes)
    boxes = page.with_class("scroll")
    assert len(boxes) == len(page.tables)
    assert all(one["tabindex"] == "0" and one["role"] == "region" for one in boxes)


def test_rows_and_columns_are_accounted_for(case, page_of):
    analysis, page = case("category"), page_of("category")
    rows = {row[0]: row[1] for row in page.tables["rows-table"]}
    assert rows["All rows of the table"] == "753"
    assert rows["Left out: a feature is missing"] == "76"
    said = page.said("details")
    assert list(analysis.encoding.left_out) == ["person"]
    for name, why in analysis.encoding.left_out.items():
        assert name in said
        assert why in said
    assert page.tables["missing-table"][1] == ["gaps", "76", "10.1%"]
    reference = analysis.encoding.references["region"]
    assert page.tables["references-table"][1][:2] == ["region", reference]


def test_it_can_be_cited_and_run_again(case, page_of, mroz_file):
    analysis, page = case("average"), page_of("average")
    said = page.said("details")
    assert "arXiv:2309.08043" in said
    assert "Heckman (1979)" in said
    assert analysis.question.command() in said
    assert f"SHA-256 of the file: {sha256_of(mroz_file)}" in said
    assert f"numpy {np.__version__}" in said
    assert f"Python {sys.version.split()[0]}" in said


@pytest.mark.parametrize("name", ["average", "none", "honest", "no exclusion"])
def test_checks_come_gravest_first_with_what_to_do(case, page_of, name):
    analysis, page = case(name), page_of(name)
    said, place = page.said("trust"), 0
    for check in analysis.checks:
        if check.level == "ok":
            assert check.line in said
            continue
        assert said.index(check.title.removesuffix(".")) >= place
        place = said.index(check.title.removesuffix("."))
        assert check.words in said
        if check.do:
            assert f"Do: {check.do}" in said
    for claim in analysis.claims:
        assert str(claim) in page.said("claims")
    for sentence in analysis.answer.may_write:
        assert str(sentence.paper) in page.said("claims")
        assert str(sentence.news) in page.said("claims")


def test_the_same_analysis_gives_the_same_page(case, tmp_path):
    write_report(case("none"), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(case("none"))


def test_a_report_never_replaces_its_data_nor_a_device(case, mroz_file, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(mroz_file)
    before = mroz_file.read_bytes()
    for path in (mroz_file, link):
        with pytest.raises(InputError, match="analysis"):
            write_report(case("none"), path)
    assert mroz_file.read_bytes() == before
    os.mkfifo(tmp_path / "fifo.html")
    with pytest.raises(InputError, match="is a FIFO"):
        write_report(case("none"), tmp_path / "fifo.html")


def test_the_policy_names_the_script_and_the_style_by_their_digests(file_of):
    """No other script or style runs, even if a name from the data became one."""
    html = file_of("hostile").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "unsafe" not in policy
    # Pictures that are saved are painted, not loaded: no address is allowed.
    kinds = [part.split()[0] for part in unescape(policy).split(";")]
    assert kinds == ["default-src", "style-src", "script-src", "form-action", "base-uri"]
    assert not re.search(r"blob:|data:|https?:|\*", policy)
    for tag in ("script", "style"):
        (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src &#x27;sha256-{digest}&#x27;" in policy
    # A policy without unsafe-inline ignores styles in attributes, and handlers.
    assert not re.search(r"<[^>]*\s(style|on\w+)=", html)


def test_a_date_can_be_set_and_the_foot_of_a_sheet_holds_no_markup(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert today() == "1970-01-02"
    for odd in ("", "-1", "x", "٣", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", odd)
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", today())
    assert css_string('a_b.csv · "x"</style>\\') == (r'"a_b.csv · \22 x\22 \3c \2f style\3e \5c "')


@pytest.mark.parametrize("name", ["average", "category", "sampling", "binary", "frequency"])
def test_the_share_beyond_those_with_an_outcome_is_one_number(case, ask, name):
    features = ("educ", "exper", "age", "kids5", "city", "nwifeinc")
    analysis = ask(weights="weight", features=features) if name == "frequency" else case(name)
    picture = analysis.pictures().overlap
    (check,) = (check for check in analysis.checks if check.key == "outside_range")
    assert picture.n_outside > 0
    assert check.value == f"{100 * picture.share_outside:.1f}%"
    assert f"Hatched: {check.value} of the rows" in picture.text().caption
