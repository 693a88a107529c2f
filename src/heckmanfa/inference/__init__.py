"""What a referee asks about a fitted selection model, as functions of its `Fit`.

`bootstrap` and `honest` are about a search for the features; `uncertainty`, `what_if` and
`exclusion_tests` about assumptions that no data can prove; `specification` about those that data
can refute; `margins` and `prediction` about what the estimates mean for the outcome. Estimators
expose them as methods.
"""

from __future__ import annotations

from heckmanfa.inference.bootstrap import Bootstrap
from heckmanfa.inference.exclusion_tests import ExclusionTest
from heckmanfa.inference.honest import Honest
from heckmanfa.inference.margin_report import MarginDifferences, Margins
from heckmanfa.inference.profile_df import DfProfile
from heckmanfa.inference.profile_likelihood import profile_rho
from heckmanfa.inference.profile_report import CoefficientProfile, RhoProfile
from heckmanfa.inference.specification_report import (
    BinarySpecificationTests,
    SpecificationTests,
)
from heckmanfa.inference.uncertainty import UncertaintyInterval
from heckmanfa.inference.what_if import WhatIf
from heckmanfa.inference.wild_clusters import WildTest

__all__ = [
    "BinarySpecificationTests",
    "Bootstrap",
    "CoefficientProfile",
    "DfProfile",
    "ExclusionTest",
    "Honest",
    "MarginDifferences",
    "Margins",
    "RhoProfile",
    "SpecificationTests",
    "UncertaintyInterval",
    "WhatIf",
    "WildTest",
    "profile_rho",
]
