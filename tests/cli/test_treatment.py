"""The command line on the effect of a treatment."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa import TreatmentModel

ASKED = ("--outcome", "lwage", "--model", "treatment", "--treated", "trained")
ROLES = ("--select-only", "way", "--exclude", "region,site")


@pytest.fixture(scope="module")
def workers():
    """700 workers of whom some chose a training; one row lacks the wage, two the training."""
    rng = np.random.default_rng(7)
    n = 700
    educ, way = rng.integers(8, 18, n), rng.uniform(0, 3, n)
    drive, luck = rng.normal(size=(2, n))
    trained = 1.0 + 0.05 * (educ - 12) - 0.8 * way + drive > 0
    wage = 2.0 + 0.08 * (educ - 12) + np.where(trained, 0.2 + 0.1 * drive, 0.2 * drive) + luck / 4
    frame = pd.DataFrame({"lwage": wage, "educ": educ, "way": way, "trained": trained * 1.0})
    frame["region"] = np.where(educ >= 12, "north", "south")
    frame["site"] = np.arange(n) % 50
    frame.loc[0, "lwage"] = np.nan
    frame.loc[[3, 4], "trained"] = np.nan
    return frame


@pytest.fixture
def file(shell, workers):
    """workers.csv in the folder of the command line."""
    workers.to_csv("workers.csv", index=False)
    return "workers.csv"


def model_of(frame, regimes="separate", method="ml", **options):
    model = TreatmentModel(["educ"], ["educ", "way"], method=method, regimes=regimes, **options)
    return model.fit(frame[["educ", "way"]], frame["lwage"], treated=frame["trained"])


def fit(shell, *options, data="workers.csv"):
    """The results of a fit as JSON, and what it printed."""
    text = shell.runs("fit", data, *ASKED, *ROLES, "--json", "j.json", "--force", *options)
    return shell.json("j.json"), text


def numbers(records, *names):
    return np.array([[record[name] for name in names] for record in records], dtype=float)


ENDS = ("estimate", "std_error", "ci_low", "ci_high", "n_rows")


@pytest.mark.parametrize("regimes", ["common", "separate"])
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_json_table_and_screen_have_the_effects_of_the_model(shell, workers, file, regimes, method):
    found, text = fit(shell, "--regimes", regimes, "--method", method, "--save-table", "t.csv")
    expected = model_of(workers, regimes, method).effects()
    np.testing.assert_allclose(
        numbers(found["effects"], *ENDS), expected[list(ENDS)].to_numpy(float), rtol=1e-9
    )
    table = pd.read_csv("t.csv")
    assert table["effect"].tolist() == ["ate", "att", "atu", "margin"]
    np.testing.assert_allclose(table["estimate"], expected["estimate"], rtol=1e-9)
    ate = expected.iloc[0]
    assert f"{ate['estimate']:.3f} ({ate['ci_low']:.3f} to {ate['ci_high']:.3f})" in text
    kind = {"common": "treatment", "separate": "switching"}[regimes]
    assert found["model"]["outcome_kind"] == kind
    assert found["rows"]["left_out_outcome_missing"] == 1
    assert found["rows"]["left_out_treatment_missing"] == 2
    assert "1 lacks the outcome and 2 do not say whether they are treated" in text
    assert found["funnel"]["treated"] == int((workers["trained"][1:] == 1).sum())


def test_the_answer_names_no_parameter_before_the_numbers_of_analysts(shell, file):
    found, _ = fit(shell, "--regimes", "separate", "--method", "ml")
    verdicts = found["answer"]["verdicts"]
    assert [*verdicts] == ["how_much", "whom", "selection", "trust"]
    first = [found["answer"]["headline"], found["answer"]["lede"]]
    first += [f"{tile['title']} {tile['words']}" for tile in verdicts.values()]
    assert not re.search(r"rho|lambda|sigma|hazard|probit|Mills", " ".join(first))
    assert "rho1" in verdicts["selection"]["numbers"]
    assert found["answer"]["headline"].startswith("trained raises lwage by ")
    assert "if way moves lwage through trained alone" in found["answer"]["lede"]


def test_groups_have_the_effects_of_their_rows(shell, workers, file):
    found, text = fit(shell, "--regimes", "separate", "--method", "ml", "--by", "region")
    groups = [record for record in found["effects"] if record["group"]]
    kept = workers.dropna(subset=["lwage", "trained"])
    expected = model_of(workers).effects(
        kept[["educ", "way"]], treated=kept["trained"], by=kept["region"]
    )
    assert [record["group"] for record in groups] == expected["group"].tolist()
    np.testing.assert_allclose(
        numbers(groups, *ENDS), expected[list(ENDS)].to_numpy(float), rtol=1e-9
    )
    assert "By region" in text


@pytest.mark.parametrize(
    ("options", "cov_type"), [(("--robust",), "robust"), (("--cluster", "site"), "cluster")]
)
def test_standard_errors_are_those_that_were_asked_for(shell, workers, file, options, cov_type):
    roles = tuple(word for word in ROLES if word != "region,site")
    words = ("fit", file, *ASKED, *roles, "region" if "site" in options else "region,site")
    shell.runs(*words, *options, "--json", "j.json")
    kept = workers.dropna(subset=["lwage", "trained"])
    model = TreatmentModel(["educ"], ["educ", "way"], cov_type=cov_type)
    groups = {"groups": kept["site"]} if cov_type == "cluster" else {}
    model.fit(kept[["educ", "way"]], kept["lwage"], treated=kept["trained"], **groups)
    found = shell.json("j.json")["effects"]
    np.testing.assert_allclose(
        numbers(found, "std_error")[:, 0], model.effects()["std_error"], rtol=1e-9
    )


def test_an_outcome_that_is_a_logarithm_has_effects_in_percent(shell, workers, file):
    found, text = fit(shell, "--log-outcome")
    ate = model_of(workers, "common", "two-step").effects().iloc[0]
    percent = 100.0 * np.expm1(ate["estimate"])
    assert found["effects"][0]["estimate_percent"] == pytest.approx(percent, rel=1e-9)
    assert f"raises wage by {percent:.1f}% on average" in text
    assert found["model"]["percents_are_of"] == "wage"


def test_files_that_are_read_in_passes_have_the_same_effects(shell, workers):
    workers.to_parquet("workers.parquet")
    found, _ = fit(shell, "--stream-above", "0", data="workers.parquet")
    loaded, _ = fit(shell, data="workers.parquet")
    np.testing.assert_allclose(
        numbers(found["effects"], *ENDS), numbers(loaded["effects"], *ENDS), rtol=1e-8
    )
    assert found["streamed"]
    assert found["overlap"]["outside"] is None


def test_yes_and_no_say_who_is_treated(shell, workers, file):
    known, _ = fit(shell)
    spelled = workers.assign(trained=workers["trained"].map({1.0: "Yes", 0.0: "no"}))
    spelled.to_csv("words.csv", index=False)
    found, _ = fit(shell, data="words.csv")
    assert found["effects"] == known["effects"]


def test_without_an_instrument_no_estimate_is_offered(shell, file):
    shell.runs("fit", file, *ASKED, "--exclude", "region,site", "--json", "j.json")
    found = shell.json("j.json")
    assert found["answer"]["headline"] == (
        "What trained does to lwage can hardly be told: nothing drives treatment alone."
    )
    assert found["answer"]["verdicts"]["how_much"]["title"] == "No estimate to rely on"
    assert found["selection"]["verdict"] == "unreliable"
    check = next(check for check in found["checks"] if check["key"] == "instruments")
    assert check["level"] == "problem"
    assert "--select-only" in check["do"]
    assert not re.search(r"\d", found["may_write"][0]["news"])
    claims = {claim["key"] for claim in found["claims"]}
    assert {"instruments", "treatment_normal", "no_spillover"} <= claims


def test_every_word_of_the_saved_command_fits_again(shell, file):
    found, _ = fit(shell, "--regimes", "separate", "--by", "region")
    words = found["command"].split()[1:]
    shell.runs(*words, "--json", "again.json")
    assert shell.json("again.json")["effects"] == found["effects"]
    assert "treated='trained'" in found["code"]["python"]


# What a user may type. ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "treatment", "--treated", "trianed"), ["'trianed'", "mean 'trained'"]),
        (("--model", "treatment", "--treated", "educ"), ["--treated", "'educ'", "0 and 1", "'10'"]),
        (("--model", "treatment"), ["need --treated", "0 and 1"]),
        (("--model", "treatmnt"), ["--model must be one of treatment", "mean 'treatment'"]),
        (("--treated", "trained"), ["--treated is for treatments", "pass --model treatment"]),
        (("--regimes", "separate"), ["--regimes is for treatments", "pass --model treatment"]),
        (("--by", "region"), ["--by is for treatments", "pass --model treatment"]),
        (
            (*ASKED[2:], "--selected", "region"),
            ["--selected", "Leave it out, or leave out --model treatment"],
        ),
        (
            (*ASKED[2:], "--search", "average"),
            ["--search average", "whose search is none or best-subset"],
        ),
        ((*ASKED[2:], "--honest"), ["--honest is for linear outcomes and binary outcomes"]),
        ((*ASKED[2:], "--rho", "0.3"), ["--rho is for"]),
        (
            (*ASKED[2:], "--outcome-transform", "log"),
            ["--outcome-transform is for linear outcomes"],
        ),
        ((*ASKED[2:], "--outcome-kind", "binary"), ["--model treatment and --outcome-kind binary"]),
        ((*ASKED[2:], "--by", "reigon"), ["--by", "'reigon'", "mean 'region'"]),
        ((*ASKED[2:], "--by", "way"), ["--by", "'way'", "20 groups at most"]),
        ((*ASKED[2:], "--start", "0.2", "--regimes", "separate"), ["--start is for"]),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(shell, file, options, words):
    status, text = shell("fit", file, "--outcome", "lwage", *options)
    assert status == 2
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("trained", lambda frame: frame["trained"] + (frame["educ"] > 15), ["'2.0'", "0 and 1"]),
        ("trained", lambda frame: 0, ["nobody is treated", "700 rows"]),
        ("trained", lambda frame: 1, ["everybody is treated", "nobody to compare with"]),
        ("trained", lambda frame: np.nan, ["missing in every row"]),
        ("lwage", lambda frame: np.nan, ["'lwage' is missing in all 700 rows"]),
        ("lwage", lambda frame: "high", ["--outcome needs numbers"]),
        ("copy", lambda frame: 3.0 * frame["trained"], ["'copy'", "treated", "--exclude"]),
        (
            "course",
            lambda frame: frame["educ"].where(frame["trained"] == 1),
            ["'course'", "treated"],
        ),
    ],
)
def test_tables_that_cannot_be_fitted_are_refused_with_what_to_do(
    shell, workers, column, values, words
):
    workers.assign(**{column: values(workers)}).to_csv("bad.csv", index=False)
    status, text = shell("fit", "bad.csv", *ASKED, "--select-only", "way")
    assert status == 2
    for word in words:
        assert word in text


def test_check_names_what_is_wrong_and_its_command_fits(shell, workers):
    frame = workers.assign(copy=3.0 * workers["trained"])
    frame.to_csv("bad.csv", index=False)
    text = shell.runs("check", "bad.csv", *ASKED, "--json", "c.json")
    found = shell.json("c.json")
    keys = {finding["key"]: finding for finding in found["findings"]}
    assert keys["selection_copies"]["columns"] == ["copy"]
    assert "'copy' says who is treated" in text
    assert keys["left_out"]["rows"] == 3
    assert "--select-only" in keys["no_instrument"]["do"]
    assert not found["blocked"]
    shell.runs(*found["command"].split()[1:])


# Other commands. ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "column", "predicted"),
    [
        ((), "predicted_observed", lambda model, X: model.predict(X)),
        (("--regime", "1"), "predicted_treated", lambda model, X: model.predict(X, regime=1)),
        (
            ("--regime", "0", "--given", "1"),
            "predicted_untreated_given_treated",
            lambda model, X: model.predict(X, regime=0, given=1),
        ),
        (("--given", "0"), "predicted_given_untreated", lambda model, X: model.predict(X, given=0)),
        (
            ("--kind", "treatment"),
            "predicted_treatment",
            lambda model, X: model.predict_treatment(X),
        ),
    ],
)
def test_a_saved_model_predicts_as_the_fitted_one(shell, workers, file, options, column, predicted):
    fit(shell, "--regimes", "separate", "--method", "ml", "--save", "m.heckmanfa")
    shell.runs("predict", "m.heckmanfa", file, "--out", "p.csv", *options)
    table, model = pd.read_csv("p.csv"), model_of(workers)
    np.testing.assert_allclose(table[column], predicted(model, workers[["educ", "way"]]), rtol=1e-8)
    has_interval = column not in ("predicted_observed", "predicted_treatment")
    assert ("low" in table) is has_interval


def test_intervals_of_predictions_are_those_of_the_model(shell, workers, file):
    fit(shell, "--regimes", "separate", "--method", "ml", "--save", "m.heckmanfa")
    words = ("predict", "m.heckmanfa", file, "--out", "p.csv", "--regime", "1", "--force")
    shell.runs(*words, "--interval", "confidence")
    table = pd.read_csv("p.csv")
    _, ends = model_of(workers).predict(
        workers[["educ", "way"]], regime=1, return_interval="confidence"
    )
    np.testing.assert_allclose(table[["low", "high"]], ends, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--regime", "2"), ["--regime must be 0 or 1"]),
        (("--kind", "selected"), ["--kind selected", "use --given 1"]),
        (("--kind", "treatment", "--regime", "1"), ["--regime is about outcomes"]),
        (("--interval", "prediction"), ["--interval needs --regime or --given"]),
    ],
)
def test_predictions_that_a_treatment_model_lacks_are_refused(shell, file, options, words):
    fit(shell, "--save", "m.heckmanfa")
    status, text = shell("predict", "m.heckmanfa", file, "--out", "p.csv", *options)
    assert status == 2
    for word in words:
        assert word in text


def test_a_selection_model_has_no_regimes(shell, mroz):
    shell.runs(
        *("fit", "mroz.csv", "--outcome", "lwage", "--search", "none", "--features", "educ,age"),
        *("--select-only", "age", "--save", "m.heckmanfa"),
    )
    for options in (("--regime", "1"), ("--given", "0"), ("--kind", "treatment")):
        status, text = shell("predict", "m.heckmanfa", "mroz.csv", "--out", "p.csv", *options)
        assert status == 2
        assert f"{options[0]}" in text
        assert "treatment models" in text


def test_compare_has_the_effects_of_each_model(shell, workers, file):
    text = shell.runs("compare", file, *ASKED, *ROLES, "--out", "c.csv")
    table = pd.read_csv("c.csv").set_index("model")
    for regimes in ("common", "separate"):
        for method, name in (("two-step", "two-step"), ("ml", "ML")):
            model = model_of(workers, regimes, method)
            effects = model.effects().set_index("effect")
            row = table.loc[f"{regimes}, {name}"]
            for kind in ("ate", "att", "atu"):
                assert row[kind] == pytest.approx(effects.loc[kind, "estimate"], rel=1e-9)
            assert row["ci_low"] == pytest.approx(effects.loc["ate", "ci_low"], rel=1e-9)
    treated = workers.dropna().query("trained == 1")["lwage"].mean()
    others = workers.dropna().query("trained == 0")["lwage"].mean()
    assert table.loc["difference of means", "ate"] == pytest.approx(treated - others, rel=1e-9)
    assert "BIC prefers" in text


def test_compare_refuses_what_is_about_held_out_rows(shell, file):
    status, text = shell("compare", file, *ASKED, "--folds", "3")
    assert status == 2
    assert "--folds is about held-out rows" in text


def test_compare_of_features_chooses_among_all_of_them(shell, mroz):
    words = ("compare", "mroz.csv", "--outcome", "lwage", "--features", "educ,age")
    status, text = shell(*words, "--predict-with", "educ")
    assert status == 2
    assert "--predict-with is for treatments" in text


def test_help_names_the_options_of_treatments(shell):
    text = shell.runs("fit", "--help")
    for name in ("--model", "--treated", "--regimes"):
        assert name in text
    assert "--by" in shell.runs("help", "model")


def test_a_simulated_treatment_is_recovered(shell):
    words = ("--rows", 6000, "--features", 4, "--predicting", 2, "--effect", 0.7, "--seed", 3)
    shell.runs("simulate", "s.csv", "--model", "treatment", *words, "--truth", "t.json")
    truth, frame = shell.json("t.json"), pd.read_csv("s.csv")
    assert frame["y"].notna().all()
    assert sorted(frame[truth["treated"]].unique()) == [0, 1]
    shell.runs(
        *("fit", "s.csv", "--outcome", "y", "--model", "treatment", "--treated", "d"),
        *("--select-only", ",".join(truth["only_select"]), "--method", "ml", "--json", "j.json"),
    )
    found = shell.json("j.json")
    ate = found["effects"][0]
    assert abs(ate["estimate"] - truth["effect"]) < 4 * ate["std_error"]
    assert abs(found["selection"]["rho"]["rho"] - truth["rho"]) < 0.15
    # Least squares is biased here, so the model does something.
    assert found["least_squares"]["estimate"] - truth["effect"] > 0.3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "treatmnt"), "--model must be treatment"),
        (("--effect", "2"), "add --model treatment"),
        (("--model", "treatment", "--outcome-kind", "binary"), "--outcome-kind binary"),
    ],
)
def test_simulations_that_are_none_are_refused(shell, options, words):
    status, text = shell("simulate", "s.csv", *options)
    assert status == 2
    assert words in text
