"""The work of ``heckmanfa bounds``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from heckmanfa import __version__
from heckmanfa.analysis.raw_columns import RawTable, read_raw
from heckmanfa.analysis.request import Question, question_of, references_in, split_names
from heckmanfa.cli.answer_json import plain
from heckmanfa.cli.bounds_options import BoundsOptions
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.files.outputs import Place, check_ending, check_format, ending_of, outputs
from heckmanfa.errors import InputError
from heckmanfa.inference import bounds
from heckmanfa.results.table_files import SavedTable, check_table_path, write_saved
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import true_minus

_STANDARD = Path("-")
_PICTURES = (".svg", ".png", ".pdf")
_WIDTH = 760


@dataclass(frozen=True)
class _Number:
    """A kind of number, and how it is bounded."""

    asked: str
    """how it is asked for"""
    takes: frozenset[str]
    """options that it has"""
    bound: Callable[[RawTable, BoundsOptions], bounds.Bounds]


def run(options: BoundsOptions, **asked: Any) -> None:
    """Bound what the options ask for, write the files, and print it."""
    question, options = question_of(asked), _with_names(options)
    number = _asked_for(options)
    out, picture, json_out = options.out, options.picture, options.json_out
    piped = json_out == _STANDARD
    check_format(None if piped else json_out, ".json", "--json")
    if out is not None:
        check_table_path(out)
    if picture is not None:
        check_ending(picture, _PICTURES)
    files = {"--json": None if piped else json_out, "--out": out, "--picture": picture}
    reads = {"DATA": question.data}
    with saying() as say, outputs(files, reads, force=options.force) as places:
        table = read_raw(question, _columns(options), say)
        _check_reference(table, options)
        say("bounding")
        result = number.bound(table, options)
        text = _json(table, result)
        _write(result, text, places)
    if piped:
        typer.echo(text, nl=False)
        return
    for note in table.notes:
        tell(f"note: {note}")
    tell(true_minus(str(result)))
    if result.sentence:
        tell(f"\nIn a sentence: {true_minus(result.sentence)}")
    for what, path in (("results", json_out), ("table", out), ("picture", picture)):
        if path is not None:
            tell(f"{what} written to {shown(path)}")


def _with_names(options: BoundsOptions) -> BoundsOptions:
    """Split the lists of columns at commas."""
    named: dict[str, Any] = {
        name: [*split_names(getattr(options, name))] for name in ("features", "covariates")
    }
    return replace(options, **named)


def _is_given(options: BoundsOptions, name: str) -> bool:
    return getattr(options, name) not in (None, False, [])


def _asked_for(options: BoundsOptions) -> _Number:
    """Return what is to be bounded; refuse options that do not go with it."""
    asked = [name for name in _NUMBERS if name and _is_given(options, name)]
    if len(asked) > 1:
        both = " and ".join(option(name) for name in asked[:2])
        raise InputError(f"{both} ask for two numbers: leave one of them out")
    number = _NUMBERS[asked[0] if asked else ""]
    if options.by_lot and options.treated is None:
        raise InputError(f"{option('by_lot')} needs {option('treated', ...)}: who is treated")
    if number is _NUMBERS["treated"] and options.by_lot:
        number = _BY_LOT
    every = (*dict.fromkeys(_NUMBERS.values()), _BY_LOT)
    for name in dict.fromkeys(name for each in every for name in sorted(each.takes)):
        if _is_given(options, name) and name not in number.takes:
            others = [each.asked for each in every if name in each.takes]
            raise InputError(
                f"{option(name)} goes with {' or '.join(others)}, and not with {number.asked}: "
                "leave one of them out"
            )
    return number


def _columns(options: BoundsOptions) -> dict[str, list[str]]:
    """Return the columns that options name, beside those of a question."""
    alone = ("group", "treated", "instrument")
    columns = {name: [getattr(options, name)] for name in alone if _is_given(options, name)}
    return columns | {"features": options.features or [], "covariates": options.covariates or []}


def _check_reference(table: RawTable, options: BoundsOptions) -> None:
    """Refuse the reference of a column that is neither the groups nor a feature."""
    known = {options.group, *(options.features or ())}
    for name in references_in(table.question, table.columns):
        if name not in known:
            raise InputError(
                f"{option('reference')} names {quoted(name)}, which is neither the column of "
                f"{option('group')} nor one of {option('features')}"
            )


def _of_mean(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    given: dict[str, Any] = _known(table, options) | {"y_range": options.y_range}
    given["selection"] = options.selection
    if options.group is None:
        return bounds.mean(table.amounts(), **given)
    reference = table.reference(options.group)
    group = table.labels("group", options.group)
    return bounds.difference(table.amounts(), group, reference=reference, **given)


def _of_share(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    given: dict[str, Any] = _known(table, options) | {"selection": options.selection}
    given |= {"of": options.of, "above": options.above}
    y = table.classes() if options.above is None else table.amounts()
    if options.group is None:
        return bounds.share(y, **given)
    reference = table.reference(options.group)
    return bounds.difference(y, table.labels("group", options.group), reference=reference, **given)


def _of_quantile(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    assert options.quantile is not None
    given: dict[str, Any] = _known(table, options) | {"y_range": options.y_range}
    if options.group is not None:
        given["group"] = table.labels("group", options.group)
    return bounds.quantile(table.amounts(), options.quantile, **given)


def _of_projection(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    X, rows, lacking = table.features("features", options.features or ())
    result = bounds.projection(X, rows.amounts(), y_range=options.y_range, **_known(rows, options))
    return replace(result, notes=(*lacking, *result.notes))


def _of_effect(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    assert options.treated is not None
    given = _known(table, options) | {"y_range": options.y_range}
    return bounds.effect(table.amounts(), table.treated(options.treated), **given)


def _of_lot(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    assert options.treated is not None
    covariates: Any = None
    lacking: tuple[str, ...] = ()
    if options.covariates and options.bins is not None:
        covariates, table, lacking = table.features("covariates", options.covariates)
    elif options.covariates:
        for name in options.covariates:
            table.labels("covariates", name)
        covariates = table.frame[options.covariates]
    result = bounds.lee(
        table.amounts(),
        table.treated(options.treated),
        covariates=covariates,
        bins=options.bins,
        more_observed=options.more_observed,  # type: ignore[arg-type]
        n_boot=options.n_boot or 0,
        random_state=table.question.seed,
        **_known(table, options),
    )
    return replace(result, notes=(*lacking, *result.notes))


def _of_instrument(table: RawTable, options: BoundsOptions) -> bounds.Bounds:
    assert options.instrument is not None
    drawn: dict[str, Any] = {} if options.n_boot is None else {"n_boot": options.n_boot}
    return bounds.monotone_instrument(
        table.amounts(),
        table.numbers("instrument", options.instrument),
        increasing=not options.falling,
        bins=options.bins,
        y_range=options.y_range,
        random_state=table.question.seed,
        **drawn,
        **_known(table, options),
    )


def _known(table: RawTable, options: BoundsOptions) -> dict[str, Any]:
    """Return what all functions take."""
    return {**table.roles, "conf_level": options.conf_level}


_SHARE = _Number(f"{option('of')}, {option('above')}", frozenset({"group", "selection"}), _of_share)
_NUMBERS = {
    "": _Number("a mean", frozenset({"group", "y_range", "selection"}), _of_mean),
    "of": _SHARE,
    "above": _SHARE,
    "quantile": _Number(option("quantile"), frozenset({"group", "y_range"}), _of_quantile),
    "features": _Number(option("features"), frozenset({"y_range"}), _of_projection),
    "treated": _Number(f"{option('treated')} alone", frozenset({"y_range"}), _of_effect),
    "instrument": _Number(
        option("instrument"),
        frozenset({"y_range", "falling", "bins", "n_boot"}),
        _of_instrument,
    ),
}
"""what is bounded, by the option that asks for it"""
_BY_LOT = _Number(
    f"{option('treated')} {option('by_lot')}",
    frozenset({"by_lot", "covariates", "more_observed", "bins", "n_boot"}),
    _of_lot,
)


def _json(table: RawTable, result: bounds.Bounds) -> str:
    """Return the results as JSON, with a line break at the end."""
    question: Question = table.question
    rows, seen = result.counts
    made = {
        "heckmanfa": __version__,
        "data": question.place,
        "outcome": question.outcome,
        "title": result.title,
        "sentences": result.sentences,
        "rows": rows,
        "observed": seen,
        "range": result.span,
        "range_observed": result.span_observed,
        "conf_level": result.conf_level,
        "weights": question.weights,
        "weight_kind": None if question.weights is None else question.counts_as,
        "cluster": [*question.cluster],
        "survey": None if question.survey is None else repr(question.survey),
        "assumptions": result.assumptions,
        "bounds": result.tidy().to_dict("records"),
        "notes": [*table.notes, *result.notes],
    }
    return json.dumps(plain(made), indent=1, allow_nan=False) + "\n"


def _write(result: bounds.Bounds, text: str, places: dict[str, Place]) -> None:
    """Write the files that were asked for."""
    if "--json" in places:
        with places["--json"].writing() as place:
            place.write_text(text, encoding="utf-8")
    if "--out" in places:
        parts = result.sections()
        saved = SavedTable(
            {"bounds": result.tidy()}, lambda: [block for part in parts for block in part.blocks()]
        )
        with places["--out"].writing() as place:
            write_saved(saved, place)
    if "--picture" in places:
        with places["--picture"].writing() as place:
            _draw(result, place)


def _draw(result: bounds.Bounds, path: Path) -> None:
    """Draw the bounds, in the format that the name of the file asks for."""
    picture = result.picture()
    if ending_of(path) == ".svg":
        path.write_text(picture.svg(_WIDTH), encoding="utf-8")
        return
    picture.draw().figure.savefig(path, bbox_inches="tight")
