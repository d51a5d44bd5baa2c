"""Rows less their mean, times a gain: small, with a reduction that can be got wrong in every way."""

from __future__ import annotations


def reference(axes, x, gain):
    return {"y": (x - x.mean(axis=-1, keepdims=True)) * gain}


def baseline(axes, x, gain):
    return [(x - x.mean(axis=-1, keepdims=True)) * gain]
