"""What goes wrong with a stack, in words for an operator."""

from __future__ import annotations


class StackError(Exception):
    """The engine refused or failed; the text says what and what to do."""


class PassphraseError(StackError):
    """Nothing says what encrypts the stack's secrets."""


class StackLockedError(StackError):
    """Another run holds the stack's lock."""
