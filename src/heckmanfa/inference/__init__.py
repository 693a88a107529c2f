"""What a referee asks of a fitted selection model.

`bootstrap` and `honest` are about a search for the features, `uncertainty` and `what_if` about
assumptions that no data can prove, `specification` about those that data can refute, and
`margins` and `intervals` about what the estimates mean for the outcome. Each is a function of a
fitted model; `heckmanfa.estimators.inference_methods` makes them methods.
"""

from __future__ import annotations

from heckmanfa.inference.bootstrap import Bootstrap
from heckmanfa.inference.exclusion import ExclusionTest
from heckmanfa.inference.honest import Honest
from heckmanfa.inference.likelihood_profile import RhoProfile, profile_rho
from heckmanfa.inference.margins import Margins
from heckmanfa.inference.specification import SpecificationTests
from heckmanfa.inference.uncertainty import UncertaintyInterval
from heckmanfa.inference.what_if import WhatIf

__all__ = [
    "Bootstrap",
    "ExclusionTest",
    "Honest",
    "Margins",
    "RhoProfile",
    "SpecificationTests",
    "UncertaintyInterval",
    "WhatIf",
    "profile_rho",
]
