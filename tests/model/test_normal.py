import mpmath as mp
import numpy as np
import pytest

from heckmanfa.model.normal import inverse_mills, log_cdf, log_cdf_and_mills, mills

POINTS = np.concatenate([-np.logspace(8, -8, 300), [0.0], np.linspace(-12.0, 37.0, 500)])


def exact_mills(z):
    """lambda and lambda + z to 60 digits; a continued fraction where erfc is out of range."""
    z = mp.mpf(float(z))
    if z > -200:
        ratio = mp.sqrt(2 / mp.pi) * mp.exp(-z * z / 2) / mp.erfc(-z / mp.sqrt(2))
        return ratio, ratio + z
    tail = -z
    for term in range(200, 1, -1):
        tail = -z + term / tail
    return -z + 1 / tail, 1 / tail


def exact_log_cdf(z):
    z = mp.mpf(float(z))
    if z > 0:
        return mp.log1p(-mp.erfc(z / mp.sqrt(2)) / 2)
    return -z * z / 2 - mp.log(2 * mp.pi) / 2 - mp.log(exact_mills(z)[0])


@pytest.fixture(scope="module", autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def relative(values, exact):
    return np.array(
        [float(abs(mp.mpf(float(v)) / e - 1)) for v, e in zip(values, exact, strict=True)]
    )


def floor(points, left=1e-14):
    return np.where(points <= 5, left, 1e-12)


def test_inverse_mills_agrees_with_mpmath_from_minus_1e8_to_37():
    error = relative(inverse_mills(POINTS), [exact_mills(z)[0] for z in POINTS])
    assert np.all(error < floor(POINTS))


def test_slope_agrees_with_mpmath_where_the_plain_product_has_no_digit_left():
    exact = [ratio * excess for ratio, excess in map(exact_mills, POINTS)]
    slope = mills(POINTS)[1]
    assert np.all(relative(slope, exact) < floor(POINTS))
    plain = inverse_mills(POINTS) * (inverse_mills(POINTS) + POINTS)
    assert relative(plain, exact).max() > 0.5
    assert slope.min() >= 0
    assert slope.max() <= 1


def test_log_cdf_agrees_with_mpmath():
    error = relative(log_cdf(POINTS), [exact_log_cdf(z) for z in POINTS])
    assert np.all(error < floor(POINTS))


def test_limits_and_missing_values():
    ratio, slope = mills([np.inf, -np.inf, np.nan, 40.0])
    np.testing.assert_array_equal(ratio, [0.0, np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(slope, [0.0, 1.0, np.nan, 0.0])


def test_slope_is_minus_the_derivative_of_the_ratio():
    z = np.linspace(-8, 6, 57)
    h = 1e-5
    numeric = -(inverse_mills(z + h) - inverse_mills(z - h)) / (2 * h)
    np.testing.assert_allclose(mills(z)[1], numeric, rtol=1e-6, atol=1e-9)


def test_scalars_and_other_shapes_keep_their_shape():
    assert inverse_mills(0.3).shape == ()
    assert mills(-9.0)[1].shape == ()
    assert mills(np.zeros((2, 3)))[1].shape == (2, 3)


def test_the_three_in_one_agree_with_the_single_functions():
    value, ratio, slope = log_cdf_and_mills(np.append(POINTS, [45.0, np.inf]))
    assert np.all(np.abs(value[:-2] - log_cdf(POINTS)) <= 1e-15 * (1 + POINTS**2))
    assert value[-2:].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(ratio[:-2], inverse_mills(POINTS), rtol=1e-12)
    np.testing.assert_allclose(slope[:-2], mills(POINTS)[1], rtol=1e-12)
