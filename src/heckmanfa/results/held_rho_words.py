"""What is said of a rho that is held at a value: each sentence once, for every output."""

from __future__ import annotations

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.results.document import Caveat, Finding
from heckmanfa.text.wording import true_minus


def held_value(rho: float) -> str:
    """Return "held at" and the value, with the digits that the user gave."""
    return f"held at {rho:.10g}"


def held_in_words(rho: float) -> str:
    """Return the same with a proper minus sign, for sentences about an answer."""
    return true_minus(held_value(rho))


def caveat_of_held_rho(rho: float, *, binary: bool) -> Caveat:
    """Say that rho is an assumption, and what standard errors allow for."""
    held, sigma = held_value(rho), "" if binary else " and of sigma"
    words = f"rho is {held}, not estimated."
    errors = "Standard errors take it as known, and allow for the estimation of the selection "
    claim = "That the data show how much selection on what was not observed there is"
    return Caveat(
        "rho_held",
        "caution",
        f"{words} {errors}equation{sigma}.",
        claim,
        f"rho is {held}, which is an assumption.",
    )


def about_held_rho(rho: float) -> Finding:
    """Say that rho was not estimated, as a line of the diagnostics."""
    words = "An assumption, not an estimate: nothing tests it, nor rho = 0."
    return Finding("rho", "rho", held_value(rho), "ok", words)


def about_held_exclusions(key: str, name: str, n_excluded: int) -> Finding:
    """Say that a rho which is held needs no exclusion."""
    words = "With rho held, no exclusion is needed to tell selection from prediction."
    return Finding(key, name, str(n_excluded) if n_excluded else "none", "ok", words)


def refuse_test_of_held_rho(fit: Fit) -> None:
    """Refuse a hypothesis about a rho that was not estimated."""
    if fit.held_rho is not None:
        raise NotIdentifiedError(
            f"rho is {held_value(fit.held_rho)}, so no hypothesis about it can be tested; fit "
            "without a rho to test it"
        )


def refuse_exclusions_of_held_rho(fit: Fit, name: str) -> None:
    """Refuse what examines exclusions, on which a rho that is held does not rest."""
    if fit.held_rho is not None:
        raise InputError(
            f"{name} examines exclusions, and with rho {held_value(fit.held_rho)} nothing rests on "
            "these: let the features predict, with the same rho, and use wald_test"
        )
