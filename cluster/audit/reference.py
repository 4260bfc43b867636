"""docs/reference/audit.md."""

from __future__ import annotations

from cluster.audit.controls import SECTIONS, controls, section
from cluster.audit.model import Control

_HEAD = """\
# Audit

```
./menagerie audit lab                  every control, with what was seen
./menagerie audit lab --failed         what somebody must mend
./menagerie audit lab --section 1.2,M  some of them: by the beginning of their IDs
./menagerie audit lab --json           for auditors and programs
```

It reads only. Exit 0: nothing failed, and all that can be seen by design was; 1: something failed; 4: nothing that was seen
failed, and a host could not be reached or a control not be seen. Who knows that a control can't be seen in a cluster says so by
its ID: `--accept-unseen M.24`. What is tried from workers at sites is not seen by design where a cluster has none. `--json`
lists under `unseen` what was not seen by design, what somebody accepted, and what neither is.

The controls are those of the CIS Kubernetes Benchmark 1.12 by its IDs, in our words, and under M our own, which are tried
where they can be. This page is written from them (`cluster/audit/controls/`) by `make golden`.

## What it says

| status | means |
|---|---|
| pass | seen on every host, process and node that it is about, and as it should be |
| fail | not as it should be somewhere, and it says where: mend it |
| exception | not met on purpose; the reason is below, and in the output |
| manual | there is something that somebody must look at, and it says what; where there is nothing, it passes |
| not seen | could not be looked at, and it says why; it never counts as met |

What is wrong on one host is told, whether or not others answer.

## When something failed

- **Modes and owners on workers at sites** (1.1.9, 4.1, M.1): `./menagerie configure CLUSTER --limit HOST` puts them back.
- **Modes, owners and flags of API-server hosts and etcd hosts**: they are made from user data and nobody logs in, so
  something has changed them since. Replace an API-server host: its group makes another. Ask why first.
- **4.2**: a kubelet runs with another configuration than the cluster's: `./menagerie configure CLUSTER`, and look at
  `pools.<name>.kubelet`.
- **M.3**: API servers issue their certificates anew at each boot, and kubelets renew theirs, so look at its log. Those of
  etcds are the stack's, which renews them; a member has them when its host boots.
- **M.5**: Secrets that were written before encryption are plain until they are written again:
  `kubectl get secrets -A -o json | kubectl replace -f -`.
- **M.8 to M.10, M.27**: a firewall lets through what the table of flows has no row for ([flows.md](flows.md)).

## How it looks

- **API servers** say it themselves, for nobody logs in and operators need not reach them: `host-report.service` runs the
  collector when it boots, every 15 minutes and once a key or certificate was changed, and writes ConfigMap
  `host-report-<name>` in namespace `menagerie-reports`.
  It may write there and nowhere else. Older than 45 minutes is not seen; a day after its host was last heard, a report
  goes. Whoever has root on an API server can lie in its report, and has the cluster anyway.
- **Etcd hosts** have the same collector (`/usr/local/lib/menagerie/menagerie_evidence.py`) for what answers operators there.
- **Workers at sites** are asked over your own ssh: the collector travels as words of the command, so nothing is left there
  and no host has to be prepared for it.
- **Workers in the region** can't be logged into, and their identity may write no report. The API server asks every kubelet
  for its running configuration (`/configz`), theirs too, so 4.2 is seen everywhere. Their files are not: controls of files
  on workers stay "not seen" for them, and that alone does not change the exit code. They are made from the same
  declarations as workers at sites (`components/workers/`), which tests compare with reviewed files.
- **No secret is in any report**: command lines, modes and owners, certificates, what listens, versions, and the names of
  what encrypts. Which files hold keys is found by reading them on the host.
- **Closed is tried from one worker of each site**, which must reach the load balancer for its answers to count. A member of
  an etcd that does not let the operator's certificate in proves nothing by refusing others.
- M.4 is decided by signatures, for nobody but members of events has such a certificate. Whether a pod reaches the metadata
  service is not tried here, for that would start one.

Stock kube-bench (`--benchmark cis-1.12`) can't judge this layout: it looks for static pods' files, for one etcd a host, and
on API-server hosts that are no nodes.
"""


def reference() -> str:
    """The controls for people, by section, then what is not met and why."""
    tables = "".join(_section(name) for name in SECTIONS)
    reasons = "\n".join(f"- **{each.id}** {each.title}: {each.exception}" for each in controls() if each.exception)
    return f"{_HEAD}\n## Not met, and why\n\n{reasons}\n{tables}"


def _section(name: str) -> str:
    head = f"\n## {name}: {SECTIONS[name]}\n\n| ID | control | level | decided by |\n|---|---|---|---|\n"
    return head + "".join(_row(control) for control in controls() if section(control) == name)


def _row(control: Control) -> str:
    level = "own" if section(control) == "M" else "scored" if control.scored else "manual"
    decided = control.decided_by() + (" (exception)" if control.exception else "")
    look = f"; look at it: {control.manual}" if control.manual else ""
    return f"| {control.id} | {control.title} | {level} | {decided}{look} |\n"
