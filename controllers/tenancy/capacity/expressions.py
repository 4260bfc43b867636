"""Expressions of the admission policies (CEL): whose hosts a namespace's pods may go to, and what a pod tolerates. No I/O.

A namespace decides, never a user: pods of a Deployment or Job are made by a controller's ServiceAccount. Its labels are
written by `tenancy sync`, and nobody with Kubernetes' `edit` or `admin` in a namespace can change them.

Sources: kubernetes.io, "Validating Admission Policy", "Mutating Admission Policy", "Common Expression Language in Kubernetes"
(`?` gives what may be missing) and "Taints and Tolerations" (what no key, no operator and no effect mean).
"""

from __future__ import annotations

from cluster.allocations import BORROWED, MEMBER_LABEL, TEAM_KEY
from cluster.pools import TaintEffect
from cluster.tenancy import TEAM_LABEL

NO_SCHEDULE = TaintEffect.NO_SCHEDULE.value
LABELS = "namespaceObject.metadata.?labels.orValue({})"
TEAMS = (
    f"(variables.labels[?'{TEAM_LABEL}'].orValue('') != '' ? [variables.labels['{TEAM_LABEL}']] : []) + "
    f"variables.labels.filter(key, key.startsWith('{MEMBER_LABEL}')).map(key, key.substring({len(MEMBER_LABEL)}))"
)
"""Needs the variable labels. A list of teams; of a person in several, all of them."""

_KEY, _OPERATOR = "t.?key.orValue('')", "t.?operator.orValue('Equal')"
_OF_TEAM = f"{_KEY} == '{TEAM_KEY}'"
_ANY = f"{_OF_TEAM} && {_OPERATOR} == 'Exists'"
_OWN = f"{_OPERATOR} in ['', 'Equal'] && t.?value.orValue('') in variables.teams"
# An effect that is left out is every effect.
_EVERYTHING = f"{_KEY} == '' && t.?effect.orValue('') in ['', '{NO_SCHEDULE}']"

POD, OLD_POD = "object.spec", "(oldObject == null ? object.spec : oldObject.spec)"
_TEMPLATE = "has({0}.spec.jobTemplate) ? {0}.spec.jobTemplate.spec.template.spec : {0}.spec.template.spec"
TEMPLATE = f"({_TEMPLATE.format('object')})"
OLD_TEMPLATE = f"(oldObject == null ? {TEMPLATE} : ({_TEMPLATE.format('oldObject')}))"


def borrows(pod: str) -> str:
    """Whether it runs where others' hosts are idle."""
    return f"{pod}.?priorityClassName.orValue('') == '{BORROWED}'"


def tolerations(pod: str) -> str:
    """What a pod's spec tolerates, a list."""
    return f"{pod}.?tolerations.orValue([])"


def new(pod: str, old: str) -> str:
    """Tolerations that a request brings: what was there before a policy was, is nobody's fault, and must not hold a pod up."""
    kept = f"{tolerations(old)}.exists(was, was == t)"
    return f"{tolerations(pod)}.filter(t, request.operation == 'CREATE' || !({kept}))"


EVERYTHING = f"!variables.new.exists(t, {_EVERYTHING})"
EVERYTHING_TOLD = (
    "'it tolerates every taint (operator Exists without a key), so every team\\'s hosts; name the keys that it needs. Pods of "
    "the system belong into kube-system, or a namespace that an administrator labels menagerie.dev/system=true'"
)
FOREIGN = f"variables.new.all(t, !({_OF_TEAM}) || ({_ANY}) || ({_OWN}))"
FOREIGN_TOLD = (
    f"'it tolerates {TEAM_KEY}=' + variables.new.filter(t, {_OF_TEAM} && !({_ANY}) && !({_OWN}))[0].?value.orValue('') + "
    "', and namespace ' + namespaceObject.metadata.name + (size(variables.teams) == 0 ? ' is no team\\'s' : ' is of ' + "
    "variables.teams.join(', ')) + '; leave the toleration out: your team\\'s is added. For idle hosts of others: "
    f"priorityClassName: {BORROWED}'"
)
BORROWING = f"variables.borrows || !variables.new.exists(t, {_ANY})"
BORROWING_TOLD = (
    f"'it tolerates {TEAM_KEY} of any team, which is for work that gives way when the team comes back: write "
    f"priorityClassName: {BORROWED}, or leave the toleration out'"
)

NAMED = f"{tolerations(POD)}.exists(t, {_OF_TEAM})"
"""Whether a pod says itself whose hosts it goes to."""
ANY_THERE = (
    f"{tolerations(POD)}.exists(t, ({_ANY} && t.?effect.orValue('') in ['', '{NO_SCHEDULE}']) || ({_EVERYTHING}))"
)
_LIST = f"(size({tolerations(POD)}) > 0 ? [] : [JSONPatch{{op: 'add', path: '/spec/tolerations', value: []}}])"


def added(toleration: str, each: str = "") -> str:
    """JSON patches that add a toleration; each: once for every t of this list."""
    one = f"JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{{{toleration}}}}}"
    return f"{_LIST} + " + (f"{each}.map(t, {one})" if each else f"[{one}]")


TOLERATE_ANY = f"key: '{TEAM_KEY}', operator: 'Exists', effect: '{NO_SCHEDULE}'"
TOLERATE_OWN = f"key: '{TEAM_KEY}', operator: 'Equal', value: t, effect: '{NO_SCHEDULE}'"
