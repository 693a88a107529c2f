"""Which columns of a table a scan asks for: the outcome and the others by role, and features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from heckmanfa.data.columns.column_names import refuse_absent, repeated
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.fitted_levels import read_references, with_references
from heckmanfa.data.scan.arrow_columns import FLAGS, Needed, kind_of
from heckmanfa.data.scan.arrow_levels import learn_encoding
from heckmanfa.data.scan.engines import Engine
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, quoted_list, shown

Role = Literal["outcome", "selected", "sample_weight", "groups"]
Opened = TypeVar("Opened", bound=Engine)

_WANTED = {"outcome": "numbers or two classes", "groups": "labels", "selected": FLAGS}


@dataclass(frozen=True)
class ScanColumns:
    """What the user says about the columns of a scan."""

    roles: dict[Role, str]
    """the column of each role that one has"""
    features: tuple[str, ...] | None
    """None for all columns without another role"""
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    encoding: Encoding | None
    """how columns become features, if that was learned before"""
    drops_missing: bool
    reference: Mapping[str, str]
    """levels that are to be the references of categories"""

    @classmethod
    def asked(
        cls,
        outcome: str | None,
        features: Sequence[str] | None,
        *,
        selected: str | None,
        sample_weight: str | None,
        groups: str | None,
        missing: str,
        categorical: Sequence[str],
        numeric: Sequence[str],
        encoding: Encoding | None,
        reference: Mapping[str, Any] | None = None,
    ) -> ScanColumns:
        """Check the arguments of a scan, which are those of `scan`."""
        if missing not in ("error", "drop"):
            raise InputError(f"missing must be 'error' or 'drop'; got {quoted(missing)}")
        if encoding is not None and (len(categorical) or len(numeric)):
            raise InputError(
                "an encoding already defines the categories; leave categorical and numeric out"
            )
        lists = {"features": features, "categorical": categorical, "numeric": numeric}
        for name, columns in lists.items():
            if isinstance(columns, str):
                raise InputError(f"{name} must be a list of columns: write [{quoted(columns)}]")
        given = {
            "outcome": outcome,
            "selected": selected,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        roles = {cast(Role, role): name for role, name in given.items() if name is not None}
        return cls(
            roles,
            None if features is None else tuple(features),
            tuple(categorical),
            tuple(numeric),
            encoding,
            missing == "drop",
            {} if reference is None else reference,
        )

    def opened(
        self, open_engine: Callable[[Needed], Opened]
    ) -> tuple[Opened, list[str], Encoding | None]:
        """Open an engine, and return it with the columns of features and how they are encoded.

        ``open_engine`` gets what says which columns matter, given a schema.
        """
        sources: list[str] = []

        def needed(schema: Any, what: Any) -> list[str] | None:
            sources.extend(self.sources(schema, what))
            return self.needed(sources)

        engine = open_engine(needed)
        self.check(engine.schema)
        learned = self.learn(engine, sources)
        if learned is not None:
            columns = FittedColumns("", len(sources), tuple(sources), None, learned)
            learned = with_references(learned, read_references(columns, self.reference))
        return engine, sources, learned

    def sources(self, schema: Any, what: Any) -> list[str]:
        """Return the columns that features are made from; refuse those that are not there.

        Messages call the table ``what``.
        """
        taken = list(self.roles.values())
        sources = list(self.encoding.sources if self.encoding is not None else self.features or [])
        if self.encoding is None and self.features is None:
            sources = [name for name in schema.names if name not in taken]
        elif self.features is not None and {*self.features} != {*sources}:
            raise InputError("an encoding already defines the features; leave features out")
        refuse_absent([*taken, *sources], schema.names, shown(what))
        if twice := repeated(sources):
            raise InputError(f"the feature {quoted(twice[0])} is named twice")
        outcome = self.roles.get("outcome")
        if outcome in sources:
            raise InputError(f"{quoted(outcome)} is the outcome, and cannot also be a feature")
        if not sources:
            besides = f" besides {quoted_list(taken, 4)}" if taken else ""
            raise InputError(f"{shown(what)} has no column{besides} that could be a feature")
        return sources

    def needed(self, sources: Sequence[str]) -> list[str] | None:
        """Return the columns that the scan reads; None if it takes whatever there is."""
        if self.features is None and self.encoding is None:
            return None
        return list(dict.fromkeys([*sources, *self.roles.values()]))

    def check(self, schema: Any) -> None:
        """Refuse columns of a type that their role cannot have."""
        for role, name in self.roles.items():
            kind = kind_of(schema.field(name).type)
            fits = kind != "other" if role == "groups" else kind in ("number", "empty")
            fits = fits or (role in ("outcome", "selected") and kind == "text")
            if not fits:
                wanted = _WANTED.get(role, "numbers")
                raise InputError(wrong_type(role, name, schema.field(name).type, wanted))

    def learn(self, engine: Engine, sources: Sequence[str]) -> Encoding | None:
        """Decide how columns become features; None if there is no outcome, so nothing is fitted."""
        if self.encoding is not None or "outcome" not in self.roles:
            return self.encoding
        return learn_encoding(
            engine,
            sources,
            categorical=self.categorical,
            numeric=self.numeric,
            named=self.features is not None,
        )


def wrong_type(role: str, name: str, stored: Any, wanted: str) -> str:
    """Explain that a column has a type that its role cannot have."""
    return (
        f"{role} names the column {quoted(name)}, which must hold {wanted}; its type is "
        f"{shown(stored)}"
    )
