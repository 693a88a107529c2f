"""Bounds from the command line: the numbers of the functions, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Survey, bounds
from heckmanfa.datasets import load_mroz

NUMBERS = ["low", "high", "se_low", "se_high", "ci_low", "ci_high", "observed"]
RANGE = (-3.0, 4.0)


@pytest.fixture
def women(shell):
    """women.csv: Mroz's women, with groups, a treatment, weights and a design."""
    rng = np.random.default_rng(0)
    frame = load_mroz()[["lwage", "educ", "exper", "kids5", "age"]]
    n = len(frame)
    frame = frame.assign(
        town=rng.choice(["country", "large", "small"], n),
        works=np.where(frame["lwage"].notna(), "yes", "no"),
        grade=pd.cut(frame["lwage"], [-9, 1, 9], labels=["low", "high"]).astype(object),
        trained=rng.choice(["yes", "no"], n),
        count=rng.integers(1, 4, n),
        share=rng.uniform(0.5, 2, n),
        stratum=np.arange(n) % 4,
        village=np.arange(n) % 40,
    )
    frame["exper"] = frame["exper"].astype(float).where(np.arange(n) % 50 > 0)
    frame.to_csv("women.csv", index=False)
    return frame


def trained(frame):
    return frame["trained"] == "yes"


def whole(frame):
    return frame[frame["exper"].notna()].reset_index(drop=True)


def dummies(frame):
    return frame[["exper"]].assign(
        **{f"town[{name}]": (frame["town"] == name).astype(float) for name in ("large", "small")}
    )


CASES = {
    "": lambda f: bounds.mean(f["lwage"]),
    "--range -3 4 --selection higher": lambda f: bounds.mean(
        f["lwage"], y_range=RANGE, selection="higher"
    ),
    "--group town": lambda f: bounds.difference(f["lwage"], f["town"]),
    "--group town --reference town=small --conf-level 0.9": lambda f: bounds.difference(
        f["lwage"], f["town"], reference="small", conf_level=0.9
    ),
    "--group kids5": lambda f: bounds.difference(f["lwage"], f["kids5"]),
    "--above 1": lambda f: bounds.share(f["lwage"], above=1),
    "--above 1 --group town": lambda f: bounds.difference(f["lwage"], f["town"], above=1),
    "--quantile 0.4 --group trained": lambda f: bounds.quantile(
        f["lwage"], 0.4, group=f["trained"]
    ),
    "--quantile 0.2 --range -3 4": lambda f: bounds.quantile(f["lwage"], 0.2, y_range=RANGE),
    "--features exper,town --range -3 4": lambda f: bounds.projection(
        dummies(whole(f)), whole(f)["lwage"], y_range=RANGE
    ),
    "--features town --reference town=small": lambda f: bounds.projection(
        pd.DataFrame(
            {f"town[{name}]": (f["town"] == name).astype(float) for name in ("country", "large")}
        ),
        f["lwage"],
    ),
    "--treated trained --range -3 4": lambda f: bounds.effect(
        f["lwage"], trained(f), y_range=RANGE
    ),
    "--treated trained --by-lot": lambda f: bounds.lee(f["lwage"], trained(f)),
    "--treated trained --by-lot --covariates town,stratum --more-observed treated": lambda f: (
        bounds.lee(
            f["lwage"], trained(f), covariates=f[["town", "stratum"]], more_observed="treated"
        )
    ),
    "--treated trained --by-lot --covariates age,town --bins 3 --n-boot 50 --seed 3": lambda f: (
        bounds.lee(
            f["lwage"],
            trained(f),
            covariates=dummies(f).drop(columns="exper").assign(age=f["age"]),
            bins=3,
            n_boot=50,
            random_state=3,
        )
    ),
    "--instrument educ --bins 4 --n-boot 60 --seed 1": lambda f: bounds.monotone_instrument(
        f["lwage"], f["educ"], bins=4, n_boot=60, random_state=1
    ),
    "--instrument kids5 --falling": lambda f: bounds.monotone_instrument(
        f["lwage"], f["kids5"], increasing=False
    ),
    "--weights count": lambda f: bounds.mean(f["lwage"], sample_weight=f["count"]),
    "--weights share --weight-kind sampling --cluster village": lambda f: bounds.mean(
        f["lwage"], sample_weight=f["share"], weight_kind="sampling", groups=f["village"]
    ),
    "--cluster village,age --above 0.5": lambda f: bounds.share(
        f["lwage"], above=0.5, groups=f[["village", "age"]]
    ),
    "--strata stratum --psu village --weights share --group trained": lambda f: bounds.difference(
        f["lwage"],
        f["trained"],
        groups=f,
        survey=Survey(strata="stratum", psu="village", weights="share"),
    ),
}


@pytest.mark.parametrize("words", CASES)
def test_numbers_are_those_of_the_function(shell, women, words):
    shell.runs("bounds", "women.csv", "--outcome", "lwage", *words.split(), "--json", "b.json")
    found = shell.json("b.json")
    expected = CASES[words](pd.read_csv("women.csv", keep_default_na=True))
    table, numbers = pd.DataFrame(found["bounds"]), expected.tidy()
    np.testing.assert_allclose(
        table[NUMBERS].to_numpy(dtype=float),
        numbers[NUMBERS].replace([np.inf, -np.inf], np.nan).to_numpy(dtype=float),
        rtol=1e-9,
    )
    if "group" in numbers:
        assert table["group"].tolist() == numbers["group"].tolist()
    assert table["quantity"].tolist() == numbers["quantity"].tolist()
    assert found["sentences"] == expected.sentences
    assert found["assumptions"] == expected.assumptions
    assert found["outcome"] == "lwage"


def test_the_share_of_a_class_of_texts_and_of_numbers(shell, women):
    for words, y, of in (
        (("grade", "--of", "high"), women["grade"], "high"),
        (("count", "--of", "2"), women["count"], 2),
    ):
        shell.runs("bounds", "women.csv", "--outcome", *words, "--json", "b.json", "--force")
        found, expected = pd.DataFrame(shell.json("b.json")["bounds"]), bounds.share(y, of=of)
        np.testing.assert_allclose(found[NUMBERS], expected.tidy()[NUMBERS], rtol=1e-12)


def test_a_column_says_who_is_selected_and_zeros_are_no_outcomes(shell, women):
    women.assign(lwage=women["lwage"].fillna(0)).to_csv("zeros.csv", index=False)
    shell.runs(
        *("bounds", "zeros.csv", "--outcome", "lwage", "--selected", "works"),
        *("--group", "town", "--json", "b.json"),
    )
    expected = bounds.difference(women["lwage"], women["town"]).tidy()
    np.testing.assert_allclose(
        pd.DataFrame(shell.json("b.json")["bounds"])[NUMBERS], expected[NUMBERS], rtol=1e-9
    )


def test_a_table_is_read_as_by_other_commands(shell, women):
    """Decimal commas, codes for missing, a total below, sheets, Stata and Parquet."""
    expected = bounds.difference(women["lwage"], women["town"]).tidy()[NUMBERS]
    coded = women.assign(lwage=women["lwage"].fillna(-99))
    total = pd.DataFrame({"lwage": [coded["lwage"].sum()], "town": ["Total"]})
    pd.concat([coded, total]).to_csv("messy.csv", index=False, sep=";", decimal=",")
    pd.concat([coded, total]).to_excel("messy.xlsx", index=False, sheet_name="b")
    women.drop(columns="grade").to_stata("women.dta", write_index=False)
    women.to_parquet("women.parquet")
    messy = ("--na-values", "lwage=-99", "--drop-rows", "town=Total")
    for words in (
        ("messy.csv", *messy, "--decimal", ","),
        ("messy.xlsx", *messy, "--sheet", "b"),
        ("women.dta",),
        ("women.parquet",),
    ):
        given = ("--outcome", "lwage", "--group", "town", "--json", "b.json", "--force")
        said = shell.runs("bounds", *words, *given)
        found = pd.DataFrame(shell.json("b.json")["bounds"])
        np.testing.assert_allclose(found[NUMBERS], expected, rtol=1e-6)
        if len(words) > 1:
            assert "-99 was taken as missing in 'lwage' (325 rows)" in said
    said = shell.runs("bounds", "messy.csv", "--outcome", "lwage", "--decimal", ",")
    assert "--drop-rows town=Total" in said
    coded.to_csv("coded.csv", index=False)
    said = shell.runs("bounds", "coded.csv", "--outcome", "lwage")
    assert "--na-values lwage=-99" in said


def test_rows_without_a_feature_are_left_out_and_said(shell, women):
    said = shell.runs("bounds", "women.csv", "--outcome", "lwage", "--features", "exper,town")
    assert "16 rows left out for lack of a feature" in said
    assert "Without a model, the coefficient of exper in the linear projection" in said


@pytest.mark.parametrize("line", ["", '""', ","])
def test_rows_without_any_value_are_not_taken_for_no_rows(line, shell):
    names = "wage,educ" if line == "," else "wage"
    rows = [f"{number}.5,12" if line == "," else f"{number}.5" for number in range(1, 6)]
    Path("alone.csv").write_text("\n".join([names, *rows[:3], line, line, *rows[3:]]) + "\n")
    said = shell.refuses("bounds", "alone.csv", "--outcome", "wage")
    assert "2 rows of alone.csv have no value in any column" in said


def test_an_assumption_about_a_share_is_said_of_a_share(shell, women):
    asked = ("--outcome", "lwage", "--above", "1", "--selection", "higher")
    said = shell.runs("bounds", "women.csv", *asked)
    assert said.count("rows with an outcome have such a share at least as high") == 2
    assert "have a mean" not in said


def test_the_console_has_the_result_its_assumption_and_a_sentence(shell, women):
    said = shell.runs("bounds", "women.csv", "--outcome", "lwage", "--selection", "higher")
    assert "Bounds of the mean of lwage" in said
    assert "pass --range" in shell.runs("bounds", "women.csv", "--outcome", "lwage")
    low, high = bounds.mean(women["lwage"], selection="higher").tidy().loc[0, ["low", "high"]]
    sentence = said.partition("In a sentence: ")[2].replace("\N{MINUS SIGN}", "-")
    words = f"Without a model, the mean of lwage lies between {low:.3f} and {high:.2f} (95% "
    assert sentence.startswith(words)
    assert "if rows with an outcome have a mean at least as high" in sentence
    share = shell.runs("bounds", "women.csv", "--outcome", "works", "--of", "yes")
    assert "the share of works = yes is 0.568 (95% interval" in share


def test_results_are_written_as_tables_and_pictures(shell, women):
    result = bounds.difference(women["lwage"], women["town"])
    words = ("bounds", "women.csv", "--outcome", "lwage", "--group", "town")
    said = shell.runs(*words, "--out", "b.csv", "--picture", "b.svg")
    assert "table written to b.csv" in said
    table = pd.read_csv("b.csv")
    np.testing.assert_allclose(table[NUMBERS], result.tidy()[NUMBERS], rtol=1e-9)
    assert "<svg" in (shell.folder / "b.svg").read_text(encoding="utf-8")
    shell.runs(*words, "--out", "b.tex", "--picture", "b.png")
    assert "town = large" in (shell.folder / "b.tex").read_text(encoding="utf-8")
    assert (shell.folder / "b.png").read_bytes().startswith(b"\x89PNG")
    status, text = shell(*words, "--json", "-")
    assert status == 0
    assert json.loads(text[text.index("{") :])["title"] == result.title
    assert "exists; pass --force" in shell.refuses(*words, "--out", "b.csv")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--group twon", "'twon'. Did you mean 'town'"),
        ("--features edu", "--features: the data has no column 'edu'"),
        ("--covariates town", "--covariates goes with --treated --by-lot, and not with a mean"),
        ("--by-lot", "--by-lot needs --treated"),
        ("--bins 4", "--bins goes with --instrument or --treated --by-lot"),
        ("--treated trained --group town", "--group goes with"),
        ("--treated trained --quantile 0.5", "--quantile and --treated ask for two"),
        ("--of 1 --above 2", "--of and --above ask for two"),
        ("--above 2 --range 0 1", "--range goes with"),
        ("--treated trained --covariates town", "--covariates goes with"),
        ("--treated town", "--treated: column 'town' must hold 0 and 1"),
        ("--treated trained --by-lot --bins 4", "pass --covariates"),
        ("--treated trained --by-lot --covariates lwage", "--covariates names 'lwage'"),
        ("--treated trained --by-lot --covariates exper", "'exper' is missing in 16 rows"),
        ("--treated trained --by-lot --covariates age,educ", "--bins 5"),
        ("--treated trained --by-lot --more-observed men", "--more-observed must be"),
        ("--instrument town", "--instrument needs numbers"),
        ("--instrument age", "--bins 5"),
        ("--instrument kids5 --n-boot 3", "--n-boot must be"),
        ("--range 0 1", "--range is 0 to 1"),
        ("--range 4 -3", "lower one first"),
        ("--selection hihger", "--selection must be 'higher', 'lower'; got 'hihger'"),
        ("--quantile 3", "--quantile must lie between 0 and 1"),
        ("--conf-level 95", "--conf-level must lie between 0 and 1"),
        ("--group grade", "--group: column 'grade' is missing in 325 rows"),
        ("--group share", "--group has 753 groups"),
        ("--group town --reference town=larg", "'larg' is not a group"),
        ("--group town --reference kids5=1", "--reference names 'kids5'"),
        ("--group lwage", "--group names 'lwage', which is the column of --outcome"),
        ("--weights share", "frequency weights count rows"),
        ("--cluster town --strata stratum", "--strata and --cluster"),
        ("--fpc share", "--fpc is about the design"),
        ("--features lwage", "--features names 'lwage'"),
        ("--features educ,educ2", "'educ2'"),
        ("--out b.pdf", "must end in"),
        ("--picture b.gif", "must end in"),
        ("--json b.pdf", "b.pdf"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(shell, women, words, named):
    error = shell.refuses("bounds", "women.csv", "--outcome", "lwage", *words.split())
    assert named in error


def test_an_outcome_that_holds_texts_or_nothing_is_refused(shell, women):
    assert "--of yes" in shell.refuses("bounds", "women.csv", "--outcome", "works")
    error = shell.refuses("bounds", "women.csv", "--outcome", "grade", "--of", "hihg")
    assert "Did you mean 'high'" in error
    error = shell.refuses("bounds", "women.csv", "--outcome", "lwgae")
    assert "'lwage'" in error
    women.assign(lwage=np.nan, x=1).to_csv("empty.csv", index=False)
    assert "check --outcome" in shell.refuses("bounds", "empty.csv", "--outcome", "lwage")
    assert "no file" in shell.refuses("bounds", "nowhere.csv", "--outcome", "lwage").lower()
