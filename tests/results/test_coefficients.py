import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import AllObservedWarning, InputError, UnknownFeatureError

WAGE = "log(wage) ~ educ + exper + I(exper**2)"
WORK = "lfp ~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618"


@pytest.fixture(scope="module")
def model():
    return Heckman.from_formula(WAGE, WORK, load_mroz())


def test_tidy_has_the_columns_and_terms_of_the_contract(model):
    table = model.tidy(conf_level=0.9)
    assert table.columns.tolist() == [
        "equation",
        "term",
        "estimate",
        "std_error",
        "statistic",
        "p_value",
        "ci_low",
        "ci_high",
    ]
    assert table["equation"].unique().tolist() == ["prediction", "selection", "errors"]
    assert table["term"].iloc[0] == "Intercept"
    assert table["term"].iloc[-3:].tolist() == ["imr", "rho", "sigma"]
    educ = table.iloc[1]
    assert educ["statistic"] == pytest.approx(educ["estimate"] / educ["std_error"])
    assert educ["p_value"] == pytest.approx(2 * norm.sf(abs(educ["statistic"])))
    assert educ["ci_high"] - educ["ci_low"] == pytest.approx(2 * norm.ppf(0.95) * educ["std_error"])
    with pytest.raises(InputError, match="conf_level"):
        model.tidy(conf_level=95)


def test_vcov_is_labelled_symmetric_and_matches_tidy(model):
    v = model.vcov()
    assert v.index.names == ["equation", "term"]
    np.testing.assert_allclose(v, v.T, rtol=1e-12)
    table = model.tidy().set_index(["equation", "term"])["std_error"].dropna()
    np.testing.assert_allclose(np.sqrt(np.diag(v)), table.loc[v.index], rtol=1e-12)
    v.iloc[0, 0] = -1.0
    assert model.vcov().iloc[0, 0] > 0


def test_wald_tests_by_name_across_equations_and_by_matrix(model):
    v = model.vcov()
    b = model.tidy().set_index(["equation", "term"])["estimate"]

    def expected(matrix, right=0.0):
        gap = matrix @ b.loc[v.index].to_numpy() - right
        return float(gap @ np.linalg.solve(matrix @ v.to_numpy() @ matrix.T, gap))

    place = {term: i for i, term in enumerate(v.index)}
    equal = np.zeros((1, len(v)))
    equal[0, place["prediction", "educ"]], equal[0, place["prediction", "exper"]] = 1, -1
    test = model.wald_test("educ = exper")
    assert test.statistic == pytest.approx(expected(equal))
    assert test.df == 1
    assert test.p_value == pytest.approx(chi2.sf(test.statistic, 1))
    assert model.wald_test(equal).statistic == pytest.approx(test.statistic)
    across = np.zeros((1, len(v)))
    across[0, place["prediction", "educ"]], across[0, place["selection", "educ"]] = 1, -1
    assert model.wald_test("educ = selection.educ").statistic == pytest.approx(expected(across))
    two = model.wald_test("exper = 0, I(exper ** 2) = 0")
    assert two.df == 2
    assert model.wald_test(["exper = 0", "I(exper ** 2) = 0"]) == two
    shifted = np.zeros((1, len(v)))
    shifted[0, place["prediction", "educ"]] = 2
    assert model.wald_test("2*educ = 0.2").statistic == pytest.approx(expected(shifted, 0.2))
    assert model.wald_test(shifted, [0.2]).statistic == pytest.approx(expected(shifted, 0.2))
    assert model.wald_test("imr").statistic == pytest.approx(0.241436486155577**2, rel=1e-6)
    assert str(test).startswith("chi2(1) = ")


def test_wald_tests_refuse_what_they_cannot_read(model):
    with pytest.raises(UnknownFeatureError, match=r"'edcu'.* Did you mean 'educ'"):
        model.wald_test("edcu = 0")
    with pytest.raises(InputError, match="cannot be read"):
        model.wald_test("educ == 0")
    with pytest.raises(InputError, match="a restriction matrix needs 13 columns"):
        model.wald_test(np.ones((1, 3)))
    for chained in ("educ = exper = 0", "educ = 0 = 1"):
        with pytest.raises(InputError, match="two '='; write it as in 'educ = exper'"):
            model.wald_test(chained)
    for unreadable in ("educ*exper = 0", "educ/0 = 1", "educ = = 1"):
        with pytest.raises(InputError, match="cannot be read"):
            model.wald_test(unreadable)
    with pytest.raises(InputError, match="empty part"):
        model.wald_test("")
    with pytest.raises(InputError, match="repeat one another"):
        model.wald_test("educ = 0, 2*educ = 0")


def test_summary_shows_what_an_econometrician_expects(model):
    text = str(model.summary())
    for part in (
        "Heckman selection model, two-step",
        "Prediction equation (outcome)",
        "Selection equation (probit)",
        "Errors",
        "Rows given:                      753",
        "Not selected:                    325",
        "0.10907    0.015523    7.03",
        "Only in the selection equation (excluded from prediction): nwifeinc, age",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= 81
    assert repr(model.summary()) == text
    assert "[90% interval]" in str(model.summary(conf_level=0.9))


def test_html_escapes_names_and_has_headers():
    frame = load_mroz().rename(columns={"educ": "<b>educ</b>"})
    columns = ["<b>educ</b>", "exper", "age", "kids5"]
    model = Heckman(columns[:2], method="ml").fit(frame[columns], frame["lwage"])
    page = model.summary()._repr_html_()
    assert "&lt;b&gt;educ&lt;/b&gt;" in page
    assert "<b>" not in page
    assert '<th scope="col">std. error</th>' in page
    assert "Log-likelihood" in page
    assert "<td>ok</td>" in model.diagnostics()._repr_html_()


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.FewClustersWarning")
def test_summary_of_other_options_says_so():
    frame = load_mroz()
    columns = ["educ", "exper", "age", "kids5"]
    model = Heckman(columns[:2], method="ml", cov_type="cluster").fit(
        frame[columns], frame["lwage"], groups=frame["unem"], sample_weight=np.full(753, 2.0)
    )
    text = str(model.summary())
    assert "maximum likelihood" in text
    assert "cluster" in text
    assert "Sum of weights:                 1506" in text
    assert "Weights:                   frequency" in text
    assert "Clusters:                          7" in text
    assert "Log pseudolikelihood: " in text
    assert model.diagnostics().rho_lr is None


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_diagnostics_measure_what_they_say(method):
    mroz = load_mroz()
    model = Heckman.from_formula(WAGE, WORK, mroz, method=method)
    diagnostics = model.diagnostics(mroz)
    assert diagnostics.n_excluded == 4
    assert diagnostics.excluded_features == ("nwifeinc", "age", "kids5", "kids618")
    joint = ", ".join(f"selection.{name} = 0" for name in diagnostics.excluded_features)
    assert diagnostics.excluded_wald.statistic == pytest.approx(model.wald_test(joint).statistic)
    working = mroz["lfp"] == 1
    ratio = Heckman.from_formula(WAGE, WORK, mroz).inverse_mills(mroz)
    design = np.column_stack(
        [np.ones(753), mroz["educ"], mroz["exper"], mroz["exper"] ** 2, ratio]
    )[working]
    fitted = design[:, :-1] @ np.linalg.lstsq(design[:, :-1], design[:, -1], rcond=None)[0]
    r2 = 1 - np.sum((design[:, -1] - fitted) ** 2) / np.sum(
        (design[:, -1] - design[:, -1].mean()) ** 2
    )
    assert diagnostics.imr_r2 == pytest.approx(r2, rel=1e-9)
    assert diagnostics.imr_vif == pytest.approx(1 / (1 - r2), rel=1e-9)
    unit = design / np.linalg.norm(design, axis=0)
    assert diagnostics.condition_number == pytest.approx(np.linalg.cond(unit), rel=1e-8)
    ratio = model.inverse_mills(mroz)
    np.testing.assert_allclose(
        diagnostics.imr_range, [ratio[working].min(), ratio[working].max()], rtol=1e-10
    )
    outside = (ratio < ratio[working].min()) | (ratio > ratio[working].max())
    assert diagnostics.share_outside == pytest.approx(outside.mean(), abs=1e-12)
    assert model.diagnostics().share_outside is None
    frame = diagnostics.to_frame()
    assert set(frame["verdict"]) <= {"ok", "caution", "problem"}
    assert isinstance(frame, pd.DataFrame)
    assert diagnostics.to_dict()["n_excluded"] == 4


def test_weak_excluded_features_and_extrapolation_are_flagged(simulated):
    rng = np.random.default_rng(0)
    X = np.column_stack([simulated.X, rng.normal(size=800)])
    model = Heckman(range(6)).fit(X, simulated.y)
    said = str(model.diagnostics(X * 5))
    assert "[caution] excluded features: 1 (6)" in said
    assert "[caution] rows outside that range" in said


def test_rows_without_an_index_are_counted_apart(model):
    mroz = load_mroz()
    mroz.loc[:374, "age"] = np.nan
    mroz.loc[375:, "age"] = 300.0
    diagnostics = model.diagnostics(mroz)
    assert diagnostics.share_outside == 1.0
    assert diagnostics.n_without_index == 375
    assert "375 rows lack a feature and are not counted" in str(diagnostics)
    nothing = model.diagnostics(mroz.assign(age=np.nan))
    assert "[caution] rows outside that range: nan%" in str(nothing)


def test_least_squares_has_nothing_to_diagnose_but_its_columns():
    mroz = load_mroz()
    working = mroz[mroz["lfp"] == 1]
    with pytest.warns(AllObservedWarning):
        fitted = Heckman(["educ"]).fit(working[["educ", "age"]], working["lwage"])
    lines = fitted.diagnostics().to_frame()["diagnostic"].tolist()
    assert lines == ["selection", "condition number"]


def test_a_restriction_without_a_coefficient_is_refused():
    mroz = load_mroz()
    model = Heckman(["educ"]).fit(mroz[["educ", "age", "kids5"]], mroz["lwage"])
    with pytest.raises(InputError, match="a restriction names no coefficient"):
        model.wald_test("20 = 0")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ("wages.parquet", r"name of a file, 'wages\.parquet'.* pass heckmanfa\.scan\("),
        ({}, "DataFrame"),
    ],
)
def test_what_is_no_table_is_told_apart(X, words):
    with pytest.raises(InputError, match=words):
        Heckman().fit(X, [1.0, None])
