"""The rules of a drain, from the options of a verb."""

from __future__ import annotations

from operations.drain import Rules


def rules(
    timeout_s: float, *, evict_unmanaged: bool = False, keep_empty_dir: bool = False, wait_for_jobs: bool = False
) -> Rules:
    """Return the rules that the options describe."""
    return Rules(timeout_s, evict_unmanaged, not keep_empty_dir, wait_for_jobs)
