"""The wages of married women (Mroz 1987): 753 women, of whom the 428 who worked have a wage.

    make demo

Women who work are not a random draw from all women, so least squares on the 428 wages may be
biased. The selection model uses all 753 rows. Fifteen features may drive who works; which of them
also predict the wage? Two searches answer: Heckman-FA, which trains and draws, and the best of all
assignments, proven optimal. The answer goes into a report, reports/mroz.html, as
`heckmanfa fit --report` writes it.
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

best = HeckmanBestSubset().fit(X, y)
learned = HeckmanFA(criterion="bic", random_state=0).fit(X, y)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoExclusionWarning)  # that is the point of the comparison
    everything = Heckman().fit(X, y)
worked = y.notna()
naive = LinearRegression().fit(X[worked], y[worked])

print(best.summary())
print("\nThe search")
print(best.search_report())
print("\nDiagnostics")
print(best.diagnostics())

print("\nWhich features predict the log wage?")
for name, model in (("Best subset", best), ("Heckman-FA", learned)):
    chosen = ", ".join(model.prediction_features_)
    print(f"{name}: {chosen} (BIC {model.bic_:.1f}, {model.n_assignments_:,} evaluated)")

table = pd.DataFrame(
    {
        "least squares": [naive.intercept_, *naive.coef_],
        "all features": [everything.intercept_, *everything.coef_],
        "Heckman-FA": [learned.intercept_, *learned.coef_],
        "best subset": [best.intercept_, *best.coef_],
    },
    index=["Intercept", *FEATURES],
)
table.loc["rho"] = [float("nan"), everything.rho_, learned.rho_, best.rho_]
table.loc["BIC"] = [float("nan"), everything.bic_, learned.bic_, best.bic_]
print("\nCoefficients: least squares on the women with a wage, and Heckman models of all women")
print(table.replace(0.0, float("nan")).to_string(float_format="{:.4g}".format, na_rep=""))

# From a file to a report, as with `heckmanfa fit reports/mroz.csv --outcome lwage --report ...`.
folder = Path("reports")
folder.mkdir(exist_ok=True)
mroz[["lwage", *FEATURES]].to_csv(folder / "mroz.csv", index=False)
question = Question(data=str(folder / "mroz.csv"), outcome="lwage")
write_report(analyse(question), folder / "mroz.html")
print(f"\nThe report: {(folder / 'mroz.html').resolve()}")
