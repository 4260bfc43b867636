"""Limits of conditions in IAM policies of Google Cloud."""

from __future__ import annotations

import re

from sandbox.simcloud.rules import Call, RefusalError
from sandbox.simcloud.values import at

# "IAM quotas and limits": logical operators in a condition's expression, and bindings of one role and one principal with
# different conditions in a policy.
_MOST_OPERATORS, _MOST_BINDINGS = 12, 20
_TEXT = re.compile(r"""'[^']*'|"[^"]*\"""")
_OPERATOR = re.compile(r"&&|\|\||!(?!=)")


def logical_operators(expression: str) -> int:
    """Return how many logical operators an expression in CEL has, outside of texts."""
    return len(_OPERATOR.findall(_TEXT.sub("", expression)))


def short_enough(call: Call) -> None:
    """Refuse a condition with more logical operators than the API accepts."""
    for expression in map(str, at(call.inputs, "condition.expression")):
        number = logical_operators(expression)
        if number > _MOST_OPERATORS:
            raise RefusalError(
                f"googleapi: Error 400: The condition has {number} logical operators; at most {_MOST_OPERATORS} are "
                "allowed., badRequest; split it into several bindings",
                "condition",
            )


def few_enough(call: Call) -> None:
    """Refuse a member's next conditional binding where a policy has as many as it may. Its ID ends with the condition's title."""
    for title in at(call.inputs, "condition.title"):
        others = call.id.removesuffix(str(title))
        number = sum(
            other.id.startswith(others) for other in call.world.of_type(call.type.token) if other.id != call.id
        )
        if number >= _MOST_BINDINGS:
            raise RefusalError(
                f"googleapi: Error 400: {call.text('member')} has {call.text('role')} by {number} conditions already; at "
                f"most {_MOST_BINDINGS} are allowed., badRequest; merge conditions",
                "condition",
            )
