"""A linter that knows each action, resource and condition key of AWS: parliament, with the statements' IDs."""

from __future__ import annotations

from parliament import analyze_policy_string

WIDE = "RESOURCE_STAR"
"""For actions whose resource the cloud names itself or that have none. A boundary's permissions are limited by a role's own policy."""
NEWER = ("aws:Ec2InstanceSourceVpc", "aws:Ec2InstanceSourcePrivateIPv4")
"""Global condition keys that parliament 1.6 does not know ("AWS global condition context keys")."""


def problems(text: str) -> set[tuple[str, str]]:
    """Return (rule, ID of the statement or "") for each problem that the linter finds in a policy, except `WIDE`."""
    lines = text.splitlines()

    def sid(line: int) -> str:
        sids = [line.split('"')[3] for line in lines[: line + 2] if '"Sid"' in line]
        return sids[-1] if sids else ""

    findings = [
        line for line in analyze_policy_string(text).findings if not any(key in str(line.detail) for key in NEWER)
    ]
    return {
        (line.issue, sid(line.location["line"]) if "line" in line.location else "")
        for line in findings
        if line.issue != WIDE
    }
