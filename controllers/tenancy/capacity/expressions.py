"""CEL expressions of the admission policies: whose hosts a namespace's pods may use, and what a pod tolerates. No I/O.

The namespace decides, never the user, because a controller's ServiceAccount creates the pods of a Deployment or Job. `tenancy sync`
writes the namespace's labels; Kubernetes' `edit` and `admin` in a namespace do not allow changing them.

Sources: kubernetes.io, "Validating Admission Policy", "Mutating Admission Policy", "Common Expression Language in Kubernetes"
(`?` reads fields that may be missing) and "Taints and Tolerations" (the meaning of a missing key, operator or effect).
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
"""A list of teams; for a person, all their teams. Needs the variable `labels`."""

_KEY, _OPERATOR = "t.?key.orValue('')", "t.?operator.orValue('Equal')"
_OF_TEAM = f"{_KEY} == '{TEAM_KEY}'"
_ANY = f"{_OF_TEAM} && {_OPERATOR} == 'Exists'"
_OWN = f"{_OPERATOR} in ['', 'Equal'] && t.?value.orValue('') in variables.teams"
# A missing effect means every effect.
_EVERYTHING = f"{_KEY} == '' && t.?effect.orValue('') in ['', '{NO_SCHEDULE}']"

POD, OLD_POD = "object.spec", "(oldObject == null ? object.spec : oldObject.spec)"
_TEMPLATE = "has({0}.spec.jobTemplate) ? {0}.spec.jobTemplate.spec.template.spec : {0}.spec.template.spec"
TEMPLATE = f"({_TEMPLATE.format('object')})"
OLD_TEMPLATE = f"(oldObject == null ? {TEMPLATE} : ({_TEMPLATE.format('oldObject')}))"


def borrows(pod: str) -> str:
    """Return the expression for whether a pod borrows idle hosts of other teams."""
    return f"{pod}.?priorityClassName.orValue('') == '{BORROWED}'"


def tolerations(pod: str) -> str:
    """Return the expression for a pod's list of tolerations."""
    return f"{pod}.?tolerations.orValue([])"


def new(pod: str, old: str) -> str:
    """Return the expression for the tolerations that a request adds. Those that a pod already had, from before the policy, must not block it."""
    kept = f"{tolerations(old)}.exists(was, was == t)"
    return f"{tolerations(pod)}.filter(t, request.operation == 'CREATE' || !({kept}))"


EVERYTHING = f"!variables.new.exists(t, {_EVERYTHING})"
EVERYTHING_MESSAGE = (
    "'it tolerates every taint (operator Exists without a key), including those of every team\\'s hosts; name the keys that it "
    "needs. System pods belong in kube-system, or in a namespace that an administrator labels menagerie.dev/system=true'"
)
FOREIGN = f"variables.new.all(t, !({_OF_TEAM}) || ({_ANY}) || ({_OWN}))"
FOREIGN_MESSAGE = (
    f"'it tolerates {TEAM_KEY}=' + variables.new.filter(t, {_OF_TEAM} && !({_ANY}) && !({_OWN}))[0].?value.orValue('') + "
    "', but namespace ' + namespaceObject.metadata.name + (size(variables.teams) == 0 ? ' belongs to no team' : ' belongs to ' + "
    "variables.teams.join(', ')) + '; remove the toleration: that of your team is added automatically. To use idle hosts of "
    f"other teams, set priorityClassName: {BORROWED}'"
)
BORROWING = f"variables.borrows || !variables.new.exists(t, {_ANY})"
BORROWING_MESSAGE = (
    f"'it tolerates {TEAM_KEY} of any team, which is only for work that gives way when the team needs its hosts: set "
    f"priorityClassName: {BORROWED}, or remove the toleration'"
)

NAMED = f"{tolerations(POD)}.exists(t, {_OF_TEAM})"
"""Whether a pod itself tolerates a team's taint."""
ANY_THERE = (
    f"{tolerations(POD)}.exists(t, ({_ANY} && t.?effect.orValue('') in ['', '{NO_SCHEDULE}']) || ({_EVERYTHING}))"
)
_LIST = f"(size({tolerations(POD)}) > 0 ? [] : [JSONPatch{{op: 'add', path: '/spec/tolerations', value: []}}])"


def added(toleration: str, each: str = "") -> str:
    """Return the expression for JSON patches that add a toleration. each: add it for every `t` in this list."""
    patch = f"JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{{{toleration}}}}}"
    return f"{_LIST} + " + (f"{each}.map(t, {patch})" if each else f"[{patch}]")


TOLERATE_ANY = f"key: '{TEAM_KEY}', operator: 'Exists', effect: '{NO_SCHEDULE}'"
TOLERATE_OWN = f"key: '{TEAM_KEY}', operator: 'Equal', value: t, effect: '{NO_SCHEDULE}'"
