"""Mathematical signs between what they join."""

from __future__ import annotations

import re
from typing import Final

from engines.text.normalize.english.patterns import rewrite
from engines.text.normalize.english.reading import Reading

_OPERAND: Final = (
    r"(?:[A-Za-z]\d{0,3}(?!\d)|(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,24})(?!\d)(?:\.\d{1,24}(?!\d))?[A-Za-z]?"
    r"|\.\d{1,24}(?!\d)|[αβγδθλπφω])[²³]?"
)
_EQUATION: Final = re.compile(
    rf"(?<![\w.,=/-])-?{_OPERAND}(?:\s?[-+*/×÷·^]\s?{_OPERAND}){{0,12}}\s?[=≠≈≤≥<>]\s?-?{_OPERAND}"
    rf"(?:\s?[-+*/×÷·^=]\s?{_OPERAND}){{0,12}}(?![\w]|[.,]\d)"
)
_IN_EQUATION: Final = {
    "-": " minus ", "+": " plus ", "*": " times ", "×": " times ", "·": " times ", "/": " divided by ",
    "÷": " divided by ", "=": " equals ", "^": " to the power of ",
}  # fmt: skip
_SIGN: Final = re.compile(r"\s?[-+*/×÷·=^]\s?")
_RELATIONS: Final = {
    "≤": "less than or equal to", "≥": "greater than or equal to", "≠": "not equal to", "≈": "approximately",
    "<": "less than", ">": "greater than", "<=": "less than or equal to", ">=": "greater than or equal to",
    "!=": "not equal to", "==": "equals", "≡": "is identical to", "∝": "proportional to", "∈": "in",
    "⇒": "implies", "∞": "infinity", "∑": "sum", "∏": "product", "∫": "integral", "∂": "partial",
    "∆": "delta", "÷": "divided by", "√": "square root of", "∛": "cube root of",
}  # fmt: skip
_RELATION: Final = re.compile(r"\s?(<=|>=|!=|==|[≤≥≠≈≡∝∈⇒∞∑∏∫∂∆÷√∛])\s?|(?<=[\w)]) ?([<>]) ?(?=[\w(.-])")
_PLUS: Final = re.compile(r"(?<=[\w)])\s?\+\s?(?=[\w(])")
_EQUALS: Final = re.compile(r"(?<=[\w)])\s?=\s?(?=[\w(.-])")
_TIMES: Final = re.compile(r"(?<=[\w)])\s?[×·]\s?(?=[\w(])")
_POWER: Final = re.compile(r"(?<=[A-Za-z\d)])(?:\^\(?(-?\d{1,3}|[a-z])\b\)?|([²³]))")
_POWERS: Final = {"2": "squared", "3": "cubed", "²": "squared", "³": "cubed"}
_TEN: Final = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,12})?)[eE]([-+]?)(\d{1,3})(?!\w)")
_PLUS_MINUS: Final = re.compile(r"\s?±\s?")
_MINUS_SPACED: Final = re.compile(r"(?<=\d) − (?=\d)|(?<=[\d)])−(?=[\d(])")
_GREEK: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu",
    "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega", "Δ": "delta", "Σ": "sigma", "Ω": "omega",
    "Φ": "phi", "Ψ": "psi", "ψ": "psi", "χ": "chi", "η": "eta", "Π": "pi", "Θ": "theta", "Λ": "lambda", "Γ": "gamma",
}  # fmt: skip
_GREEK_LETTER: Final = re.compile(f"(?<![^\\W\\d_])([{''.join(_GREEK)}])(?![^\\W\\d_])")


def arithmetic(text: str, _: Reading) -> str:
    """Put equations, comparisons, powers and single Greek letters into words."""
    text = rewrite(_EQUATION, _equation, text)
    text = rewrite(_TEN, _ten, text)
    text = rewrite(_POWER, lambda match: " " + _power(match[1] or match[2]), text)
    text = rewrite(_MINUS_SPACED, " minus ", text)
    text = rewrite(_PLUS_MINUS, " plus or minus ", text)
    text = rewrite(_RELATION, lambda match: f" {_RELATIONS[match[1] or match[2]]} ", text)
    text = rewrite(_PLUS, " plus ", text)
    text = rewrite(_EQUALS, " equals ", text)
    text = rewrite(_TIMES, " times ", text)
    return rewrite(_GREEK_LETTER, lambda match: _GREEK[match[1]], text)


def _equation(match: re.Match[str]) -> str:
    written = match.group()
    negative = "minus " if written.startswith("-") else ""
    words = _POWER.sub(lambda power: " " + _power(power[1] or power[2]), written.removeprefix("-"))
    words = re.sub(r"([=≠≈≤≥<>]\s?)-", r"\1 minus ", words)
    words = _SIGN.sub(lambda sign: _IN_EQUATION[sign.group().strip()], words)
    # A factor before its letter, "2x", is two words, and no multiple: the unit rules have gone by.
    return negative + re.sub(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", " ", words)


def _power(exponent: str) -> str:
    return _POWERS.get(exponent) or f"to the power of {exponent.replace('-', 'minus ')}"


def _ten(match: re.Match[str]) -> str:
    sign = "minus " if match[2] == "-" else ""
    return f"{match[1]} times ten to the power of {sign}{match[3]}"
