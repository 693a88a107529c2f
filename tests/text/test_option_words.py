"""A message names options as its reader knows them: parameters, keywords or flags."""

from __future__ import annotations

import pickle
import warnings

import pytest

from heckmanfa.errors import HeckmanfaWarning, InputError, warn
from heckmanfa.text.option_words import at_command_line, instead, option, told
from heckmanfa.text.passage import passage
from heckmanfa.text.printable import quoted


@pytest.mark.parametrize(
    ("words", "parameters", "keywords", "flags"),
    [
        (option("never", [...]), "never=[...]", "select_only=[...]", "--select-only"),
        (option("exclude"), "exclude", "exclude", "--exclude"),
        (option("method", "ml"), "method='ml'", "method='ml'", "--method ml"),
        (option("cov_type", "robust"), "cov_type='robust'", "robust=True", "--robust"),
        (option("cov_type", "cluster"), "cov_type='cluster'", "cluster=...", "--cluster"),
        (option("header_row", ...), "header_row=...", "header_row=...", "--header-row"),
        (
            option("na_values", ["y=not done"]),
            "na_values=['y=not done']",
            "na_values=['y=not done']",
            "--na-values 'y=not done'",
        ),
        (
            instead("; see what_if()", f" or {option('exclude')}"),
            "; see what_if()",
            " or exclude",
            " or --exclude",
        ),
    ],
)
def test_each_reader_has_words_for_an_option(words, parameters, keywords, flags):
    assert told(words) == parameters
    assert told(words, keywords=True) == keywords
    with at_command_line():
        assert told(words) == told(words, keywords=True) == flags
    assert told(words) == parameters


def test_errors_warnings_and_passages_are_told_to_their_reader():
    words = f"leave it out with {option('exclude')}"
    error = pickle.loads(pickle.dumps(InputError(words)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(words, HeckmanfaWarning)
    told_of = [error, caught[0].message, passage(words)]
    assert [str(one) for one in told_of] == ["leave it out with exclude"] * 3
    assert repr(error) == "InputError('leave it out with exclude')"
    with at_command_line():
        assert [str(one) for one in told_of] == ["leave it out with --exclude"] * 3


def test_names_of_columns_are_never_taken_for_options():
    name = option("exclude")
    with at_command_line():
        assert "--exclude'" not in told(f"column {quoted(name)} and {option('never')}")
