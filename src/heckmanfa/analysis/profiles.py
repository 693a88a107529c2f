"""Rows that a user describes for a report: ``educ=16,kids5=2``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from heckmanfa.data.columns.missing_codes import split_item
from heckmanfa.data.columns.values import label_of
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


def profile_texts(profiles: Any) -> tuple[str, ...]:
    """Write profiles as text: one or several, each a text or values by column."""
    if profiles is None:
        return ()
    several = [profiles] if isinstance(profiles, str | Mapping) else list(profiles)
    return tuple(_text(profile) if isinstance(profile, Mapping) else profile for profile in several)


def _text(profile: Mapping[str, Any]) -> str:
    """Write values by column; those with a comma or a quote are quoted."""
    written = io.StringIO()
    items = [f"{name}={label_of(value)}" for name, value in profile.items()]
    csv.writer(written, lineterminator="").writerow(items)
    return written.getvalue()


def read_profiles(texts: Sequence[str], columns: Sequence[str]) -> list[dict[str, str]]:
    """Read profiles; refuse what is not a list of columns and values, or names no column."""
    return [_read(text, columns) for text in texts]


def _read(text: str, columns: Sequence[str]) -> dict[str, str]:
    what = "names columns and their values, as in educ=16,kids5=2"
    profile: dict[str, str] = {}
    for item in next(csv.reader([text], skipinitialspace=True), []):
        pair = split_item(item, columns, option("profile"))
        if pair is None or not pair[1]:
            raise InputError(f"{option('profile')} {what}; got {quoted(item)}")
        name, value = pair
        if name in profile:
            raise InputError(f"{option('profile')} names {quoted(name)} twice: {quoted(text)}")
        profile[name] = value
    if not profile:
        raise InputError(f"{option('profile')} is empty: it {what}")
    return profile
