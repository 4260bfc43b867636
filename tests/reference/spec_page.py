"""docs/reference/spec.md: every key of cluster.yaml and hosts files, from the JSON Schema of `menagerie show schema`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cluster import (
    ceph,
    kernel,
    links,
    mirrors,
    monitoring,
    provisioning,
    quantities,
    roce,
    schema,
    sites,
    tenancy,
    words,
)
from tests.reference import markdown
from tests.reference.keys import Kind, Section, Walk

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spec.md"
_HEAD = """\
# Keys of a spec

For operators who write a cluster's spec: every key of `cluster.yaml` and of a hosts file, with its type, default and
limits. `make golden` writes this page from the JSON Schema.

```
./menagerie show schema > cluster.schema.json        # the same for editors: they complete and check as you type
./menagerie check jaguar                        # also the rules that involve several keys
```

- Unknown keys and values of the wrong type are errors. [errors.md](errors.md) has every code of `check`.
- A default of *none* means that the key can be omitted; its meaning says what happens then.
- `<pool>`, `<site>` and the like stand for names that you choose. `[]` stands for each entry of a list.
- The [kinds of values](#kinds-of-values) are at the end.
- `./menagerie init` writes a small cluster; `examples/` has a small one for each cloud, and larger ones.
"""
_ENTRIES = {
    "sites": ("site",),
    "pools": ("pool",),
    "routers": ("router",),
    "rails": ("pool", "rail"),
    "disks": ("kind",),
    "teams": ("team",),
    "only": ("team",),
    "receivers": ("receiver",),
}
_LINKS = {"cluster": ("pool", "link"), "hosts": ("link",)}


def _kind(type_: Any, word: str, meaning: str) -> Kind:
    return Kind(word, meaning, TypeAdapter(type_).json_schema())


KINDS = (
    _kind(bool, "boolean", "`true` or `false`."),
    _kind(
        quantities.Name,
        "name",
        "Lower-case letters, digits and `-`, a letter or digit at both ends; at most 63 characters (RFC 1123).",
    ),
    _kind(quantities.Bytes, "size", "A whole number and `B`, `KiB`, `MiB`, `GiB` or `TiB`: `8GiB`."),
    _kind(quantities.DurationMs, "duration", "A whole number and `ms`, `s`, `m`, `h` or `d`: `15m`."),
    _kind(quantities.Share, "share", "A number of machines, or a percentage: `2`, `10%`."),
    _kind(
        quantities.Network,
        "range",
        "An IPv4 range, address/prefix, without host bits or leading zeros: `10.64.0.0/12`.",
    ),
    _kind(quantities.Address, "address", "An IPv4 address: `10.8.0.17`."),
    _kind(quantities.Domain, "DNS name", "Names with dots between them, at most 253 characters: `cluster.local`."),
    _kind(
        quantities.DataDir,
        "folder",
        "An absolute path with at least two levels, of letters, digits, `.`, `_` and `-`: `/data/etcd`.",
    ),
    _kind(
        quantities.Sha256,
        "SHA-256",
        "64 hexadecimal digits, as `sha256sum` prints them, or with `sha256:` before them, as `crane digest` does.",
    ),
    _kind(
        words.CloudWord,
        "cloud word",
        "A name in the cloud, as its console shows it: letters, digits and `._/:()-`, with a letter, a digit or `/` first; at most 512 characters.",
    ),
    _kind(
        words.FilePath, "path", "A file on the operator's machine: letters, digits and `/._-~,@+:=` with single spaces."
    ),
    _kind(
        words.Login,
        "login",
        "A Unix user: letters, digits and `._-`, with a letter or `_` first; at most 32 characters.",
    ),
    _kind(words.LabelKey, "label key", "`name` or `prefix/name`, as Kubernetes takes it."),
    _kind(words.LabelValue, "label value", "Letters, digits, `-`, `_` and `.`, at most 63 characters, or empty."),
    _kind(
        words.Title,
        "person or team",
        "A name as in the directory: letters, digits and `.,'&@+:/()-` with single spaces.",
    ),
    _kind(words.Feature, "feature", "A feature of a network card, as `ethtool -k` names it: `rx-gro-hw`."),
    _kind(
        words.OfSwitch,
        "switch word",
        "A name of a switch or of its port, as LLDP reports it: `leaf-1`, `Ethernet1/17`.",
    ),
    _kind(
        links.LinkName,
        "link name",
        "A lower-case letter, then lower-case letters, digits and `_.-`; at most 15 characters: `ens1f0`.",
    ),
    _kind(links.PciAddress, "PCI address", 'As `lspci -D` prints it, in quotes: `"0000:1a:00.0"`.'),
    _kind(roce.Interface, "interface", "A network interface of Linux, at most 15 characters: `ens2f0np0`."),
    _kind(
        ceph.ById,
        "disk pattern",
        "A name of `/dev/disk/by-id/`; `*` and `?` stand for other characters: `nvme-Micron_7450*`.",
    ),
    _kind(kernel.Parameter, "kernel parameter", "`name` or `name=value`: `pci=realloc`."),
    _kind(mirrors.MirrorUrl, "mirror URL", "`http://` or `https://`, a host and a path, without a user or password."),
    _kind(mirrors.MirrorRegistry, "registry", "`host` or `host:port`."),
    _kind(monitoring.MetricName, "metric", "The name of a metric: letters, digits, `_` and `:`; no digit first."),
    _kind(
        monitoring.WebhookUrl, "webhook URL", "`http://` or `https://`, a host and a path, without a user or password."
    ),
    _kind(provisioning.Url, "URL", "`http://` or `https://`, a host and a path."),
    _kind(provisioning.ReportsUrl, "address URL", "`http://`, an IPv4 address and a port."),
    _kind(provisioning.PublicKey, "SSH public key", "A line of `authorized_keys`: `ssh-ed25519 AAAA… name`."),
    _kind(
        sites.CertificateArn,
        "certificate ARN",
        "Of AWS Certificate Manager: `arn:aws:acm:<region>:<account>:certificate/<id>`.",
    ),
    _kind(sites.Subject, "subject", "The subject of a certificate, without wildcards: `CN=vpn-0a.endpoint-0`."),
    _kind(tenancy.Quantity, "quantity", "As Kubernetes writes quantities of resources: `64`, `500m`, `2Ti`."),
)


def rendered() -> str:
    """Return the text of the page."""
    parts = [_HEAD, *_of("cluster"), *_of("hosts"), _kinds()]
    return "\n".join(parts)


def _of(file: str) -> Iterator[str]:
    """Yield the sections of a file: a second-level one per top key, followed by those of its nested mappings."""
    document = schema.schema(file)  # type: ignore[arg-type]
    walk = Walk(document["$defs"], KINDS, _ENTRIES | {"links": _LINKS[file]})
    first, *rest = walk.sections(document)
    yield first.text(f"## {_TITLES[file]}")
    for section in rest:
        yield section.text(f"{_level(section)} `{section.path}`")


_TITLES = {"cluster": "cluster.yaml", "hosts": "Hosts file"}


def _level(section: Section) -> str:
    depth = section.path.replace(".<", "<").count(".")
    return "##" if depth == 0 else "###"


def _kinds() -> str:
    rows = [(kind.word, kind.meaning) for kind in KINDS if kind.word != "boolean"]
    return f"## Kinds of values\n\n{markdown.table(('kind', 'allowed values'), rows)}"
