"""The functions that the formula of a model file may call, and with which arguments.

A formula in a program may call whatever Python offers. The formula of a model file comes from
elsewhere: it may only call what is listed here, with the arguments that are listed here. Each of
these functions turns columns into columns; none reads, writes, imports, or calls its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Signature:
    """The arguments that a listed function may get."""

    least: int = 1
    """fewest positional arguments"""
    most: int = 1
    keywords: frozenset[str] = frozenset()
    settings: bool = False
    """whether arguments after the first may be text, lists and contrasts"""
    stateful: bool = False
    """whether formulaic writes the call into Python code of its own"""
    widths: frozenset[int | str] = frozenset()
    """arguments that say how many columns there will be"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNARY = _words(
    "abs absolute fabs sign sqrt cbrt square exp exp2 expm1 log log2 log10 log1p "
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh "
    "degrees radians deg2rad rad2deg floor ceil trunc rint negative positive reciprocal "
    "isnan isinf isfinite signbit logical_not"
)
_BINARY = _words(
    "add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power "
    "maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign heaviside "
    "greater greater_equal less less_equal equal not_equal logical_and logical_or logical_xor"
)

CONSTANTS = frozenset({"np.pi", "np.e", "np.nan", "np.inf"})

# A contrast applies to the factor that it belongs to, so these need no argument.
CONTRASTS: dict[str, Signature] = {
    "contr.treatment": Signature(0, 1, _words("base"), settings=True),
    "contr.SAS": Signature(0, 1, _words("base"), settings=True),
    "contr.sum": Signature(0, 0),
    "contr.helmert": Signature(0, 2, _words("reverse scale"), settings=True),
    "contr.diff": Signature(0, 1, _words("backward"), settings=True),
    "contr.poly": Signature(0, 1, _words("scores"), settings=True),
    "contr.custom": Signature(1, 2, _words("names"), settings=True),
    "Treatment": Signature(0, 1, _words("reference"), settings=True),
    "Sum": Signature(0, 0),
    "Helmert": Signature(0, 2, _words("reverse scale"), settings=True),
    "Diff": Signature(0, 1, _words("backward"), settings=True),
    "Poly": Signature(0, 1, _words("scores"), settings=True),
}

_CUBIC = Signature(
    1,
    6,
    _words("df knots lower_bound upper_bound constraints extrapolation"),
    settings=True,
    stateful=True,
    widths=frozenset({1, "df"}),
)

FUNCTIONS: dict[str, Signature] = {
    **{f"np.{name}": Signature() for name in _UNARY},
    **{f"np.{name}": Signature(2, 2) for name in _BINARY},
    "np.round": Signature(1, 2),
    "np.clip": Signature(3, 3),
    "np.where": Signature(3, 3, settings=True),
    **{name: Signature() for name in ("log", "log2", "log10", "exp", "exp2", "exp10", "I")},
    "center": Signature(stateful=True),
    "scale": Signature(1, 4, _words("center scale ddof"), settings=True, stateful=True),
    "standardize": Signature(1, 4, _words("center rescale ddof"), stateful=True),
    "Q": Signature(stateful=True),
    "lag": Signature(1, 2, _words("k offset")),
    "poly": Signature(1, 3, _words("degree raw"), stateful=True, widths=frozenset({1, "degree"})),
    "bs": Signature(
        1,
        8,
        _words("df knots degree include_intercept lower_bound upper_bound extrapolation"),
        settings=True,
        stateful=True,
        widths=frozenset({1, 3, "df", "degree"}),
    ),
    "cr": _CUBIC,
    "cs": _CUBIC,
    "cc": _CUBIC,
    "C": Signature(1, 2, _words("contrasts levels spans_intercept"), settings=True),
    "hashed": Signature(
        1,
        3,
        _words("levels contrasts spans_intercept"),
        settings=True,
        widths=frozenset({1, "levels"}),
    ),
}
