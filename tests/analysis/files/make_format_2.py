"""Write the files of format 2, with the code at commit fd4863e: python make_format_2.py FOLDER."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import heckmanfa as h
from heckmanfa.analysis import save_model
from heckmanfa.data.columns.encoding import Encoding

warnings.simplefilter("ignore")
rng, n = np.random.default_rng(0), 120
frame = pd.DataFrame({"a": rng.normal(size=n).round(2), "b": rng.normal(size=n).round(2)})
frame["g"] = rng.choice(["u", "v", "w"], n, p=[0.2, 0.5, 0.3])
index = 0.3 + frame["a"] + 0.5 * (frame["g"] == "u") + rng.normal(size=n)
y = (1 + frame["b"] + 0.8 * (frame["g"] == "w") + rng.normal(size=n)).where(index > 0)
classes = pd.Series(np.where(y > 1, "yes", "no"), dtype=object).where(y.notna(), None)
encoding, X = Encoding.learn(frame, ["a", "b", "g"])
new = frame.head(4)
MODELS = [
    h.Heckman(["b", "g[u]", "g[w]"]),
    h.HeckmanFA(epochs=20, n_draws=20, random_state=0),
    h.HeckmanBestSubset(method="ml"),
    h.HeckmanLasso(),
    h.HeckmanAverage(),
    h.HeckmanProbit(["b", "g[u]", "g[w]"]),
    h.HeckmanProbitBestSubset(n_refits=3),
    h.NaiveOLS(),
    h.InverseProbabilityWeighted(),
    h.RURegressor(epochs=1, random_state=0),
]
folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
expected = {"rows": new.to_dict("list"), "predicted": {}}
for model in MODELS:
    name = type(model).__name__
    model.fit(X, classes if "Probit" in name else y)
    save_model(folder / f"{name}.skops", model, encoding, {"outcome": "y"}, force=True)
    if "Probit" in name:
        found = model.predict_proba(encoding.transform(new))[:, 1]
    else:
        found = model.predict(encoding.transform(new))
    expected["predicted"][name] = found.tolist()
data = frame.assign(y=y)
model = h.Heckman.from_formula("y ~ b + C(g)", "~ a + b + C(g)", data)
save_model(folder / "formula.skops", model, None, {"outcome": "y"}, force=True)
expected["predicted"]["formula"] = model.predict(new).tolist()
(folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
