"""Classes as an outcome: labels become 0, 1 and NaN, and bad labels are explained.

`LabelCounts` decides on the classes of a fit; rows in memory are one chunk of it (`read_classes`).
`encode_classes` reads later rows by the classes of a model.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from heckmanfa.data.arrays import Floats, is_dask, on_host
from heckmanfa.data.columns.column_numbers import (
    as_series,
    as_table,
    decoded,
    is_wide,
    one_column,
    plain_array,
)
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.outcomes import refuse_infinite_outcomes
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Mask
from heckmanfa.errors import ConstantOutcomeError, InputError, InputTypeError, NoOutcomeError
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

Label = bool | int | float | str
Classes = tuple[Label, ...]
"""the negative and the positive class, or all classes of an ordered outcome, the lowest first"""

# Texts that stand for nothing when an array of texts was made from missing values.
_EMPTY_TEXTS = frozenset({"", "nan", "<na>", "nat"})
_SHOWN = 4
# A typo has at most this share of the rows of what was meant.
_RARE = 0.2
# More distinct integers than this are amounts or counts rather than classes.
_MANY = 20
# More labels are not compared with each other.
_MOST_SPELLINGS = 200
# Labels that are kept while chunks are counted; a binary outcome has two.
_LABELS_KEPT = 1000
_AMOUNT = (
    "use Heckman for an amount, or make two classes that keep missing values missing, as in "
    "(y > c).where(y.notna())"
)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of n rows."""

    codes: NDArray[np.intp]
    """(n,) positions in ``distinct``; -1 where missing"""
    distinct: list[Any]
    """the distinct labels as plain Python objects"""
    order: tuple[Any, ...] = ()
    """labels in the order that an ordered category declares; empty if there is none"""

    def counts(self, rows: Mask | None = None) -> Counter[Any]:
        """Count the rows of each label, among some rows or all."""
        codes = self.codes if rows is None else self.codes[rows]
        counts = np.bincount(codes[codes >= 0], minlength=len(self.distinct)).tolist()
        pairs = zip(self.distinct, counts, strict=True)
        return Counter({label: count for label, count in pairs if count})

    def encoded(self, classes: Classes) -> Floats:
        """Return the place of each label among the classes, and NaN for anything else."""
        # The last entry is for -1, missing rows.
        value = np.full(len(self.distinct) + 1, np.nan)
        for position, label in enumerate(self.distinct):
            if label in classes:
                value[position] = float(classes.index(label))
        return value[self.codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> Labels:
        return Labels(self.codes[rows], self.distinct, self.order)


@dataclass(frozen=True)
class LabelCounts:
    """Rows by label; sums of the counts of chunks keep `_LABELS_KEPT` labels at most."""

    selected: Counter[Any] = field(default_factory=Counter)
    """the selected rows of a fit"""
    total: Counter[Any] = field(default_factory=Counter)
    """all rows"""
    more: bool = False
    """whether selected rows have more labels"""
    order: tuple[Any, ...] = ()
    """as in `Labels`"""

    @classmethod
    def of(cls, labels: Labels, selected: Mask | None) -> LabelCounts:
        """Count some rows, of which all or those ``selected`` are in the fit."""
        return cls(labels.counts(selected), labels.counts(), order=labels.order)

    def __add__(self, other: LabelCounts) -> LabelCounts:
        selected, total = self.selected + other.selected, self.total + other.total
        more = self.more or other.more or len(selected) > _LABELS_KEPT
        return LabelCounts(_first(selected), _first(total), more, self.order or other.order)

    def classes(self) -> Classes:
        """Return the two classes in the order that a category declares, or else sorted."""
        elsewhere = [label for label in self.total if label not in self.selected]
        first, second = _two_classes(self.selected, elsewhere, more=self.more)
        declared = [label for label in self.order if label in self.selected]
        return (second, first) if declared == [second, first] else (first, second)


Learn = Callable[[LabelCounts], Classes]  # tells the classes by the counts of their labels


def _first(counts: Counter[Any]) -> Counter[Any]:
    # The first ones in row order: they do not depend on the number of workers.
    short = len(counts) <= _LABELS_KEPT
    return counts if short else Counter(dict(list(counts.items())[:_LABELS_KEPT]))


def read_classes(
    y: Any, n: int, selected: Mask | None = None, learn: Learn | None = None
) -> tuple[Floats, Classes]:
    """Read an outcome of classes, and ``learn`` which they are; two by default.

    Parameters
    ----------
    y : array_like of shape (n,)
        Booleans, numbers or texts; None, NaN or NA where missing.
    n : int
        Number of rows.
    selected : boolean array of shape (n,), optional
        Who is selected; the labels of other rows are ignored.

    Returns
    -------
    codes : (n,)
        The place of the class, such as 1 for the positive one; NaN where missing or ignored.
    classes : (negative, positive), or more
        In the order of an ordered category (in pandas or PyArrow; an Enum in Polars), and
        otherwise sorted as `numpy.unique` sorts.
    """
    labels = labels_of(y, n)
    classes = (learn or LabelCounts.classes)(LabelCounts.of(labels, selected))
    return labels.encoded(classes), classes


def encode_classes(y: Any, n: int, classes: Classes, selected: Mask | None = None) -> Floats:
    """Read an outcome by the classes that a model knows, as their places and NaN.

    Other labels are refused, except in rows that are not ``selected``.
    """
    labels = labels_of(y, n)
    unknown = [label for label in labels.counts(selected) if label not in classes]
    if unknown:
        known = " and ".join(quoted(label) for label in classes)
        verb = "is not a class" if len(unknown) == 1 else "are not classes"
        raise InputError(
            f"{quoted_list(unknown, _SHOWN)} in y {verb} of this model, which was fitted to {known}"
        )
    return labels.encoded(classes)


def read_numbers_or_classes(y: Any, n: int) -> Floats | None:
    """Read an outcome of numbers as they are, or of two other labels as 0, 1 and NaN.

    None if it is neither.
    """
    check_outcome_given(y)
    values, _, _ = _column(on_host(y))
    if values.dtype.kind in "biuf":
        check_length(values, n)
        return values.astype(np.float64)
    labels = labels_of(y, n)
    if len(labels.distinct) != 2:
        return None
    return labels.encoded((labels.distinct[0], labels.distinct[1]))


def labels_of(y: Any, n: int) -> Labels:
    """Read a column of n labels of any type: arrays, series, lists, frames of one column."""
    if isinstance(y, Labels):
        return y
    check_outcome_given(y)
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
        return _labels_of_category(pd.Series(y), n)
    values, whole, order = _column(on_host(y))
    check_length(values, n)
    try:
        codes, distinct = pd.factorize(values)
    except TypeError as error:
        raise InputTypeError(
            f"y holds objects that are not labels ({error}): pass numbers, booleans or texts"
        ) from error
    return Labels(codes.astype(np.intp), _plain(distinct, whole), order)


def _labels_of_category(y: pd.Series[Any], n: int) -> Labels:
    """Read declared levels, which keep their type beside missing values; some may be unused."""
    codes = y.cat.codes.to_numpy().astype(np.intp)
    check_length(codes, n)
    used, places = np.unique(codes[codes >= 0], return_inverse=True)
    positions = np.full(len(codes), -1, dtype=np.intp)
    positions[codes >= 0] = places
    order = tuple(y.cat.categories.tolist()) if y.cat.ordered else ()
    return Labels(positions, _plain(y.cat.categories.take(used), None), order)


def check_outcome_given(y: Any) -> None:
    """Refuse an outcome that is not there, or not in memory as X is."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: pass the outcome, "
            "NaN where it is missing"
        )
    if is_dask(y) or isinstance(y, RowSource):
        kind = f"Dask {type(y).__name__}" if is_dask(y) else type(y).__name__
        raise InputTypeError(
            f"X is in memory, but y is a {kind}: pass both in memory, or both as Dask collections"
        )


def check_length(outcome: NDArray[Any], n_rows: int) -> None:
    """Refuse an outcome that has more or fewer entries than X has rows."""
    if len(outcome) != n_rows:
        raise InputError(
            f"X and y have inconsistent numbers of samples: X has {n_rows} rows, y {len(outcome)}"
        )


def _column(y: Any) -> tuple[NDArray[Any], type | None, tuple[Any, ...]]:
    """Return a column as an array, the type of its values if NaN changed it, and their order.

    The order is that of an ordered category.
    """
    if sparse.issparse(y):
        raise InputTypeError("y is a sparse matrix; call .toarray() on it first")
    if isinstance(y, pd.api.extensions.ExtensionArray):
        y = pd.Series(y)
    series = as_series(y)
    if series is None:
        return _plain_vector(as_table(y)), None, ()
    stored: Any = series.to_native()
    order: tuple[Any, ...] = ()
    if isinstance(series.dtype, nw.Enum):
        order = series.dtype.categories
    elif getattr(stored, "num_chunks", 0):
        order = order_in_arrow(stored.chunk(0), stored.type)
    series = decoded(series)
    dtype = series.dtype
    if dtype.is_nested():
        raise InputTypeError("y holds lists or structs: pass one label for each row")
    if dtype.is_decimal() or is_wide(dtype):
        return np.array(series.to_list(), dtype=object), None, order
    if (dtype.is_numeric() or dtype == nw.Boolean) and series.null_count():
        kind = bool if dtype == nw.Boolean else int if dtype.is_integer() else None
        return series.cast(nw.Float64).to_numpy(), kind, order
    return np.asarray(series.to_numpy()), None, order


def order_in_arrow(array: Any, declared: Any) -> tuple[Any, ...]:
    """Return the levels of a PyArrow array in their order, if a type declares that they have one.

    The array's own type may have lost that when it was read.
    """
    levels = getattr(array, "dictionary", None) if getattr(declared, "ordered", False) else None
    return () if levels is None else tuple(levels.to_pylist())


def _plain_vector(y: Any) -> NDArray[Any]:
    """Return labels in an array or list as one column."""
    try:
        array = np.asarray(plain_array(y))
        if array.dtype.kind in "US" and isinstance(y, list | tuple):
            # NumPy would write None and NaN among texts as texts.
            array = np.array(y, dtype=object)
    except ValueError as error:
        raise InputError(f"y: {error}") from error
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers")
    return one_column(array, y, "y")


def _plain(distinct: Any, whole: type | None) -> list[Any]:
    """Return distinct labels as plain booleans, integers, floats or texts; refuse others."""
    plain = []
    for label in np.asarray(distinct).tolist():
        if isinstance(label, np.generic):
            # An array of objects keeps NumPy's own booleans and numbers.
            label = label.item()
        if isinstance(label, Decimal):
            label = float(label)
        if not isinstance(label, bool | int | float | str):
            raise InputTypeError(
                f"y holds labels of type {type(label).__name__}, such as {quoted(label)}: pass "
                "numbers, booleans or texts"
            )
        plain.append(label if whole is None else whole(label))
    return plain


def _two_classes(counts: Counter[Any], elsewhere: Collection[Any], *, more: bool) -> Classes:
    """Return the two classes of selected rows, sorted; refuse any other number of them.

    ``elsewhere`` are labels that only rows that are not selected have; ``more`` says whether there
    are labels that were not counted.
    """
    if not counts:
        raise NoOutcomeError(
            "no row has an observed outcome: y is missing in every selected row. Check the outcome "
            "column and `selected`."
        )
    infinite = sum(
        count for label, count in counts.items() if isinstance(label, float) and math.isinf(label)
    )
    refuse_infinite_outcomes(infinite)
    kinds = {"text" if isinstance(label, str) else "numbers" for label in counts}
    if len(counts) > 2:
        raise InputError(_too_many(counts, mixed=len(kinds) > 1, more=more))
    for label in counts:
        if isinstance(label, str) and label.strip().lower() in _EMPTY_TEXTS:
            raise InputError(
                f"y holds the text {quoted(label)} in {plural(counts[label], 'selected row')}, "
                "which looks like a missing value that became text: mark missing outcomes with "
                "None or NaN"
            )
    if len(kinds) > 1:
        raise InputTypeError(
            f"the classes in y, {quoted_list(list(counts), _SHOWN)}, are text and a number: give "
            "both classes labels of one type"
        )
    if len(counts) == 1:
        raise ConstantOutcomeError(_one_class(counts, elsewhere))
    first, second = sorted(counts)
    return first, second


def _one_class(counts: Counter[Any], elsewhere: Collection[Any]) -> str:
    ((label, count),) = counts.items()
    message = (
        f"y holds one class, {quoted(label)}, in all {count} selected rows, and two classes are "
        "needed"
    )
    if elsewhere:
        others = quoted_list(list(elsewhere), _SHOWN)
        verb = "occurs" if len(elsewhere) == 1 else "occur"
        return (
            f"{message}. {others} {verb} only in rows that are not selected or have no weight, "
            "whose outcome is ignored"
        )
    return f"{message}. Check that y is the right column, with both outcomes of selected rows"


def _too_many(counts: Counter[Any], *, mixed: bool, more: bool) -> str:
    """Say what more than two labels are: amounts, probabilities, or classes with typos."""
    numbers = [label for label in counts if not isinstance(label, str)]
    n, example = len(counts), label_of(max(numbers, key=lambda label: label % 1, default=0))
    many = f"more than {n:,}" if more else f"{n}"
    if not mixed and numbers:
        fractions = any(isinstance(label, float) and label % 1 for label in numbers)
        if fractions and min(numbers) >= 0 and max(numbers) <= 1:
            return (
                f"Unknown label type: continuous. y holds {many} numbers from 0 to 1, such as "
                f"{example}: probabilities are not classes. HeckmanProbit needs two classes, the "
                "outcome that each selected row had"
            )
        if fractions or n > _MANY:
            # scikit-learn's checks expect the first words.
            return (
                "Only binary classification is supported. The type of the target is "
                f"{'continuous' if fractions else 'multiclass'}. Unknown label type: y holds "
                f"{many} different numbers, and HeckmanProbit needs two classes; {_AMOUNT}"
            )
    common = counts.most_common()
    shown = common if n <= _SHOWN else [*common[: _SHOWN - 1], common[-1]]
    named = [f"{quoted(label)} ({plural(count, 'row')})" for label, count in shown]
    if n > _SHOWN:
        named.insert(-1, f"{n - _SHOWN} more")
    rarest = ", the rarest" if common[-1][1] < common[-2][1] else ""
    advice = _NUMBERED if set(counts) == {0, 1, 2} else _MERGE
    return (
        f"Only binary classification is supported. The type of the target is multiclass: y holds "
        f"{many} classes in selected rows, {', '.join(named[:-1])} and {named[-1]}{rarest}."
        f"{''.join(f' {question}' for question in _questions(counts))} {advice}"
    )


_MERGE = (
    "Merge classes until there are two, mark others as missing, or use HeckmanOrdered if they "
    "have an order"
)
# cross_val_predict numbers the classes before it fits, and missing outcomes come last.
_NUMBERED = (
    "If 2 is a missing outcome, which scikit-learn's cross_val_predict(method='predict_proba') "
    "takes for a class: fill it in with either class, call "
    "sklearn.set_config(enable_metadata_routing=True), and pass params={'selected': ...}, which "
    "rows have an outcome. Otherwise merge classes until there are two"
)


def _questions(counts: Counter[Any]) -> list[str]:
    """Ask which labels are missing values, or other spellings of more frequent ones."""
    texts = {label: rows for label, rows in counts.items() if isinstance(label, str)}
    empty = [label for label in texts if label.strip().lower() in _EMPTY_TEXTS]
    asked = [f"Is {quoted(label)} a missing value that became text?" for label in empty]
    spelled = misspellings({label: texts[label] for label in texts if label not in empty})
    return [*asked, *spelled.values()]


def misspellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the labels that look like another, more frequent one, each with a question about it.

    A label in another case may have many rows; one with another letter is a typo if it has few.
    Every label is compared with every other, so hundreds of them are not.
    """
    questions: dict[str, str] = {}
    if len(counts) > _MOST_SPELLINGS:
        return questions
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    for place, label in enumerate(ordered):
        others = [other for other in ordered[:place] if other not in questions]
        same = [other for other in others if _plain_text(other) == _plain_text(label)]
        often = [other for other in others if counts[label] <= _RARE * counts[other]]
        close = difflib.get_close_matches(label, often, n=1)
        if same:
            questions[label] = f"Is {quoted(label)} another spelling of {quoted(same[0])}?"
        elif close:
            questions[label] = f"Is {quoted(label)} a typo of {quoted(close[0])}?"
    return questions


def _plain_text(label: str) -> str:
    return " ".join(label.casefold().split())
