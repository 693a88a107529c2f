"""Summaries as LaTeX and Markdown: the numbers come back."""

import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.errors import AllObservedWarning

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
WILD = r"""[a]&b_%$#{x}~^\|"<y>*`--z"""
NUMBERS = ["estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]


@pytest.fixture(scope="module", params=["two-step", "ml"])
def model(request, mroz):
    return Heckman(["educ", "exper", "expersq"], method=request.param).fit(
        mroz[SELECTION], mroz["lwage"]
    )


@pytest.fixture(scope="module")
def searched(mroz):
    return HeckmanBestSubset(rho_range=(-0.5, 0.5)).fit(mroz[SELECTION], mroz["lwage"])


@pytest.fixture(scope="module")
def wild(mroz):
    frame = mroz[SELECTION].rename(columns={"educ": WILD})
    return Heckman([WILD, "exper"]).fit(frame, mroz["lwage"])


def close(found, expected):
    """What is printed are five digits, three decimals of p and two of z."""
    for name in NUMBERS:
        places = {"p_value": 5.1e-4, "statistic": 5.1e-3}.get(name, 0.0)
        relative = 0.0 if places else 5.1e-5
        np.testing.assert_allclose(found[name], expected[name], rtol=relative, atol=places)


# LaTeX. -----------------------------------------------------------------------------------------

BACK = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textasciigrave{}": "`",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    "''": '"',
    r"-{}-": "--",
    **{"\\" + one: one for one in "&%$#_{}"},
    r"$\mu$": "\N{GREEK SMALL LETTER MU}",
    r"$\geq$": "≥",
}


def from_tex(cell):
    cell = cell.strip().removeprefix("{}")
    if cell.startswith("$"):
        return cell.strip("$").replace(r"\times10^{", "e").rstrip("}")
    pattern = "|".join(re.escape(one) for one in sorted(BACK, key=len, reverse=True))
    return re.sub(pattern, lambda found: BACK[found.group()], cell)


def tex_tables(text):
    """The lines of cells in each ``tabular``; all have as many as there are columns."""
    tables = []
    for columns, body in re.findall(
        r"\\begin{tabular}{([lr]+)}\n(.*?)\\end{tabular}", text, flags=re.DOTALL
    ):
        rows = []
        for line in body.splitlines():
            if line.startswith((r"\toprule", r"\midrule", r"\bottomrule")):
                continue
            assert line.endswith(r" \\")
            cells = re.split(r"(?<!\\)&", line.removesuffix(r" \\"))
            wide = sum(int(one) - 1 for one in re.findall(r"\\multicolumn{(\d)}", line))
            assert len(cells) + wide == len(columns)
            rows.append([from_tex(cell) for cell in cells])
        tables.append(rows)
    return tables


def well_formed(text):
    """Environments and braces are closed in order."""
    open_ = []
    for kind, name in re.findall(r"\\(begin|end){(\w+)}", text):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    depth = 0
    for one in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(one, 0)
        assert depth >= 0
    assert depth == 0
    assert re.sub(r"\\\$", "", text).count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[%#~^](?!{)", re.sub(r"\$[^$]*\$", "", text))


def number(text):
    """The number in a cell; every p-value below 0.001 rounds to the middle of that range."""
    return 0.0005 if text == "<0.001" else float(text) if text else np.nan


def equations_in(rows):
    """The table as `tidy` gives it, and the facts under it."""
    words = {"Prediction": "prediction", "Selection": "selection", "Errors": "errors"}
    found, facts, equation = [], [], None
    for row in rows[1:]:
        title = re.match(r"\\multicolumn\{7\}\{l\}\{\\textit\{(\w+)", row[0])
        if title:
            equation = words[title.group(1)]
        elif row[0] == "Rows given" or facts:
            facts.append((row[0], row[1]))
        else:
            values = [number(cell) for cell in row[1:]]
            found.append([equation, row[0], *values])
    return pd.DataFrame(found, columns=["equation", "term", *NUMBERS]), facts


def test_latex_holds_the_estimates_and_the_facts(model):
    summary = model.summary(conf_level=0.9)
    text = summary.to_latex(caption="Wages $w$", label="tab:wages")
    well_formed(text)
    (rows,) = tex_tables(text)
    assert rows[0][-1] == r"\multicolumn{2}{c}{90\% interval}".replace(r"\%", "%")
    table, facts = equations_in(rows)
    expected = model.tidy(0.9)
    assert table[["equation", "term"]].equals(expected[["equation", "term"]])
    close(table, expected)
    assert facts == summary.facts
    assert r"\caption{Wages $w$}" in text
    assert r"\label{tab:wages}" in text
    assert r"\toprule" in text
    assert r"\hline" not in text
    for note in summary.notes:
        assert note.split(" (")[0].split(" |")[0] in text


def test_latex_prints_any_name_as_it_is(wild):
    text = wild.summary().to_latex()
    well_formed(text)
    (rows,) = tex_tables(text)
    table, _ = equations_in(rows)
    assert table["term"].tolist() == wild.tidy()["term"].tolist()
    assert WILD in table["term"].tolist()
    # Behind the end of a line a bracket would be its argument.
    assert not re.search(r"\\\\\s*[\[*]", text)
    assert r"\label" not in text
    assert r"\caption{Heckman selection model, two-step}" in text


def test_latex_has_the_comparison_of_a_search(searched):
    summary = searched.summary()
    text = summary.to_latex(label="tab:a")
    well_formed(text)
    first, beside = tex_tables(text)
    close(equations_in(first)[0], searched.tidy())
    assert beside[0] == ["", "chosen", "all features", "least squares"]
    assert [row[0] for row in beside[1:]] == summary.comparison["term"].tolist()
    found = [[float(one) if one else np.nan for one in row[1:]] for row in beside[1:]]
    expected = summary.comparison[["chosen", "all_features", "naive"]].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=5.1e-5)
    assert np.isnan(expected).any()
    assert r"\label{tab:a-comparison}" in text


def test_latex_has_the_other_reports(searched):
    report = searched.what_if()
    text = searched.summary(include=report).to_latex(label="tab:a")
    well_formed(text)
    tables = tex_tables(text)
    put_back = next(table for table in tables if table[0][0] == "feature")
    first = report.tidy().iloc[0]
    assert put_back[1][0] == first["feature"]
    assert float(put_back[1][3]) == pytest.approx(first["rho"], rel=5.1e-5)
    assert text.count(r"\begin{table}") == text.count(r"\begin{tabular}")
    assert r"\label{tab:a-1}" in text


def test_powers_of_ten_are_written_out(mroz):
    frame = mroz[SELECTION].assign(age=mroz["age"] * 1e9)
    model = Heckman(["educ", "exper", "age"]).fit(frame, mroz["lwage"])
    text = model.summary().to_latex()
    assert re.search(r"\$-?\d\.\d+\\times10\^\{-1\d\}\$", text)
    assert not re.search(r"\de-\d", text)
    (rows,) = tex_tables(text)
    close(equations_in(rows)[0], model.tidy())


# Markdown. --------------------------------------------------------------------------------------


def markdown_tables(text):
    """Each table as a frame of texts, by the words before it."""
    tables, title = {}, None
    for part in text.split("\n\n"):
        bold = re.fullmatch(r"\*\*(.*)\*\*", part)
        if bold:
            title = bold.group(1)
        elif part.startswith("|"):
            rows = []
            for line in part.splitlines():
                cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
                rows.append([re.sub(r"\\(.)", r"\1", one.strip()) for one in cells])
            head, rule, *body = rows
            assert all(re.fullmatch(":---|---:", one) for one in rule)
            assert {len(row) for row in rows} == {len(head)}
            tables[title] = pd.DataFrame(body, columns=head)
    return tables


def numbers(frame):
    return frame.map(number)


EQUATIONS = {
    "prediction": "Prediction equation (outcome)",
    "selection": "Selection equation (probit)",
    "errors": "Errors",
}


def test_markdown_has_a_table_for_each_equation(model):
    summary = model.summary(conf_level=0.9)
    text = summary.to_markdown()
    tables = markdown_tables(text)
    expected = model.tidy(0.9)
    for equation, title in EQUATIONS.items():
        rows = expected[expected["equation"] == equation].reset_index(drop=True)
        found = tables[title]
        assert found.columns.tolist() == [
            *("term", "estimate", "std. error", "z", "P>|z|", "90% low", "90% high")
        ]
        assert found["term"].tolist() == rows["term"].tolist()
        values = numbers(found.drop(columns="term"))
        close(values.set_axis(NUMBERS, axis=1), rows)
    facts = tables["Heckman selection model, " + text.split(", ")[1].split("**")[0]]
    assert list(facts.itertuples(index=False, name=None)) == summary.facts
    assert text.count("\n- ") == len(summary.notes)


def test_markdown_shows_any_name_as_it_is(wild):
    found = markdown_tables(wild.summary().to_markdown())
    assert found[EQUATIONS["prediction"]]["term"].tolist() == ["Intercept", WILD, "exper"]


def test_markdown_has_the_comparison_and_other_reports(searched):
    report = searched.what_if()
    summary = searched.summary(include=report)
    tables = markdown_tables(summary.to_markdown())
    beside = tables["Beside other models"]
    assert beside["term"].tolist() == summary.comparison["term"].tolist()
    np.testing.assert_allclose(
        numbers(beside.drop(columns="term")),
        summary.comparison[["chosen", "all_features", "naive"]],
        rtol=5.1e-5,
    )
    put_back = tables["Put back into the prediction equation, one at a time"]
    back = report.tidy().set_index("feature").loc[put_back["feature"]]
    np.testing.assert_allclose(numbers(put_back[["rho"]])["rho"], back["rho"], rtol=5.1e-5)


def test_least_squares_is_exported_too(mroz):
    worked = mroz[mroz["lfp"] == 1]
    with pytest.warns(AllObservedWarning):
        model = Heckman(["educ"]).fit(worked[["educ", "age"]], worked["lwage"])
    well_formed(model.summary().to_latex())
    tables = markdown_tables(model.summary().to_markdown())
    assert EQUATIONS["selection"] not in tables
    assert tables["Errors"]["term"].tolist() == ["sigma"]
