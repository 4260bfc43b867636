"""What goes wrong with a stack, in words for an operator."""

from __future__ import annotations


class StackError(Exception):
    """The engine refused or failed; the text says what and what to do."""


class PassphraseError(StackError):
    """Nothing says what encrypts the stack's secrets."""


class BackendError(StackError):
    """The place where stacks' state is kept can't be read: whether a cluster exists is not known."""


class OtherStateError(StackError):
    """A cluster's stack is not in the place that is looked at, but in another that is known."""


class StackLockedError(StackError):
    """Another run holds the stack's lock."""
