"""The wages of married women (Mroz 1987): 753 women, of whom the 428 who worked have a wage.

    make demo

Women who work are not a random draw of all women, so that least squares on the 428 wages may be
biased. The selection model uses all 753 rows.
"""

import numpy as np

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz

PREDICTION = ["educ", "exper", "expersq"]
SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]

mroz = load_mroz()
X, y = mroz[SELECTION], mroz["lwage"]  # the log wage is NaN where she did not work
model = Heckman(PREDICTION, SELECTION).fit(X, y)

print(model.summary())
print("\nDiagnostics")
print(model.diagnostics())

# Least squares on the women with a wage, for comparison.
worked = y.notna()
design = np.column_stack([np.ones(worked.sum()), X.loc[worked, PREDICTION]])
naive = np.linalg.lstsq(design, y[worked], rcond=None)[0]
corrected = [model.intercept_, *model.coef_[model.support_]]

print("\nLog wage, with and without the correction")
print(f"{'':<12}{'least squares':>15}{'Heckman':>12}")
for term, before, after in zip(["Intercept", *PREDICTION], naive, corrected, strict=True):
    print(f"{term:<12}{before:>15.5f}{after:>12.5f}")
