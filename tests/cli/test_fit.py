"""``heckmanfa fit``: what it fits is what Python fits, and what it cannot use it refuses."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanFA, HeckmanLasso
from heckmanfa.analysis import Question, load_model
from heckmanfa.analysis.request import check_question
from heckmanfa.datasets import load_mroz, make_selection

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc"]


def table_of(found):
    return pd.DataFrame(found["estimates"])


def same(found, model):
    mine, theirs = table_of(found), model.tidy()
    assert mine["term"].tolist() == theirs["term"].tolist()
    for column in ("estimate", "std_error"):
        np.testing.assert_allclose(
            mine[column].astype(float), theirs[column], rtol=1e-9, err_msg=column
        )


def test_the_best_subset_by_bic(shell, mroz):
    found, text = shell.results("mroz.csv", "--outcome", "lwage", "--search", "best-subset")
    model = HeckmanBestSubset().fit(mroz[FEATURES], mroz["lwage"])
    same(found, model)
    assert found["predict"] == model.prediction_features_
    assert found["best"]["features"] == model.prediction_features_
    assert f"The search chose the best set, {' + '.join(model.prediction_features_)}," in text
    assert text.index("only as it drives selection") < text.index("kids5")
    assert found["only_select"] == ["age", "kids5", "nwifeinc"]
    assert found["no_evidence"] == ["kids618"]
    assert found["kept_out"] == ["age", "kids5", "kids618", "nwifeinc"]
    assert "753 rows read and used, 428 with lwage." in text
    assert "least squares" in text
    n = len(found["claims"])
    assert f"{n} things may not be claimed: they are in the report (--report)" in text


def test_without_a_search_named_assignments_are_averaged(shell, mroz):
    found, _ = shell.results("mroz.csv", "--outcome", "lwage")
    model = HeckmanAverage().fit(mroz[FEATURES], mroz["lwage"])
    same(found, model)
    assert found["question"]["search"] == "average"
    assert found["command"] == "heckmanfa fit mroz.csv --outcome lwage"
    chances = {one["feature"]: one["bic"] for one in found["inclusion"]}
    assert chances == dict(zip([*FEATURES, "correction"], model.inclusion_["bic"], strict=True))
    assert found["selection"]["chance"] == chances["correction"]
    assert found["selection"]["verdict"] == "no sign"


@pytest.mark.parametrize(
    ("options", "search", "written"),
    [
        (["--honest"], "best-subset", "--search best-subset --honest"),
        (["--criterion", "aic"], "best-subset", "--search best-subset --criterion aic"),
        (["--search", "average"], "average", ""),
        (["--search", "lasso", "--honest"], "lasso", "--search lasso --honest"),
    ],
)
def test_what_is_about_choosing_means_the_best_subset(options, search, written):
    names = {"--honest": {"honest": True}, "--criterion": {"criterion": "aic"}}
    asked = {key: value for one in options for key, value in names.get(one, {}).items()}
    if "--search" in options:
        asked["search"] = options[options.index("--search") + 1]
    question = Question("t.csv", "y", **asked)
    check_question(question)
    assert question.searched == search
    assert question.command() == f"heckmanfa fit t.csv --outcome y {written}".strip()


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (["--search", "none", "--predict-with", "educ,exper"], Heckman(["educ", "exper"])),
        (
            ["--search", "none", "--predict-with", "educ", "--method", "ml"],
            Heckman(["educ"], method="ml"),
        ),
        (
            ["--search", "none", "--predict-with", "educ", "--rho", -0.3],
            Heckman(["educ"], rho=-0.3),
        ),
        (["--search", "fa"], HeckmanFA(random_state=0)),
        (
            ["--search", "fa-star", "--criterion", "bic"],
            HeckmanFA("rank", criterion="bic", random_state=0),
        ),
        (["--search", "correlation", "--seed", 3], HeckmanFA("correlation")),
        (["--criterion", "aic", "--select-only", "age"], HeckmanBestSubset("aic", never=["age"])),
        (["--always", "age", "--robust"], HeckmanAverage(always=["age"], cov_type="robust")),
        (["--rho-range", -0.5, 0.0], HeckmanAverage(rho_range=(-0.5, 0.0))),
        (["--predict-with", "educ,age"], HeckmanAverage(prediction_features=["educ", "age"])),
        (["--search", "lasso"], HeckmanLasso()),
        (["--search", "lasso", "--criterion", "aic"], HeckmanLasso("aic")),
        (["--honest", "--seed", 4], HeckmanBestSubset(honest=True, random_state=4)),
    ],
)
@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_options_are_parameters(shell, mroz, options, model):
    found, _ = shell.results("mroz.csv", "--outcome", "lwage", *options)
    same(found, model.fit(mroz[FEATURES], mroz["lwage"]))


def test_features_and_exclude(shell, mroz):
    found, _ = shell.results(
        "mroz.csv", "--outcome", "lwage", "--features", "educ, exper,age", "--features",
        "kids5", "--exclude", "exper",
    )  # fmt: skip
    assert sorted(one["feature"] for one in found["inclusion"]) == [
        *("age", "correction", "educ", "kids5")
    ]


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_categories_move_as_one_and_what_cannot_be_used_is_named(shell, rich_table):
    found, text = shell.results(
        "towns.csv", "--outcome", "wage", "--selected", "works", "--always", "region",
        "--exclude", "town,weight,share",
    )  # fmt: skip
    assert found["reference_levels"] == {"region": "north"}
    assert {"region[south]", "region[west]"} <= {*table_of(found)["term"]}
    assert "region" in found["predict"]
    assert {*found["columns_left_out"]} == {"woman", "country"}
    assert found["rows_missing"] == {"educ": 2}
    assert found["rows"]["left_out_regressor_missing"] == 2
    assert found["rows"]["total"] == len(rich_table)
    for word in ("woman", "country", "north", "2 left out: they lack a feature (educ: 2)"):
        assert word in text
    filled, _ = shell.results(
        "towns.csv",
        "--outcome",
        "wage",
        "--missing",
        "mean",
        "--exclude",
        "town,weight,works",
    )
    assert filled["rows"]["left_out_regressor_missing"] == 0


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_weights_and_clusters(shell, rich_table):
    clean = rich_table.dropna(subset=["educ"])
    X = clean[["educ", "exper", "kids5", "age"]]
    common = ["towns.csv", "--outcome", "wage", "--features", "educ,exper,kids5,age",
              "--search", "none", "--predict-with", "educ,exper"]  # fmt: skip
    found, _ = shell.results(*common, "--weights", "weight")
    same(found, Heckman(["educ", "exper"]).fit(X, clean["wage"], sample_weight=clean["weight"]))
    found, _ = shell.results(*common, "--cluster", "town")
    clustered = Heckman(["educ", "exper"], cov_type="cluster")
    same(found, clustered.fit(X, clean["wage"], groups=clean["town"]))
    found, _ = shell.results(*common, "--weights", "share", "--weight-kind", "sampling")
    weighted = Heckman(["educ", "exper"], cov_type="robust", weight_kind="sampling")
    same(found, weighted.fit(X, clean["wage"], sample_weight=clean["share"]))


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_with_sampling_weights_effects_are_averaged_and_chances_withheld(shell, rich_table):
    clean = rich_table.dropna(subset=["educ"])
    names = ["educ", "exper", "kids5", "age"]
    found, text = shell.results(
        "towns.csv", "--outcome", "wage", "--features", ",".join(names),
        "--weights", "share", "--weight-kind", "sampling",
    )  # fmt: skip
    model = HeckmanAverage(cov_type="robust", weight_kind="sampling")
    same(found, model.fit(clean[names], clean["wage"], sample_weight=clean["share"]))
    assert found["inclusion"] is None
    assert found["best"] is None
    assert [one["chance"] for one in found["roles"]] == [None] * 4
    assert found["predict"] == names
    assert " chance " not in text.split("feature", 1)[1].split("Did selection", 1)[0].split("No")[0]
    assert "no chances are given" in text


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.dta", "t.xlsx", "t.tsv", "t.csv"])
def test_every_kind_of_file(shell, mroz, name):
    path = shell.folder / name
    if name.endswith("parquet"):
        mroz.to_parquet(path)
    elif name.endswith("feather"):
        mroz.to_feather(path)
    elif name.endswith("dta"):
        mroz.to_stata(path, write_index=False)
    elif name.endswith("xlsx"):
        mroz.to_excel(path, index=False)
    else:
        mroz.to_csv(path, sep="\t" if name.endswith("tsv") else ";", index=False)
    found, _ = shell.results(name, "--outcome", "lwage")
    same(found, HeckmanAverage().fit(mroz[FEATURES], mroz["lwage"]))


def test_the_command_in_the_results_asks_the_same(shell, mroz):
    import shlex

    found, _ = shell.results(
        "mroz.csv", "--outcome", "lwage", "--select-only", "age", "--select-only", "kids5",
        "--rho-range", -0.6, 0.2, "--seed", 3, "--criterion", "aic",
    )  # fmt: skip
    words = shlex.split(found["command"])
    assert words[:2] == ["heckmanfa", "fit"]
    again, _ = shell.results(*words[2:])
    assert again["estimates"] == found["estimates"]
    assert again["command"] == found["command"]


def test_files_are_written_together_and_not_replaced_unasked(shell, mroz):
    options = ["--report", "out.html", "--save", "out.heckmanfa", "--json", "out.json"]
    text = shell.runs("fit", "mroz.csv", "--outcome", "lwage", *options)
    assert {"out.html", "out.heckmanfa", "out.json"} <= shell.files()
    assert "report written to out.html" in text
    assert load_model(shell.folder / "out.heckmanfa").model.prediction_features_
    for option, path in zip(options[::2], options[1::2], strict=True):
        said = shell.refuses("fit", "mroz.csv", "--outcome", "lwage", option, path)
        assert f"{path} exists" in said
        assert "--force" in said
    shell.runs("fit", "mroz.csv", "--outcome", "lwage", *options, "--force")


# What cannot be used. ---------------------------------------------------------------------------


NAMING = (
    *("--features", "--exclude", "--predict-with", "--always", "--select-only", "--categorical"),
    *("--numeric", "--weights", "--cluster", "--selected"),
)
WORDS = ("--search", "--criterion", "--method", "--missing", "--weight-kind")
MROZ, TOWNS = "mroz.csv --outcome lwage", "towns.csv --outcome wage"


@pytest.fixture
def unusable(shell, mroz, rich_table):
    """Tables of which some cannot be used."""
    every_other = np.arange(len(mroz)) % 2 == 0
    educ = mroz["educ"].astype(object)
    educ.iloc[[16, 202]] = ["many", "few?"]
    gaps = mroz.assign(age=mroz["age"].mask(every_other), educ=mroz["educ"].where(every_other))
    tables = {
        "empty": mroz.assign(lwage=np.nan),
        "head": mroz.head(0),
        "text": mroz.assign(educ=educ),
        "gaps": gaps,
        "all": rich_table.assign(works=1),
    }
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    broken = {"nothing.csv": b"", "broken.parquet": b"PAR1 not really", "table.sas": b"x"}
    for name, content in (broken | {"broken.xlsx": b"PK not really"}).items():
        (shell.folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mroz.csv --outcome lwages", ["Did you mean 'lwage'"]),
        *(
            (f"{MROZ} {option} educc", [f"{option}: ", "no column 'educc'. Did you mean 'educ'"])
            for option in NAMING
        ),
        *((f"{MROZ} {option} bests", [f"{option} must be one of"]) for option in WORDS),
        ("mroz.csv --outcome kids5", ["never missing in 753 rows", "hold 0", "--selected"]),
        ("empty.csv --outcome lwage", ["missing in all 753 rows"]),
        ("head.csv --outcome lwage", ["row"]),
        ("nothing.csv --outcome lwage", ["nothing.csv"]),
        ("broken.parquet --outcome lwage", ["broken.parquet"]),
        ("broken.xlsx --outcome lwage", ["broken.xlsx"]),
        ("mros.csv --outcome lwage", ["Did you mean 'mroz.csv'"]),
        ("table.sas --outcome lwage", ["table.sas"]),
        (
            "text.csv --outcome lwage",
            ["educ", "2 of 753", "row 17", "many", "row 203", "few?", "--categorical"],
        ),
        ("gaps.csv --outcome lwage", ["every one of the 753 rows lacks", "--missing mean"]),
        (f"{MROZ} --rho-range 0.97 0.99", ["rho in [0.97, 0.99]", "--rho-range"]),
        (f"{MROZ} --search none --honest", ["--search is none"]),
        (f"{MROZ} --search average --honest", ["--honest is about choosing", "--search average"]),
        (f"{MROZ} --search average --criterion bic", ["--criterion is about choosing"]),
        (f"{MROZ} --always lwage", ["which is the column of --outcome"]),
        (f"{MROZ} --exclude educ --always educ", ["not among the features"]),
        (f"{MROZ} --start 0.5", ["add --method ml"]),
        (f"{MROZ} --method ml --start -1", ["rho inside (-1, 1)"]),
        (f"{TOWNS} --selected region", ["'north'"]),
        ("all.csv --outcome wage --selected works", ["all 753 rows are selected"]),
        (f"{TOWNS} --weights share", ["--weight-kind sampling"]),
        (
            f"{TOWNS} --search lasso --features educ,kids5,region",
            ["column 'region'", "--search best-subset, or leave the column out"],
        ),
    ],
)
@pytest.mark.usefixtures("unusable")
def test_what_cannot_be_used_is_refused_by_name(shell, words, said):
    error = shell.refuses("fit", *words.split(), "--report", "r.html", "--json", "r.json")
    for word in said:
        assert word in error


def test_a_run_that_fails_late_leaves_no_file(shell, mroz, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("disk full")

    monkeypatch.setattr("heckmanfa.cli.run_fit.save_model", broken)
    before = shell.files()
    status, text = shell(
        "fit", "mroz.csv", "--outcome", "lwage", "--json", "a.json", "--save", "a.heckmanfa"
    )
    assert status == 1
    assert "disk full" in text
    assert "--debug" in text
    assert shell.files() == before
    with pytest.raises(RuntimeError, match="disk full"):
        shell("--debug", "fit", "mroz.csv", "--outcome", "lwage", "--save", "a.heckmanfa")


@pytest.mark.usefixtures("untrained")
def test_the_examples_in_the_help_run(shell):
    import shlex

    for command in ("simulate", "fit", "predict", "compare", "demo", "reproduce"):
        text = shell.runs(command, "--help")
        example = re.search(r"Example: heckmanfa (.*?)(?: \(heckmanfa| ╭|$)", text)
        assert example is not None, text
        words = shlex.split(example.group(1))
        assert words[0] == command
        if command == "compare":
            words += ["--repeats", "1", "--folds", "2", "--no-ru"]
        if command != "reproduce":  # tested with its data, in test_cli.py
            text = shell.runs(*words)


def test_names_with_commas_go_in_quotes(shell):
    data = make_selection(400, 3, 2, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a,b", "c", "d"]).assign(y=data.y)
    frame.to_csv("t.csv", index=False)
    found, _ = shell.results("t.csv", "--outcome", "y", "--select-only", '"a,b"')
    assert found["kept_out"][0] == "a,b"


def test_the_outcome_may_be_named_in_any_letters(shell):
    frame = load_mroz()[["lwage", *FEATURES]].rename(columns={"lwage": "log wage (€)"})
    frame.to_csv("t.csv", index=False)
    found, _ = shell.results("t.csv", "--outcome", "log wage (€)")
    assert found["question"]["outcome"] == "log wage (€)"


def test_rows_are_worked_on_by_torch_where_a_device_is_named(shell, mroz):
    pytest.importorskip("torch")
    found, _ = shell.results("mroz.csv", "--outcome", "lwage", "--device", "cpu:0")
    same(found, HeckmanAverage().fit(mroz[FEATURES], mroz["lwage"]))
    assert "--device cpu:0" in found["command"]


def test_a_device_that_is_not_there_is_refused(shell, mroz):
    pytest.importorskip("torch")
    said = shell.refuses("fit", "mroz.csv", "--outcome", "lwage", "--device", "cuda:77")
    assert "there is no device 'cuda:77' here" in said


def test_a_table_that_is_not_loaded_cannot_go_to_a_device(shell, mroz):
    pytest.importorskip("torch")
    mroz[[*FEATURES, "lwage"]].to_parquet("mroz.parquet")
    options = ("--outcome", "lwage", "--device", "cpu:0", "--stream-above", "0")
    assert "--stream-above" in shell.refuses("fit", "mroz.parquet", *options)


def greene_table(shell):
    """greene.csv: the wage of Mroz's women by Greene's equations, which have two maxima."""
    mroz = load_mroz()
    table = pd.DataFrame({"wage": mroz["wage"], "age": mroz["age"], "age2": mroz["age"] ** 2})
    table["faminc"], table["educ"], table["city"] = mroz["faminc"], mroz["educ"], mroz["city"]
    table["kids"] = ((mroz["kids5"] + mroz["kids618"]) > 0).astype(int)
    table.to_csv(shell.folder / "greene.csv", index=False)
    return "greene.csv", "--outcome", "wage", "--predict-with", "educ,city", "--search", "none"


def test_a_start_fits_the_other_maximum_and_every_output_says_that_there_are_two(shell):
    asked = greene_table(shell)
    found = {}
    for name, more in (("low", ()), ("high", ("--start", "0.9"))):
        text = shell.runs(
            "fit",
            *asked,
            "--method",
            "ml",
            *more,
            "--json",
            f"{name}.json",
            "--report",
            f"{name}.html",
        )
        found[name] = shell.json(f"{name}.json")
        maxima = next(one for one in found[name]["checks"] if one["key"] == "maxima")
        assert maxima["level"] == "problem"
        assert f"{maxima['level']} {maxima['title'].removesuffix('.')}" in text
        page = (shell.folder / f"{name}.html").read_text()
        assert maxima["title"].removesuffix(".") in page
    low, high = found["low"], found["high"]
    assert low["second_maximum"]["rho"] == pytest.approx(high["rho"], abs=1e-5)
    assert high["second_maximum"]["log_likelihood"] == pytest.approx(low["log_likelihood"])
    assert high["log_likelihood"] > low["log_likelihood"] + 1
    assert high["converged"] is True
    assert "--start 0.9" in high["command"]
    page = re.sub(r"<[^>]+>", "", (shell.folder / "high.html").read_text())
    assert "rho = 0.9" in page
    verdicts = {one["diagnostic"]: one for one in low["diagnostics"]}
    assert verdicts["maxima of the likelihood"]["verdict"] == "problem"
    assert "lower of two maxima" in verdicts["maxima of the likelihood"]["meaning"]
    verdicts = {one["diagnostic"]: one["verdict"] for one in high["diagnostics"]}
    assert (verdicts["maxima of the likelihood"], verdicts["rho"]) == ("caution", "problem")


@pytest.mark.parametrize("name", ["leak.csv", "leak.parquet"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_a_copy_of_the_outcome_is_refused_by_name(shell, mroz, name, streamed, missing):
    """Missing where the outcome is; to put the mean in would let it predict perfectly."""
    table = mroz.assign(pay=np.exp(1.0) * mroz["lwage"] - 4.0)
    if name.endswith(".csv"):
        table.to_csv(shell.folder / name, index=False)
    else:
        table.to_parquet(shell.folder / name, row_group_size=100)
    more = ("--stream-above", "0") if streamed else ()
    said = shell.refuses("fit", name, "--outcome", "lwage", "--missing", missing, *more)
    assert "'pay' is" in said
    assert "copy of the outcome" in said
    assert "--missing mean" not in said
    assert "eave such columns out" in said


def test_a_column_known_only_for_the_selected_is_refused_whatever_is_put_in(shell, mroz):
    rng = np.random.default_rng(0)
    hours = np.where(mroz["lwage"].isna(), np.nan, rng.integers(1, 60, len(mroz)))
    kind = np.where(mroz["lwage"].isna(), None, rng.choice(["day", "night"], len(mroz)))
    mroz.assign(hours=hours).to_csv(shell.folder / "hours.csv", index=False)
    mroz.assign(shift=kind).to_csv(shell.folder / "shift.csv", index=False)
    for missing in ("drop", "mean"):
        for name in ("hours", "shift"):
            said = shell.refuses("fit", f"{name}.csv", "--outcome", "lwage", "--missing", missing)
            assert f"'{name}' is missing in exactly the 325 rows that are not selected" in said
            assert "--exclude" in said
    shell.runs("fit", "hours.csv", "--outcome", "lwage", "--exclude", "hours")


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_a_copy_of_the_outcome_with_a_few_more_gaps_is_refused(shell, mroz, missing):
    pay = 2 * mroz["lwage"]
    pay[[3, 50, 200]] = np.nan
    mroz.assign(pay=pay).to_csv(shell.folder / "pay.csv", index=False)
    said = shell.refuses("fit", "pay.csv", "--outcome", "lwage", "--missing", missing)
    assert "'pay' is missing in all 325 rows that are not selected (and in 3 that are)" in said
    assert "--exclude" in said
    assert "--missing mean" not in said


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_a_copy_of_the_outcome_is_seen_in_the_rows_where_it_is_known(shell, mroz, missing):
    """Also where it holds something in rows without an outcome, and a mean in its gaps."""
    pay = (3 - 2 * mroz["lwage"]).fillna(1.5)
    pay[[3, 50, 200, 600, 700]] = np.nan
    mroz.assign(pay=pay).to_csv(shell.folder / "pay.csv", index=False)
    said = shell.refuses("fit", "pay.csv", "--outcome", "lwage", "--missing", missing)
    assert "'pay' is an exact copy of the outcome in the 425 rows that have both" in said
    assert "--exclude" in said


def test_an_outcome_that_is_nearly_reproduced_is_a_problem_in_every_output(shell, mroz):
    noise = 1e-4 * np.random.default_rng(0).normal(size=len(mroz))
    pay = mroz["lwage"].fillna(mroz["lwage"].mean()) + noise
    mroz.assign(pay=pay).to_csv(shell.folder / "near.csv", index=False)
    found, text = shell.results("near.csv", "--outcome", "lwage", "--report", "near.html")
    check = found["checks"][0]
    assert (check["key"], check["level"]) == ("leakage", "problem")
    assert f"problem {check['title'].removesuffix('.')}" in text
    assert any(one["diagnostic"] == "R2 of the outcome" for one in found["diagnostics"])
    assert found["not_to_be_claimed"][0].startswith("That the features predict as well as it seems")
    assert check["title"].removesuffix(".") in (shell.folder / "near.html").read_text()


@pytest.mark.usefixtures("mroz")
def test_an_average_says_chances(shell):
    found, text = shell.results("mroz.csv", "--outcome", "lwage", "--search", "average")
    chances = {row["feature"]: row["bic"] for row in found["inclusion"]}
    assert chances["educ"] > 0.99
    assert "predicts educ >99%" in text
    assert "cannot be told: only as it drives selection" in text
    assert found["answer"]["headline"].startswith("educ and exper predict lwage.")
    assert found["predict"] == ["educ", "exper"]
    assert found["kept_out"] == []
    assert "excluded features" not in text
    assert found["bic"] is None
    # No feature is kept out of all assignments.
    assert found["only_select"] == found["kept_out"] == found["no_evidence"] == []
