"""Rows as a funnel: every row that was read is used, or left out for a reason that is named."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.analysis import analyse, checking
from heckmanfa.cli.answer_json import as_json
from heckmanfa.report import render
from heckmanfa.results.checks import Check, named_first
from heckmanfa.results.funnel import funnel_of

LOSSES = {
    "left_out_not_data": 4,
    "left_out_regressor_missing": 90,
    "left_out_outcome_missing": 12,
    "left_out_zero_weight": 7,
}
"""what `lossy` loses, by reason"""


def plain(n=400, seed=0):
    """Rows of which none is lost."""
    source = np.random.default_rng(seed)
    frame = pd.DataFrame(source.normal(size=(n, 3)), columns=["a", "b", "z"])
    errors = source.normal(size=(n, 2))
    works = frame["a"] + 1.5 * frame["z"] + errors[:, 0] > 0
    frame["y"] = (1 + frame["a"] + 0.5 * errors[:, 0] + errors[:, 1]).where(works)
    return frame.assign(works=works.astype(int), weight=1.0, place="town")


def lossy():
    """Rows of which a known number is lost for each reason, each row for one."""
    frame = plain()
    frame.loc[:3, "place"] = "Total"
    frame.loc[10:79, "a"] = np.nan
    frame.loc[60:99, "b"] = np.nan
    there = frame.index[(frame["works"] == 1) & (frame.index >= 100)]
    frame.loc[there[:12], "y"] = np.nan
    frame.loc[there[20:27], "weight"] = 0.0
    return frame


@pytest.fixture(scope="module", autouse=True)
def no_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "resample", lambda *_: "Samples of the rows are left out here")
        yield


def ask(frame, **options):
    named = {"selected": "works", "weights": "weight", "exclude": ["place"]}
    return analyse(frame, outcome="y", search="none", select_only=["z"], **named | options)


@pytest.fixture(scope="module")
def lost():
    return ask(lossy(), drop_rows=["place=Total"])


def test_every_loss_is_counted_under_its_reason(lost):
    funnel = lost.funnel
    assert {loss.reason: loss.rows for loss in funnel.left_out} == LOSSES
    assert (funnel.read, funnel.lost) == (400, sum(LOSSES.values()))
    assert funnel.read == funnel.lost + funnel.used
    kept = lossy().iloc[100:].query("weight > 0 and not (works == 1 and y != y)")
    # Rows 4 to 9 lack nothing.
    first = lossy().iloc[4:10].query("not (works == 1 and y != y)")
    assert funnel.used == len(kept) + len(first)
    assert funnel.observed == kept["y"].notna().sum() + first["y"].notna().sum()
    assert sum(n for _, n in funnel.by_use()) == funnel.read


def test_columns_that_cost_most_rows_come_first(lost):
    loss = next(loss for loss in lost.funnel.left_out if loss.columns)
    # Twenty rows lack both.
    assert loss.columns == (("a", 70), ("b", 40))
    assert loss.words == "90 lack a feature (a: 70, b: 40)"


def test_all_outputs_tell_the_same_counts(lost):
    funnel = lost.funnel
    found = json.loads(json.dumps(as_json(lost)["funnel"]))
    assert found["words"] == funnel.words
    assert {reason["reason"]: reason["rows"] for reason in found["reasons"]} == LOSSES
    assert found["reasons"][1]["columns"] == {"a": 70, "b": 40}
    assert found["read"] == found["left_out"] + found["used"]
    page = render(lost)
    strip = page[page.index('<div class="funnel">') :]
    strip = strip[: strip.index("</div>")]
    for number in (funnel.read, funnel.lost, funnel.used, funnel.observed):
        assert f"<b>{number}</b>" in strip
    assert f'class="used" width="{100 * funnel.used / 400:.2f}"' in strip
    assert f'class="seen" width="{100 * funnel.observed / 400:.2f}"' in strip
    assert page.index('<div class="funnel">') < page.index('<div class="tiles">')


def test_a_loss_of_more_than_a_fifth_is_in_the_trust_tile_with_what_to_do(lost):
    check = next(check for check in lost.checks if check.key == "many_rows_lost")
    assert check.level == "caution"
    assert (check.title, check.value) == ("28% of the rows were left out.", "113 of 400")
    assert "exclude=['a']" in check.do
    assert "missing='mean'" in check.do
    assert "28% of the rows were left out." in str(lost.answer.trust.words)
    assert "28% of the rows were left out: 113 of 400." in str(lost.answer.trust.numbers)
    assert "rows_lost" not in [other.key for other in lost.checks]
    assert any(claim.key == "many_rows_lost" for claim in lost.claims)


@pytest.mark.parametrize(("n_lost", "is_said"), [(79, False), (80, False), (81, True)])
def test_a_fifth_is_the_limit(n_lost, is_said):
    frame = plain()
    frame.loc[: n_lost - 1, "b"] = np.nan
    analysis = ask(frame)
    assert analysis.funnel.lost == n_lost
    assert ("% of the rows were left out" in str(analysis.answer.trust.words)) is is_said
    keys = {check.key for check in analysis.checks}
    assert ("many_rows_lost" in keys, "rows_lost" in keys) == (is_said, not is_said)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("weight", "weight of zero"), ("outcome", "selected"), ("rows", "drop_rows")],
)
def test_what_to_do_about_a_loss_goes_by_its_main_reason(reason, advice):
    frame, options = plain(), {}
    there = frame.index[frame["works"] == 1]
    if reason == "weight":
        frame.loc[::3, "weight"] = 0.0
    elif reason == "outcome":
        frame.loc[there[:100], "y"] = np.nan
    else:
        frame.loc[::3, "place"], options = "Total", {"drop_rows": ["place=Total"]}
    check = next(c for c in ask(frame, **options).checks if c.key == "many_rows_lost")
    assert advice in check.do


def test_a_first_screen_names_a_large_loss_beside_the_two_gravest():
    grave = [
        Check(key, level, f"{key}.", "", "")
        for key, level in (("rho", "problem"), ("maxima", "problem"), ("events", "caution"))
    ]
    large = Check("many_rows_lost", "caution", "30% of the rows were left out.", "", "")
    assert named_first([*grave, large]) == [*grave[:2], large]
    assert named_first([grave[0], large, grave[2]]) == [grave[0], large]
    assert named_first(grave) == grave[:2]


def test_no_loss_is_said_to_be_none():
    analysis = ask(plain())
    assert analysis.funnel.words == (
        f"400 rows read and used, {int(plain()['works'].sum())} with y."
    )
    assert "none left out" in render(analysis)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.MissingFeaturesWarning")
def test_a_fitted_model_has_the_funnel_of_the_rows_that_it_was_given(tmp_path):
    frame = lossy()
    model = Heckman.from_formula("y ~ a + b", "a + b + z", frame[["y", "a", "b", "z"]])
    funnel = funnel_of(model.fit_, model.row_counts_, {}, "y")
    assert (funnel.read, funnel.lost) == (400, 90)
    model.report(tmp_path / "report.html", frame[["y", "a", "b", "z"]])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>90</b> left out: they lack a feature (a: 70, b: 40)" in page
    assert "22% of the rows were left out." in page
