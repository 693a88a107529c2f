"""Table moretopj: Heckman-C against Heckman-FA* over the number J of features, on CRIME."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.model.compressed import compress
from heckmanfa.paper.protocol import CRIME, fit, judge
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table, between, counted
from heckmanfa.search import correlations
from heckmanfa.search.choices import all_features

__all__ = ["more_top_features"]

_SIZES = range(6, 13)
_HECKMAN_C = (0.0490, 0.0563, 0.0479, 0.0500, 0.0498, 0.0555, 0.0524)
_HECKMAN_FA_STAR = (0.0290, 0.0290, 0.0216, 0.0215, 0.0216, 0.0216, 0.0216)


def more_top_features(options: Options | None = None) -> pd.DataFrame:
    """Reproduce Table moretopj.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        Heckman-C is deterministic; it is computed with lambda = 0 on the five test rows where the
        published run has it, which gives every printed digit, and with the true lambda.
        Heckman-FA* depends on the training.
    """
    options = Options() if options is None else options
    table = Table()
    data = CRIME.data()
    moments = compress(data.X, data.y).moments
    ranked = np.argsort(-correlations(moments, all_features(moments)), kind="stable") + 1
    low, high = CRIME.rho_range
    for size, printed in zip(_SIZES, _HECKMAN_C, strict=True):
        model = fit(data, ranked[:size].tolist())
        inside = "inside" if low <= model.rho_ <= high else "outside"
        found = judge(data, model, as_published=True)
        table.exact(
            "CRIME",
            f"Heckman-C, J = {size}",
            "test MSE",
            found.test,
            printed,
            note=f"lambda = 0 on five test rows; rho {model.rho_:.4f}, {inside} the window",
        )
        true = judge(data, model)
        table.beyond("CRIME", f"Heckman-C, J = {size}", "test MSE, true lambda", true.test)
        table.beyond("CRIME", f"Heckman-C, J = {size}", "marginal test MSE", true.test_marginal)
    if options.quick:
        return table.frame()
    errors: dict[int, list[float]] = {size: [] for size in _SIZES}
    marginal: dict[int, list[float]] = {size: [] for size in _SIZES}
    for seed in range(options.seeds):
        options.say(f"CRIME: ranks of the trained probabilities, seed {seed}")
        trained = CRIME.search("rank", seed=seed, windowed=False).inclusion_prob_
        order = np.argsort(-trained, kind="stable") + 1
        for size in _SIZES:
            model = fit(data, order[:size].tolist())
            errors[size].append(judge(data, model, as_published=True).test)
            marginal[size].append(judge(data, model).test_marginal)
    for size, printed in zip(_SIZES, _HECKMAN_FA_STAR, strict=True):
        table.random(
            "CRIME",
            f"Heckman-FA*, J = {size}",
            "test MSE",
            float(np.mean(errors[size])),
            printed,
            spread=between(errors[size]),
            note=f"lambda = 0 on five test rows; {counted(options.seeds, 'seed')}",
        )
        table.beyond(
            "CRIME",
            f"Heckman-FA*, J = {size}",
            "marginal test MSE",
            float(np.mean(marginal[size])),
            spread=between(marginal[size]),
        )
    return table.frame()
