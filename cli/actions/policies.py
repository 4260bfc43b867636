"""`show policies`: the rules that every cluster's resources must meet."""

from __future__ import annotations

from rich.text import Text

from cli.output import console, print_json
from stacks.policies import BY_SUBJECT


def show(*, as_json: bool) -> None:
    """Print the rules by subject. docs/reference/policies.md has the reasons and the sources of figures."""
    if as_json:
        rows = [
            {"subject": subject, "id": rule.id, "says": rule.says, "because": rule.because}
            for subject, rules in BY_SUBJECT.items()
            for rule in rules
        ]
        print_json({"policies": rows})
        return
    width = max(len(rule.id) for rules in BY_SUBJECT.values() for rule in rules)
    for subject, rules in BY_SUBJECT.items():
        console.print(Text(subject, style="bold"))
        for rule in rules:
            console.print(Text.assemble(f"  {rule.id:<{width}}  ", (rule.says, "dim")))
