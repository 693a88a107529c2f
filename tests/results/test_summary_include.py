"""What a summary may include."""

from __future__ import annotations

import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError


@pytest.mark.parametrize("given", [3, [3], "margins", None])
def test_what_is_no_report_is_refused_by_name(given):
    table = load_mroz()
    model = Heckman(["educ"]).fit(table[["educ", "kids5"]], table["lwage"])
    for method in (model.summary, model.diagnostics):
        with pytest.raises(InputError, match="include takes what bootstrap"):
            method(include=given)
