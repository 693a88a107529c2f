"""The table of all features, for other programs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.analysis import Question, analyse
from heckmanfa.analysis.feature_table import feature_frame


def table(n=600):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"x": rng.normal(size=n), "z": rng.normal(size=n), "place": rng.choice(list("abc"), n)}
    )
    errors = rng.normal(size=(n, 2))
    selected = frame["x"] + frame["z"] + (frame["place"] == "b") + errors[:, 0] > 0
    y = 1 + frame["x"] + 2.0 * (frame["place"] == "c") + 0.5 * errors[:, 0] + errors[:, 1]
    return frame.assign(y=y.where(selected))


def test_it_holds_what_roles_and_pictures_show_with_a_line_for_each_level():
    analysis = analyse(Question("table", "y"), frame=table())
    found, roles = feature_frame(analysis.pictures()), analysis.roles
    assert list(dict.fromkeys(found["feature"])) == list(roles["feature"])
    alone = found[found["level"] == ""].set_index("feature")
    expected = roles.set_index("feature").loc[alone.index]
    np.testing.assert_array_equal(
        alone[["chance", "effect", "effect_low", "effect_high"]],
        expected[["chance", "effect", "ci_low", "ci_high"]],
    )
    levels = found[found["feature"] == "place"].set_index("level")
    assert sorted(levels.index) == ["b", "c"]
    estimates = analysis.estimates.set_index(["equation", "term"])["estimate"]
    for level, line in levels.iterrows():
        column = analysis.encoding.groups["place"]["bc".index(level)]
        assert line["effect"] == estimates["prediction", column]
        assert line["selection_change"] == f"{level} rather than a"
    margins = {driver.name: driver for driver in analysis.pictures().margins.drivers}
    for name, line in alone.iterrows():
        assert line["selection_points_estimate"] == margins[name].changes[0].estimate
