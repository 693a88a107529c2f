"""Hypotheses name coefficients as tables print them."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import InputError, UnknownFeatureError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


@pytest.fixture(scope="module")
def model(mroz):
    levels = np.array(["b", "c", "new york"], dtype=object)
    frame = mroz.assign(
        region=levels[np.arange(len(mroz)) % 3],
        **{"hours worked": np.sqrt(np.arange(len(mroz)) % 17), "a-b": np.arange(len(mroz)) % 5},
    )
    right = "educ*exper + C(region) + `hours worked` + bs(age, df=4) + I(kids5**2) + `a-b`"
    return Heckman.from_formula(f"lwage ~ {right}", f"~ {right} + nwifeinc", frame)


NAMES = [
    "educ:exper",
    "hours worked",
    "C(region)[T.c]",
    "C(region)[T.new york]",
    "bs(age, df=4)[2]",
    "I(kids5 ** 2)",
    "selection.educ:exper",
    "selection.hours worked",
    "selection.bs(age, df=4)[1]",
    "selection.C(region)[T.new york]",
]


def by_matrix(model, weights, value=0.0):
    table = model.vcov().index
    prefix = {"prediction": "", "selection": "selection.", "errors": ""}
    names = [prefix[equation] + term for equation, term in table]
    matrix = np.zeros((1, len(names)))
    for name, weight in weights.items():
        matrix[0, names.index(name)] = weight
    return model.wald_test(matrix, [value])


@pytest.mark.parametrize("name", NAMES)
def test_a_coefficient_is_tested_by_its_name(model, name):
    wanted = by_matrix(model, {name: 1.0})
    for text in (f"{name} = 0", name, f"`{name}` = 0", f"0 = {name}", f"2 * {name} = 0"):
        assert model.wald_test(text).statistic == pytest.approx(wanted.statistic, rel=1e-9)
    shifted = by_matrix(model, {name: 1.0, "educ": -2.0}, 0.5)
    found = model.wald_test(f"{name} - 2*educ = 0.5")
    assert found.statistic == pytest.approx(shifted.statistic, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("educ : exper = 0", "educ:exper"),
        ("I(kids5**2) = 0", "I(kids5 ** 2)"),
        ("bs(age,df=4)[2] = 0", "bs(age, df=4)[2]"),
        ("hours  worked", "hours worked"),
    ],
)
def test_blanks_in_a_name_do_not_matter(model, text, name):
    wanted = by_matrix(model, {name: 1.0})
    assert model.wald_test(text).statistic == pytest.approx(wanted.statistic, rel=1e-9)


def test_joint_hypotheses_take_any_names(model):
    joint = model.wald_test("educ:exper = 0, bs(age, df=4)[1] = bs(age, df=4)[2], C(region)[T.c]")
    assert joint.df == 3
    listed = model.wald_test(
        ["educ:exper = 0", "bs(age, df=4)[1] = bs(age, df=4)[2]", "`C(region)[T.c]` = 0"]
    )
    assert listed.statistic == pytest.approx(joint.statistic, rel=1e-12)


def test_a_name_that_looks_like_a_calculation_needs_backticks(mroz):
    data = mroz.assign(a=mroz["educ"], b=mroz["exper"], **{"a-b": np.arange(len(mroz)) % 5})
    model = Heckman.from_formula("lwage ~ a + b + `a-b`", "~ a + b + `a-b` + age", data)
    assert model.wald_test("a-b = 0").statistic == pytest.approx(
        by_matrix(model, {"a": 1.0, "b": -1.0}).statistic, rel=1e-9
    )
    assert model.wald_test("`a-b` = 0").statistic == pytest.approx(
        by_matrix(model, {"a-b": 1.0}).statistic, rel=1e-9
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("educ:blak = 0", r"names 'educ:blak', .* Did you mean 'educ'"),
        ("C(region)[T.z] = 0", r"names 'C\(region\)\[T.z\]', .* Did you mean 'C\(region\)\[T.c\]'"),
        ("`hours work` = 0", r"names 'hours work', .* Did you mean 'hours worked'"),
        ("exper:educ:age = 0", "names 'exper:educ:age'"),
    ],
)
def test_an_unknown_name_is_named_whole(model, text, said):
    with pytest.raises(UnknownFeatureError, match=said):
        model.wald_test(text)


@pytest.mark.parametrize(
    "text", ["educ = ", "educ *", "educ * exper", "educ = = 0", "educ ? 3", "= 0"]
)
def test_what_cannot_be_read_gets_advice(model, text):
    with pytest.raises(InputError, match="write it as in 'educ = exper'") as caught:
        model.wald_test(text)
    assert "coefficient_" not in str(caught.value)


def test_names_of_arrays_are_their_positions(mroz):
    columns = ["educ", "exper", "age", "kids5"]
    model = Heckman([0, 1]).fit(mroz[columns].to_numpy(dtype=float), mroz["lwage"])
    terms = [term for equation, term in model.vcov().index if equation == "prediction"]
    assert model.wald_test(f"`{terms[1]}` = 0").df == 1
    assert isinstance(model.vcov(), pd.DataFrame)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("exper:educ", "educ:exper"),
        ("selection.exper:educ", "selection.educ:exper"),
        ("`exper:educ`", "educ:exper"),
    ],
)
def test_an_interaction_is_the_same_in_either_order(model, asked, named):
    assert model.wald_test(f"{asked} = 0") == model.wald_test(f"{named} = 0")


def test_an_interaction_of_levels_is_the_same_in_every_order(mroz):
    frame = mroz.assign(town=np.where(mroz["city"] == 1, "a:b", "c"))
    model = Heckman.from_formula(
        "lwage ~ educ*exper*C(town)", "nwifeinc + educ + exper + age + kids5", frame
    )
    term = next(one for one in model.tidy()["term"] if one.count("educ:exper:C"))
    level = term.removeprefix("educ:exper:")
    for order in (f"{level}:educ:exper", f"exper:{level}:educ", f"educ:{level}:exper"):
        assert model.wald_test(f"{order} = 0") == model.wald_test(f"{term} = 0")
