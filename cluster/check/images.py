"""CLD-010: machine images have names that their cloud accepts.

Sources, by page title: "Amazon EC2 instance types", resource ids (ami- and 8 or 17 hexadecimal digits); "Use AMI ids by Systems
Manager parameters"; Compute Engine's `images` and `machineImages` (projects/…/global/images/[family/]…). Azure: CLD-008.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.spec import Cloud

_WORDS = {
    Cloud.AWS: (
        r"ami-[0-9a-f]{8}([0-9a-f]{9})?|resolve:ssm:[A-Za-z0-9_./:-]+",
        "write the id of an AMI: ami-0123456789abcdef0, or resolve:ssm:<parameter>",
    ),
    Cloud.GCP: (
        r"((https://www\.googleapis\.com/compute/v1/)?(projects/)?[a-z][a-z0-9.:-]*/(global/images/)?(family/)?)?[a-z][a-z0-9-]{0,62}",
        "write projects/<project>/global/images/<name>, or …/images/family/<family>",
    ),
    Cloud.LAB: (r"[A-Za-z0-9][A-Za-z0-9/:._-]*", "leave it out: the lab has one image"),
}


def image_names(subject: Subject) -> Iterator[Finding]:
    """Report image names that the cloud would refuse only when it makes the first machine."""
    spec = subject.spec
    if spec.control_plane.cloud not in _WORDS:
        return
    pattern, hint = _WORDS[spec.control_plane.cloud]
    images: list[tuple[Where, str | None]] = [(("control_plane", "image"), spec.control_plane.image)]
    images += [(("pools", name, "image"), pool.image) for name, pool in spec.pools.items()]
    for where, image in images:
        if image is not None and not re.fullmatch(pattern, image):
            yield Finding(
                where, f"{show(where)} {image!r} isn't the name of an image of {spec.control_plane.cloud}", hint
            )


RULES: tuple[tuple[str, Rule], ...] = (("CLD-010", image_names),)
