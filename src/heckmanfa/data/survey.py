"""The design of a survey: strata, primary sampling units (PSUs), weights, and replicate weights.

`Survey` names the columns that hold it. `SurveyUnits` are those columns, read: the unit of each
row, and what each unit belongs to. Every row that is read counts in the design, whether or not it
is in the fit, so a unit without a row of the subpopulation has a total of zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import repeated
from heckmanfa.data.columns.column_numbers import floats, missing_in
from heckmanfa.data.group_cells import Cells, labels_numbered
from heckmanfa.data.row_rules import count_bad_weights
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.data.survey_design import check_df
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError
from heckmanfa.text.option_types import ReplicateKind, SinglePsu
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

_SINGLE = ("error", "certainty", "centered")
_KINDS = ("brr", "jackknife", "bootstrap")
_LONGEST = 3
# What makes a name a pattern.
_WILD = "*?["


@dataclass(frozen=True)
class Survey:
    """The design of a survey, as a covariance: ``cov_type=Survey(strata="region", psu="village")``.

    Columns are those of the data frame that is fitted, and then not features, or of a frame passed
    as ``groups``.

    Parameters
    ----------
    strata : str, optional
        Column of strata, in each of which units were drawn.
    psu : str, optional
        Column of primary sampling units. By default, every row is one.
    weights : str, optional
        Column of sampling weights.
    fpc : str, optional
        Column of the number of units that each stratum has in the population, or of the share
        that was drawn, if no value is above 1. Without it, units count as drawn with replacement.
    single_psu : {"error", "certainty", "centered"}
        What to do with a stratum of one unit: refuse it, let it add nothing to the covariance, or
        take its deviation from the mean of all units.
    nest : bool
        Whether labels of units start again in each stratum.
    subpop : str, optional
        Column of booleans, or of 0 and 1: who is in the subpopulation. Others are not fitted, but
        count in the design.
    replicate_weights : str or sequence of str, optional
        Columns of replicate weights, or patterns of their names, such as ``"rw*"``, which leave
        out the other columns of the design. The covariance is then that of the estimates over the
        replicates, and ``fpc`` and ``single_psu`` have no part in it. They need ``weights``, with
        which the model itself is estimated.
    replicate_kind : {"brr", "jackknife", "bootstrap"}, optional
        How they were made. Needed with replicate weights, as the scale depends on it.
    fay : float
        Fay's factor of balanced repeated replication: 0 is plain BRR.
    scale : float, optional
        What the sum of squares is multiplied by. By default 1 / (R (1 - fay)^2) for BRR,
        (R - 1) / R for a jackknife without ``rscales`` and 1 with them, and 1 / R for a bootstrap.
    rscales : sequence of float, optional
        What the square of each replicate is multiplied by: (n_h - 1) / n_h of its stratum in a
        stratified jackknife.
    mse : bool
        Whether squares are about the estimate itself, and not about the mean of the replicates.
    """

    strata: str | None = None
    psu: str | None = None
    weights: str | None = None
    fpc: str | None = None
    single_psu: SinglePsu = "error"
    nest: bool = False
    subpop: str | None = None
    replicate_weights: str | tuple[str, ...] | None = None
    replicate_kind: ReplicateKind | None = None
    fay: float = 0.0
    scale: float | None = None
    rscales: tuple[float, ...] | None = None
    mse: bool = False

    def __post_init__(self) -> None:
        """Refuse what is not valid, or contradicts itself."""
        for name in ("strata", "psu", "weights", "fpc", "subpop"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputTypeError(
                    f"Survey takes the name of a column as {name}; got a {type(value).__name__}. "
                    "Put the values into a column of the data frame, or of one passed as groups"
                )
        for name, words in (("single_psu", _SINGLE), ("replicate_kind", (*_KINDS, None))):
            if getattr(self, name) not in words:
                listed = quoted_list([word for word in words if word], 4)
                raise InputError(f"{name} must be one of {listed}; got {getattr(self, name)!r}")
        for name in ("nest", "mse"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputTypeError(f"{name} must be True or False; got {getattr(self, name)!r}")
        for name, kind, what in (
            ("replicate_weights", str, "the names of columns, or a pattern of them"),
            ("rscales", Real, "a number for each column of replicate weights"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                if not isinstance(value, Iterable) or not all(isinstance(v, kind) for v in value):
                    raise InputTypeError(f"{name} takes {what}; got {value!r}")
                object.__setattr__(self, name, tuple(value))
        for name in ("fay", "scale"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                raise InputTypeError(f"{name} must be a number; got {value!r}")
        if not any((self.strata, self.psu, self.weights)) and self.replicate_weights is None:
            raise InputError("Survey needs strata, psu, weights or replicate_weights")
        self._check_replicates()

    def __repr__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Survey({', '.join(given)})"

    def _check_replicates(self) -> None:
        if self.replicate_weights is None:
            given = self.fay or self.mse, self.scale, self.rscales, self.replicate_kind
            if any(value not in (None, False, 0) for value in given):
                raise InputError(
                    "replicate_kind, fay, scale, rscales and mse are about replicate weights: name "
                    "their columns in replicate_weights, or leave them out"
                )
            return
        named = option("replicate_weights")
        if twice := repeated(self._replicate_items):
            raise InputError(f"{named} names {quoted(twice[0])} twice")
        if not self._replicate_items:
            raise InputError(f"{named} names no column: leave it out, or name two or more")
        if self.replicate_kind is None:
            raise InputError(
                f"{named} need {option('replicate_kind')}, which the survey's documentation tells: "
                f"{quoted_list(list(_KINDS), 4)}"
            )
        if not 0 <= self.fay < 1 or (self.fay and self.replicate_kind != "brr"):
            raise InputError(
                f"{option('fay')} is a factor of {option('replicate_kind', 'brr')} in [0, 1); got "
                f"{self.fay:g}"
            )
        if self.scale is not None and not 0 < self.scale < np.inf:
            raise InputError(f"scale must be above zero; got {self.scale:g}")
        if self.rscales is not None and not all(0 <= value < np.inf for value in self.rscales):
            raise InputError("rscales must be zero or more, one for each column of weights")
        if self.weights is None:
            raise InputError(
                f"{named} need {option('weights')}, the column of full-sample weights: the model "
                "itself is estimated with these"
            )

    @property
    def design_columns(self) -> tuple[str, ...]:
        """The columns that say which unit a row is of."""
        columns = dict.fromkeys((self.psu, self.strata, self.fpc))
        return tuple(name for name in columns if name is not None)

    @property
    def main_columns(self) -> tuple[str, ...]:
        """The columns of the design that are not replicate weights."""
        others = (self.weights, self.subpop)
        beside = tuple(name for name in others if name is not None)
        return tuple(dict.fromkeys((*self.design_columns, *beside)))

    @property
    def named(self) -> tuple[str, ...]:
        """All columns of the design, by their names or patterns of these."""
        return tuple(dict.fromkeys((*self.main_columns, *self._replicate_items)))

    @property
    def _replicate_items(self) -> tuple[str, ...]:
        items = self.replicate_weights
        return (items,) if isinstance(items, str) else items or ()

    def replicate_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of replicate weights, given all columns of a frame.

        A pattern does not stand for columns that are named as something else.
        """
        known, others = [*names], {*self.main_columns}
        found: list[str] = []
        for item in self._replicate_items:
            if item in others:
                raise InputError(
                    f"{option('replicate_weights')} names {quoted(item)}, which is another column "
                    "of the design"
                )
            if item in known or not any(sign in item for sign in _WILD):
                found.append(item)
                continue
            alike = [name for name in known if fnmatchcase(str(name), item) and name not in others]
            if not alike:
                raise InputError(
                    f"{option('replicate_weights')}: no column is named like {quoted(item)}"
                )
            found += alike
        return tuple(dict.fromkeys(found))

    def columns(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return all columns of the design, given those of a frame."""
        return tuple(dict.fromkeys((*self.main_columns, *self.replicate_columns(names))))

    def read(self, columns: dict[str, NDArray[Any]]) -> tuple[SurveyUnits, Floats | None]:
        """Return the units of the rows, and their weights: zero outside of the subpopulation."""
        n = len(next(iter(columns.values())))
        labels = {name: columns[name] for name in self.design_columns}
        codes, cells = self.cells(labels, n)
        weight = None if self.weights is None else _weights(columns[self.weights], self.weights)
        outside = None
        if self.subpop is not None:
            inside = _flags(columns[self.subpop], self.subpop)
            weight = inside * (np.ones(n) if weight is None else weight)
            outside = ~inside
        names = self.replicate_columns(columns)
        replicates = None
        if names:
            replicates = np.column_stack([_weights(columns[name], name) for name in names])
            if self.subpop is not None:
                replicates = replicates * inside[:, None]
            self.check_scales(len(names))
        return SurveyUnits(codes, cells, outside, replicates), weight

    def check_scales(self, n: int) -> None:
        """Refuse so many replicates if they are too few, or not as many as ``rscales``."""
        if n < 2:
            raise InputError(
                f"{option('replicate_weights')} names one column; a variance needs two or more"
            )
        if self.rscales is not None and len(self.rscales) != n:
            raise InputError(
                f"rscales has {len(self.rscales)} entries, and there are {n} replicate weights: "
                "pass one for each"
            )

    def cells(self, labels: dict[str, NDArray[Any]], n: int) -> tuple[Groups, Cells]:
        """Return the unit of each of n rows, and what the units belong to."""
        for name, values in labels.items():
            refuse_unplaced(int(np.count_nonzero(missing_in(values))), name)
        strata, stratum_names = np.zeros(n, dtype=np.intp), np.array(["all rows"])
        if self.strata is not None:
            stratum_names, strata = labels_numbered(labels[self.strata], self.strata)
        codes, names = np.arange(n), None
        if self.psu is not None:
            names, codes = labels_numbered(labels[self.psu], self.psu)
        if self.nest and self.psu is not None:
            codes = labels_numbered(strata * (int(codes.max()) + 1) + codes, self.psu)[1]
        of_unit = np.zeros(int(codes.max()) + 1, dtype=np.intp)
        of_unit[codes] = strata
        if names is not None and not self.nest and (elsewhere := of_unit[codes] != strata).any():
            row = int(np.flatnonzero(elsewhere)[0])
            both = sorted({stratum_names[of_unit[codes[row]]], stratum_names[strata[row]]})
            raise InputError(
                f"unit {quoted(str(names[codes[row]]))} of {quoted(self.psu)} is in the strata "
                f"{quoted(str(both[0]))} and {quoted(str(both[1]))}: if labels start again in each "
                f"stratum, use {option('nest', True)}"
            )
        counts = np.bincount(of_unit, minlength=len(stratum_names))
        fraction = None
        if self.fpc is not None:
            fraction = self._fractions(labels[self.fpc], strata, counts, stratum_names)
        if self.replicate_weights is None:
            if fraction is not None and (fraction >= 1).all():
                raise InputError(
                    f"by {quoted(self.fpc)}, every unit of every stratum was drawn: such a census "
                    f"has no sampling error to estimate. Leave {option('fpc')} out to infer about "
                    "a larger population, from which these units count as drawn"
                )
            if self.single_psu == "error":
                self._refuse_single(counts, fraction, stratum_names)
            check_df(len(of_unit), len(counts))
        return codes, Cells(len(of_unit), (), of_unit, fraction, self.single_psu)

    def _refuse_single(self, counts: Groups, fraction: Floats | None, names: NDArray[Any]) -> None:
        """Refuse strata of a single unit, unless it is all that the population has."""
        alone = counts == 1
        if fraction is not None:
            alone &= fraction < 1
        if alone.any():
            listed = quoted_list([str(name) for name in names[alone]], _LONGEST)
            what = f"strata {listed} have" if alone.sum() > 1 else f"stratum {listed} has"
            raise InputError(
                f"the {what} a single primary sampling unit, which tells no variance: merge such "
                f"strata, or use {option('single_psu', 'certainty')} or "
                f"{option('single_psu', 'centered')}"
            )

    def _fractions(
        self, stored: NDArray[Any], strata: Groups, counts: Groups, names: NDArray[Any]
    ) -> Floats:
        """Return the share of its units that each stratum has sampled."""
        assert self.fpc is not None
        values = _numbers(stored, self.fpc)
        if not (values > 0).all():
            raise InputError(
                f"{quoted(self.fpc)} must be above zero: numbers of units, or the shares drawn"
            )
        of_stratum = np.zeros(len(counts))
        of_stratum[strata] = values
        if (differs := of_stratum[strata] != values).any():
            name = names[strata[np.flatnonzero(differs)[0]]]
            raise InputError(
                f"{quoted(self.fpc)} has several values in the stratum {quoted(str(name))}; it is "
                "about strata, and needs one value in each"
            )
        if values.max() <= 1:
            return of_stratum
        if (few := of_stratum < counts).any():
            place = int(np.flatnonzero(few)[0])
            raise InputError(
                f"{quoted(self.fpc)} says that the stratum {quoted(str(names[place]))} has "
                f"{of_stratum[place]:g} units in the population, and {counts[place]} were sampled"
            )
        return np.asarray(counts / of_stratum)

    def scales(self, n: int) -> Floats:
        """Return what the square of each of n replicates is multiplied by."""
        each = np.ones(n) if self.rscales is None else np.array(self.rscales, dtype=np.float64)
        if self.scale is not None:
            return each * self.scale
        if self.replicate_kind == "brr":
            return each / (n * (1.0 - self.fay) ** 2)
        if self.replicate_kind == "bootstrap":
            return each / n
        return each * ((n - 1) / n if self.rscales is None else 1.0)


@dataclass(frozen=True, eq=False)
class SurveyUnits:
    """The units of n rows, as a survey's columns tell them."""

    codes: Groups
    """(n,)"""
    cells: Cells
    outside: Mask | None = None
    """(n,) who is not in the subpopulation"""
    replicates: Floats | None = None
    """(n, R) replicate weights"""

    def keep(self, chosen: Mask) -> SurveyUnits:
        """Return some of the rows, with the units of all of them."""
        outside = None if self.outside is None else self.outside[chosen]
        replicates = None if self.replicates is None else self.replicates[chosen]
        return SurveyUnits(self.codes[chosen], self.cells, outside, replicates)


def groups_at(groups: Any, chosen: Any) -> Any:
    """Return the groups of some rows, or their units of a survey; None if there are none."""
    if isinstance(groups, SurveyUnits):
        return groups.keep(chosen)
    return None if groups is None else groups[chosen]


def kind_of_covariance(cov_type: Any) -> Any:
    """Return the name of a kind of covariance; a `Survey` is "survey"."""
    return "survey" if isinstance(cov_type, Survey) else cov_type


def refuse_unplaced(missing: int, *names: str) -> None:
    """Refuse rows of which a column of the design, one of these, says nothing."""
    if missing:
        raise InputError(
            f"{' or '.join(map(quoted, names))} is missing in {plural(missing, 'row')}; every row "
            "of a survey needs its stratum, its unit, and the size of the stratum if that is named"
        )


def _numbers(values: NDArray[Any], name: str) -> Floats:
    try:
        return floats(values, name)
    except HeckmanfaError as error:
        raise InputTypeError(f"Survey: the column {quoted(name)} must hold numbers") from error


def _weights(values: NDArray[Any], name: str) -> Floats:
    weight = _numbers(values, name)
    check_weights(name, count_bad_weights(weight), bool(weight.any()))
    return weight


def check_weights(name: str, bad: int, some: bool) -> None:
    """Refuse a column of weights with ``bad`` entries, or without any weight above zero."""
    if bad:
        what = plural(bad, "negative, missing or infinite value")
        raise InputError(f"{quoted(name)} holds {what}; weights must be zero or more")
    if not some:
        raise InputError(f"{quoted(name)} is zero in every row")


def _flags(values: NDArray[Any], name: str) -> Mask:
    if missing := int(np.count_nonzero(missing_in(values))):
        raise InputError(
            f"{quoted(name)} is missing in {plural(missing, 'row')}; every row is in the "
            "subpopulation or not"
        )
    refusal = f"{quoted(name)} must hold booleans, or 0 and 1, to tell a subpopulation"
    try:
        numbers = _numbers(values, name)
    except InputTypeError as error:
        raise InputTypeError(refusal) from error
    if not np.isin(numbers, (0, 1)).all():
        raise InputError(refusal)
    if not numbers.any():
        raise InputError(f"{quoted(name)} has no row in the subpopulation")
    return np.asarray(numbers == 1)
