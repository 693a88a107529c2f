"""Roles and coefficients as files that Excel, Word, LaTeX and other programs open."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import analyse
from heckmanfa.analysis.feature_table import feature_frame
from heckmanfa.errors import InputError, MissingExtraError
from heckmanfa.results.render_docx import render_docx
from heckmanfa.results.render_latex import latex_tables
from heckmanfa.results.render_text import markdown_blocks
from heckmanfa.results.table_files import FORMATS
from heckmanfa.text.table import Column, Table

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FORMULA = "=HYPERLINK(\"http://x\",'a')"
MARKUP = "<w:t> & \x1b_^{x}\\$%|\u202eb"


def table(n=500):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {FORMULA: rng.normal(size=n), MARKUP: rng.normal(size=n), "place": rng.choice([*"abc"], n)}
    )
    errors = rng.normal(size=(n, 2))
    selected = frame[FORMULA] + frame[MARKUP] + (frame["place"] == "b") + errors[:, 0] > 0
    y = 1 + frame[FORMULA] + 2.0 * (frame["place"] == "c") + 0.5 * errors[:, 0] + errors[:, 1]
    return frame.assign(y=y.where(selected))


@pytest.fixture(scope="module")
def analysis():
    return analyse(table(), outcome="y")


def word_tables(path):
    """The cells of the tables of a Word file, all of whose parts are well-formed."""
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        parts = {name: ElementTree.fromstring(file.read(name)) for name in file.namelist()}
    body = parts["word/document.xml"]
    styles = {
        style.get(f"{WORD}styleId") for style in parts["word/styles.xml"].iter(f"{WORD}style")
    }
    assert {style.get(f"{WORD}val") for style in body.iter(f"{WORD}pStyle")} <= styles
    return [
        [
            ["".join(cell.itertext()) for cell in row.iter(f"{WORD}tc")]
            for row in one.iter(f"{WORD}tr")
        ]
        for one in body.iter(f"{WORD}tbl")
    ]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_written_once_and_replaced_only_on_request(analysis, tmp_path, ending):
    path = tmp_path / f"out{ending}"
    analysis.save_table(path)
    with pytest.raises(InputError, match="exists; pass force=True"):
        analysis.save_table(path)
    size = path.stat().st_size
    analysis.save_table(path, force=True)
    assert path.stat().st_size == pytest.approx(size, abs=50)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_csv_parquet_and_excel_hold_the_same_numbers(analysis, tmp_path):
    expected = feature_frame(analysis.pictures())
    paths = {ending: tmp_path / f"out{ending}" for ending in (".csv", ".parquet", ".xlsx")}
    for path in paths.values():
        analysis.save_table(path)
    pd.testing.assert_frame_equal(pd.read_parquet(paths[".parquet"]), expected)
    from_csv, sheets = pd.read_csv(paths[".csv"]), pd.read_excel(paths[".xlsx"], sheet_name=None)
    assert list(sheets) == ["Features", "Coefficients", "Selection", "Answer"]
    assert list(sheets["Features"]) == list(from_csv) == list(expected)
    for name in ("chance", "effect", "effect_low", "least_squares_high", "selection_points_low"):
        np.testing.assert_allclose(from_csv[name], expected[name], rtol=1e-12)
        np.testing.assert_allclose(sheets["Features"][name], expected[name], rtol=1e-12)
    estimates = analysis.coefficients["estimate"]
    np.testing.assert_allclose(sheets["Coefficients"]["estimate"], estimates, rtol=1e-12)
    # An average has no z and no p in its prediction equation.
    assert "p_value" not in sheets["Coefficients"]
    assert "p_value" in sheets["Selection"]
    assert list(sheets["Answer"]["answer"]) == list(analysis.answer)


def test_no_cell_of_a_workbook_is_a_formula(analysis, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    analysis.save_table(tmp_path / "out.xlsx")
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert FORMULA in [cell.value for cell in cells]
    assert not [cell.value for cell in cells if cell.data_type == "f"]


def test_a_word_file_holds_roles_coefficients_and_selection(analysis, tmp_path):
    analysis.save_table(tmp_path / "out.docx")
    roles, coefficients, selection = word_tables(tmp_path / "out.docx")
    frame = feature_frame(analysis.pictures())
    assert [row[3] for row in roles[2:]] == list(frame["role"])
    assert FORMULA in [row[0] for row in roles]
    assert "\\x1b" in "".join(row[0] for row in roles)
    assert {"b rather than a", "c rather than a"} < {row[1] for row in roles}
    terms = [row[0] for row in coefficients]
    assert {"Intercept", "place[b]", "lambda", "rho"} < set(terms)
    assert len(selection) == 1 + sum(analysis.estimates["equation"] == "selection")
    # One minus sign everywhere.
    assert "-0." not in "".join(cell for row in (*roles[2:], *selection[1:]) for cell in row[4:])


def test_the_least_squares_of_the_coefficients_is_that_of_the_roles(analysis):
    found = analysis.coefficients.set_index("term")["least_squares"]
    expected = feature_frame(analysis.pictures()).set_index("feature")["least_squares"]
    assert found[FORMULA] == expected[FORMULA]
    assert found[["Intercept", "rho", "bic"]].isna().all()


def test_text_formats_escape_what_they_would_obey(analysis, tmp_path):
    for ending in (".tex", ".md"):
        analysis.save_table(tmp_path / f"out{ending}")
    tex, markdown = ((tmp_path / f"out{ending}").read_text("utf-8") for ending in (".tex", ".md"))
    shown = r"\textless{}w:t\textgreater{} \& \textbackslash{}x1b\_\textasciicircum{}\{x\}"
    assert shown in tex
    assert r"\<w:t\> & \\x1b\_^\{x\}\\\$%\|\\u202eb" in markdown
    for text in (tex, markdown):
        assert not set("\x1b\u202e") & set(text)
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 3
    assert tex.count(r"\caption{") == 3


@pytest.mark.parametrize(
    "options",
    [
        {"search": "none", "predict_with": [FORMULA]},
        {"search": "best-subset"},
        {"search": "best-subset", "honest": True},
        {"search": "none", "method": "ml", "predict_with": [FORMULA, "place"]},
    ],
    ids=["none", "best", "honest", "ml"],
)
def test_every_kind_of_fit_has_a_table(tmp_path, options):
    found = analyse(table(), outcome="y", **options)
    for ending in FORMATS:
        found.save_table(tmp_path / f"out{ending}")
    first, *_ = word_tables(tmp_path / "out.docx")
    assert len(first) == 2 + len(feature_frame(found.pictures()))
    for column in zip(*first[2:], strict=True):
        assert any(column)


def test_a_binary_outcome_and_one_without_gaps_have_tables(tmp_path):
    frame = table()
    frame["y"] = (frame["y"] > 1).where(frame["y"].notna()).map({True: "high", False: "low"})
    analyse(frame, outcome="y", search="none", predict_with=[FORMULA]).save_table(
        tmp_path / "classes.docx"
    )
    assert "percentage points" in (
        zipfile.ZipFile(tmp_path / "classes.docx").read("word/document.xml").decode()
    )
    whole = table().assign(weight=lambda frame: frame["y"].notna().astype(int))
    named = {"outcome": "y", "weights": "weight", "predict_with": [FORMULA, MARKUP, "place"]}
    found = analyse(whole, search="none", **named)
    found.save_table(tmp_path / "whole.docx")
    found.save_table(tmp_path / "whole.xlsx")
    assert len(word_tables(tmp_path / "whole.docx")) == 2
    assert list(pd.read_excel(tmp_path / "whole.xlsx", sheet_name=None)) == [
        *("Features", "Coefficients", "Answer"),
    ]


def test_labels_and_units_stand_beside_names(tmp_path):
    frame = table().rename(columns={FORMULA: "x", MARKUP: "z"})
    codebook = pd.DataFrame(
        {
            "column": ["x", "place"],
            "label": ["Years & months", "Where they live"],
            "unit": ["years", ""],
            "levels": ["", "a=inland; b=by the sea; c=hills"],
        }
    )
    codebook.to_csv(tmp_path / "codebook.csv", index=False)
    found = analyse(frame, outcome="y", labels=str(tmp_path / "codebook.csv"))
    for ending in FORMATS:
        found.save_table(tmp_path / f"out{ending}")
    lines = pd.read_csv(tmp_path / "out.csv", keep_default_na=False).set_index("feature")
    assert (lines.loc["x", "label"], lines.loc["x", "unit"]) == ("Years & months", "years")
    assert (lines.loc["z", "label"], lines.loc["z", "unit"]) == ("", "")
    assert set(lines.loc["place", "level_label"]) == {"by the sea", "hills"}
    for sheet in ("Coefficients", "Selection"):
        terms = pd.read_excel(tmp_path / "out.xlsx", sheet_name=sheet).set_index("term")
        assert terms.loc["x", "label"] == "Years & months"
    roles, coefficients, _ = word_tables(tmp_path / "out.docx")
    assert {"Years & months (x)", "z", "Where they live (place)"} <= {row[0] for row in roles}
    assert "by the sea rather than inland" in {row[1] for row in roles}
    assert "Years & months (x)" in {row[0] for row in coefficients}
    with pytest.raises(InputError, match="labels"):
        found.save_table(tmp_path / "codebook.csv", force=True)


def test_a_name_without_a_format_is_refused_before_anything_is_computed(analysis, tmp_path):
    for name in ("out.pdf", "out", "out.xls"):
        with pytest.raises(InputError, match=r"must end in \.csv, \.xlsx, \.docx, \.tex, \.md or"):
            analysis.save_table(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_excel_names_the_extra_that_it_needs(analysis, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"heckmanfa\[excel\]"):
        analysis.save_table(tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir())


def test_groups_and_parts_of_a_table_are_in_every_document():
    columns = (Column("Term", False), Column("One", group="Left"), Column("Two", group="Left"))
    parts = Table(columns, ("Errors", ("rho", "\u22120.5", "<0.001")), "Cap_tion", "name")
    assert render_docx([parts]) == render_docx([parts])
    assert "| Term | Left: One | Left: Two |" in markdown_blocks([parts])
    tex = latex_tables([parts])
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{Left} \\" in tex
    assert r"\multicolumn{3}{l}{\textit{Errors}} \\" in tex
    assert r"rho & $-0.5$ & $<0.001$ \\" in tex
    empty = Table(columns, ("Errors", ("rho", "", "1")), "", "name").without_empty()
    assert ([column.title for column in empty.columns], empty.rows[1]) == (
        ["Term", "Two"],
        ["rho", "1"],
    )


def test_titles_of_groups_stand_over_their_columns_in_word(analysis, tmp_path):
    analysis.save_table(tmp_path / "out.docx")
    with zipfile.ZipFile(tmp_path / "out.docx") as file:
        body = ElementTree.fromstring(file.read("word/document.xml"))
    table = next(body.iter(f"{WORD}tbl"))
    grid = [int(column.get(f"{WORD}w")) for column in table.iter(f"{WORD}gridCol")]
    assert 14_000 < sum(grid) <= 14_570
    for row in table.iter(f"{WORD}tr"):
        place = 0
        for cell in row.iter(f"{WORD}tc"):
            span = cell.find(f".//{WORD}gridSpan")
            end = place + (1 if span is None else int(span.get(f"{WORD}val")))
            width = cell.find(f".//{WORD}tcW").get(f"{WORD}w")
            assert int(width) == sum(grid[place:end])
            place = end
        assert place == len(grid)
    # A number has room for itself, so no digit is on a line of its own.
    titles = list(table.iter(f"{WORD}tr"))[1]
    for column, cell in zip(grid, titles.iter(f"{WORD}tc"), strict=True):
        assert column >= 90 * len("".join(cell.itertext()))


def test_latex_compiles_and_no_table_is_wider_than_the_text(analysis, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("LaTeX is not installed")
    analysis.save_table(tmp_path / "table.tex")
    signs = Table((Column("a", False), Column("b")), (("χ²(2) − λ, ρ, σ, β", "−1"),), "χ²", "x")
    (tmp_path / "signs.tex").write_text(latex_tables([signs]), "utf-8")
    whole = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    whole += r"\input{table.tex}\input{signs.tex}\end{document}"
    (tmp_path / "whole.tex").write_text(whole, "utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "whole.tex"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-2000:]
    assert "Overfull" not in run.stdout


def test_signs_of_greek_letters_are_formulas_in_latex():
    signs = Table((Column("a", False), Column("b")), (("χ²(2) − λ", "−1"),), "ρ", "x")
    tex = latex_tables([signs])
    assert r"$\chi$$^2$(2) $-$ $\lambda$ & $-1$" in tex
    assert r"\caption{$\rho$}" in tex
