"""The rules of the Metal lint, by the names that findings carry; docs/translator.md says what each finds."""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """What a finding is about."""

    REACHES_OUTSIDE = "reaches-outside"
    EMPTY = "empty"
    WHOLE_KERNEL = "whole-kernel"
    INCLUDE = "include"
    ATTRIBUTE = "attribute"
    ATTRIBUTE_DECLARED = "attribute-declared"
    ATTRIBUTE_IN_HEADER = "attribute-in-header"
    DOUBLE = "double"
    HEAP = "heap"
    GOTO = "goto"
    LANGUAGE = "language"
    STANDARD_LIBRARY = "standard-library"
    FUNCTION_POINTER = "function-pointer"
    RECURSION = "recursion"
    MISSING_ADDRESS_SPACE = "missing-address-space"
    MIXED_ADDRESS_SPACE = "mixed-address-space"
    PROGRAM_SCOPE = "program-scope"
    THREADGROUP_MEMORY = "threadgroup-memory"
    THREADGROUP_IN_FUNCTION = "threadgroup-in-function"
    THREADGROUP_INITIALISED = "threadgroup-initialised"
    THREADGROUP_SIZE = "threadgroup-size"
    GRID_IN_BLOCKS = "grid-in-blocks"
    VARIABLE_LENGTH_ARRAY = "variable-length-array"
    ORDERS_NOTHING = "orders-nothing"
