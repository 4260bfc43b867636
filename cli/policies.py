"""`show policies`: the rules that every cluster's resources are held to."""

from __future__ import annotations

from rich.text import Text

from cli.output import console, print_json


def show(*, as_json: bool) -> None:
    """By subject. docs/reference/policies.md says why, and where each figure comes from."""
    from stacks.policies import BY_SUBJECT

    if as_json:
        told = [
            {"subject": subject, "id": rule.id, "says": rule.says, "because": rule.because}
            for subject, found in BY_SUBJECT.items()
            for rule in found
        ]
        print_json({"policies": told})
        return
    width = max(len(rule.id) for found in BY_SUBJECT.values() for rule in found)
    for subject, found in BY_SUBJECT.items():
        console.print(Text(subject, style="bold"))
        for rule in found:
            console.print(Text.assemble(f"  {rule.id:<{width}}  ", (rule.says, "dim")))
