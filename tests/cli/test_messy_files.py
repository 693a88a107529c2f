"""Files as people have them: codes for missing, dates, rare levels, money, and names of outputs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import analysis
from heckmanfa.analysis import Question, analyse, load_model, save_model
from heckmanfa.errors import InputError
from heckmanfa.report import write_report

FIT = ["--search", "none", "--select-only", "nwifeinc,kids5", "--json", "r.json"]


def results(shell, *options):
    text = shell.runs("fit", *options, *FIT, "--force")
    return shell.json("r.json"), text


def estimates(found):
    return {row["term"]: row["estimate"] for row in found["estimates"]}


def test_codes_for_missing_give_the_model_of_empty_cells(shell, mroz):
    plain, _ = results(shell, "mroz.csv", "--outcome", "lwage")
    coded = mroz.fillna({"lwage": -99})
    coded.to_csv("coded.csv", index=False)
    coded.to_parquet("coded.parquet")
    said = shell.refuses("fit", "coded.csv", "--outcome", "lwage")
    assert "It holds -99 in 325 rows" in said
    assert "pass --na-values lwage=-99" in said
    for name in ("coded.csv", "coded.parquet"):
        for value in ("-99", "lwage=-99.0"):
            found, text = results(shell, name, "--outcome", "lwage", "--na-values", value)
            assert estimates(found) == pytest.approx(estimates(plain), rel=1e-12)
            assert "was taken as missing in 'lwage' (325 rows)" in text
    words = mroz.astype({"lwage": object}).fillna({"lwage": "Refused"})
    words.to_csv("words.csv", index=False)
    said = shell.refuses("fit", "words.csv", "--outcome", "lwage")
    assert "'Refused' in 325 of 753 rows, and numbers elsewhere" in said
    assert "pass --na-values lwage=Refused" in said
    found, _ = results(shell, "words.csv", "--outcome", "lwage", "--na-values", "refused,-7")
    assert estimates(found) == pytest.approx(estimates(plain), rel=1e-12)
    assert "-7, of --na-values, is in no cell that it is about." in found["reading"]
    said = shell.refuses("fit", "mroz.csv", "--outcome", "lwage", "--na-values", "agee=-9")
    assert "no column 'agee'. Did you mean 'age'" in said
    said = shell.refuses(
        "fit", "coded.parquet", "--outcome", "lwage", "--na-values", "-99", "--stream-above", 0
    )
    assert "--na-values needs the rows in memory" in said


def test_a_model_knows_codes_dates_and_merged_levels(shell, mroz):
    town = np.where(mroz["age"] % 2, "a", "b").astype(object)
    town[[0, 1, 500, 501]], town[[2, 3, 600]] = "rare", "rarer"
    born = pd.Timestamp("1976-01-01") - pd.to_timedelta(mroz["age"] * 365.25, unit="D")
    table = mroz.assign(town=town, born=born.dt.strftime("%d.%m.%Y"), income=mroz["nwifeinc"])
    table.loc[10:19, "income"] = -999
    table.to_csv("t.csv", index=False)
    options = [
        "t.csv", "--outcome", "lwage", "--exclude", "age,nwifeinc", "--na-values", "income=-999",
        "--dates", "years", "--min-level-rows", 10,
    ]  # fmt: skip
    text = shell.runs(
        "fit", *options, "--search", "none", "--select-only", "kids5", "--save", "m.heckmanfa"
    )
    assert "2 rare levels of 'town' became '(other)': 'rare', 'rarer'." in text
    assert f"The dates in 'born' became years since {born.min():%Y-%m-%d}." in text
    encoding = load_model("m.heckmanfa").encoding
    X = encoding.transform(table)
    days = (born.dt.floor("D") - born.min().floor("D")).dt.days
    np.testing.assert_allclose(X["born"], days / 365.25, rtol=1e-12)
    assert X["income"].isna().to_numpy().nonzero()[0].tolist() == [*range(10, 20)]
    assert sorted(encoding.levels["town"]) == ["(other)", "a", "b"]
    assert X["town[(other)]"].sum() == 7
    # One row alone says neither how dates are written nor which levels are rare.
    few = table.drop(columns="lwage").iloc[[0, 2, 12]]
    for name, write in (("few.csv", few.to_csv), ("few.parquet", few.to_parquet)):
        write(name, index=False)
        shell.runs("predict", "m.heckmanfa", name, "--out", "p.csv", "--force")
        found = pd.read_csv("p.csv", skip_blank_lines=False)["predicted_marginal"]
        whole = load_model("m.heckmanfa").model.predict(X.iloc[[0, 2, 12]], missing="nan")
        np.testing.assert_allclose(found, whole, rtol=1e-12)
        assert found.isna().tolist() == [False, False, True]
    few.assign(town="new").to_csv("new.csv", index=False)
    assert "'new'" in shell.refuses("predict", "m.heckmanfa", "new.csv", "--out", "q.csv")
    few.assign(born=3.0).to_csv("numbers.csv", index=False)
    assert "held dates" in shell.refuses("predict", "m.heckmanfa", "numbers.csv", "--out", "q.csv")


def test_a_rare_level_that_separates_names_the_option_that_merges_it(shell, mroz):
    town = np.where(mroz["age"] % 2, "a", "b").astype(object)
    town[np.flatnonzero(mroz["lwage"].isna())[:3]] = "island"
    mroz.assign(town=town).to_csv("t.csv", index=False)
    said = shell.refuses("fit", "t.csv", "--outcome", "lwage")
    assert "merge rare levels of a category with --min-level-rows 10" in said
    found, _ = results(shell, "t.csv", "--outcome", "lwage", "--min-level-rows", 10)
    # The only rare level is merged with the next rarest.
    levels = {*found["reference_levels"].values()}
    levels |= {row["term"] for row in found["estimates"] if str(row["term"]).startswith("town[")}
    assert any("(other)" in level for level in levels)


def test_dates_that_can_be_read_in_two_ways_are_refused(shell, mroz):
    mroz.assign(day=[f"0{1 + row % 9}/0{1 + row % 5}/2020" for row in range(753)]).to_csv(
        "t.csv", index=False
    )
    said = shell.refuses("fit", "t.csv", "--outcome", "lwage", "--dates", "days")
    assert "whether the day or the month comes first" in said
    said = shell.refuses("fit", "t.csv", "--outcome", "lwage", "--dates", "weeks")
    assert "--dates must be one of days, years" in said
    _, text = results(shell, "t.csv", "--outcome", "lwage")
    assert "(--dates years or --dates days)" in text


def test_codes_are_findings_of_the_analysis(mroz):
    coded = mroz.assign(nwifeinc=mroz["nwifeinc"].abs())
    coded.loc[:29, "nwifeinc"] = -99
    coded.loc[np.flatnonzero(coded["lwage"].isna())[:100], "lwage"] = 999.0
    found = analyse(Question("t", "lwage", search="none", select_only=("kids5",)), frame=coded)
    assert [(one.column, one.code, one.rows) for one in found.suspicions] == [
        ("lwage", 999, 100),
        ("nwifeinc", -99, 30),
    ]
    outcome, feature = found.suspicions
    assert str(outcome) in found.notes
    assert "these rows count as observed" in outcome.do
    levels = {check.key: (check.level, check.do) for check in found.checks}
    # An option is written as users type it, with a plain minus.
    assert levels["outcome_code"] == (
        "problem",
        "If 999 means missing, pass na_values=['lwage=999']: as it is, these rows count as "
        "observed.",
    )
    assert levels["feature_codes"] == (
        "caution",
        "If \u221299 means missing, pass na_values=['nwifeinc=-99']: as it is, it counts as a "
        "number.",
    )
    assert "na_values=['nwifeinc=-99']" in str(feature)
    sound = analyse(Question("t", "lwage", search="none", select_only=("kids5",)), frame=mroz)
    assert sound.suspicions == ()


def test_outcomes_of_text_are_refused_with_what_to_do(shell, mroz):
    works = np.where(mroz["lwage"].notna(), "yes", "no")
    sized = pd.cut(mroz["lwage"], 3, labels=["low", "middle", "high"])
    paid = [f"${value:,.2f}" if value == value else "no pay" for value in np.exp(mroz["lwage"])]
    mroz.drop(columns="lwage").assign(works=works, sized=sized, paid=paid).to_csv("t.csv")
    assert "or pass it as --selected" in shell.refuses("fit", "t.csv", "--outcome", "works")
    said = shell.refuses("fit", "t.csv", "--outcome", "sized")
    assert "holds 3 different texts" in said
    assert "A binary outcome has two" in said
    said = shell.refuses("fit", "t.csv", "--outcome", "paid")
    assert "pass --na-values 'paid=no pay'" in said
    options = ["t.csv", "--outcome", "paid", "--exclude", "works,sized"]
    found, text = results(shell, *options, "--na-values", "paid=no pay")
    assert found["rows"]["selected"] == 428
    assert "'paid' is in $" in text


def test_no_option_suggests_a_column_that_has_a_role(shell, mroz):
    mroz.assign(lwage2=1.0, educ2=mroz["educ"]).to_csv("t.csv", index=False)
    for option in ("--features", "--exclude", "--always", "--select-only", "--categorical"):
        said = shell.refuses("fit", "t.csv", "--outcome", "lwage", option, "lwag")
        assert "no column 'lwag'" in said
        assert "'lwage'" not in said
    results(shell, "mroz.csv", "--outcome", "lwage", "--save", "m.heckmanfa")
    mroz.drop(columns="age").to_csv("new.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")
    assert "no column 'age'" in said
    assert "'lwage'" not in said


@pytest.mark.parametrize(
    ("option", "name", "ending"),
    [
        ("--report", "r.pdf", ".html"),
        ("--save", "m.pkl", ".heckmanfa"),
        ("--json", "r.pdf", ".json"),
        ("--save", "m.joblib", ".heckmanfa"),
    ],
)
def test_outputs_that_promise_another_format_are_refused(shell, mroz, option, name, ending):
    said = shell.refuses("fit", "mroz.csv", "--outcome", "lwage", option, name)
    assert f"{option} writes" in said
    assert f"name a file that ends in {ending}" in said


def test_python_refuses_such_names_too(shell, mroz):
    found = analyse(Question("t", "lwage", search="none", select_only=("kids5",)), frame=mroz)
    with pytest.raises(InputError, match=r"save_model writes .*\.heckmanfa"):
        save_model("m.pkl", found.model, found.encoding)
    with pytest.raises(InputError, match=r"write_report writes HTML.* ends in \.pdf"):
        write_report(found, "r.pdf")
    assert not {*shell.files()} & {"m.pkl", "r.pdf"}
    assert analysis.load_model is load_model


def test_titles_above_the_names_are_skipped(shell, mroz):
    with pd.ExcelWriter("book.xlsx") as book:
        mroz.to_excel(book, sheet_name="Data", index=False, startrow=3)
        book.sheets["Data"]["A1"], book.sheets["Data"]["A2"] = "Wages", "Source: a survey"
    titled = "Wages of women\n\nSource: a survey; 1975\n" + mroz.to_csv(index=False)
    (shell.folder / "titled.csv").write_text(titled)
    plain, _ = results(shell, "mroz.csv", "--outcome", "lwage")
    for name, lines in (("book.xlsx", 2), ("titled.csv", 3)):
        found, text = results(shell, name, "--outcome", "lwage")
        assert f"{lines} lines of titles above the names were skipped." in text
        assert estimates(found) == pytest.approx(estimates(plain), rel=1e-9)


def test_a_frequent_level_that_separates_names_the_option_for_who_is_selected(shell, mroz):
    works = np.where(mroz["lwage"].isna(), "no", "yes").astype(object)
    # Some who work do not tell their wage, so the column does not separate completely.
    works[np.flatnonzero(mroz["lwage"].isna())[:20]] = "yes"
    mroz.assign(works=works).to_csv("t.csv", index=False)
    said = shell.refuses("fit", "t.csv", "--outcome", "lwage")
    assert "name it with --selected if it says who is selected" in said
    assert "pass --on-separation drop" in said
    assert "--min-level-rows" not in said


def test_all_codes_of_an_outcome_that_is_never_missing_are_named_at_once(shell, mroz):
    coded = mroz.assign(lwage=mroz["lwage"].fillna(-99.0))
    coded.loc[np.flatnonzero(coded["lwage"] == -99.0)[:30], "lwage"] = -88.0
    coded.to_csv("t.csv", index=False)
    said = shell.refuses("fit", "t.csv", "--outcome", "lwage")
    assert "-99 in 295 rows and -88 in 30 rows" in said
    assert "pass --na-values lwage=-99,lwage=-88" in said


def test_the_row_of_names_can_be_said(shell, mroz):
    wanted, _ = results(shell, "mroz.csv", "--outcome", "lwage")
    padded = "," * (mroz.shape[1] - 1)
    text = mroz.to_csv(index=False)
    (shell.folder / "padded.csv").write_text(f"Wages of women{padded}\n{text}")
    found, said = results(shell, "padded.csv", "--outcome", "lwage")
    assert estimates(found) == estimates(wanted)
    assert "1 line of titles above the names was skipped." in said
    (shell.folder / "odd.csv").write_text(f"Wages,of women{padded[1:]}\n{text}")
    options = ("--outcome", "lwage", "--header-row", "2")
    found, _ = results(shell, "odd.csv", *options)
    assert estimates(found) == estimates(wanted)
    assert "--header-row 2" in found["command"]
    shell.runs("fit", "odd.csv", *options, "--save", "m.heckmanfa")
    predict = ("predict", "m.heckmanfa", "odd.csv", "--out", "p.csv")
    shell.runs(*predict, "--header-row", "2")
    assert "--header-row" in shell.refuses(*predict, "--header-row", "9999", "--force")
    mroz.to_parquet(shell.folder / "t.parquet")
    said = shell.refuses("fit", "t.parquet", *options)
    assert "--header-row is for text and Excel files" in said
