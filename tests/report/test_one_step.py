"""A feature has one step and one effect: in the tile, picture, tables, JSON and on the console."""

from __future__ import annotations

import pytest
from tests.report.conftest import ALL

from heckmanfa.analysis.feature_table import feature_frame
from heckmanfa.cli.answer_json import as_json
from heckmanfa.cli.answer_screen import role_lines
from heckmanfa.text.labels import labelled
from heckmanfa.text.wording import MINUS

# `make study` has the page of 300 features.
SOME = [name for name in ALL if name != "wide"]


def _raw(analysis, column):
    """Return the effect of one unit of a column and its ends, from the table of estimates."""
    fit, series = analysis.model.fit_, analysis.evidence.effects.own
    effect = series.of(column)
    if not fit.family.reads_labels:
        rows = analysis.estimates.query("equation == 'prediction'").set_index("term")
        if fit.labels[column] in rows.index:
            row = rows.loc[fit.labels[column], ["estimate", "ci_low", "ci_high"]].astype(float)
            assert tuple(row) == pytest.approx(
                (effect.estimate, effect.low, effect.high), nan_ok=True
            )
    return effect.estimate, effect.low, effect.high


@pytest.mark.parametrize("name", SOME)
def test_every_output_has_the_effect_of_the_same_step(case, name):
    analysis = case(name)
    evidence = analysis.evidence
    roles = {role["feature"]: role for role in as_json(analysis)["roles"]}
    frame = analysis.roles.set_index("feature")
    table = feature_frame(analysis.pictures())
    with labelled(analysis.labels):
        forest = {row.name: row for row in analysis.pictures().forest.rows if row.is_leading}
    screen = "\n".join(line.text for line in role_lines(evidence, 200))
    for feature in evidence.features:
        effect, step = feature.effect, evidence.naming.step_of(feature.lead)
        expected = [step * value for value in _raw(analysis, feature.lead)]
        assert [effect.estimate, effect.low, effect.high] == pytest.approx(expected, nan_ok=True)
        role = roles[feature.name]
        assert (role["step"], role["change"]) == (step, evidence.naming.step_words(feature.lead))
        assert frame.loc[feature.name, "step"] == step
        if not effect.known:
            assert role["effect"] is None
            continue
        assert role["effect"] == frame.loc[feature.name, "effect"] == effect.estimate
        lines = table[(table["feature"] == feature.name) & (table["level"] == feature.level)]
        assert lines["step"].tolist() == [step]
        assert lines["effect"].tolist() == [effect.estimate]
        value, low, high = evidence.words.numbers(effect.estimate, effect.low, effect.high)
        if feature.name in forest:
            row = forest[feature.name]
            assert row.change.endswith(evidence.naming.step_words(feature.lead))
            assert row.estimates[0].words == (value, f"{low} to {high}" if low and high else "")
        if len(evidence.features) <= 20:
            assert value in screen


@pytest.mark.parametrize("name", SOME)
def test_the_tile_says_the_step_and_the_number_of_its_row(case, name):
    analysis = case(name)
    evidence, main = analysis.evidence, analysis.evidence.main
    with labelled(analysis.labels):
        change = str(evidence.naming.change_of(main.lead))
    title = str(analysis.answer.how_much.title)
    assert title.endswith(f" for {change}")
    if evidence.no_exclusion:
        return
    value, *_ = evidence.words.numbers(main.effect.estimate, main.effect.low, main.effect.high)
    assert value.removeprefix(MINUS) in title
