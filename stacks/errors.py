"""Errors of stacks, in words for an operator."""

from __future__ import annotations

from cluster.errors import FailedError, LockedError, RefusedError, StateUnreadableError


class StackError(FailedError):
    """The engine refused or failed; the text says what happened and what to do."""

    code = "stack"


class PassphraseError(RefusedError, StackError):
    """Nothing is configured to encrypt the stack's secrets."""

    code = "passphrase"


class BackendError(StateUnreadableError, StackError):
    """The backend of the stacks' state can't be read."""


class OtherStateError(RefusedError, StackError):
    """A cluster's stack is not in the configured backend, but in another known place."""

    code = "other-state"


class StackLockedError(LockedError, StackError):
    """Another run holds the stack's lock."""
