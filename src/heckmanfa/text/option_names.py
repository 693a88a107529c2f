"""Messages for the command line, which name options, and for Python, which names parameters.

Errors and warnings are worded once, for Python. The command line and the report pass them through
`in_options`, since their readers have options to change, not parameters. A question about a table
is asked by options, which are keywords in Python: `in_keywords` spells its messages there.
"""

from __future__ import annotations

import re

from heckmanfa.text.option_words import at_command_line, told

# Advice that takes another form on the command line, as whole phrases.
_PHRASES = (
    (r",? or pass on_collinear=['\"]drop['\"]", ""),
    (r"\b([Ll])eave such columns out of both equations\b", r"\1eave such columns out (--exclude)"),
    (
        r"\bthe selection or of the outcome itself, and leave it out\b",
        "the selection or of the outcome itself, and leave it out with --exclude, or name it with "
        "--selected if it says who is selected",
    ),
    (r"\bor is known only with it, and leave it out\b", r"\g<0> with --exclude"),
    (
        r"\bLeave the column out, merge its rare level \(fewer than ([\d,]+) rows\) with another\b",
        r"Leave the column out with --exclude, merge rare levels of a category with "
        r"--min-level-rows \1",
    ),
    (
        r"\b([Ll])eave features out of the selection equation\b",
        r"\1eave features out with --exclude, or name those to use with --features",
    ),
    (
        r"\b([Ll])eave features out of the prediction equation\b",
        r"\1et fewer features predict (--predict-with)",
    ),
    (r"\bout of prediction_features\b", "out of prediction (--select-only)"),
    (r"\bin prediction_features \(or in the prediction formula\)", "among --predict-with"),
    (r"\bprediction_features \(or in the prediction formula\)", "--predict-with"),
    (r"\bprediction_features or selection_features\b", "--features"),
    (
        r"\bweight_kind='sampling' with --robust or --cluster in Heckman and the searches",
        "fit with --weight-kind sampling",
    ),
    (r"\bweight_kind='sampling' with --robust or --cluster", "--weight-kind sampling"),
    (r"\bcov_type=['\"](robust|cluster)['\"]", r"--\1"),
    (r"\brho_range must be \(low, high\) with low < high\b", "--rho-range must be low, then high"),
    (r"\brho_range must be two numbers \(low, high\) or None\b", "--rho-range takes two numbers"),
    (r"\bwrite \(-0\.999, 0\.999\)", "write --rho-range -0.999 0.999"),
    (r"\brho_range = ", "--rho-range "),
    (r"\brho_range=None\b", "no --rho-range"),
    (r"\bfit\(X, y, groups=\.\.\.\)", "--cluster COLUMN"),
    (r"\bis in both always and never\b", "is in both --always and --select-only"),
    (r"\balways names\b", "--always names"),
    (r"\balways cannot be held\b", "--always cannot be held"),
    (r"\bnever leaves none\b", "--select-only leaves none"),
    (r"\bnamed in never=\[\.\.\.\]", "named with --select-only"),
    (r"\b(?:with|in) never=\[\.\.\.\](, or raise n_refits\b)?", "with --select-only"),
    (r"\bdiagnostics\(\)", "the diagnostics"),
    (r"; see uncertainty_interval\(\)", "; see the picture over rho in the report (--report)"),
    (r"\b([Ss])ee uncertainty_interval\(\)", r"\1ee the picture over rho in the report (--report)"),
    # Advice that only Python users can follow is left out.
    (r"; see what_if\(\)", ""),
    (r" ?\bSee profile\(\) for [^.]*\.", ""),
    (r" ?\bSee profile_rho\(\)\.", ""),
    (r"; margins\(\) has these\b", ""),
    (r"; what_if\(\) uses it\b", ""),
    (r"; margins\(\) has these\b", "; effects are in percentage points"),
    (r" ?\bSee what_if\(\)\.", ""),
    (r"\bbootstrap\(\) repeats the search; honest=True estimates", "--honest estimates"),
    (r"\bsearch_report\(\) has (it|them)", r"The report (--report) has \1"),
    (r"; see search_report\(\)", ""),
    (r"\bmark (it|them) missing with NaN\b", r"mark \1 missing (--na-values)"),
    (r"\bor leave the column out\b", r"\g<0> with --exclude"),
    (r"\bto numeric or categorical\b", "to --numeric or --categorical"),
    (r"\b(categorical|numeric) names\b", r"--\1 names"),
    (r"\bin both categorical and numeric\b", "in both --categorical and --numeric"),
    (r"\bin categorical\b", "with --categorical"),
    (
        r"\bmodel whether there is one with HeckmanProbit\b",
        "fit a column of whether there is one (--outcome-kind binary)",
    ),
    (r"\bpass force=True\b", "pass --force"),
    (r"\bUse fewer epochs or a smaller learning_rate\b", "Try another --seed or --search"),
    (
        r"\buse another search, such as HeckmanBestSubset, or name each of these columns in its "
        r"own group in feature_groups\b",
        "use another --search, such as best-subset, or leave the column out with --exclude",
    ),
    (r"\bUse a smaller learning_rate\b", "Leave it out with --no-ru"),
    (
        r"\bin categorical_features(, or leave that at its default)?",
        "with --categorical",
    ),
    (r"\bcolumns in never\b", "columns in --select-only"),
    (r"^reference(:| names)", r"--reference\1"),
    (r"\bstopped at max_nodes = ", "stopped at the limit of "),
    (r"\bmissing=['\"](error|nan)['\"]", "--missing"),
    # Last: they hold words of the phrases above.
    (r"\bselection_(always|never)\b", r"--selection-\1"),
)

# Parameters elsewhere in a message, with or without a value.
_OPTIONS = {
    "prediction_features": "--predict-with",
    "selection_features": "--features",
    "rho_range": "--rho-range",
    "search_in": "--search-in",
    "method": "--method",
    "criterion": "--criterion",
    "sample_weight": "--weights",
    "weight_kind": "--weight-kind",
    "cov_type": "--robust or --cluster",
    "random_state": "--seed",
    "on_separation": "--on-separation",
    "on_collinear": "the rule for collinear columns",
    "return_interval": "--interval",
    "device": "--device",
    "keep_columns": "--keep-columns",
    "honest": "--honest",
    "start": "--start",
    "outcome_transform": "--outcome-transform",
    "unknown": "--unknown",
    "reference": "--reference",
    "categorical_features": "--categorical",
    "scale": "--scale",
    "feature_groups": "the groups of dummies",
    "max_features": "the largest number of features",
    # The command line leaves these at their defaults.
    "init_prob": "the first probability",
    "learning_rate": "the size of steps",
    "step_on": "the scale of steps",
    "train_rows": "the rows of an epoch",
    "max_nodes": "the limit of nodes",
    "n_splits": "--folds",
    "min_level_rows": "--min-level-rows",
    "dates": "--dates",
    "decimal": "--decimal",
    "thousands": "--thousands",
    "sheet": "--sheet",
    "header_row": "--header-row",
}
_EITHER = re.compile(r"\bcov_type=(['\"])robust\1 or \1cluster\1")
# These are also English words, and parameters only before a value.
_WORDS = {"method", "criterion", "honest", "start", "device", "unknown", "reference", "scale"} | {
    *("dates", "decimal", "thousands", "sheet", "header_row")
}
_ASSIGNED = re.compile(
    rf"\b({'|'.join(_OPTIONS)})="
    r"(?:('[^']*'|\"[^\"]*\")|(True|False|None|\.\.\.|-?[\d.]+(?<!\.)))"
)
# Foreign text is shortened before it is quoted; without a limit, quotes that nothing closes would
# each be followed to the end.
_TEXT = r"'(?:[^'\\]|\\.){0,400}'|\"(?:[^\"\\]|\\.){0,400}\""
# The value of a parameter; or a text of its own, which came from the data.
_QUOTED = re.compile(rf"\b\w+=(?:{_TEXT})|(?<!\w)({_TEXT})")
_NAMED = re.compile(rf"\b({'|'.join(name for name in _OPTIONS if name not in _WORDS)})\b")


def in_options(message: str) -> str:
    """Replace parameters in a message with options; quoted text, such as column names, stays."""
    with at_command_line():
        message = told(message)
    message = _EITHER.sub("--robust or --cluster", message)
    pieces, start = [], 0
    for quoted in _QUOTED.finditer(message):
        if quoted[1] is not None:
            pieces += [_in_options(message[start : quoted.start()]), quoted[1]]
            start = quoted.end()
    return "".join([*pieces, _in_options(message[start:])])


def _in_options(text: str) -> str:
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    text = _ASSIGNED.sub(_assigned, text)
    return _NAMED.sub(lambda found: _OPTIONS[found[1]], text)


def _assigned(found: re.Match[str]) -> str:
    option = _OPTIONS[found[1]]
    text = found[2] or ""
    # Words need no quotes in a shell.
    value = text.strip("'\"") if re.fullmatch(r"['\"][\w-]+['\"]", text) else text
    value = value or (found[3] if found[3] not in ("True", "None", "...") else "")
    return f"{option} {value}".strip() if option.startswith("--") else option


_CHOICES = (
    "search-in|search|method|missing|outcome-kind|weight-kind|scale|dates|on-separation|device"
)
_QUOTE = "'"
_FLAGS = ("honest", "robust")
_OPTION = re.compile(
    rf"(?<!\w)(?:{_TEXT})"
    rf"|--na-values (?P<code>'[^']*'|\S*[^\s.,;:)])"
    rf"|--(?P<choice>{_CHOICES}) (?P<value>[a-z0-9][\w-]*)"
    r"|(?<![\w-])--(?P<name>[a-z][a-z-]*)"
)


def in_keywords(message: str) -> str:
    """Replace options in a message with the keywords of `heckmanfa.analysis.analyse`."""
    return _OPTION.sub(_keyword, message)


def _keyword(found: re.Match[str]) -> str:
    if found["code"]:
        return f"na_values=[{found['code'].strip(_QUOTE)!r}]"
    if found["choice"]:
        return f"{found['choice'].replace('-', '_')}='{found['value']}'"
    if found["name"]:
        name = found["name"].replace("-", "_")
        return f"{name}=True" if name in _FLAGS else name
    # Quoted text came from the data.
    return found[0]
