"""Generates docs/reference/policies.md."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.policies.model import Rule

_HEAD = """\
# Policies

Rules for every cluster's resources, in any cloud. `menagerie validate` checks them against everything that a stack
creates in the simulated cloud, and against its spec. `menagerie show policies` prints this list. `make golden` generates
this page from the rules in `stacks/policies/`.

- A rule has no list of exceptions: its exceptions are part of its definition. An `error` fails the validation, a
  `warning` does not. The spec can permit some of what the rules forbid: operators from everywhere
  (`control_plane.operators`) and `profile: development` (etcd-events-apart, etcd-backed-up, etcd-iops) reduce an error to a
  warning; a public endpoint (`control_plane.public`) and `allow_single_zone` leave nothing to report.
- A value that the engine keeps encrypted, or does not know before an update, satisfies a rule that requires a value, and
  never violates a rule that forbids one. In user data it is a violation: it was derived from a secret.
- Rules cover the types that our stacks use, and types that could undo a rule. A type in no table is not checked: if you
  add a type to a stack, look for the tables to add it to here.
- Rules see what a program declares. They don't see what an account's owner configures elsewhere, such as an organisation's
  policies or the identity that runs `up`.
"""

_TAIL = """\

## With the ordinary Pulumi CLI (CrossGuard)

```
pulumi preview -s ibis --policy-pack stacks/plugins/menagerie-policies
```

The engine runs the same rules on what it plans or has created; an `error` is mandatory, a `warning` advisory. The engine
that is built here (3.259) accepts an executable as a pack; an older one may not. It communicates with the pack in a
protocol that is part of Pulumi's SDK, so nothing else is installed. pulumi-policy is not used: its newest release
(1.21.0) requires protobuf 5.29, and `requirements.lock` has 6.33. The stack's name must be that of a cluster in
`inventories/`, or its configuration must name the spec (`spec`).
"""


def reference(by_subject: Mapping[str, tuple[Rule, ...]]) -> str:
    """Return the page: every rule, by subject."""
    return f"{_HEAD}{''.join(_section(subject, rules) for subject, rules in by_subject.items())}{_TAIL}"


def _section(subject: str, rules: tuple[Rule, ...]) -> str:
    rows = "".join(f"| `{rule.id}` | {rule.says} | {rule.because} |\n" for rule in rules)
    return f"\n## {subject}\n\n| rule | what must hold | because |\n|---|---|---|\n{rows}"
