"""`keys rotate`, and `status CLUSTER keys`: what they take, show, ask, and print."""

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
from cli.status import Asked, Look, Looked
from cluster.key_rings import RINGS, RingName

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.keys.certificates import Certificate
    from operations.keys.rotation import Rotated, Rotation
    from operations.keys.status import KeyStatus


def section(cluster: str, asked: Asked) -> Look:
    """From the stack, from what hosts report every ten minutes, and from handshakes with the API and every etcd member.

    Not well when a certificate is past two thirds of its life, when a host lags behind, or in a rotation.
    """
    one = checked(cluster)
    from operations.keys.status import look
    from operations.stack import open_stack

    stack = open_stack(one, lambda _: None)

    def seen() -> Looked:
        found, now = look(stack), datetime.now(UTC)
        document = {"cluster": one.name, **found.to_json(now)}
        return Looked(exits.DONE if found.ok(now) else exits.FAILED, document, lambda: _show(found, now))

    return seen


def _show(found: KeyStatus, now: datetime) -> None:
    for name, ring in found.rings.items():
        console.print(f"{name:<18} {ring.state:<10} generation {ring}", markup=False)
    for each in found.certificates:
        console.print(_line(each, now))
    if found.unproven:
        console.print(Text(found.unproven, style="red"))


@examples(
    ("keys rotate lab encryption --dry-run", "only the steps"),
    ("keys rotate lab encryption", "asks first"),
    ("keys rotate lab service-account --wait-for-tokens", "hours"),
    ("keys rotate lab etcd-main-ca --back", "undo it"),
    ("keys rotate lab kubernetes-ca", "stops where you must act"),
    ("keys rotate lab kubelet-serving-ca", "so does this"),
)
@holds()
def rotate(
    cluster: ClusterArg,
    ring: Annotated[str, typer.Argument(metavar="RING", help=f"One of {', '.join(RINGS)}.")],
    back: Annotated[bool, typer.Option("--back", help="Undo a rotation that has started, step by step.")] = False,
    wait_for_tokens: Annotated[
        bool,
        typer.Option("--wait-for-tokens", help="service-account: wait until tokens of the former key have expired."),
    ] = False,
    pods_follow: Annotated[
        bool,
        typer.Option(
            "--pods-follow",
            help="kubernetes-ca: older pods reload kube-root-ca.crt while they run, or never call the API.",
        ),
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Rotate a key or a certificate authority while everything runs.

    The new key is trusted everywhere, then used, then the old key is removed. Each
    step starts once every host is proven to have the step before. A step takes about
    15 minutes, because hosts ask every ten. Idempotent: if interrupted, run it again.
    docs/how-to/keys.md has more.
    """
    one = checked(cluster)
    from clients.access import Access
    from operations import build
    from operations.keys.rotation import Rotation
    from operations.stack import open_stack

    name = _ring(ring)
    build.refuse(one)
    details = Details()
    stack = open_stack(one, details.tell)

    def rotation(done: Callable[[str], None]) -> Rotation:
        return Rotation(one.name, name, stack, lambda outputs: Access.from_stack(one.name, outputs), details.tell, done)

    steps = [str(step) for step in rotation(_done).plan(back=back)]
    if dry_run:
        if as_json:
            print_json({"cluster": one.name, "ring": name, "states": steps})
        else:
            console.print(f"{one.name}: {name} would go {' → '.join(steps)}; nothing was touched", markup=False)
        return
    if not (yes or as_json):
        question, again = f"Take {name} of {one.name} {' → '.join(steps)}?", f"keys rotate {one.name} {name}"
        confirm(question, again, see=dry_run_of(again))
    access, about = Access.from_stack(one.name, stack.outputs()), f"{name}{' --back' if back else ''}"
    with details.lines(), hold(one, access, "keys rotate", about, repeatable=True) as operation:

        def done(step: str) -> None:
            operation.done(step)
            _done(step)

        rotated = rotation(done).run(back=back, wait=wait_for_tokens, pods_follow=pods_follow)
    _print(one, rotated, as_json=as_json)


def _ring(text: str) -> RingName:
    for name in RINGS:
        if text == name:
            return name
    raise typer.BadParameter(f"there is no key ring {text}; there are: {', '.join(RINGS)}")


def _done(step: str) -> None:
    errors.print(Text(f"✓ {step}", style="green"))


def _print(cluster: Cluster, rotated: Rotated, *, as_json: bool) -> None:
    if as_json:
        ends = {"began": str(rotated.began), "ended": str(rotated.ended), "rewritten": rotated.rewritten}
        print_json({"cluster": cluster.name, "ring": rotated.name, **ends})
        return
    more = f"; {rotated.rewritten} secrets encrypted anew" if rotated.name == "encryption" else ""
    console.print(f"{cluster.name}: {rotated.name} is at generation {rotated.ended}{more}", markup=False)


def _line(each: Certificate, now: datetime) -> Text:
    text = Text(f"{each.source:<10} ")
    if each.wrong:
        return text.append(f"{each.name}: {each.wrong}", style="red")
    date = f"{each.renewed_from:%Y-%m-%d}" if each.renewed_from else ""
    text.append(f"{each.days_left(now):>5} days, renewed from {date}  ", style="red" if each.is_overdue(now) else "")
    return text.append(each.name + (f", by {each.issuer}" if each.issuer else ""))
