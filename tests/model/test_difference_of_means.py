"""Standard errors of the difference of means follow the covariance of the model beside it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa import TreatmentModel
from heckmanfa.data.survey import Survey
from heckmanfa.report.settings import errors_words

N, N_UNITS = 400, 40


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """40 villages of 10 rows in 4 regions; those of a village are alike, in treatment too."""
    rng = np.random.default_rng(11)
    unit = np.repeat(np.arange(N_UNITS), N // N_UNITS)
    shock = rng.normal(size=N_UNITS)[unit]
    x, z, u, v = rng.normal(size=(4, N))
    d = 0.6 * x + 0.8 * z + 0.7 * shock + u > 0
    y = 1.0 + 0.5 * x + 0.4 * d + shock + 0.3 * u + (0.5 + 0.8 * d) * v
    data = pd.DataFrame({"x": x, "z": z, "d": d * 1.0, "y": y, "unit": unit})
    data = data.assign(region=unit % 4, weight=rng.integers(1, 9, N).astype(float))
    for place in range(N_UNITS):
        data[f"jk{place}"] = data["weight"] * np.where(unit == place, 0.0, N_UNITS / (N_UNITS - 1))
    return data


def _difference(frame: pd.DataFrame, weight: Any) -> tuple[float, np.ndarray]:
    """The difference of weighted means, and what each row adds to it in first order."""
    terms, values = np.zeros(len(frame)), []
    for d, sign in ((1.0, 1.0), (0.0, -1.0)):
        own = (frame["d"] == d).to_numpy() * weight
        values.append(own @ frame["y"] / own.sum())
        terms += sign * own * (frame["y"].to_numpy() - values[-1]) / own.sum()
    return values[0] - values[1], terms


def _robust(frame: pd.DataFrame, weight: Any) -> float:
    terms = _difference(frame, weight)[1]
    return N / (N - 1) * terms @ terms


def _by_frequency(frame: pd.DataFrame, weight: Any) -> float:
    repeated = frame.loc[frame.index.repeat(weight.astype(int))]
    terms = _difference(repeated, np.ones(len(repeated)))[1]
    return len(repeated) / (len(repeated) - 1) * terms @ terms


def _by_unit(frame: pd.DataFrame, weight: Any) -> float:
    totals = pd.Series(_difference(frame, weight)[1]).groupby(frame["unit"]).sum()
    return N_UNITS / (N_UNITS - 1) * float(totals @ totals)


def _by_design(frame: pd.DataFrame, weight: Any) -> float:
    totals = pd.Series(_difference(frame, weight)[1]).groupby(frame["unit"]).sum()
    regions = totals.groupby(totals.index % 4)
    return float(sum(len(own) / (len(own) - 1) * np.sum((own - own.mean()) ** 2)
                     for _, own in regions))  # fmt: skip


def _by_jackknife(frame: pd.DataFrame, weight: Any) -> float:
    again = [_difference(frame, frame[f"jk{place}"].to_numpy())[0] for place in range(N_UNITS)]
    return (N_UNITS - 1) / N_UNITS * float(np.sum((np.array(again) - np.mean(again)) ** 2))


def _welch(frame: pd.DataFrame, weight: Any) -> float:
    return float(sum(own["y"].var() / len(own) for _, own in frame.groupby("d")))


DESIGN = Survey(strata="region", psu="unit", weights="weight")
REPLICATES = Survey(
    weights="weight",
    replicate_weights=[f"jk{place}" for place in range(N_UNITS)],
    replicate_kind="jackknife",
)


@pytest.mark.parametrize("regimes", ["common", "separate"])
@pytest.mark.parametrize(
    ("options", "passed", "weighted", "variance"),
    [
        ({}, {}, False, _welch),
        ({"cov_type": "robust"}, {}, False, _robust),
        ({"cov_type": "robust"}, {"sample_weight": "weight"}, True, _by_frequency),
        ({"cov_type": "robust", "weight_kind": "sampling"}, {"sample_weight": "weight"}, True,
         _robust),
        ({"cov_type": "cluster"}, {"groups": "unit"}, False, _by_unit),
        ({"cov_type": DESIGN}, {"groups": None}, True, _by_design),
        ({"cov_type": REPLICATES}, {"groups": None}, True, _by_jackknife),
    ],
    ids=["classical", "robust", "frequency", "sampling", "cluster", "survey", "replicates"],
)  # fmt: skip
def test_it_has_the_errors_of_a_weighted_difference_written_by_hand(
    frame, regimes, options, passed, weighted, variance
):
    rows = {name: frame if column is None else frame[column] for name, column in passed.items()}
    model = TreatmentModel(["x"], ["x", "z"], regimes=regimes, **options)
    model.fit(frame[["x", "z"]], frame["y"], treated=frame["d"], **rows)
    weight = frame["weight"].to_numpy() if weighted else np.ones(N)
    effect, error = model.fit_.details.means
    assert effect == pytest.approx(_difference(frame, weight)[0], rel=1e-9)
    assert error == pytest.approx(variance(frame, weight) ** 0.5, rel=1e-8)


def test_least_squares_beside_a_survey_with_replicate_weights_vary_over_them(frame):
    model = TreatmentModel(["x"], ["x", "z"], cov_type=REPLICATES)
    model.fit(frame[["x", "z"]], frame["y"], treated=frame["d"], groups=frame)
    design = np.column_stack([np.ones(N), frame["x"], frame["d"]])
    again = []
    for place in range(N_UNITS):
        root = np.sqrt(frame[f"jk{place}"].to_numpy())
        again.append(np.linalg.lstsq(root[:, None] * design, root * frame["y"])[0][-1])
    variance = (N_UNITS - 1) / N_UNITS * np.sum((np.array(again) - np.mean(again)) ** 2)
    assert model.fit_.details.least_squares[1] == pytest.approx(variance**0.5, rel=1e-8)


def test_outputs_say_what_replicate_weights_estimate_again(frame):
    model = TreatmentModel(["x"], ["x", "z"], cov_type=REPLICATES)
    model.fit(frame[["x", "z"]], frame["y"], treated=frame["d"], groups=frame)
    words = errors_words(model.fit_, "", asked=False)
    assert "Least squares and the difference of means were estimated again" in words
    bounds = model.bounds(frame[["x", "z"]], frame["y"], treated=frame["d"], groups=frame)
    assert "Only the fitted model was estimated again" in " ".join(str(bounds).split())
