"""Families of kernels that the catalogue writes, by the name that a problem's ``family`` gives."""

from __future__ import annotations

from typing import Any

from search.kernels.families.attention import ATTENTION
from search.kernels.families.base import Family
from search.kernels.families.softmax import SOFTMAX

FAMILIES: dict[str, Family[Any]] = {family.name: family for family in (ATTENTION, SOFTMAX)}
