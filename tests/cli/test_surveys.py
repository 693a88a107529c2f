"""Two clusterings and the design of a survey on the command line and in `analyse`."""

from __future__ import annotations

import html
import shlex

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, Survey
from heckmanfa.analysis import analyse, compare_methods
from heckmanfa.analysis.refits import HeldOut
from heckmanfa.data.scan.scanning import scan
from heckmanfa.errors import InputError
from heckmanfa.report import write_report

N = 900
ASKED = ("--outcome", "pressure", "--search", "none", "--predict-with", "age,salt")
FEATURES = ["age", "salt", "distance"]


def people() -> pd.DataFrame:
    """Draw people in villages of regions, interviewed in some month, without all their outcomes."""
    source = np.random.default_rng(2)
    region, village = source.integers(0, 6, N), source.integers(0, 4, N)
    alike = 0.4 * source.normal(size=(6, 4))[region, village]
    table = pd.DataFrame({"age": source.uniform(20, 70, N).round(), "salt": source.normal(size=N)})
    table["distance"] = source.exponential(2, N)
    healthy = source.normal(size=N) + alike
    comes = 0.9 + 0.02 * (table["age"] - 45) - 0.4 * table["distance"] + healthy > 0
    pressure = 120 + 0.5 * (table["age"] - 45) + 3 * table["salt"] - 6 * healthy
    table["pressure"] = (pressure + 8 * source.normal(size=N)).where(comes)
    return table.assign(
        region=np.array([*"abcdef"])[region],
        village=village,
        w=source.uniform(50, 200, N).round(1),
        there=40 + 5 * region,
        rural=np.where(source.uniform(size=N) < 0.6, "yes", "no"),
        asker=source.integers(0, 45, N),
        month=source.integers(0, 60, N),
    )


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture
def files(shell, table):
    table.to_csv("people.csv", index=False)
    table.to_parquet("people.parquet")
    return shell


CLUSTERS = (*ASKED, "--features", "age,salt,distance", "--cluster", "asker,month")


def agree(found, model):
    """Estimates of JSON have the coefficients and standard errors of a model."""
    known = model.tidy().set_index(["equation", "term"])
    rows = pd.DataFrame(found["estimates"]).set_index(["equation", "term"])
    assert {*known.index} == {*rows.index}
    for column in ("estimate", "std_error", "p_value", "ci_low", "ci_high"):
        values = rows[column].astype(float).reindex(known.index)
        np.testing.assert_allclose(values, known[column], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("where", [("people.csv",), ("people.parquet", "--stream-above", "0")])
def test_errors_are_clustered_by_two_columns(files, table, where):
    found, text = files.results(*where, *CLUSTERS, "--report", "out.html")
    model = Heckman(["age", "salt"], cov_type="cluster").fit(
        table[FEATURES], table["pressure"], groups=table[["asker", "month"]]
    )
    agree(found, model)
    counts = table["asker"].nunique(), table["month"].nunique()
    assert counts == (45, 60)
    assert found["clusters"] == [
        {"column": "asker", "number": 45},
        {"column": "month", "number": 60},
    ]
    assert found["reference_distribution"] == "t(44)"
    assert "Standard errors: cluster (45 clusters of asker and 60 of month)." in text
    page = " ".join(html.unescape((files.folder / "out.html").read_text("utf-8")).split())
    assert "rows of the same asker or month allowed to be dependent; 45 and 60" in page
    assert "Errors are clustered by two columns here, and the programs of a report by one." in page
    assert "cluster=['asker', 'month']" in page
    assert "--cluster asker --cluster month" in found["command"]


def test_two_clusterings_in_python(table, tmp_path):
    used = table[[*FEATURES, "pressure", "asker", "month"]]
    common = {"outcome": "pressure", "predict_with": ["age", "salt"]}
    both = analyse(used, search="none", cluster=("asker", "month"), **common)
    assert both.clusters == [("asker", 45), ("month", 60)]
    assert both.evidence.naming.clusterings == ("asker", "month")
    searched = analyse(used, cluster=("asker", "month"), **common)
    write_report(searched, tmp_path / "out.html")
    page = " ".join(html.unescape((tmp_path / "out.html").read_text("utf-8")).split())
    assert "A bootstrap draws whole clusters, and errors are clustered by two columns" in page


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        (
            "asker,month,village",
            "--cluster names 3 columns, and errors are clustered by one or two",
        ),
        ("asker,asker", "--cluster names 'asker' twice"),
        ("asker,mnth", "--cluster: the data has no column 'mnth'. Did you mean 'month'?"),
        ("asker,age", "--features names 'age', which is the column of --cluster"),
        ("asker,hole", "--cluster: column 'hole' is missing in 1 rows"),
    ],
)
def test_clusterings_that_cannot_be_used_are_refused(files, table, clusters, said):
    table.assign(hole=table["month"].where(table.index > 0)).to_csv("people.csv", index=False)
    assert said in files.refuses("fit", "people.csv", *CLUSTERS[:-1], clusters)
    status, text = files("check", "people.csv", *CLUSTERS[:-1], clusters)
    # A gap is found in the table; names are wrong before it is looked at.
    assert status == (0 if "missing" in said else 2)
    assert said in text


def design(**changed) -> Survey:
    known = {"strata": "region", "psu": "village", "weights": "w", "fpc": "there", "nest": True}
    return Survey(**known | changed)


BASE = (*ASKED, "--features", "age,salt,distance")
NAMED = ("--strata", "region", "--psu", "village", "--weights", "w", "--nest")
DESIGNED = (*BASE, *NAMED, "--fpc", "there")
COLUMNS = [*FEATURES, "region", "village", "w", "there"]


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("where", [("people.csv",), ("people.parquet", "--stream-above", "0")])
def test_standard_errors_are_by_the_design(files, table, where, method):
    found, text = files.results(*where, *DESIGNED, "--method", method, "--report", "out.html")
    model = Heckman(["age", "salt"], cov_type=design(), method=method)
    model.fit(table[COLUMNS], table["pressure"])
    agree(found, model)
    assert found["design"] == {
        "strata": {"column": "region", "number": 6},
        "psu": {"column": "village", "number": 24},
        "degrees_of_freedom": 18,
        "strata_of_one_psu": 0,
        "fpc": "there",
        "nest": True,
        "single_psu": "error",
        "subpop": None,
        "replicate_weights": None,
    }
    assert found["standard_errors"] == "survey"
    assert found["reference_distribution"] == "t(18)"
    assert found["clusters"] is None
    assert found["weights"]["kind"] == "sampling"
    said = "Standard errors: survey (24 sampling units in 6 strata; 18 degrees of freedom)."
    assert said in text
    assert "Weights w are sampling weights" in text
    page = " ".join(html.unescape((files.folder / "out.html").read_text("utf-8")).split())
    assert "Survey: by the design, with 24 sampling units in 6 strata." in page
    assert (
        "Strata region, sampling units village (labels start again in each stratum), finite "
        "populations by there; 18 degrees of freedom." in page
    )
    assert "by the design of a survey here, which only Python is told" in page
    assert "--strata region --psu village --fpc there --nest" in found["command"]


@pytest.mark.parametrize("where", [("people.csv",), ("people.parquet", "--stream-above", "0")])
def test_a_subpopulation_keeps_the_design_of_everybody(files, table, where):
    found, text = files.results(*where, *DESIGNED, "--subpop", "rural", "--method", "ml")
    rows = table.assign(rural=table["rural"] == "yes")
    model = Heckman(["age", "salt"], cov_type=design(subpop="rural"), method="ml")
    model.fit(rows[[*COLUMNS, "rural"]], table["pressure"])
    agree(found, model)
    outside = int((table["rural"] == "no").sum())
    assert found["rows"]["left_out_subpopulation"] == outside
    assert "outside of the subpopulation" in text
    table.assign(rural=table["age"]).to_parquet("odd.parquet")
    for name in ("odd.parquet", "people.parquet"):
        named = "rural" if name == "odd.parquet" else "asker"
        words = (*DESIGNED, "--subpop", named, "--stream-above", "0")
        error = files.refuses("fit", name, *words)
        assert f"--subpop: column '{named}' must hold 0 and 1" in error


REPLICATES = [f"rw{number}" for number in range(8)]
BY_JACKKNIFE = ("--weights", "w", "--replicate-weights", "rw*", "--replicate-kind", "jackknife")


@pytest.fixture(scope="module")
def replicated(table) -> pd.DataFrame:
    """The same people, with weights of a jackknife that deletes an eighth of the villages each."""
    village = 4 * table["region"].map("abcdef".index) + table["village"]
    weights = {
        name: np.where(village % 8 == number, 0.0, table["w"] * 8 / 7)
        for number, name in enumerate(REPLICATES)
    }
    used = table.drop(columns=["region", "village", "there", "asker", "month"])
    return used.assign(**weights)


def by_jackknife(**changed) -> Survey:
    known = {"weights": "w", "replicate_weights": "rw*", "replicate_kind": "jackknife"}
    return Survey(**known | changed)


@pytest.mark.parametrize("where", [("people.csv",), ("people.parquet", "--stream-above", "0")])
def test_standard_errors_are_by_replicate_weights(files, replicated, where):
    replicated.to_csv("people.csv", index=False)
    replicated.to_parquet("people.parquet")
    # No feature is named: neither weights nor who is in the subpopulation are among them.
    asked = (*ASKED, *BY_JACKKNIFE, "--replicate-mse", "--subpop", "rural")
    found, text = files.results(*where, *asked, "--report", "out.html", "--save", "m.heckmanfa")
    survey = by_jackknife(mse=True, subpop="rural")
    model = Heckman(["age", "salt"], cov_type=survey)
    X = replicated.assign(rural=replicated["rural"] == "yes").drop(columns="pressure")
    agree(found, model.fit(X, replicated["pressure"]))
    assert found["design"]["replicate_weights"] == {
        "columns": ["rw*"],
        "number": 8,
        "kind": "jackknife",
        "fay": 0.0,
        "scale": None,
        "mse": True,
    }
    assert found["reference_distribution"] == "t(7)"
    assert "Standard errors: survey (8 replicate weights; 7 degrees of freedom)." in text
    page = " ".join(html.unescape((files.folder / "out.html").read_text("utf-8")).split())
    assert "Survey: by 8 replicate weights. Only the fitted model was estimated again" in page
    assert "Replicate weights rw*, a jackknife, squares about the estimate" in page
    assert "replicate_weights=['rw*'], replicate_kind='jackknife', replicate_mse=True" in page
    # The command asks the question again, and the file of the model predicts.
    command = shlex.split(found["command"])[2:]
    again, _ = files.results(*command, *where[1:])
    assert again["estimates"] == found["estimates"]
    files.runs("predict", "m.heckmanfa", where[0], "--out", "p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv").iloc[:, 0], model.predict(X), rtol=1e-9)


def test_options_of_replicate_weights_are_those_of_a_survey(replicated):
    rows = replicated.drop(columns=["rural", *REPLICATES[4:]])
    common = {"outcome": "pressure", "search": "none", "predict_with": ["age", "salt"]}
    named = {"weights": "w", "replicate_weights": REPLICATES[:4], "replicate_kind": "brr"}
    done = analyse(rows, **common, **named, fay=0.3, replicate_scale=0.2)
    survey = Survey(
        *(None, None, "w"),
        replicate_weights=REPLICATES[:4],
        replicate_kind="brr",
        fay=0.3,
        scale=0.2,
    )
    assert done.question.survey == survey
    model = Heckman(["age", "salt"], cov_type=survey)
    model.fit(rows.drop(columns="pressure"), rows["pressure"])
    np.testing.assert_allclose(done.estimates["std_error"], model.tidy()["std_error"], rtol=1e-9)


def test_scanned_replicate_weights_are_those_of_the_question(replicated, tmp_path):
    replicated.to_parquet(tmp_path / "people.parquet")
    rows = scan(tmp_path / "people.parquet", "pressure", FEATURES, survey=by_jackknife())
    done = analyse(rows, search="none", predict_with=["age", "salt"])
    model = Heckman(["age", "salt"], cov_type=by_jackknife())
    model.fit(replicated[[*FEATURES, "w", *REPLICATES]], replicated["pressure"])
    np.testing.assert_allclose(done.estimates["std_error"], model.tidy()["std_error"], rtol=1e-7)
    rows = scan(
        *(tmp_path / "people.parquet", "pressure", FEATURES),
        survey=by_jackknife(rscales=(0.9,) * 8),
    )
    with pytest.raises(InputError, match="rscales have no option"):
        analyse(rows, search="none")


def test_a_search_is_not_repeated_with_replicate_weights(files, replicated):
    replicated.to_csv("people.csv", index=False)
    words = ("people.csv", "--outcome", "pressure", "--exclude", "rural", *BY_JACKKNIFE)
    error = files.refuses("fit", *words)
    assert "--search none (and --predict-with) or --search best-subset" in error
    found, text = files.results(*words, "--search", "best-subset", "--report", "out.html")
    survey = by_jackknife()
    X = replicated.drop(columns=["pressure", "rural"])
    agree(found, HeckmanBestSubset(cov_type=survey).fit(X, replicated["pressure"]))
    # Neither an average nor halves of the rows would be taken.
    assert "--search average" not in text
    assert "--honest" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--replicate-kind", "brr"), "--replicate-kind is about replicate weights: name their"),
        (("--fay", "0.5"), "--fay is about replicate weights: name their columns with --replicate"),
        ((*BY_JACKKNIFE[2:],), "--replicate-weights need --weights, the column of full-sample"),
        ((*BY_JACKKNIFE[:4],), "--replicate-weights need --replicate-kind, which the survey's"),
        ((*BY_JACKKNIFE, "--fay", "0.5"), "--fay is a factor of --replicate-kind brr in [0, 1)"),
        ((*BY_JACKKNIFE, "--replicate-scale", "0"), "--replicate-scale must be above zero; got 0"),
        ((*BY_JACKKNIFE, "--robust"), "--replicate-weights and --robust ask for two kinds"),
        ((*BY_JACKKNIFE, "--features", "age,rw1"), "'rw1', which is the column of --replicate"),
        ((*BY_JACKKNIFE[:3], "rep*", *BY_JACKKNIFE[4:]), "no column is named like 'rep*'"),
        ((*BY_JACKKNIFE[:3], "rw1,rw9", *BY_JACKKNIFE[4:]), "has no column 'rw9'. Did you mean"),
        ((*BY_JACKKNIFE[:3], "pres*", *BY_JACKKNIFE[4:]), "'pressure', which is the column of"),
        ((*BY_JACKKNIFE[:3], "rw1,rural", *BY_JACKKNIFE[4:]), "--replicate-weights needs numbers"),
    ],
)
def test_replicate_weights_that_cannot_be_used_are_refused(files, replicated, words, said):
    replicated.to_csv("people.csv", index=False)
    asked = ("people.csv", *ASKED, *words)
    assert said in files.refuses("fit", *asked)
    assert said in files("check", *asked)[1]


def test_text_in_place_of_replicate_weights_is_refused_in_passes(files, replicated):
    replicated.assign(rw3="heavy").to_parquet("people.parquet")
    error = files.refuses("fit", "people.parquet", *ASKED, *BY_JACKKNIFE, "--stream-above", "0")
    assert "--replicate-weights: column 'rw3' is text" in error


def test_units_whose_rows_lack_a_feature_count_in_the_design(files, table):
    gone = (table["region"] == "a") & (table["village"] == 1)
    holes = table.assign(salt=table["salt"].mask(gone))
    holes.to_csv("people.csv", index=False)
    found, _ = files.results("people.csv", *DESIGNED)
    equations = "pressure ~ age + salt", "~ age + salt + distance"
    model = Heckman.from_formula(*equations, holes, cov_type=design())
    assert found["design"]["psu"]["number"] == model.fit_.design.n_psu == 24
    mine = pd.DataFrame(found["estimates"])["std_error"].astype(float)
    np.testing.assert_allclose(mine, model.tidy()["std_error"], rtol=1e-7)


@pytest.mark.parametrize("kind", ["certainty", "centered"])
def test_strata_of_one_unit_are_treated_as_asked(files, table, kind):
    alone = table[(table["region"] != "a") | (table["village"] == 1)]
    alone.to_csv("people.csv", index=False)
    words = ("people.csv", *BASE, *NAMED)
    error = files.refuses("fit", *words)
    assert "the stratum 'a' has a single primary sampling unit" in error
    assert "or use --single-psu certainty or --single-psu centered" in error
    found, _ = files.results(*words, "--single-psu", kind)
    model = Heckman(["age", "salt"], cov_type=design(fpc=None, single_psu=kind))
    agree(found, model.fit(alone[COLUMNS[:-1]], alone["pressure"]))
    assert found["design"]["strata_of_one_psu"] == 1


KINDS = {
    "average": {},
    "best-subset": {"search": "best-subset"},
    "binary": {"outcome": "high", "outcome_kind": "binary", "search": "none"},
    "binary searched": {"outcome": "high", "outcome_kind": "binary"},
    "ordered": {"outcome": "grade", "outcome_kind": "ordered"},
    "series": {"method": "series"},
    "treatment": {"outcome": "everyone", "model": "treatment", "treated": "pill"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_takes_a_design(table, tmp_path, kind):
    seen = table["pressure"].notna()
    rows = table[[*COLUMNS, "pressure"]].assign(
        high=(table["pressure"] > 125).where(seen).astype(float),
        grade=pd.cut(table["pressure"], 3, labels=False),
        everyone=table["pressure"].fillna(120),
        pill=seen.astype(int),
    )
    asked = {"outcome": "pressure", "predict_with": ["age", "salt"]} | KINDS[kind]
    named = {"strata": "region", "psu": "village", "weights": "w", "nest": True}
    spare = {"high", "grade", "everyone", "pill", "pressure", "there"}
    extra = spare - {value for value in asked.values() if isinstance(value, str)}
    analysis = analyse(rows.drop(columns=[*extra]), **asked, **named)
    fit = analysis.model.fit_
    assert fit.spec.cov_type == "survey"
    assert (fit.design.n_psu, fit.design.n_strata, fit.design.df) == (24, 6, 18)
    assert {*analysis.feature_columns} == {*FEATURES}
    write_report(analysis, tmp_path / "out.html")
    assert "24 sampling units in 6 strata" in (tmp_path / "out.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--strata", "regon"), "--strata: the data has no column 'regon'. Did you mean 'region'?"),
        (("--psu", "villag"), "--psu: the data has no column 'villag'. Did you mean 'village'"),
        (("--subpop", "rural"), "--subpop is about the design of a survey: name its strata with"),
        (("--single-psu", "centered"), "--single-psu is about the design of a survey"),
        (("--psu", "village", "--cluster", "asker"), "--psu and --cluster ask for two kinds"),
        (("--strata", "region", "--robust"), "--strata and --robust ask for two kinds"),
        (("--strata", "region", "--nest"), "labels of --psu start again in each of --strata"),
        (("--strata", "region", "--psu", "village"), "if labels start again in each stratum, use "),
        (("--psu", "village", "--search", "fa", "--honest"), "--honest compares halves of the"),
        (("--psu", "age"), "--features names 'age', which is the column of --psu"),
        (("--psu", "village", "--single-psu", "mean"), "--single-psu must be one of error, "),
        ((*NAMED, "--subpop", "asker"), "--subpop: column 'asker' must hold 0 and 1"),
        ((*NAMED, "--fpc", "rural"), "--fpc needs numbers; column 'rural' holds"),
        ((*NAMED, "--fpc", "month"), "'month' has several values in the stratum"),
        (("--strata", "hole"), "'hole' is missing in 2 rows; every row of a survey needs"),
    ],
)
def test_designs_that_cannot_be_used_are_refused(files, table, words, said):
    hole = table["region"].where(table.index > 1)
    table.assign(hole=hole, month=table["month"] + 1).to_csv("people.csv", index=False)
    assert said in files.refuses("fit", "people.csv", *BASE, *words)
    status, text = files("check", "people.csv", *BASE, *words)
    assert said in text
    if "no column" in said or "two kinds" in said:
        assert status == 2


def test_a_gap_is_refused_in_files_read_in_passes(files, table):
    table.assign(region=table["region"].where(table.index > 1)).to_parquet("people.parquet")
    words = ("people.parquet", *DESIGNED, "--stream-above", "0")
    assert "'region' is missing in 2 rows; every row of a survey" in files.refuses("fit", *words)
    words = ("people.parquet", *BASE, "--strata", "there", "--stream-above", "0")
    assert "name it as --psu" in files.refuses("fit", *words)


def test_a_saved_model_predicts_without_the_columns_of_the_design(files, table):
    files.runs("fit", "people.csv", *DESIGNED, "--save", "m.heckmanfa")
    table[FEATURES].to_csv("new.csv", index=False)
    files.runs("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")
    model = Heckman(["age", "salt"], cov_type=design()).fit(table[COLUMNS], table["pressure"])
    np.testing.assert_allclose(
        pd.read_csv("p.csv").iloc[:, 0], model.predict(table[FEATURES]), rtol=1e-9
    )


def test_scanned_rows_take_a_design(files, table):
    rows = scan(
        "people.parquet",
        "pressure",
        features=FEATURES,
        sample_weight="w",
        groups=["region", "village", "there"],
    )
    named = {"strata": "region", "psu": "village", "fpc": "there", "nest": True}
    done = analyse(rows, search="none", predict_with=["age", "salt"], **named)
    model = Heckman(["age", "salt"], cov_type=design()).fit(table[COLUMNS], table["pressure"])
    np.testing.assert_allclose(done.estimates["std_error"], model.tidy()["std_error"], rtol=1e-7)


def test_folds_hold_whole_units_and_tests_that_know_no_design_say_so(table):
    rows = table[[*FEATURES, "region", "village"]].assign(
        high=(table["pressure"] > 125).where(table["pressure"].notna()).astype(float)
    )
    named = {"strata": "region", "psu": "village", "nest": True}
    analysis = analyse(rows, outcome="high", search="none", predict_with=["age", "salt"], **named)
    units = rows.groupby(["region", "village"]).ngroup()
    assert analysis.loaded.fold_groups.tolist() == units.tolist()
    held = analysis.held_out
    assert isinstance(held, HeldOut)
    assert held.n_failed == 0
    said = " ".join(str(check) for check in analysis.checks)
    assert "Tests of normality and of forms are not known for surveys" in said


@pytest.mark.parametrize("words", [NAMED, BY_JACKKNIFE], ids=["design", "replicates"])
def test_compare_takes_a_design_for_treatments(files, table, replicated, words):
    seen = table["pressure"].notna()
    rows = table.join(replicated[REPLICATES]).assign(
        pill=seen.astype(int), pressure=table["pressure"].fillna(118.0) + np.sin(table["w"])
    )
    rows.to_csv("pill.csv", index=False)
    asked = ("--outcome", "pressure", "--model", "treatment", "--treated", "pill")
    asked += ("--features", "age,salt,distance", "--select-only", "distance", *words)
    files.runs("compare", "pill.csv", *asked, "--out", "methods.csv")
    compared = pd.read_csv("methods.csv").set_index("model")
    found, _ = files.results("pill.csv", *asked, "--method", "ml")
    everyone = next(row for row in found["effects"] if row["effect"] == "ate")
    for column, key in (("ate", "estimate"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
        assert compared.loc["common, ML", column] == pytest.approx(everyone[key], rel=1e-6)
    # A pseudo-likelihood has no BIC.
    assert compared["bic"].isna().all()


def test_compare_says_why_it_judges_no_method_by_a_design(files, table):
    words = ("--outcome", "pressure", "--features", "age,salt,distance")
    for named in (("--strata", "region"), ("--psu", "village"), BY_JACKKNIFE):
        error = files.refuses("compare", "people.csv", *words, *named)
        assert (
            "is for treatments here: other methods are judged by errors of held-out rows" in error
        )
    model = Heckman(["age"], cov_type=design())
    with pytest.raises(InputError, match="set them side by side with etable"):
        compare_methods(table[FEATURES], table["pressure"], estimators={"a": model, "b": model})
