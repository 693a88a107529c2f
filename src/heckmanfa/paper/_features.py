"""What Tables sampling and topjfeats share: a set of features against Naive and RU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.datasets import PaperData
from heckmanfa.errors import NoFeasibleAssignmentError
from heckmanfa.estimators.ru import RURegressor
from heckmanfa.paper.protocol import Experiment, Judged, fit, judge
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table, between, counted

__all__ = ["Printed", "add_listed", "add_ru", "add_searched", "ru_errors", "searched"]


@dataclass(frozen=True)
class Printed:
    """A row of the paper's tables."""

    rho: float
    adjusted_r2: float
    naive: tuple[float, float]
    """train and test MSE; so are the next two"""
    ru: tuple[float, float]
    heckman: tuple[float, float]


def add_listed(
    table: Table,
    experiment: Experiment,
    features: Sequence[int],
    printed: Printed,
    options: Options,
    *,
    star: bool,
    expected: dict[str, tuple[float, str]],
) -> None:
    """Add the deterministic rows of features that the paper lists.

    ``expected`` has what a quantity must be where the printed value is something else, and why.
    """
    data = experiment.data()
    found = judge(data, fit(data, features), as_published=options.as_published, star=star)
    row = "features " + ", ".join(str(one) for one in features)
    for quantity, ours, value in (
        ("rho", found.rho, printed.rho),
        ("adjusted R2", found.adjusted_r2, printed.adjusted_r2),
        ("Naive train MSE", found.naive_train, printed.naive[0]),
        ("Naive test MSE", found.naive_test, printed.naive[1]),
        ("train MSE", found.train, printed.heckman[0]),
        ("test MSE", found.test, printed.heckman[1]),
    ):
        other, why = expected.get(quantity, (value, ""))
        table.exact(experiment.name, row, quantity, ours, value, expected=other, note=why)
    table.beyond(
        experiment.name,
        row,
        "marginal test MSE",
        found.test_marginal,
        note="without the inverse Mills ratio: the test rows were not selected",
    )


def searched(
    experiment: Experiment, options: Options, extraction: str, what: str, **settings: Any
) -> list[Judged]:
    """Judge what searches find, for every seed that finds an assignment in the window."""
    data = experiment.data()
    found = []
    for seed in range(options.seeds):
        options.say(f"{experiment.name}: {what}, seed {seed}")
        try:
            model = experiment.search(extraction, seed=seed, **settings)
        except NoFeasibleAssignmentError:
            continue
        star = extraction == "rank"
        found.append(judge(data, model, as_published=options.as_published, star=star))
    return found


def add_searched(
    table: Table, experiment: Experiment, extraction: str, printed: Printed, options: Options
) -> None:
    """Add what our search finds, over seeds."""
    found = searched(experiment, options, extraction, f"search by {extraction}")
    row = f"found by {extraction}"
    if not found:
        table.random(
            experiment.name, row, "test MSE", float("nan"), printed.heckman[1],
            note=f"no assignment in the window in {counted(options.seeds, 'seed')}",
        )  # fmt: skip
        return
    sets = {one.features for one in found}
    first = ", ".join(str(one) for one in found[0].features)
    words = (
        f"{len(found)} of {counted(options.seeds, 'seed')}, {counted(len(sets), 'set')}: {first}"
    )
    words += ", ..." if len(sets) > 1 else ""
    for quantity, name, value in (
        ("rho", "rho", printed.rho),
        ("adjusted R2", "adjusted_r2", printed.adjusted_r2),
        ("Naive test MSE", "naive_test", printed.naive[1]),
        ("train MSE", "train", printed.heckman[0]),
        ("test MSE", "test", printed.heckman[1]),
    ):
        values = np.array([getattr(one, name) for one in found])
        table.random(
            experiment.name, row, quantity, float(values.mean()), value,
            spread=between(values), note=words if quantity == "test MSE" else "",
        )  # fmt: skip
    values = np.array([one.test_marginal for one in found])
    table.beyond(
        experiment.name, row, "marginal test MSE", float(values.mean()), spread=between(values)
    )


def add_ru(
    table: Table,
    experiment: Experiment,
    features: Sequence[int],
    printed: Printed,
    options: Options,
) -> None:
    """Add Rockafellar-Uryasev regression on features that the paper lists, over seeds."""
    if not options.ru:
        return
    errors = []
    for seed in range(options.seeds):
        options.say(f"{experiment.name}: RU, seed {seed}")
        errors.append(ru_errors(experiment.data(), features, seed))
    means, spreads = np.mean(errors, axis=0), [between(one) for one in np.array(errors).T]
    row = "features " + ", ".join(str(one) for one in features)
    for place, quantity in enumerate(("RU train MSE", "RU test MSE")):
        table.random(
            experiment.name,
            row,
            quantity,
            float(means[place]),
            printed.ru[place],
            spread=spreads[place],
            note=counted(options.seeds, "seed"),
        )


def ru_errors(data: PaperData, features: Sequence[int], seed: int) -> tuple[float, float]:
    """Train and test MSE of Rockafellar-Uryasev regression on features counted from 1."""
    model = RURegressor([one - 1 for one in features], random_state=seed).fit(data.X, data.y)
    observed = data.selected
    train = np.mean((data.y[observed] - model.predict(data.X[observed])) ** 2)
    return float(train), float(np.mean((data.y_test - model.predict(data.X_test)) ** 2))
