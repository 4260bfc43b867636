"""The command, as tests of `cli` have it."""

from __future__ import annotations

from tests.cli.conftest import menagerie

__all__ = ["menagerie"]
