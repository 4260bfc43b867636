"""Errors of the expander, apart from gRPC, which takes long to import."""

from __future__ import annotations


class ExpanderError(Exception):
    """It can't be started; the text says what to do."""
