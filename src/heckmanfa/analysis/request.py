"""A question about a table: the options of ``heckmanfa fit``, and the columns that they name."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn, get_args

from heckmanfa.analysis.designs import (
    COLUMNS,
    DESIGN,
    check_design,
    refuse_average,
    survey_of,
    survey_options,
)
from heckmanfa.analysis.options import OPTIONS, Options
from heckmanfa.analysis.outcome_models import (
    OUTCOME_MODELS,
    USUAL_KIND,
    OutcomeModel,
    asked_kind,
    asking,
    called,
    changed_to,
    outcome_of,
    possible_kinds,
    rival_kinds,
    words_asking,
)
from heckmanfa.analysis.profiles import profile_texts, read_profiles
from heckmanfa.data.columns.missing_codes import split_item
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.files.paths import local_path
from heckmanfa.data.group_cells import MOST_CLUSTERINGS
from heckmanfa.data.outcomes import refuse_logarithm
from heckmanfa.data.scan.arrow_columns import kind_of
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.scan.places import is_url, name_of
from heckmanfa.data.survey import Survey
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError, UnknownFeatureError
from heckmanfa.fit.family import Family, family_named
from heckmanfa.results.naming import name_on_scale
from heckmanfa.results.steps import read_step
from heckmanfa.text.option_types import Method, Search, WeightKind
from heckmanfa.text.option_words import flag, option, told
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import listed, nearest

SEARCHES: tuple[str, ...] = get_args(Search)
# What columns of scanned rows that are not features are called here.
_ROLES = {
    "outcome": "outcome",
    "selected": "selected",
    "sample_weight": "weights",
    "groups": "cluster",
}
# A treatment takes the place of a selection: a column of flags is one of these.
_FLAGS = ("treated", "selected")
# Options of which some kinds of outcome take only some values.
_CHOICES = ("search", "method", "criterion")
# Options that name features.
_NAMING = ("predict_with", "always", "select_only", "selection_always", "selection_never")


@dataclass(frozen=True)
class Question(Options):
    """A question about a table.

    Its fields are the options that ``heckmanfa fit --help`` describes.
    """

    def __post_init__(self) -> None:
        """Take one name, or any sequence of names, where the field is a tuple of names."""
        object.__setattr__(self, "data", local_path(self.data))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("reference", "units", "step") and isinstance(value, Mapping):
                value = tuple(f"{name}={label_of(level)}" for name, level in value.items())
                object.__setattr__(self, field.name, value)
            if field.name == "profile":
                value = profile_texts(value)
                object.__setattr__(self, field.name, value)
            if field.name == "labels" and isinstance(value, PathLike):
                object.__setattr__(self, field.name, fspath(value))
            if field.default == () and not isinstance(value, tuple):
                names = () if value is None else (value,) if isinstance(value, str) else value
                object.__setattr__(self, field.name, tuple(names))

    def __repr__(self) -> str:
        """Name every field; an address is without its user and password."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["data"] = self.place
        return f"Question({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    @property
    def searched(self) -> Search:
        """How prediction features are found: as asked, or as other options imply."""
        if self.search is not None:
            return self.search
        chosen = self.honest or self.criterion is not None
        return "best-subset" if chosen else self.models.usual

    @property
    def estimated(self) -> Method:
        """How the model is estimated: as asked, or as the kind of outcome implies."""
        return self.method or ("ml" if self.search_in == "both" else self.family.methods[0])

    @property
    def asked_family(self) -> Family | None:
        """The model of the kind of outcome, if that is asked for."""
        kind = asked_kind(self)
        return None if kind is None else family_named(kind)

    @property
    def family(self) -> Family:
        """The model of the kind of outcome: as asked, or the usual one."""
        return self.asked_family or family_named(USUAL_KIND)

    @property
    def models(self) -> OutcomeModel:
        """The estimators of the kind of outcome."""
        return OUTCOME_MODELS[self.family.name]

    @property
    def fitted(self) -> str:
        """Name of what is fitted, such as log(wage)."""
        return name_on_scale(self.outcome, self.outcome_transform)

    def roles_in(self, columns: Sequence[str]) -> list[tuple[str, str]]:
        """Return the columns of a table that are not features, each with the option naming it."""
        roles = dict.fromkeys([*_ROLES.values(), *_FLAGS, *COLUMNS])
        named = {role: getattr(self, role) for role in roles}
        if self.survey is not None:
            replicates = self.survey.replicate_columns(columns)
            for role, names in named.items():
                if both := {*_each(names)}.intersection(replicates):
                    raise InputError(
                        f"{option('replicate_weights')} names {quoted(min(both))}, which is the "
                        f"column of {option(role)}: name the columns of weights alone"
                    )
            named["replicate_weights"] = replicates
        return [(role, name) for role, names in named.items() for name in _each(names)]

    @property
    def survey(self) -> Survey | None:
        """The design of a survey; None if none is named."""
        return survey_of(self)

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """Columns of the units whose rows are dependent: clusters, or those of a survey."""
        return self.cluster if self.survey is None else self.survey.design_columns

    @property
    def counts_as(self) -> WeightKind:
        """What weights are: as asked, and sampling weights in a survey."""
        return self.weight_kind if self.survey is None else "sampling"

    @property
    def flags(self) -> str | None:
        """Column that says who is selected, or treated; None without one."""
        return None if self.flagged is None else getattr(self, self.flagged)

    @property
    def flagged(self) -> str | None:
        """The option that names it."""
        return next((role for role in _FLAGS if getattr(self, role) is not None), None)

    @property
    def called(self) -> str:
        """Name of the table in messages."""
        return "standard input" if self.data == "-" else Path(self.place).name

    @property
    def place(self) -> str:
        """Where the table is, without the user and the password of a URL."""
        return name_of(self.data) if is_url(self.data) else self.data

    def asked(self) -> dict[str, Any]:
        """Return the options that are not their defaults, by name, without table and outcome."""
        usual = self.searched == self.models.usual
        said = replace(self, search=None if usual else self.searched)
        values = {field.name: getattr(said, field.name) for field in fields(self)}
        if not isinstance(self.labels, str):
            # Labels in memory change no number, and no command can name them.
            del values["labels"]
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if name not in ("data", "outcome") and value != defaults[name]
        }

    def command(self) -> str:
        """Return the command that asks this question."""
        words = ["heckmanfa", "fit", self.place, flag("outcome"), self.outcome]
        for name, value in self.asked().items():
            named = flag(name)
            if isinstance(value, bool):
                words.append(named)
            elif name == "rho_range":
                words += [named, *(f"{end:g}" for end in value)]
            elif isinstance(value, tuple):
                for item in value:
                    several = "," in item and name != "profile"
                    words += [named, f'"{item}"' if several else item]
            else:
                words += [named, f"{value:.12g}" if isinstance(value, float) else str(value)]
        return shlex.join(words)


def _each(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names or ()


def question_of(options: Mapping[str, Any]) -> Question:
    """Return the question that options ask; they are named as the fields of `Question`."""
    values: dict[str, Any] = dict(options)
    for field in fields(Question):
        # An empty tuple is the default of those that list columns.
        if field.default == () and field.name in values and field.name != "profile":
            values[field.name] = split_names(values[field.name])
    return Question(**values)


@contextmanager
def naming_keywords(asked_in_python: bool) -> Iterator[None]:
    """Let errors name the keywords of `analyse` instead of options, for who asked in Python."""
    try:
        yield
    except HeckmanfaError as error:
        if asked_in_python:
            error.args = (told(error.words, keywords=True), *error.args[1:])
        raise


def question_about(
    table: Any, frame: Any, say: Any, options: Mapping[str, Any], asker: str = "analyse"
) -> tuple[Question, Any]:
    """Return the question that a table and options ask, and the table if it is a frame.

    Parameters are those of `heckmanfa.analysis.analyse`; ``asker`` is the function in messages.
    """
    if isinstance(say, str):
        raise InputTypeError(f"name the outcome: {asker}(table, outcome={say!r})")
    if isinstance(table, Question):
        raise InputError(
            f"a Question has its options: put {', '.join(options)} into it, or pass the table "
            "instead of it"
        )
    if frame is not None:
        raise InputError("frame is the table of a Question: pass the table first, or a Question")
    if isinstance(table, ArrowRows):
        scanned = _options_of(table)
        if options.get("model") is not None and "selected" in scanned:
            scanned["treated"] = scanned.pop("selected")
        if table.declared is not None:
            scanned |= survey_options(table.declared) | {"cluster": ()}
        elif any(options.get(name) for name in DESIGN):
            # Its groups are units of a survey.
            del scanned["cluster"]
        options = scanned | {**options}
    named = [field.name for field in fields(Question) if field.name != "data"]
    for name in options:
        if name not in named:
            raise InputTypeError(
                f"{asker} has no option {quoted(name)}{nearest(name, named)}; its options are the "
                "fields of Question"
            )
    if "outcome" not in options:
        raise InputTypeError(f"outcome is missing: {asker}(table, outcome='name of its column')")
    if isinstance(table, str | PathLike):
        return Question(fspath(table), **options), None
    return Question("frame", **options), table


def _options_of(rows: ArrowRows) -> dict[str, Any]:
    """Return the options that scanned rows imply: what their columns are."""
    texts = [name for name in rows.sources if kind_of(rows.schema.field(name).type) == "text"]
    levels = {} if rows.encoding is None else rows.encoding.levels
    options: dict[str, Any] = {
        "features": rows.sources,
        "categorical": [name for name in levels if name not in texts],
        "numeric": [name for name in texts if name not in levels] if rows.has_outcome else [],
    }
    roles = {_ROLES[role]: name for role, name in rows.roles.items() if role in _ROLES}
    return options | roles | {"cluster": rows.groupings}


def split_names(values: Sequence[str] | None) -> tuple[str, ...]:
    """Split lists of columns at commas; a name with a comma goes in double quotes."""
    return tuple(
        name.strip()
        for value in values or ()
        for name in next(csv.reader([value], skipinitialspace=True), [])
        if name.strip()
    )


def check_question(question: Question) -> None:
    """Refuse options that do not exist, or that contradict each other."""
    for choice in OPTIONS.values():
        value, words = getattr(question, choice.name), choice.words or words_asking(choice.name)
        if words and value not in words and value != choice.default:
            raise InputError(
                f"{option(choice.name)} must be one of {', '.join(words)}; got "
                f"{quoted(value)}{nearest(str(value), words)}"
            )
    for name in ("start", "rho"):
        value = getattr(question, name)
        if value is not None and not abs(value) < 1:
            raise InputError(f"{option(name)} must be a rho inside (-1, 1); got {value:g}")
    _check_rivals(question)
    _check_clusters(question)
    check_design(question)
    _check_models(question)
    _check_needs(question)
    if question.n_terms is not None:
        # A series that is too long is refused.
        family_named(question.family.name, question.n_terms)
    if question.rho is not None:
        _check_rho(question)
    if question.errors != "normal":
        _check_errors(question)
    if question.asked_family is not None or question.method is not None:
        _check_start(question)
    refuse_logarithm(question.outcome, question.outcome_transform)
    if question.log_outcome and question.outcome_transform is not None:
        raise InputError(
            f"{option('log_outcome')} says that {quoted(question.outcome)} holds logarithms "
            f"already, and {option('outcome_transform', question.outcome_transform)} takes them: "
            "leave one of them out"
        )
    _check_search_in(question)
    if question.searched == "average":
        refuse_average(question)
        refuse_given(
            question,
            ("criterion", "honest"),
            f"is about choosing features, but {option('search', 'average')} chooses none: use "
            f"{option('search', 'best-subset')}",
        )
    if question.searched == "none":
        about_search = ("always", "rho_range", "criterion", "honest")
        refuse_given(question, about_search, f"is about a search, but {option('search')} is none")


def _check_rivals(question: Question) -> None:
    """Refuse options that ask for two models."""
    rivals = rival_kinds(question)
    if rivals is not None:
        both = [option(*next(iter(asking(kind).items()))) for kind in rivals]
        raise InputError(f"{' and '.join(both)} ask for two models: leave one of them out")


def _check_clusters(question: Question) -> None:
    """Refuse more than two clusterings, and one that is named twice."""
    names = question.cluster
    if len(names) > MOST_CLUSTERINGS:
        raise InputError(
            f"{option('cluster')} names {len(names)} columns, and errors are clustered by one or "
            "two: name those; of clusters that lie within others, the larger ones"
        )
    if len({*names}) < len(names):
        raise InputError(f"{option('cluster')} names {quoted(names[0])} twice: name it once")


def _check_needs(question: Question) -> None:
    """Refuse a model without an option that it cannot do without."""
    for name, what in question.models.needs.items():
        if getattr(question, name) is None:
            raise InputError(
                f"{called(question.family.name)} need {option(name)}: name {what}, as in "
                f"{option(name, 'd')}"
            )


def refuse_given(question: Question, names: Sequence[str], why: str) -> None:
    """Refuse options that are given; ``why`` goes on after the name of the first."""
    for name in names:
        if getattr(question, name):
            raise InputError(f"{option(name)} {why}")


def _check_search_in(question: Question) -> None:
    """Refuse what a search of both equations does not have, and what only it has."""
    if question.search_in != "both":
        why = f"is about a search of both equations: add {option('search_in', 'both')}"
        refuse_given(question, ("selection_always", "selection_never"), why)
        return
    if question.searched not in ("average", "best-subset"):
        raise InputError(
            f"{option('search_in', 'both')} is for an average or the best subset: leave out "
            f"{option('search', question.searched)}"
        )
    if question.method == "two-step":
        raise InputError(
            f"{option('search_in', 'both')} weighs both equations by their joint likelihood, and "
            f"two steps have none: leave {option('method')} out"
        )


def _check_rho(question: Question) -> None:
    """Refuse what estimates rho, if it is held at a value."""
    if question.start is not None:
        raise InputError(
            f"{option('start')} is where rho starts, and {option('rho')} holds it: leave one of "
            "them out"
        )
    if question.searched != "none":
        raise InputError(
            f"{option('rho')} holds rho at a value for features that are given, and "
            f"{option('search', question.searched)} estimates it for each set of features: add "
            f"{option('search', 'none')}"
        )


def _check_errors(question: Question) -> None:
    """Refuse what t errors do not have."""
    asked = option("errors", question.errors)
    if question.searched != "none":
        raise InputError(
            f"{asked} is for features that are given, and {option('search', question.searched)} "
            f"chooses them: add {option('search', 'none')}"
        )
    if question.method != "ml":
        raise InputError(
            f"{asked} needs {option('method', 'ml')}: two steps rest on lambda of a normal error"
        )
    refuse_given(question, ("outcome_transform",), f"goes with normal errors: leave out {asked}")


def _check_start(question: Question) -> None:
    if question.start is not None and question.estimated != "ml":
        raise InputError(
            f"{option('start')} is the starting value of maximum likelihood: add "
            f"{option('method', 'ml')}"
        )


def _check_models(question: Question) -> None:
    """Refuse options and values that the estimators of the kind of outcome do not have."""
    kinds, known = possible_kinds(question), question.asked_family is not None
    if known and question.outcome_kind not in (None, outcome_of(kinds[0])):
        how = " and ".join(option(*each) for each in asking(kinds[0]).items())
        raise InputError(
            f"{how} is for {outcome_of(kinds[0])} outcomes: leave out "
            f"{option('outcome_kind', question.outcome_kind)}"
        )
    some = {name for models in OUTCOME_MODELS.values() for name in models.has}
    for choice in OPTIONS.values():
        name, value = choice.name, getattr(question, choice.name)
        if name not in some | {*_CHOICES} or value == choice.default:
            continue
        if any(_takes(kind, name, value) for kind in kinds):
            continue
        others = [other for other in OUTCOME_MODELS if _takes(other, name, value)]
        those = dict.fromkeys(map(called, others))
        words = _words(kinds[0], name)
        only = f", whose {name} is {' or '.join(words)}" if words else ""
        model = family_named(kinds[0]).words.model
        fitted = f": {called(kinds[0])} are fitted by a {model}{only}" if known else ""
        raise InputError(
            f"{option(name, value if words else None)} is for {listed([*those])}"
            f"{fitted}. Leave it out, or {changed_to(others[0], kinds[0])}"
        )


def _takes(kind: str, name: str, value: Any) -> bool:
    """Whether the estimators of a kind of outcome have an option, and this value of it."""
    words = _words(kind, name)
    return value in words if words else name in OUTCOME_MODELS[kind].has


def _words(kind: str, name: str) -> Sequence[str]:
    """Return the values that an option takes for a kind of outcome; none if it takes any."""
    models = OUTCOME_MODELS[kind]
    words: dict[str, Sequence[str]] = {
        "search": tuple(models.estimators),
        "criterion": models.criteria,
        "method": family_named(kind).methods,
    }
    return words.get(name, ())


def question_of_family(question: Question, family: Family) -> Question:
    """Return a question whose outcome turned out to be of a kind; refuse what that lacks."""
    options: dict[str, Any] = {**asking(family.name)}
    known = replace(question, **options)
    check_question(known)
    return question if family.name == USUAL_KIND else known


def refuse_text_options(options: Mapping[str, Any], what: str) -> None:
    """Refuse options about how cells are written if columns have types."""
    for name in ("decimal", "thousands", "sheet", "header_row"):
        if options[name] is not None:
            raise InputError(f"{option(name)} is for text and Excel files, and the data is {what}")


def feature_names(question: Question, columns: Sequence[str]) -> list[str]:
    """Return the columns of a table that may be features, in its order."""
    roles = question.roles_in(columns)
    there = {*columns}
    for role, name in roles:
        if name not in there:
            # What has another role is not suggested.
            refuse_unknown(columns, name, role, {other for _, other in roles} - {name})
    role_of = {name: role for role, name in reversed(roles)}
    if question.by is not None and question.by not in there:
        refuse_unknown(columns, question.by, "by", role_of)
    for field in ("features", "exclude", *_NAMING, "categorical", "numeric"):
        for name in getattr(question, field):
            if name not in there:
                refuse_unknown(columns, name, field, role_of)
            if name in role_of and field not in ("categorical", "numeric"):
                raise InputError(
                    f"{option(field)} names {quoted(name)}, which is the column of "
                    f"{option(role_of[name])}"
                )
    references_in(question, columns)
    read_profiles(question.profile, columns)
    out, wanted = {*role_of, *question.exclude}, {*(question.features or columns)}
    names = [name for name in columns if name not in out and name in wanted]
    kept = {*names}
    for field in _NAMING:
        for name in getattr(question, field):
            if name not in kept:
                raise InputError(
                    f"{option(field)} names {quoted(name)}, which is not among the features: take "
                    f"it out of {option('exclude')}, or into {option('features')}"
                )
    if not names:
        raise InputError(
            f"no column is left as a feature; see {option('features')} and {option('exclude')}"
        )
    return names


def references_in(question: Question, columns: Sequence[str]) -> dict[str, str]:
    """Return the reference that a question names for each of some categories."""
    return _pairs(question, "reference", columns, "a column and its level, as in region=north")


def units_in(question: Question, columns: Sequence[str]) -> dict[str, str]:
    """Return the unit that a question names for each of some columns."""
    return _pairs(question, "units", columns, "a column and its unit, as in educ=years")


def steps_in(question: Question, columns: Sequence[str]) -> dict[str, float]:
    """Return the step that a question names for each of some columns."""
    pairs = _pairs(question, "step", columns, "a column and a number, as in income=1000")
    return {name: read_step(name, text, option("step")) for name, text in pairs.items()}


def _pairs(question: Question, name: str, columns: Sequence[str], what: str) -> dict[str, str]:
    """Read ``column=value`` of an option, whose items are ``what``."""
    values: dict[str, str] = {}
    for item in getattr(question, name):
        pair = split_item(item, columns, option(name))
        if pair is None or not pair[1]:
            raise InputError(f"{option(name)} names {what}; got {quoted(item)}")
        values[pair[0]] = pair[1]
    return values


def refuse_unknown(
    columns: Sequence[str], name: str, role: str, taken: Collection[str]
) -> NoReturn:
    """Refuse a column that the data does not have; those that are taken are not suggested."""
    columns = [column for column in columns if column not in taken]
    first = ", ".join(shown(column) for column in columns[:12])
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    hint = nearest(name, columns) or f"; it has {first}{more}"
    raise UnknownFeatureError(f"{option(role)}: the data has no column {quoted(name)}{hint}")
