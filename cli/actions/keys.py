"""`keys rotate`, and `status CLUSTER keys`: their questions and output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from cli import exits
from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of
from cli.output import Details, console, errors, print_json
from cli.sections import Look, Options, Report
from clients.access import Access
from cluster.key_rings import RingName
from cluster.spec import Cluster
from operations import build
from operations import stack as stacks
from operations.etcds.look import refuse_without_private_access
from operations.keys.certificates import Certificate
from operations.keys.rotation import Rotated, Rotation
from operations.keys.status import KeyStatus, key_status


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Read the stack, the hosts' reports (every ten minutes), and handshakes with the API and every etcd member.

    Unhealthy if a certificate is past two thirds of its life, if a host lags behind, or during a rotation.
    """
    refuse_without_private_access(cluster)
    stack = stacks.open_stack(cluster, lambda _: None)

    def look_once() -> Report:
        status, now = key_status(stack), datetime.now(UTC)
        document = {"cluster": cluster.name, **status.to_json(now)}
        return Report(exits.DONE if status.ok(now) else exits.FAILED, document, lambda: _show(status, now))

    return look_once


def _show(status: KeyStatus, now: datetime) -> None:
    for name, ring in status.rings.items():
        console.print(f"{name:<18} {ring.state:<10} generation {ring}", markup=False)
    for certificate in status.certificates:
        console.print(_line(certificate, now))
    if status.unproven:
        console.print(Text(status.unproven, style="red"))


def rotate(
    cluster: Cluster,
    name: RingName,
    *,
    back: bool,
    wait_for_tokens: bool,
    pods_follow: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Rotate a key ring, or undo its rotation, step by step."""
    build.refuse(cluster)
    refuse_without_private_access(cluster)
    details = Details()
    stack = stacks.open_stack(cluster, details.tell)

    def rotation(done: Callable[[str], None]) -> Rotation:
        return Rotation(
            cluster.name, name, stack, lambda outputs: Access.from_stack(cluster.name, outputs), details.tell, done
        )

    steps = [str(step) for step in rotation(_done).plan(back=back)]
    if dry_run:
        if as_json:
            print_json({"cluster": cluster.name, "ring": name, "states": steps})
        else:
            console.print(
                f"{cluster.name}: {name} would go through {' → '.join(steps)}; nothing was changed", markup=False
            )
        return
    if not yes:
        question, again = f"Rotate {name} of {cluster.name}: {' → '.join(steps)}?", f"keys rotate {cluster.name} {name}"
        confirm(question, again, see=dry_run_of(again))
    access, about = Access.from_stack(cluster.name, stack.outputs()), f"{name}{' --back' if back else ''}"
    with details.lines(), hold(cluster, access, "keys rotate", about, repeatable=True) as operation:

        def done(step: str) -> None:
            operation.done(step)
            _done(step)

        rotated = rotation(done).run(back=back, wait=wait_for_tokens, pods_follow=pods_follow)
    _print(cluster, rotated, as_json=as_json)


def _done(step: str) -> None:
    errors.print(Text(f"✓ {step}", style="green"))


def _print(cluster: Cluster, rotated: Rotated, *, as_json: bool) -> None:
    if as_json:
        ends = {"began": str(rotated.began), "ended": str(rotated.ended), "rewritten": rotated.rewritten}
        print_json({"cluster": cluster.name, "ring": rotated.name, **ends})
        return
    rewritten = f"; {rotated.rewritten} secrets re-encrypted" if rotated.name == "encryption" else ""
    console.print(f"{cluster.name}: {rotated.name} is at generation {rotated.ended}{rewritten}", markup=False)


def _line(certificate: Certificate, now: datetime) -> Text:
    text = Text(f"{certificate.source:<10} ")
    if certificate.wrong:
        return text.append(f"{certificate.name}: {certificate.wrong}", style="red")
    date = f"{certificate.renewed_from:%Y-%m-%d}" if certificate.renewed_from else ""
    text.append(
        f"{certificate.days_left(now):>5} days, renewed from {date}  ",
        style="red" if certificate.is_overdue(now) else "",
    )
    return text.append(certificate.name + (f", by {certificate.issuer}" if certificate.issuer else ""))
