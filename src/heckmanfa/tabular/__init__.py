"""Tables as people have them, for the command line.

`reading` and `files` read and write them, `kinds` decides what each column is, `encoding` makes
numbers of them, and `model_file` keeps a fitted model together with how its numbers were made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from heckmanfa.foreign import quoted
from heckmanfa.outputs import replacing
from heckmanfa.tabular.encoding import Encoding
from heckmanfa.tabular.files import sha256_of, write_table
from heckmanfa.tabular.kinds import Kind, decide_kinds
from heckmanfa.tabular.reading import Table, open_table, read_table
from heckmanfa.tabular.values import to_numbers

if TYPE_CHECKING:
    from heckmanfa.tabular.model_file import Saved, load_model, save_model

__all__ = [
    "Encoding",
    "Kind",
    "Saved",
    "Table",
    "decide_kinds",
    "load_model",
    "open_table",
    "read_table",
    "replacing",
    "save_model",
    "sha256_of",
    "to_numbers",
    "write_table",
]


def __getattr__(name: str) -> Any:
    # skops takes longer to import than a table to read.
    if name in ("Saved", "load_model", "save_model"):
        return getattr(import_module("heckmanfa.tabular.model_file"), name)
    raise AttributeError(f"module 'heckmanfa.tabular' has no attribute {quoted(name)}")
