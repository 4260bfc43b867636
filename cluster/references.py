"""References to secrets, in place of which somebody may have written the secret itself."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError

from cluster.quantities import parse_name


def reference_or(refusal: PydanticCustomError, value: Any, *, alone: bool = False) -> Any:
    """Return ``{secret: name}`` unchanged. Raise `refusal` for anything that could be the secret itself.

    The message doesn't repeat the value: it goes to terminals and logs. alone: refuse additional keys too.
    """
    secret = value.get("secret") if isinstance(value, dict) else value
    try:
        is_reference = isinstance(value, dict | None) and (secret is None or bool(parse_name(secret)))
    except PydanticCustomError:
        is_reference = False
    if not is_reference or (alone and not set(value or ()) <= {"secret"}):
        raise refusal
    return value
