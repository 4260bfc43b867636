"""`keys rotate`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked
from cluster.key_rings import RINGS, RingName


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
    name = _ring(ring)
    from cli.actions import keys

    keys.rotate(
        loaded,
        name,
        back=back,
        wait_for_tokens=wait_for_tokens,
        pods_follow=pods_follow,
        dry_run=dry_run,
        yes=yes or as_json,
        as_json=as_json,
    )


def _ring(text: str) -> RingName:
    for name in RINGS:
        if text == name:
            return name
    raise typer.BadParameter(f"there is no key ring {text}; write one of {', '.join(RINGS)}")
