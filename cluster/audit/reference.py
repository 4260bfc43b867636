"""The text of docs/reference/audit.md."""

from __future__ import annotations

from cluster.audit.controls import SECTIONS, controls, section
from cluster.audit.model import Control

_HEAD = """\
# Audit

```
./menagerie audit lab                  # every control, with what was seen
./menagerie audit lab --failed         # only failed controls, which need a fix
./menagerie audit lab --section 1.2,M  # only some controls, by prefix of their IDs
./menagerie audit lab --json           # for auditors and programs
```

It changes nothing. Exit code 0: nothing failed, and everything that can be seen by design was seen. 1: something failed. 4:
nothing failed, but a host couldn't be reached or a control couldn't be seen. If you know that a control can't be seen in a
cluster, accept that by its ID: `--accept-unseen M.24`. In a cluster without workers at sites, controls that are tried from them
are unseen by design. `--json` lists under `unseen` what was unseen by design, what was accepted, and everything else.

The controls are those of the CIS Kubernetes Benchmark 1.12, with its IDs and in our wording. Those under M are our own, which are
tested by trying where possible. `make golden` generates this page from `cluster/audit/controls/`.

## Statuses

| status | meaning |
|---|---|
| pass | seen on every host, process and node that it applies to, and met |
| fail | not met somewhere; the output says where. Fix it |
| exception | not met on purpose; the reason is below and in the output |
| manual | a person must check what the output lists; with nothing to check, the control passes |
| not seen | couldn't be seen; the output says why. It never counts as met |

A problem on one host is reported even if other hosts don't answer.

## When something failed

- **Modes and owners on workers at sites** (1.1.9, 4.1, M.1): run `./menagerie configure CLUSTER --limit HOST` to restore them.
- **Modes, owners and flags on API servers and etcd hosts**: these hosts are created from user data and nobody logs in, so
  something has changed them since. Find out why, then replace the API server: its group creates another.
- **4.2**: a kubelet runs with a configuration other than the cluster's. Run `./menagerie configure CLUSTER`, and check
  `pools.<name>.kubelet`.
- **M.3**: API servers issue their certificates at each boot, and kubelets renew theirs, so check the host's log. The stack
  renews those of etcds; a member gets them when its host boots.
- **M.5**: Secrets from before encryption stay in plain text until they are rewritten:
  `kubectl get secrets -A -o json | kubectl replace -f -`.
- **M.8 to M.10, M.27**: a firewall allows a connection that isn't in the table of flows ([flows.md](flows.md)).

## How evidence is collected

- **API servers** report themselves, because nobody logs in and operators need not reach them. `host-report.service` runs the
  collector at boot, every 15 minutes, and after a key or certificate has changed. It writes ConfigMap `host-report-<name>` in
  namespace `menagerie-reports`, the only place where it may write. A report older than 45 minutes counts as not seen; a report
  is removed a day after its host's last sign of life. Root on an API server can falsify its report, but controls the cluster
  anyway.
- **Etcd hosts** have the same collector (`/usr/local/lib/menagerie/menagerie_evidence.py`) for the agent that answers operators.
- **Workers at sites** are reached over your own SSH. The collector is an argument of the command, so it leaves nothing behind
  and needs no preparation.
- **Workers in the region** have no logins, and their identity may not write reports. The API server asks every kubelet for its
  running configuration (`/configz`), so 4.2 is seen there too. Their files aren't: controls of files on workers stay "not seen"
  for them, which alone doesn't change the exit code. These workers are created from the same declarations as workers at sites
  (`components/workers/`), which tests compare with reviewed files.
- **Reports contain no secrets**, only command lines, modes and owners, certificates, open ports, versions, and the names of
  encryption providers. The collector finds files with keys by reading them on the host.
- **Closed ports are tried from one worker at each site**. Its answers count only if it can reach the load balancer. An etcd
  member that refuses the operator's certificate proves nothing by refusing others.
- M.4 is decided by signatures, because only members of events have such a certificate. Whether a pod can reach the metadata
  service isn't tested, as that would start a pod.

Stock kube-bench (`--benchmark cis-1.12`) can't check this layout: it expects static pods' files, one etcd per host, and API
servers that are nodes.
"""


def reference() -> str:
    """Return the page: the head, unmet controls with reasons, then all controls by section."""
    tables = "".join(_section(name) for name in SECTIONS)
    reasons = "\n".join(f"- **{each.id}** {each.title}: {each.exception}" for each in controls() if each.exception)
    return f"{_HEAD}\n## Exceptions\n\n{reasons}\n{tables}"


def _section(name: str) -> str:
    head = f"\n## {name}: {SECTIONS[name]}\n\n| ID | control | level | decided by |\n|---|---|---|---|\n"
    return head + "".join(_row(control) for control in controls() if section(control) == name)


def _row(control: Control) -> str:
    level = "own" if section(control) == "M" else "scored" if control.scored else "manual"
    decided = control.decided_by() + (" (exception)" if control.exception else "")
    look = f"; check by hand: {control.manual}" if control.manual else ""
    return f"| {control.id} | {control.title} | {level} | {decided}{look} |\n"
