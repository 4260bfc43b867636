"""`keys rotate`, and `status CLUSTER keys`: their arguments, questions and output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli import exits
from cli.asking import confirm, dry_run_of
from cli.holding import hold, holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Details, console, errors, print_json
from cli.specs import checked
from cli.status import Look, Options, Report
from cluster.key_rings import RINGS, RingName

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.keys.certificates import Certificate
    from operations.keys.rotation import Rotated, Rotation
    from operations.keys.status import KeyStatus


def section(cluster: str, options: Options) -> Look:
    """Read the stack, the hosts' reports (every ten minutes), and handshakes with the API and every etcd member.

    Unhealthy if a certificate is past two thirds of its life, if a host lags behind, or during a rotation.
    """
    loaded = checked(cluster)
    from operations.keys.status import key_status
    from operations.stack import open_stack

    stack = open_stack(loaded, lambda _: None)

    def look_once() -> Report:
        status, now = key_status(stack), datetime.now(UTC)
        document = {"cluster": loaded.name, **status.to_json(now)}
        return Report(exits.DONE if status.ok(now) else exits.FAILED, document, lambda: _show(status, now))

    return look_once


def _show(status: KeyStatus, now: datetime) -> None:
    for name, ring in status.rings.items():
        console.print(f"{name:<18} {ring.state:<10} generation {ring}", markup=False)
    for certificate in status.certificates:
        console.print(_line(certificate, now))
    if status.unproven:
        console.print(Text(status.unproven, style="red"))


@examples(
    ("keys rotate lab encryption --dry-run", "show the steps"),
    ("keys rotate lab encryption", "ask, then rotate"),
    ("keys rotate lab service-account --wait-for-tokens", "takes hours"),
    ("keys rotate lab etcd-main-ca --back", "undo a rotation"),
    ("keys rotate lab kubernetes-ca", "stops where you must act"),
    ("keys rotate lab kubelet-serving-ca", "stops where you must act"),
)
@holds()
def rotate(
    cluster: ClusterArg,
    ring: Annotated[str, typer.Argument(metavar="RING", help=f"One of {', '.join(RINGS)}.")],
    back: Annotated[bool, typer.Option("--back", help="Undo a rotation, step by step.")] = False,
    wait_for_tokens: Annotated[
        bool,
        typer.Option("--wait-for-tokens", help="service-account: wait until tokens of the former key have expired."),
    ] = False,
    pods_follow: Annotated[
        bool,
        typer.Option(
            "--pods-follow",
            help="kubernetes-ca: state that older pods reload kube-root-ca.crt while they run, or never call the API.",
        ),
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Rotate a key or a certificate authority while everything runs.

    Every host first trusts the new key, then uses it, then drops the old key. A
    step starts when every host is proven to have the step before. A step takes
    about 15 minutes, because hosts poll every ten.

    Idempotent: if interrupted, run it again. docs/how-to/keys.md has more.
    """
    loaded = checked(cluster)
    from clients.access import Access
    from operations import build
    from operations.keys.rotation import Rotation
    from operations.stack import open_stack

    name = _ring(ring)
    build.refuse(loaded)
    details = Details()
    stack = open_stack(loaded, details.tell)

    def rotation(done: Callable[[str], None]) -> Rotation:
        return Rotation(
            loaded.name, name, stack, lambda outputs: Access.from_stack(loaded.name, outputs), details.tell, done
        )

    steps = [str(step) for step in rotation(_done).plan(back=back)]
    if dry_run:
        if as_json:
            print_json({"cluster": loaded.name, "ring": name, "states": steps})
        else:
            console.print(
                f"{loaded.name}: {name} would go through {' → '.join(steps)}; nothing was changed", markup=False
            )
        return
    if not (yes or as_json):
        question, again = f"Rotate {name} of {loaded.name}: {' → '.join(steps)}?", f"keys rotate {loaded.name} {name}"
        confirm(question, again, see=dry_run_of(again))
    access, about = Access.from_stack(loaded.name, stack.outputs()), f"{name}{' --back' if back else ''}"
    with details.lines(), hold(loaded, access, "keys rotate", about, repeatable=True) as operation:

        def done(step: str) -> None:
            operation.done(step)
            _done(step)

        rotated = rotation(done).run(back=back, wait=wait_for_tokens, pods_follow=pods_follow)
    _print(loaded, rotated, as_json=as_json)


def _ring(text: str) -> RingName:
    for name in RINGS:
        if text == name:
            return name
    raise typer.BadParameter(f"there is no key ring {text}; write one of {', '.join(RINGS)}")


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
