"""The wages of married women (Mroz 1987): 753 women, of whom the 428 who worked have a wage.

    make demo

Women who work are not a random draw from all women, so least squares on the 428 wages may be
biased. The selection model uses all 753 rows. Fifteen features may drive who works; which of them
also predict the wage? The answer comes first: an average over all assignments of features. Then two
searches that choose one assignment: the best of all, proven optimal, and Heckman-FA, which trains
and draws. The report, reports/mroz.html, is the one that `heckmanfa fit --report` writes.
"""

import warnings
from pathlib import Path

import pandas as pd
from sklearn.linear_model import LinearRegression

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import NoExclusionWarning
from heckmanfa.report import write_report

FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]

mroz = load_mroz()
X, y = mroz[FEATURES], mroz["lwage"]  # the log wage is NaN where she did not work

# From a file to the answer and a report, as `heckmanfa fit reports/mroz.csv --outcome lwage` does.
folder = Path("reports")
folder.mkdir(exist_ok=True)
mroz[["lwage", *FEATURES]].to_csv(folder / "mroz.csv", index=False)
analysis = analyse(Question(data=str(folder / "mroz.csv"), outcome="lwage"))
print(analysis.answer)
print("\nRoles of the features")
print(analysis.roles.round(3).to_string(index=False))
print("\nChecks")
for check in analysis.checks:
    if check.level != "ok":
        print(f"{check.level:>7}  {check.title}")

best = HeckmanBestSubset().fit(X, y)
learned = HeckmanFA(criterion="bic", random_state=0).fit(X, y)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoExclusionWarning)  # that is the point of the comparison
    everything = Heckman().fit(X, y)
worked = y.notna()
naive = LinearRegression().fit(X[worked], y[worked])

print("\nIf one assignment is needed")
for name, model in (("Best subset", best), ("Heckman-FA", learned)):
    chosen = ", ".join(model.prediction_features_)
    print(f"{name}: {chosen} (BIC {model.bic_:.1f}, {model.n_assignments_:,} evaluated)")

table = pd.DataFrame(
    {
        "least squares": [naive.intercept_, *naive.coef_],
        "all features": [everything.intercept_, *everything.coef_],
        "Heckman-FA": [learned.intercept_, *learned.coef_],
        "best subset": [best.intercept_, *best.coef_],
        "average": [analysis.model.intercept_, *analysis.model.coef_],
    },
    index=["Intercept", *FEATURES],
)
rhos = [everything.rho_, learned.rho_, best.rho_, analysis.model.rho_]
table.loc["rho"] = [float("nan"), *rhos]
print("\nCoefficients: least squares on the women with a wage, and Heckman models of all women")
print(table.replace(0.0, float("nan")).to_string(float_format="{:.4g}".format, na_rep=""))

page = folder / "mroz.html"
write_report(analysis, page)
print(f"\nThe report: open {page.resolve().as_uri()} in a browser.")
print(f"On a remote machine: python -m http.server --directory {folder}, then open")
print(f"http://localhost:8000/{page.name}")
