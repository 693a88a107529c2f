"""A selection model in Stata.

All cells are read as text, and columns are named by their place in the file: which names Stata
makes of a file's own depends on its version. So a column has a name that Stata takes, whatever the
table calls it, and what the table says is never code: it is in no comment, and of what is in quotes
each character that Stata would obey is written as its number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from heckmanfa.data.columns.values import TRUE_WORDS, as_number
from heckmanfa.report.plain_model import PlainModel, Reading
from heckmanfa.report.plain_names import plain_names

# Words that Stata does not take as the name of a variable, and names of variables made below.
_RESERVED = re.compile(
    r"_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_pi|_pred|_rc|_skip|str[0-9]+|using|"
    r"with|selected|outcome|level"
)
_LONGEST_NAME = 32
_LINE = 88
_ENCODINGS = {"utf-8-sig": "utf-8", "cp1252": "windows-1252"}
# Quotes end a text; a backtick and a dollar sign begin a macro, whose value would be code.
_OBEYED = frozenset('"`$\\')
_TRANSFORMS = {"log": "ln({})", "log1p": "ln1p({})", None: "{}"}


def stata_names(names: Sequence[str]) -> dict[str, str]:
    """Return a name that Stata takes for each column: in lower case, 32 characters at most."""
    return plain_names(names, _is_name, _LONGEST_NAME, lower=True)


def _is_name(name: str) -> bool:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    return bool(plain) and not _RESERVED.fullmatch(name) and len(name) <= _LONGEST_NAME


def text(value: str) -> str:
    """Write a text as Stata reads it, as a sum of plain pieces and of characters by number."""
    pieces: list[str] = []
    plain = ""
    for character in value:
        if character.isprintable() and character not in _OBEYED:
            plain += character
            continue
        pieces += [f'"{plain}"'] if plain else []
        plain = ""
        pieces.append(f"uchar({ord(character)})")
    pieces += [f'"{plain}"'] if plain or not pieces else []
    return " + ".join(pieces)


def stata_code(model: PlainModel, reading: Reading) -> str:
    """Return a program in Stata that fits a model."""
    why = _cannot(model)
    if why:
        return "\n".join(_comment(why))
    names = stata_names([*reading.columns, *model.used])
    lines = [*_opening(model, reading), *_read(model, reading, names), *_rows(model, names)]
    return "\n".join([*lines, *_fit(model, names)])


def _cannot(model: PlainModel) -> str:
    if model.selection is None:
        if model.errors == "classical" and model.roles.weights is None:
            return ""
        return "Stata's regress divides the variance by another number of rows."
    if model.method == "two-step" and model.roles.weights is not None:
        return "Stata's heckman takes no weights in two steps, so it does not give these numbers."
    if model.roles.weights and model.weight_kind == "frequency" and model.errors == "cluster":
        return "Stata has no clusters of rows with frequency weights."
    return ""


def _comment(sentence: str) -> list[str]:
    """Break a comment into lines; it holds no word of the table."""
    lines, line = [], "*"
    for word in sentence.split():
        if len(line) + len(word) >= _LINE:
            lines.append(line)
            line = "*"
        line += f" {word}"
    return [*lines, line]


def _opening(model: PlainModel, reading: Reading) -> list[str]:
    lacks = ""
    if model.method == "two-step" and model.errors != "classical":
        lacks = f"Its standard errors differ: in two steps, Stata has none that are {model.errors}."
    lines = _comment(
        f"Stata 14 or later, in a do-file. {model.instead} This gives {model.gives}. {lacks}"
    )
    order = "It has the columns that rename lists below, in that order, and no others."
    return [*lines, *(_comment(f"{reading.first} {order}") if reading.first else [])]


def _read(model: PlainModel, reading: Reading, names: dict[str, str]) -> list[str]:
    """Read the columns that are used, as text, then the numbers among them."""
    path = reading.path
    if re.match(r"[A-Za-z]:\\", path):
        path = path.replace("\\", "/")
    lines = []
    if any(character in _OBEYED or not character.isprintable() for character in path):
        lines += _comment("Stata cannot name this file: copy it to table.csv first.")
        path = "table.csv"
    encoding = _ENCODINGS.get(reading.encoding, reading.encoding)
    delimiter = "tab" if reading.delimiter == "\t" else f'"{reading.delimiter}"'
    lines.append(
        f'import delimited "{path}", clear varnames(nonames) rowrange({reading.skipped + 2}) ///\n'
        f'    stringcols(_all) bindquotes(strict) delimiters({delimiter}) encoding("{encoding}")'
    )
    dropped = [pair[0] for pair in reading.dropped if pair]
    used = list(dict.fromkeys([*model.used, *dropped]))
    used.sort(key=reading.columns.index)
    places = _ranges([reading.columns.index(name) + 1 for name in used])
    lines.append(_command(f"keep {places}"))
    lines.append(_command(f"rename ({places}) ({' '.join(names[name] for name in used)})"))
    for pair in reading.dropped:
        if pair is None:
            lines.append("drop in l")
        else:
            lines.append(f"drop if strtrim({names[pair[0]]}) == {text(pair[1])}")
    comma = " dpcomma" if reading.decimal == "," else ""
    numbers = " ".join(names[name] for name in model.numbers)
    lines.append(_command(f"destring {numbers}, replace force{comma}"))
    for name, codes in reading.codes.items():
        if name in model.numbers:
            known = [code for code in codes if as_number(code) is not None]
            lines += [f"replace {names[name]} = . if {names[name]} == {code}" for code in known]
        elif name in model.used:
            lines += [f'replace {names[name]} = "" if {names[name]} == {text(c)}' for c in codes]
    return lines


def _ranges(places: Sequence[int]) -> str:
    """Name variables by their places, which rise; several in a row as v3-v7."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return " ".join(f"v{run[0]}-v{run[-1]}" if len(run) > 1 else f"v{run[0]}" for run in runs)


def _rows(model: PlainModel, names: dict[str, str]) -> list[str]:
    """Make levels of categories, and keep the rows of the fit."""
    lines = [f"replace {names[n]} = {v!r} if missing({names[n]})" for n, v in model.fills.items()]
    for name, levels in model.levels.items():
        lines += _levels(names[name], levels, model.merged.get(name, ()), model.ignore_case)
    roles = model.roles
    missing = ", ".join(names[name] for name in model.features)
    lines.append(_command(f"drop if missing({missing})"))
    lines += [f"drop if {names[roles.weights]} <= 0"] if roles.weights else []
    outcome = names[roles.outcome]
    if model.classes is None:
        made = _TRANSFORMS[model.transform].format(outcome)
    elif model.ordered:
        made = "."
    else:
        is_one = f"strtrim({outcome}) == {text(model.classes[1])}"
        known = f"inlist(strtrim({outcome}), {text(model.classes[0])}, {text(model.classes[1])})"
        made = f"{is_one} if {known}"
    lines.append(f"generate double outcome = {made}")
    for place, label in enumerate(model.classes or () if model.ordered else (), start=1):
        lines.append(f"replace outcome = {place} if strtrim({outcome}) == {text(label)}")
    if roles.selected is None:
        lines.append("generate byte selected = !missing(outcome)")
    else:
        words = ", ".join(f'"{word}"' for word in sorted(TRUE_WORDS))
        who = f"strlower(strtrim({names[roles.selected]}))"
        lines.append(f"generate byte selected = inlist({who}, {words})")
        lines.append("drop if selected & missing(outcome)")
    return [
        *lines,
        "* These must be the rows of the report.",
        f"assert _N == {model.n_rows}",
        "count if selected",
        f"assert r(N) == {model.n_selected}",
    ]


def _levels(
    column: str, levels: Sequence[str], merged: Sequence[str], ignore_case: bool
) -> list[str]:
    """Number the levels of a category, the reference first."""
    cells = f"stritrim(strtrim({column}))"
    known = [(place, level) for place, level in enumerate(levels, start=1)]
    # Rare levels are those of one level, which no row of the file has itself.
    others = [place for place, level in known if level == "(other)"]
    known += [(place, level) for place in others for level in merged]
    if ignore_case:
        cells = f'subinstr(strlower({cells}), " ", "", .)'
        known = [(place, "".join(level.split()).lower()) for place, level in known]
    lines = [f"replace {column} = {cells}", "generate int level = ."]
    lines += [f"replace level = {place} if {column} == {text(level)}" for place, level in known]
    return [*lines, f"drop {column}", f"rename level {column}"]


def _fit(model: PlainModel, names: dict[str, str]) -> list[str]:
    roles = model.roles
    prediction, selection = (
        " ".join(f"ib1.{names[name]}" if name in model.levels else names[name] for name in columns)
        for columns in (model.prediction, model.selection or ())
    )
    regressors = f" {prediction}" if prediction else ""
    if model.selection is None:
        return [_command(f"regress outcome{regressors}")]
    command = "heckman" if model.classes is None else "heckprobit"
    if model.ordered:
        command = "heckoprobit"
    weight = ""
    if roles.weights is not None:
        kind = "pweight" if model.weight_kind == "sampling" else "fweight"
        weight = f" [{kind}={names[roles.weights]}]"
    options = [f"select(selected = {selection})"]
    if model.method == "two-step":
        options.append("twostep")
    elif model.errors == "cluster":
        options.append(f"vce(cluster {names[str(roles.cluster)]})")
    elif model.errors == "robust" and not weight.startswith(" [p"):
        options.append("vce(robust)")
    fitted = _command(f"{command} outcome{regressors}{weight}, {' '.join(options)}")
    # Its intercept is zero, and minus ours its first cut point.
    cuts = "heckoprobit has no intercept: its first cut point is minus that of this report."
    return [*(_comment(cuts) if model.ordered else ()), fitted]


def _command(words: str) -> str:
    """Break a command into lines of a do-file."""
    lines, line = [], ""
    for word in words.split(" "):
        if line and len(line) + 1 + len(word) > _LINE - 4:
            lines.append(line)
            line = f"    {word}"
        else:
            line = f"{line} {word}" if line else word
    return " ///\n".join([*lines, line])
