"""How the probabilities of Heckman-FA were trained: what pictures of it show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.plots.picture_text import PictureText
from heckmanfa.text.numbers import count, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table


@dataclass(frozen=True, eq=False)
class TrainingPath:
    """The probability of each feature over the epochs recorded."""

    epochs: Floats
    """(R,)"""
    probability: Floats
    """(R, K)"""
    names: tuple[str, ...]
    support: Mask
    """(K,) which features predict"""
    order: tuple[int, ...]
    """features that were trained, the highest probability at the end first"""

    def text(self) -> PictureText:
        """Return the words around the paths."""
        first, last = self.probability[0], self.probability[-1]
        top = ", ".join(f"{shown(self.names[k])} {last[k]:.2f}" for k in self.order[:5])
        rows = [
            [
                self.names[k],
                "yes" if self.support[k] else "no",
                f"{first[k]:.3f}",
                f"{last[k]:.3f}",
            ]
            for k in self.order
        ]
        columns = (
            *(Column("Feature", False), Column("Predicts", False)),
            *(Column("First"), Column("Last")),
        )
        return PictureText(
            title="How the probabilities were trained",
            alt=(
                f"Probability of each of {plural(len(self.order), 'feature')} over "
                f"{count(int(self.epochs[-1]))} epochs. At the end the highest are {top}."
            ),
            caption=(
                "The probability with which Heckman-FA lets each feature predict, over its "
                "training. The features of the model are those of the best assignment proposed, "
                "which need not be those of the highest probability."
            ),
            table=Table(columns, tuple(rows), "Probability to predict", "path-table"),
        )


def read_path(
    path: Mapping[str, Any] | None, names: tuple[str, ...], support: Mask
) -> TrainingPath | None:
    """Return the training as ``path_`` of a model records it; None without a record."""
    if not path or not len(path["epoch"]):
        return None
    probability = np.asarray(path["inclusion_prob"])
    trained = np.flatnonzero(np.isfinite(probability).all(axis=0))
    order = trained[np.argsort(-probability[-1, trained], kind="stable")]
    return TrainingPath(
        epochs=np.asarray(path["epoch"]),
        probability=probability,
        names=names,
        support=support,
        order=tuple(int(column) for column in order),
    )
