"""Tables as plain text: where columns go, and what is cut."""

import pandas as pd
import pytest

from heckmanfa.results.document import Section
from heckmanfa.results.render_text import render_text


@pytest.mark.parametrize("n", [50, 55, 56, 57, 100])
def test_sets_of_features_come_last_and_are_cut_where_they_are_long(n):
    features = "x" * ((n - 1) % 10 + 1), *["y" * 8] * ((n - 1) // 10)
    words = ", ".join(features)
    assert len(words) == n
    table = pd.DataFrame({"features": [features, ()], "size": [1.5, 12.0], "name": ["a b", "c"]})
    lines = render_text([Section("A table", table=table)]).splitlines()
    assert lines == [
        "A table",
        "  size name features",
        f"1.5000 a b  {words if n <= 56 else words[:53] + '...'}",
        "12.000 c    none",
    ]
