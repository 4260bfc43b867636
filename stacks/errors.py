"""What goes wrong with a stack, in words for an operator."""

from __future__ import annotations

from cluster.errors import FailedError, LockedError, RefusedError, StateUnreadableError


class StackError(FailedError):
    """The engine refused or failed; the text says what and what to do."""

    code = "stack"


class PassphraseError(RefusedError, StackError):
    """Nothing says what encrypts the stack's secrets."""

    code = "passphrase"


class BackendError(StateUnreadableError, StackError):
    """The place where stacks' state is kept can't be read."""


class OtherStateError(RefusedError, StackError):
    """A cluster's stack is not in the place that is looked at, but in another that is known."""

    code = "other-state"


class StackLockedError(LockedError, StackError):
    """Another run holds the stack's lock."""
