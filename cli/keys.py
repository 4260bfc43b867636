"""`keys status` and `keys rotate`: what they take, show, ask, and print."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli import exits
from cli.asking import confirm
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Details, console, errors, note, print_json
from cli.specs import checked
from cluster.key_rings import RINGS, RingName

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.keys.certificates import Certificate
    from operations.keys.rotation import Rotated, Rotation

app = typer.Typer(
    help="Keys and certificates of a cluster: how long they live, and rotation. docs/how-to/keys.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=examples(
        ("keys status lab", "rings, and what ends first"),
        ("keys status lab --json", "every certificate, for a monitor"),
    )
)
def status(cluster: ClusterArg, as_json: JsonOpt = False) -> None:
    """Show key rings, and every certificate with the days that it has left.

    From the stack, from what hosts report every ten minutes, and from handshakes
    with the API and every etcd member. Reads only. Exit 1 when a certificate is
    past two thirds of its life, when a host lags behind, or in a rotation.
    """
    from operations.keys.status import look
    from operations.stack import open_stack

    one = checked(cluster)
    found = look(open_stack(one, lambda _: None))
    now = datetime.now(UTC)
    if as_json:
        print_json({"cluster": one.name, **found.to_json(now)})
    else:
        for name, ring in found.rings.items():
            console.print(f"{name:<18} {ring.state:<10} generation {ring}", markup=False)
        for each in found.certificates:
            console.print(_line(each, now))
        if found.unproven:
            console.print(Text(found.unproven, style="red"))
    raise typer.Exit(exits.DONE if found.ok(now) else exits.FAILED)


@app.command(
    epilog=examples(
        ("keys rotate lab encryption --dry-run", "only the steps"),
        ("keys rotate lab encryption", "asks first"),
        ("keys rotate lab service-account --wait", "as long as tokens live"),
        ("keys rotate lab etcd-main-ca --back", "give it up"),
        ("keys rotate lab kubernetes-ca", "ends where you must act"),
        ("keys rotate lab kubelet-serving-ca", "so does this"),
    )
)
def rotate(
    cluster: ClusterArg,
    ring: Annotated[str, typer.Argument(metavar="RING", help=f"One of {', '.join(RINGS)}.")],
    back: Annotated[bool, typer.Option("--back", help="Undo a rotation that has begun, step by step.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="service-account: wait for the end of tokens of the former key.")
    ] = False,
    pods_follow: Annotated[
        bool,
        typer.Option(
            "--pods-follow",
            help="kubernetes-ca: the pods that started before read kube-root-ca.crt again while they run, or never ask the API.",
        ),
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Change a key for a new one, while everything runs.

    The new one is trusted everywhere, then it is put to work, then the old one goes;
    each only once every host is proven to have the step before. Some 15 minutes a
    step, for hosts ask every ten. Safe to interrupt: run it again and it goes on.
    """
    from clients.access import Access
    from operations import build
    from operations.keys.rotation import Rotation
    from operations.record import one_operation
    from operations.stack import open_stack

    name = _ring(ring)
    one = checked(cluster)
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
        confirm(question, again, see=("what would be done", f"{again} --dry-run"))
    access, about = Access.from_stack(one.name, stack.outputs()), f"{name}{' --back' if back else ''}"
    with details.lines(), one_operation(one, access, "keys rotate", about, repeatable=True, report=note) as operation:

        def done(step: str) -> None:
            operation.done(step)
            _done(step)

        rotated = rotation(done).run(back=back, wait=wait, pods_follow=pods_follow)
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
