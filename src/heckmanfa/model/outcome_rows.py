"""The selected rows alone, with a binary outcome in the place of selection.

What is written for the selection equation (the probit, its separation, counts of rows) then serves
for a plain probit of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from heckmanfa.data.arrays import Array, namespace
from heckmanfa.data.rows import Block, BlockFunction, Mask, Merge, Positions, RowsView


@dataclass(frozen=True)
class OutcomeRows(RowsView):
    """Selected rows of a fit; ``selected`` of their blocks is whether the outcome is 1."""

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for the selected rows of every block, in row order."""
        return self.rows.map(_on_outcome, function, args, columns=columns, merge=merge)

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> OutcomeRows:
        """Return the rows where ``function(block, *args)`` is False; unselected rows all stay."""
        return OutcomeRows(self.rows.without(_marked, function, args, columns=columns))


def _on_outcome(block: Block, function: BlockFunction, args: tuple[Any, ...]) -> Any:
    chosen = block.only_selected()
    return function(replace(chosen, selected=chosen.outcome > 0.5), *args)


def _marked(block: Block, function: Callable[..., Mask], args: tuple[Any, ...]) -> Array:
    marks = namespace(block.selected).zeros_like(block.selected)
    marks[block.selected] = _on_outcome(block, function, args)
    return marks
