"""Fits of many kinds, for tests of what each of them says and returns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanProbit,
    HeckmanProbitBestSubset,
)
from heckmanfa.datasets import load_mroz
from heckmanfa.search.averaging import gibbs

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
TWO = FEATURES[:2]
MROZ = load_mroz()
X, Y, WORKS = MROZ[FEATURES], MROZ["lwage"], MROZ["lfp"] == 1
PLACES = np.arange(len(MROZ))
MANY = MROZ[[*FEATURES, "city", "unem", "motheduc", "fatheduc", "kids618"]]
LEVELS = X.assign(
    city=MROZ["city"],
    unem=MROZ["unem"],
    schooling=pd.cut(MROZ["educ"], [0, 11, 12, 20], labels=["some", "twelve", "more"]).astype(str),
)


def earns(wage):
    """Whether a wage is at least this, unknown where there is none."""
    return (MROZ["wage"] >= wage).astype(object).where(WORKS)


def to_the_boundary():
    """With e = u exactly, the likelihood rises until rho is one."""
    rng = np.random.default_rng(3)
    features, u = rng.normal(size=(300, 2)), rng.normal(size=300)
    return features, np.where(features.sum(axis=1) + u > 0, features[:, 0] + u, np.nan)


def unequal_variances():
    rng = np.random.default_rng(5)
    features, u = rng.normal(size=(1500, 3)), rng.normal(size=1500)
    e = 0.5 * u + (0.3 + np.exp(0.9 * features[:, 0])) * rng.normal(size=1500)
    y = np.where(features.sum(axis=1) + u > 0, features[:, 0] + e, np.nan)
    return pd.DataFrame(features, columns=list("abc")), y


def rare_ones():
    """9 of 199 selected rows are of the positive class: rho goes to one."""
    rng = np.random.default_rng(0)
    features, errors = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    errors[:, 1] = 0.9 * errors[:, 0] + np.sqrt(0.19) * errors[:, 1]
    y = (-2.2 + 0.5 * features[:, 0] + errors[:, 1] > 0).astype(float)
    y[features @ [0.5, 0.5, 0.7] + errors[:, 0] <= 0] = np.nan
    return features, y


def flat():
    """One feature in both equations: the likelihood of a Heckman probit is flat in rho."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 1))
    errors = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=400)
    y = (0.6 * features[:, 0] + errors[:, 1] > 0).astype(float)
    y[-0.8 + 0.8 * features[:, 0] + errors[:, 0] <= 0] = np.nan
    return features, y


def many_features():
    """30 features, 4 of which predict: too many to weigh every assignment."""
    rng = np.random.default_rng(8)
    features, errors = rng.normal(size=(500, 30)), rng.normal(size=(500, 2))
    errors[:, 1] = 0.5 * errors[:, 0] + errors[:, 1]
    y = features[:, :4] @ [1.0, -0.6, 0.3, 0.2] + errors[:, 1]
    y[features[:, 2:12] @ np.full(10, 0.3) + errors[:, 0] <= 0] = np.nan
    return pd.DataFrame(features, columns=[f"x{place}" for place in range(30)]), y


def average_of_many():
    """Their average, in chains shorter than those of users: it is recorded, not judged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gibbs, "LEAST_SWEEPS", 50)
        patch.setattr(gibbs, "_STEPS", 0)
        return HeckmanAverage().fit(*many_features())


def strong():
    """Seven features that predict, three more that select, and errors that go together."""
    rng = np.random.default_rng(4)
    features, errors = rng.normal(size=(700, 10)), rng.normal(size=(700, 2))
    errors[:, 1] = 0.9 * errors[:, 0] + 0.4 * errors[:, 1]
    y = features[:, :7] @ [1.0, -0.9, 0.8, 0.7, -0.6, 0.5, 0.4] + errors[:, 1]
    y[features[:, 5:] @ [0.3, 0.3, 1.0, -0.8, 0.5] + errors[:, 0] <= 0] = np.nan
    return pd.DataFrame(features, columns=list("abcdefghij")), y


def greene(**options):
    """Greene's model of wages, whose likelihood has a second maximum at rho 0.993."""
    kids = (MROZ["kids5"] + MROZ["kids618"] > 0) * 1
    rows = MROZ.assign(kids=kids, agesq=MROZ["age"] ** 2)
    who = "age + agesq + faminc + kids + educ"
    return Heckman.from_formula("wage ~ exper + expersq + educ + city", who, rows, **options)


FITS = {
    "two-step": lambda: Heckman(TWO).fit(X, Y),
    "ml": lambda: Heckman(TWO, method="ml").fit(X, Y),
    "ml, robust": lambda: Heckman(TWO, method="ml", cov_type="robust").fit(X, Y),
    "12 clusters": lambda: Heckman(TWO, cov_type="cluster").fit(X, Y, groups=PLACES % 12),
    "60 clusters": lambda: Heckman(TWO, cov_type="cluster").fit(X, Y, groups=PLACES % 60),
    "5 clusters, ml": lambda: Heckman(TWO, method="ml", cov_type="cluster").fit(
        X, Y, groups=PLACES % 5
    ),
    "no exclusion": lambda: Heckman(FEATURES).fit(X, Y),
    "no exclusion, ml": lambda: Heckman(FEATURES, method="ml").fit(X, Y),
    "weak exclusion": lambda: Heckman(["educ"]).fit(MROZ[["educ", "city"]], Y),
    "held": lambda: Heckman(TWO, rho=0.3).fit(X, Y),
    "held, ml": lambda: Heckman(TWO, rho=0.3, method="ml").fit(X, Y),
    "held, no exclusion": lambda: Heckman(FEATURES, rho=0.3).fit(X, Y),
    "held, probit": lambda: HeckmanProbit(TWO, rho=0.3).fit(X, earns(4)),
    "all observed": lambda: Heckman(TWO).fit(X, MROZ["hours"]),
    "all observed, probit": lambda: HeckmanProbit(TWO).fit(X, MROZ["lfp"]),
    "outcome decided": lambda: HeckmanProbit(["educ", "late"]).fit(
        X.assign(late=MROZ["lfp"] * 1.0), MROZ["lfp"]
    ),
    "column dropped": lambda: Heckman(["educ"], on_collinear="drop").fit(
        X.assign(twice=2 * X["age"]), Y
    ),
    "boundary, ml": lambda: Heckman([0], method="ml").fit(*to_the_boundary()),
    "boundary, probit": lambda: HeckmanProbit([0, 1]).fit(*rare_ones()),
    "flat, probit": lambda: HeckmanProbit().fit(*flat()),
    "made from the outcome": lambda: Heckman(["educ", "copy"]).fit(
        X.assign(copy=np.where(WORKS, Y, 1.0) + 0.001 * np.cos(PLACES)), Y
    ),
    "unequal variances": lambda: Heckman(["a", "b"], method="ml").fit(*unequal_variances()),
    "lower maximum": lambda: greene(method="ml"),
    "higher maximum": lambda: greene(method="ml", start=0.99),
    "two-step of two maxima": greene,
    "log": lambda: Heckman(TWO, outcome_transform="log").fit(X, MROZ["wage"].where(WORKS)),
    "probit": lambda: HeckmanProbit(TWO).fit(X, earns(4)),
    "probit, no exclusion": lambda: HeckmanProbit(FEATURES).fit(X, earns(4)),
    "probit, few events": lambda: HeckmanProbit(TWO).fit(X, earns(12)),
    "average": lambda: HeckmanAverage().fit(X, Y),
    "average, robust": lambda: HeckmanAverage(cov_type="robust").fit(X, Y),
    "search": lambda: HeckmanBestSubset().fit(X, Y),
    "search, robust": lambda: HeckmanBestSubset(cov_type="robust").fit(X, Y),
    "window": lambda: HeckmanFA("correlation", rho_range=(-0.9, 0.9)).fit(X, Y),
    "window, ml": lambda: HeckmanFA("correlation", rho_range=(-0.9, 0.9), method="ml").fit(X, Y),
}
# Fits that are only recorded.
OTHERS = {
    "honest": lambda: HeckmanBestSubset(honest=True, n_splits=8, random_state=1).fit(X, Y),
    "search, probit": lambda: HeckmanProbitBestSubset().fit(X, earns(4)),
    "search, probit, few refits": lambda: HeckmanProbitBestSubset(n_refits=3, max_nodes=3).fit(
        MANY, earns(4)
    ),
    "search, aic, ml": lambda: HeckmanBestSubset("aic", method="ml", max_features=2).fit(X, Y),
    "search, categories": lambda: HeckmanBestSubset(
        always=["age"], never=["kids5"], feature_groups={"town": ["city", "unem"]}
    ).fit(LEVELS, Y),
    "lasso": lambda: HeckmanLasso().fit(X, Y),
    "fa": lambda: HeckmanFA(epochs=60, n_draws=60, random_state=0).fit(X, Y),
    "rank, log": lambda: HeckmanFA(
        "rank", epochs=60, random_state=0, outcome_transform="log", max_features=3
    ).fit(X, MROZ["wage"].where(WORKS)),
    "average, categories": lambda: HeckmanAverage("bic", never=["kids5"]).fit(LEVELS, Y),
    "average, ml": lambda: HeckmanAverage(method="ml").fit(X, Y),
    "average, window": lambda: HeckmanAverage("mean", rho_range=(-0.9, 0.9)).fit(X, Y),
    "average, sampled": average_of_many,
    "average, sampling weights": lambda: HeckmanAverage(
        cov_type="robust", weight_kind="sampling"
    ).fit(X, Y, sample_weight=1.0 + PLACES % 3),
    "frequencies": lambda: Heckman(TWO).fit(X, Y, sample_weight=1 + PLACES % 3),
    "sampling weights, ml": lambda: Heckman(
        TWO, method="ml", cov_type="robust", weight_kind="sampling"
    ).fit(X, Y, sample_weight=1.0 + PLACES % 3),
    "probit, clusters": lambda: HeckmanProbit(TWO, cov_type="cluster").fit(
        X, earns(4), groups=PLACES % 30
    ),
    "categories": lambda: Heckman(["educ", "schooling"], reference={"schooling": "some"}).fit(
        LEVELS, Y
    ),
    "all observed, sampling weights, ml": lambda: Heckman(
        TWO, method="ml", cov_type="robust", weight_kind="sampling"
    ).fit(X, MROZ["hours"], sample_weight=1.0 + PLACES % 3),
    "no features, probit": lambda: HeckmanProbit([]).fit(X, earns(4)),
    "search, sampling weights": lambda: HeckmanBestSubset(
        cov_type="robust", weight_kind="sampling"
    ).fit(X, Y, sample_weight=1.0 + PLACES % 3),
    "lasso, sampling weights": lambda: HeckmanLasso(cov_type="robust", weight_kind="sampling").fit(
        MANY, Y, sample_weight=1.0 + PLACES % 3
    ),
    "honest, probit": lambda: HeckmanProbitBestSubset(honest=True, n_splits=3, random_state=1).fit(
        X, earns(4)
    ),
    "honest, many": lambda: HeckmanBestSubset("aic", honest=True, n_splits=5, random_state=1).fit(
        *strong()
    ),
    "average, noise": lambda: HeckmanAverage().fit(X, Y.where(Y.isna(), np.cos(7 * PLACES))),
    "average, strong": lambda: HeckmanAverage().fit(*strong()),
    "average, groups": lambda: HeckmanAverage(feature_groups=[list("cdefg")]).fit(*strong()),
    "search, strong": lambda: HeckmanBestSubset().fit(*strong()),
    "search, strong, ml": lambda: HeckmanBestSubset("aic", method="ml").fit(*strong()),
    "strong, ml": lambda: Heckman(list("abcdef"), method="ml").fit(*strong()),
    "strong, log": lambda: Heckman(list("abcdef"), method="ml", outcome_transform="log").fit(
        strong()[0], np.exp(strong()[1])
    ),
    "no features": lambda: Heckman([]).fit(X, Y),
}
