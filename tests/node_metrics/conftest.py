"""A cluster whose workers' files are rendered."""

from tests.workers.conftest import hybrid, source

__all__ = ["hybrid", "source"]
