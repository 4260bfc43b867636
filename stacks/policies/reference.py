"""docs/reference/policies.md."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.policies.model import Rule

_HEAD = """\
# Policies

What every cluster's resources must be, whatever the cloud: `menagerie validate` asks each rule about all that a stack
has made in the simulated cloud, and about its spec. `menagerie show policies` prints this list. Written here by
`make golden` from the rules themselves, in `stacks/policies/`.

- A rule has no list of exceptions: what it must let pass, it says itself. An `error` fails the validation, a `warning`
  does not. The spec can ask for some of what rules are against: operators from everywhere (`control_plane.operators`),
  a public endpoint (`control_plane.public`, which leaves nothing), and `profile: development` (etcd-events-apart, etcd-backed-up, etcd-iops) leave a warning, `allow_single_zone` none.
- A value that the engine keeps encrypted, or does not know before an update, counts as right where something must be
  said, and is never something that must not be. In user data it is wrong: it was made of a secret.
- Rules know the types that our stacks use, and those that could undo a rule. A type that is in no table is not looked
  at: whoever adds one to a stack looks for its tables here.
- What is seen is what a program declares. What an account's owner sets beside it, such as an organisation's policies or
  the identity that runs `up`, is not.
"""

_TAIL = """\

## With the ordinary Pulumi CLI (CrossGuard)

```
pulumi preview -s ibis --policy-pack stacks/plugins/menagerie-policies
```

The same rules, asked by the engine about what it plans or has made; an `error` is mandatory, a `warning` advisory. The
engine that is built here (3.259) takes an executable for a pack; an older one may not. It speaks with it in a
protocol that comes with Pulumi's SDK; so nothing else is installed. pulumi-policy is not used: its newest release
(1.21.0) wants protobuf 5.29, and `requirements.lock` has 6.33. The stack's name must be that of a cluster in
`inventories/`, or its configuration must name the spec (`spec`).
"""


def reference(by_subject: Mapping[str, tuple[Rule, ...]]) -> str:
    """Every rule, by subject."""
    return f"{_HEAD}{''.join(_section(subject, rules) for subject, rules in by_subject.items())}{_TAIL}"


def _section(subject: str, rules: tuple[Rule, ...]) -> str:
    rows = "".join(f"| `{rule.id}` | {rule.says} | {rule.because} |\n" for rule in rules)
    return f"\n## {subject}\n\n| rule | what must hold | because |\n|---|---|---|\n{rows}"
