"""A linter that knows each action, resource and condition key of AWS: parliament, with statements named."""

from __future__ import annotations

from parliament import analyze_policy_string

WIDE = "RESOURCE_STAR"
"""Of what the cloud names by itself, or what has no resource. A boundary's rights end at a role's own policy."""
NEWER = ("aws:Ec2InstanceSourceVpc", "aws:Ec2InstanceSourcePrivateIPv4")
"""Keys of all services that parliament 1.6 has not heard of ("AWS global condition context keys")."""


def found(text: str) -> set[tuple[str, str]]:
    """(rule, id of the statement or "") of what the linter says of a policy, but for `WIDE`."""
    lines = text.splitlines()

    def sid(line: int) -> str:
        begun = [each.split('"')[3] for each in lines[: line + 2] if '"Sid"' in each]
        return begun[-1] if begun else ""

    said = [each for each in analyze_policy_string(text).findings if not any(key in str(each.detail) for key in NEWER)]
    return {
        (each.issue, sid(each.location["line"]) if "line" in each.location else "")
        for each in said
        if each.issue != WIDE
    }
