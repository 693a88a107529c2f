"""Weights and clusters on the command line: in words, JSON and the report."""

import html

import numpy as np
import pytest
from scipy import stats

from heckmanfa.datasets import load_mroz

COMMON = ("--outcome", "lwage", "--features", "educ,exper,age,kids5,nwifeinc")
PLAIN = (*COMMON, "--search", "none", "--predict-with", "educ,exper")


@pytest.fixture
def survey(shell):
    """survey.csv and survey.parquet: weights of 50 to 500, whole and not, and five towns."""
    frame = load_mroz()[["lwage", "educ", "exper", "age", "kids5", "nwifeinc"]]
    weight = np.random.default_rng(0).integers(50, 500, len(frame))
    frame = frame.assign(weight=weight, share=weight + 0.5, town=np.arange(len(frame)) % 5)
    frame.to_csv(shell.folder / "survey.csv", index=False)
    frame.to_parquet(shell.folder / "survey.parquet")
    return frame


@pytest.mark.parametrize(
    "table", [("survey.csv",), ("survey.parquet", "--stream-above", "0")], ids=["csv", "streamed"]
)
def test_large_frequencies_warn_in_the_words_of_the_command_line(shell, survey, table):
    text = shell.runs("fit", *table, *PLAIN, "--weights", "weight", "--json", "out.json")
    found = shell.json("out.json")
    counts = f"753 rows count as {survey['weight'].sum():,}"
    for said in (" ".join(found["warnings"]), text):
        assert counts in said
        assert "use --weight-kind sampling" in said
        assert "weight_kind" not in said
    total = int(survey["weight"].sum())
    expected = {"column": "weight", "kind": "frequency", "rows": 753, "n_obs": total}
    assert found["weights"] == expected
    assert f"Weights weight count rows: {total:,} in all" in text


def test_fractions_are_refused_in_the_words_of_the_command_line(shell, survey):
    for command, advice in (("fit", "--weight-kind sampling"), ("compare", "use fit with")):
        said = shell.refuses(command, "survey.csv", *COMMON, "--weights", "share")
        assert advice in said
        assert "'share' holds fractions" in said


@pytest.mark.usefixtures("untrained")
def test_a_comparison_warns_of_large_frequencies_once(shell, survey):
    text = shell.runs(
        "compare", "survey.csv", *COMMON, "--weights", "weight", "--folds", "2", "--repeats", "1",
        "--no-ru",
    )  # fmt: skip
    assert text.count("rows count as") == 1
    assert "use fit with --weight-kind sampling" in text
    assert f"Weights weight count rows: {survey['weight'].sum():,} in all." in text


@pytest.mark.usefixtures("untrained")
def test_comparisons_say_that_weights_count_rows_however_small(shell, survey):
    small = survey.assign(weight=1 + np.arange(len(survey)) % 3, taught=survey["educ"] > 12)
    small.to_csv("small.csv", index=False)
    counts = f"Weights weight count rows: {small['weight'].sum():,} in all."
    roles = ("--weights", "weight", "--exclude", "share,town,taught")
    words = ("--outcome", "lwage", *roles, "--folds", "2", "--repeats", "1", "--no-ru")
    assert counts in shell.runs("compare", "small.csv", *words)
    treated = ("--outcome", "age", "--model", "treatment", "--treated", "taught")
    text = shell.runs("compare", "small.csv", *treated, "--weights", "weight",
                      "--features", "kids5,nwifeinc", "--select-only", "nwifeinc")  # fmt: skip
    assert counts in text
    assert "warning" not in text


def test_clusters_are_counted_and_tests_are_by_t(shell, survey):
    text = shell.runs(
        "fit", "survey.csv", *PLAIN, "--method", "ml", "--cluster", "town", "--weights", "share",
        "--weight-kind", "sampling", "--json", "out.json", "--report", "out.html",
    )  # fmt: skip
    found = shell.json("out.json")
    assert found["clusters"] == [{"column": "town", "number": 5}]
    assert found["reference_distribution"] == "t(4)"
    assert found["log_likelihood_is"] == "Log pseudolikelihood"
    assert found["weights"]["kind"] == "sampling"
    row = found["estimates"][1]
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["statistic"]), 4))
    assert ("clusters", "problem") in [
        (one["diagnostic"], one["verdict"]) for one in found["diagnostics"]
    ]
    page = html.unescape((shell.folder / "out.html").read_text())
    grave = [one["title"].removesuffix(".") for one in found["checks"] if one["level"] == "problem"]
    assert any("cluster" in one for one in grave)
    for said in (text, page):
        assert all(one in said for one in grave)
    assert "5 clusters of town" in text
    assert "Weights share are sampling weights" in text
    assert "share (sampling)" in page


@pytest.mark.parametrize(
    ("options", "kind", "words", "on_page"),
    [
        ((), "classical", "Standard errors: classical", "Classical: the errors"),
        (
            ("--robust",),
            "robust",
            "Standard errors: robust",
            "Robust: the variance",
        ),
        (
            ("--weights", "share", "--weight-kind", "sampling"),
            "robust",
            "Standard errors: robust, as sampling weights need",
            "Robust, as sampling weights need: the variance of the errors",
        ),
        (
            ("--search", "average"),
            "robust",
            "Standard errors: robust, the default of an average",
            "Robust, the default of an average",
        ),
        (
            ("--cluster", "town"),
            "cluster",
            "Standard errors: cluster (5 clusters of town)",
            "Cluster: robust, with rows of the same town",
        ),
    ],
)
def test_every_output_says_which_standard_errors_it_has(
    shell, survey, options, kind, words, on_page
):
    text = shell.runs(
        "fit", "survey.csv", *PLAIN, *options, "--json", "out.json", "--report", "out.html"
    )
    assert shell.json("out.json")["standard_errors"] == kind
    assert words in text
    assert on_page in html.unescape((shell.folder / "out.html").read_text())
