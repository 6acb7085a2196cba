"""How sure a fact is."""

from typing import Literal

Confidence = Literal["high", "medium", "low"]
"""'high': a vendor says so, or the published file was opened; 'medium': one report, or arithmetic;
'low': hearsay."""
