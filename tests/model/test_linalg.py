import mpmath as mp
import numpy as np
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import AllObservedWarning
from heckmanfa.model.linalg import dependencies, describe_dependencies, factor, stack

FLOORS = {
    "longley": 10,
    "norris": 10,
    "pontius": 10,
    "wampler1": 7,
    "wampler2": 7,
    "wampler3": 7,
    "wampler4": 7,
    "wampler5": 5,
    "filip": 6,
}


def problem(data):
    """Features and outcome as floats, and as exact decimals."""
    if "degree" in data:
        exact = [[mp.mpf(v) ** k for k in range(1, data["degree"] + 1)] for v in data["x"]]
        x = np.array([[float(v) ** k for k in range(1, data["degree"] + 1)] for v in data["x"]])
    else:
        exact = [[mp.mpf(v) for v in row] for row in data["x"]]
        x = np.array(data["x"], dtype=float)
    return x, np.array(data["y"], dtype=float), exact, [mp.mpf(v) for v in data["y"]]


def certified(exact, y):
    """Coefficients and standard errors by normal equations in 60 digits."""
    design = mp.matrix([[1, *row] for row in exact])
    inverse = (design.T * design) ** -1
    beta = inverse * (design.T * mp.matrix(y))
    residual = mp.matrix(y) - design * beta
    variance = (residual.T * residual)[0] / (design.rows - design.cols)
    errors = [mp.sqrt(variance * inverse[i, i]) for i in range(design.cols)]
    return list(beta), errors


def digits(values, exact):
    worst = max(abs(mp.mpf(float(v)) / e - 1) for v, e in zip(values, exact, strict=True))
    return float(-mp.log10(worst)) if worst > 0 else 16.0


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.filterwarnings("ignore::heckmanfa.errors.LeakageWarning")  # Wampler1, 2: no error
def test_nist_strd_least_squares_keeps_its_digits(name, oracle):
    with mp.workdps(60):
        x, y, exact, exact_y = problem(oracle("nist")[name])
        beta, errors = certified(exact, exact_y)
        with pytest.warns(AllObservedWarning):
            model = Heckman().fit(x, y)
        assert digits([model.intercept_, *model.coef_], beta) >= FLOORS[name]
        if name not in ("wampler1", "wampler2"):  # a perfect fit has no standard error
            reported = model.tidy()["std_error"].iloc[: x.shape[1] + 1]
            assert digits(reported, errors) >= FLOORS[name] - 1


def test_factor_over_blocks_equals_factor_of_all_rows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1000, 6)) * 10.0 ** np.arange(-3, 3)
    whole = stack([factor(a)], 6)
    blocks = stack((factor(part) for part in np.array_split(a, 37)), 6)
    np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-12 * np.abs(whole).max())
    np.testing.assert_allclose(whole.T @ whole, a.T @ a, rtol=1e-10)


def test_factor_of_fewer_rows_than_columns_is_padded_with_zeros():
    a = np.arange(6.0).reshape(2, 3)
    r = stack([factor(a)], 3)
    np.testing.assert_allclose(r.T @ r, a.T @ a, atol=1e-12)
    assert stack([], 3).tolist() == np.zeros((3, 3)).tolist()


def test_dependencies_name_what_depends_on_what():
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 500))
    columns = [np.ones(500), a, b, 2 * a - 3 * b + 5, np.full(500, 7.0), c, 1e6 * c]
    found = dependencies(stack([factor(np.column_stack(columns))], 7))
    words = describe_dependencies(found, ["1", "a", "b", "ab", "seven", "c", "million c"])
    assert words == [
        "'ab' is a linear combination of 'a', 'b' and the intercept",
        "'seven' is constant",
        "'million c' is a linear function of 'c'",
    ]


def test_a_nearly_collinear_column_is_not_taken_for_a_collinear_one():
    rng = np.random.default_rng(2)
    a = rng.normal(size=500)
    design = np.column_stack([np.ones(500), a, a + 1e-9 * rng.normal(size=500)])
    assert dependencies(stack([factor(design)], 3)) == []
