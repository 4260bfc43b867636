"""References to secrets, in the place of which somebody may have written the secret."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError

from cluster.quantities import parse_name


def reference_or(refusal: PydanticCustomError, value: Any, *, alone: bool = False) -> Any:
    """``{secret: name}`` as it is; `refusal` for what could be the secret itself.

    That is not repeated: problems end in terminals and logs. alone: with another key beside it, it could be one, too.
    """
    secret = value.get("secret") if isinstance(value, dict) else value
    try:
        is_reference = isinstance(value, dict | None) and (secret is None or bool(parse_name(secret)))
    except PydanticCustomError:
        is_reference = False
    if not is_reference or (alone and not set(value or ()) <= {"secret"}):
        raise refusal
    return value
