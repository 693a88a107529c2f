"""The formula of a small model file makes no more columns than the model has, and ends soon."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.analysis import load_model, save_model
from heckmanfa.analysis.model_values import write_plain
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import DataError, FormulaError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

NUMBER = ("numerical", None)
MORE = "asks for more than a model file may"


def table(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["g"] = np.arange(n) % 3
    frame["h"] = np.arange(n) // 3 % 2
    u = rng.normal(size=n)
    frame["y"] = 1 + frame["a"] + 0.5 * u + rng.normal(size=n)
    frame.loc[frame["a"] + frame["c"] + u < 0, "y"] = np.nan
    return frame


def write(path, right, drivers):
    frame = table()
    model = Heckman.from_formula(f"y ~ {right}", f"~ {drivers}", frame)
    save_model(path, model, Encoding.learn(frame, list("abcgh"))[0], {})
    return model


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.heckmanfa"
    write(path, "a + b", "a + b + c")
    return path.read_bytes()


def design_in(document):
    ((_, model),) = document["model"].items()
    return model["attributes"]["_fit"]["Fit"]["origin"]["Origin"]["design"]["FormulaDesign"]


def carry(right, encodings, transforms=None, left="y"):
    """Make a file say that this is its prediction formula, and what it learned."""

    def change(document):
        design = design_in(document)
        equation = design["prediction"]["Equation"]
        design["texts"][0] = f"{left} ~ {right}"
        equation["text"] = f" {right}"
        equation["encodings"] = {
            name: [kind, write_plain(categories)] for name, (kind, categories) in encodings.items()
        }
        equation["transforms"] = {
            name: write_plain(learned) for name, learned in (transforms or {}).items()
        }
        equation["numeric"] = list("abc")

    return change


def refusal(path, rewritten, change):
    rewritten(path, change)
    with pytest.raises(DataError, match=MORE) as caught:
        load_model(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "right",
    [
        " + ".join(f"a{k}" for k in range(2_000)),
        " - ".join(f"a{k}" for k in range(2_000)),
        ":".join(f"a{k}" for k in range(2_000)),
        f"({'+'.join(f'a{k}' for k in range(30))}):({'+'.join(f'b{k}' for k in range(30))})",
        "(a + b + c + d + e + f + g + h + i + j)**4",
    ],
    ids=["sum", "difference", "product", "crossed", "power"],
)
def test_terms_are_counted_before_a_formula_is_expanded(saved, rewritten, right, monkeypatch):
    import heckmanfa.data.formula.stored_formulas

    def expand(text):
        raise AssertionError("expanded")

    monkeypatch.setattr(heckmanfa.data.formula.stored_formulas, "Formula", expand)
    rewritten(saved, carry(right, {"a0": NUMBER}))
    with pytest.raises(DataError, match=rf"{MORE}: the formula (has|multiplies)"):
        load_model(saved)


def some(n):
    return "[" + ", ".join(map(str, range(n))) + "]"


@pytest.mark.parametrize(
    "setting",
    [
        f"levels={some(60)}",
        f"[{some(60)}, {some(60)}]",
        f"contr.custom([{some(60)}, {some(60)}])",
        f"contr.poly(scores={some(60)})",
    ],
)
def test_lists_in_a_formula_count_as_columns(saved, rewritten, setting):
    one = f"C(a, {setting})"
    change = carry(f"b + {one}", {"b": NUMBER, one: ("categorical", [0, 1])})
    assert "more columns than there are" in refusal(saved, rewritten, change)


def spline(n_knots):
    knots = [-9.0] * 3 + np.linspace(-9, 9, n_knots - 6).tolist() + [9.0] * 3
    return {"lower_bound": -9.0, "upper_bound": 9.0, "knots": knots}


@pytest.mark.parametrize(
    ("one", "state"),
    [
        ("bs(a)", spline(36)),
        ("cr(a, df=3)", {**spline(36), "cyclic": False, "constraints": None}),
        ("cc(a, df=3)", {**spline(36), "cyclic": True, "constraints": None}),
        (f"bs(a, knots={some(36)})", {}),
        ("bs(a, df=4)", {"lower_bound": -9.0, "upper_bound": 9.0}),
        ("poly(a, 2)", {}),
        ("center(a)", {}),
        ("bs(bs(a))", {1: spline(9)}),
        ("C(poly(a, 2))", {}),
        ("np.where(a > 0, poly(a, 1), 0)", {}),
    ],
)
def test_a_spline_is_as_wide_as_what_it_learned(saved, rewritten, one, state):
    change = carry(f"b + {one}", {"b": NUMBER, one: NUMBER}, {one: state} if state else {})
    refusal(saved, rewritten, change)


@pytest.mark.parametrize(
    "one",
    [
        "scale(a, [[1], [1]], False)",
        "scale(a, center=[1, 2])",
        "np.where(a > 0, [[1], [2]], 0)",
        "np.round(a, 999999999)",
        "np.round(a, -999999999)",
        "C(a, 5)",
        "C(a, 'x')",
        "C(a, [])",
        "C(a, {})",
        "C(a, [1, 2])",
        "C(a, {'x': 1})",
        "C(a, contr.custom([1]))",
        "C(a, contr.poly('x'))",
        "C(a, levels=5)",
        "C(a, levels=[[1]])",
        "hashed(a, 2, 'x')",
        "(" * 60 + "a" + ")" * 60,
        "a+(" * 60 + "a" + ")" * 60,
    ],
)
def test_arguments_that_no_honest_formula_has_are_refused(one):
    from heckmanfa.data.formula.stored_formulas import check_formula

    with pytest.raises(FormulaError):
        check_formula(f"b + {one}", 3)


@pytest.mark.parametrize("wide", [[[1.0], [2.0]], [1.0, 2.0, 3.0]])
def test_a_centre_is_no_wider_than_its_argument(saved, rewritten, wide):
    change = carry(
        "b + center(a)",
        {"b": NUMBER, "center(a)": NUMBER},
        {"center(a)": {"ddof": 1, "center": wide, "scale": None}},
    )
    refusal(saved, rewritten, change)


@pytest.mark.parametrize("left", ["C(a)", "hashed(a, 3)", "poly(a, 2)", "bs(a, df=4)"])
def test_a_left_side_is_one_column(saved, rewritten, left):
    change = carry("a + b", {"a": NUMBER, "b": NUMBER}, left=left)
    assert "is not one number per row" in refusal(saved, rewritten, change)


def test_text_on_a_left_side_is_refused_before_it_is_evaluated(monkeypatch):
    import heckmanfa.data.formula.matrix

    def evaluate(*given):
        raise AssertionError("evaluated")

    monkeypatch.setattr(heckmanfa.data.formula.matrix, "_evaluate", evaluate)
    with pytest.raises(FormulaError, match="column 'g' holds text or categories"):
        Heckman.from_formula("g ~ a", "~ a + b", table().assign(g="u"))


@pytest.mark.parametrize("categories", [[["u"], ["v"]], [{"u": 1}, 1]])
def test_categories_are_values(saved, rewritten, categories):
    change = carry("b + C(a)", {"b": NUMBER, "C(a)": ("categorical", categories)})
    assert "categories that are not values" in refusal(saved, rewritten, change)


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (IndexError, FormulaError, "cannot be evaluated"),
        (KeyError, FormulaError, "cannot be evaluated"),
        (AttributeError, FormulaError, "cannot be evaluated"),
        # Too little memory is not a fault of the formula.
        (MemoryError, MemoryError, "x"),
    ],
)
def test_what_fails_in_a_formula_fails_with_an_error_of_ours(
    saved, monkeypatch, error, raised, words
):
    import heckmanfa.data.formula.matrix

    def fail(*given):
        raise error("x")

    model = load_model(saved).model
    monkeypatch.setattr(heckmanfa.data.formula.matrix, "_evaluate", fail)
    with pytest.raises(raised, match=words):
        model.predict(table(20))


HONEST = [
    "a + C(g)",
    "a + C(g, levels=[0, 1, 2])",
    "a + C(g, Sum)",
    "a + C(g, contr.treatment(1))",
    "a + C(g, contr.poly)",
    "a + C(g, [[1, 0], [0, 1], [-1, -1]])",
    "a + C(g, {'one': [1, 0, -1], 'two': [0, 1, -1]})",
    "a + C(g) * C(h)",
    "a + C(g):C(h)",
    "C(g) * C(h) * a",
    "C(g):a + C(h)",
    "bs(a, df=4):C(h) + c",
    "bs(a, df=4):bs(b, df=4) + c",
    "bs(a, degree=2, knots=[-0.5, 0.5], include_intercept=True) + c",
    "bs(a) + c",
    "cr(a, df=4):bs(b, df=3) + c",
    "cc(a, df=4, constraints='center') + cs(b, df=3, constraints='center') + c",
    "cr(a, df=3, constraints='center'):C(g) + c",
    "center(poly(a, 2)) + c",
    "center(bs(a, df=4)) + c",
    "poly(a, 2, raw=True):poly(b, 3) + c",
    "scale(a, 2, 3) + standardize(b) + scale(c, center=False)",
    "np.round(a, 2) + np.round(10 * c, -1)",
    "center(np.exp(a)):C(g) + c",
    "a + a:b:c + b - b",
]


@pytest.mark.parametrize("right", HONEST)
def test_an_honest_formula_comes_back(right, tmp_path):
    model = write(tmp_path / "m.heckmanfa", right, "a + b + c")
    again = load_model(tmp_path / "m.heckmanfa").model
    frame = table()
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
