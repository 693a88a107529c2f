"""What a reader has to know before believing an estimate: each caveat is decided here, once.

A `Caveat` is a value. Summary, margins and the other reports print its sentence; the command line,
its JSON and the HTML report print what may not be claimed because of it. Whoever prints one asks
for it here.
"""

from __future__ import annotations

from heckmanfa.results.caveats.caveat import Caveat, Table
from heckmanfa.results.caveats.fit_caveats import as_findings, of_fit, of_table, said
from heckmanfa.results.caveats.search_caveats import HONEST_TARGET, found_by, of_method

__all__ = [
    "HONEST_TARGET",
    "Caveat",
    "Table",
    "as_findings",
    "found_by",
    "of_fit",
    "of_method",
    "of_table",
    "said",
]
