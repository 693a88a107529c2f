import mpmath as mp
import numpy as np
import pytest

from heckmanfa import Heckman
from heckmanfa.data.rows import ColumnArrays, Dummy
from heckmanfa.errors import AllObservedWarning
from heckmanfa.model.disjoint_columns import DisjointFactor
from heckmanfa.model.linalg import (
    Design,
    block_factor,
    dependencies,
    describe_dependencies,
    factor,
    merge_factors,
    stack,
)

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


def with_categories(sizes, rows=3000, every_level=False):
    """``[1, numbers, dummies, y]``, of categories with some numbers of levels."""
    rng = np.random.default_rng(5)
    dummies = [
        np.eye(size)[rng.integers(0, size, rows)][:, 0 if every_level else 1 :] for size in sizes
    ]
    numbers = rng.normal(size=(rows, 2)) * [1.0, 1e-3] + [10.0, 0.0]
    return np.column_stack([np.ones(rows), numbers, *dummies, rng.normal(size=rows)])


def blocks_of(matrix, size=300):
    return [np.asfortranarray(matrix[i : i + size]) for i in range(0, len(matrix), size)]


@pytest.mark.parametrize("sizes", [[80], [60, 50], [9, 9, 9, 9, 9], [40, 3]])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_factor_of_dummies_is_the_one_of_numpy(sizes, weighted):
    matrix = with_categories(sizes)
    if weighted:
        matrix *= np.random.default_rng(6).uniform(0.1, 3.0, len(matrix))[:, None]
    exact = np.linalg.qr(matrix, mode="r")
    exact *= np.sign(np.diag(exact))[:, None]
    found = stack([block_factor(block) for block in blocks_of(matrix)], matrix.shape[1])
    merged = stack([merge_factors([block_factor(b) for b in blocks_of(matrix)])], matrix.shape[1])
    scale = np.linalg.norm(matrix, axis=0)
    np.testing.assert_allclose(found / scale, exact / scale, rtol=0, atol=1e-13)
    np.testing.assert_allclose(merged / scale, exact / scale, rtol=0, atol=1e-13)


def test_dummies_of_blocks_with_other_levels_and_without_any_merge():
    matrix = with_categories([80])
    # The last rows have few levels, so dummies that are rare elsewhere are common there.
    matrix[1500:, 3:-1] = np.eye(79)[np.random.default_rng(7).integers(0, 4, 1500)]
    matrix[2700:, 3:-1] = np.random.default_rng(8).normal(size=(300, 79))
    exact = np.abs(np.linalg.qr(matrix, mode="r"))
    parts = [block_factor(block) for block in blocks_of(matrix)]
    assert len({type(part) for part in parts}) == 2
    np.testing.assert_allclose(
        np.abs(stack(parts, matrix.shape[1])), exact, rtol=0, atol=1e-12 * exact.max()
    )


def test_dummies_of_every_level_depend_on_the_constant():
    matrix = with_categories([80], every_level=True)
    r = stack([block_factor(block) for block in blocks_of(matrix)], matrix.shape[1])
    (found,) = dependencies(r)
    assert found.column == 82
    assert found.on == (0, *range(3, 82))


def test_a_category_of_many_levels_costs_no_dense_factor():
    parts = [block_factor(block) for block in blocks_of(with_categories([200]))]
    assert all(isinstance(part, DisjointFactor) for part in parts)
    merged = merge_factors(parts)
    assert merged.rest.shape == (4, 4)


def test_products_of_sparse_rows_are_those_of_dense_ones():
    matrix, weight = with_categories([200]), np.random.default_rng(9).random(3000)
    expected = (matrix * weight[:, None]).T @ matrix
    for features in (matrix[:, 1:], np.asfortranarray(matrix[:, 1:])):
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        gram = Design(features).gram(weight)
        np.testing.assert_allclose(gram / scale, expected / scale, rtol=0, atol=1e-14)


@pytest.mark.parametrize("gaps", [False, True])
def test_a_block_of_dummies_is_that_of_each_column(gaps):
    rng = np.random.default_rng(10)
    first, second = rng.integers(-1 if gaps else 0, 6, 50), rng.integers(0, 3, 50).astype(np.int8)
    arrays = {0: rng.normal(size=50)}
    arrays |= {k: Dummy(first, k, gaps) for k in (1, 2, 3)}
    arrays |= {k: Dummy(second, k - 4, False) for k in (5, 6)}
    for columns in ([0, 1, 2, 3, 5, 6], [6, 3, 0, 1], [2], [0]):
        expected = np.column_stack([np.asarray(arrays[k][10:40], dtype=float) for k in columns])
        block = ColumnArrays(arrays, (50, 7)).take(10, 40, columns)
        np.testing.assert_array_equal(block, expected)


def test_a_factor_leaves_its_matrix_alone():
    matrix = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 5)))
    before = matrix.copy()
    found = factor(matrix)
    assert np.array_equal(matrix, before)
    np.testing.assert_allclose(found.T @ found, before.T @ before, atol=1e-12)
