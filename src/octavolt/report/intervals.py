"""How far a share measured on few samples may be from the truth."""

from dataclasses import dataclass
from math import sqrt

NORMAL_QUANTILE = 1.959963984540054
"""Of the standard normal distribution at 97.5 %: the interval holds 95 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """From where to where the true share lies, as shares from 0 to 1."""

    low: float
    high: float


def wilson_interval(hits: float, samples: int) -> Interval:
    """Return the 95 % score interval of a share: Wilson 1927.

    Unlike the textbook's plus-minus it stays within 0 and 1, and has a width at 0 and 100 %.
    """
    if samples == 0:
        return Interval(low=0.0, high=1.0)
    share, squared = hits / samples, NORMAL_QUANTILE**2
    middle = (share + squared / (2 * samples)) / (1 + squared / samples)
    reach = (
        NORMAL_QUANTILE
        / (1 + squared / samples)
        * sqrt(share * (1 - share) / samples + squared / (4 * samples**2))
    )
    return Interval(low=max(0.0, middle - reach), high=min(1.0, middle + reach))
