"""Words of a spec are only data in every output: shells, units, cloud-init, iPXE, dnsmasq, swanctl, FRR, nftables, GRUB, JSON, pages.

A cluster with every field that accepts special characters is rendered twice: with plain words, and with the worst that each field
accepts, between marks. Output with a mark is read by its format's rules, and must then equal the plain one except between marks.
Output without marks must be identical.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
import shutil
import string
import subprocess
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import TypeAdapter

from clients.remote.executor import Ssh
from cluster.artefacts import ArtefactSource, catalogue
from cluster.files import HostConfig
from cluster.outputs import ArtefactOutput, ClusterOutputs
from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec
from components.ceph.render import objects, text
from components.control_plane import host_config as api_server
from components.drawing.html import html
from components.drawing.layout import draw
from components.drawing.svg import svg
from components.monitoring import receivers
from components.userdata import Payload, render, startup_script
from components.workers import host_config as worker
from components.workers.roles import declarations
from controllers.tenancy.directory.files import FileDirectory, PeopleFile
from controllers.tenancy.sync.objects import desired_objects
from etcd.render import host_config as member
from inventories import gateways
from inventories.build import build as inventory
from network.addresses import plan
from network.gateway import CertificateChain, Joined, routers
from network.roce.switches import System, snippet
from operations.provisioning.machines import machines
from operations.provisioning.render import tree
from tests.cluster.walking import LEAVES, SAMPLES, changed, takes
from tests.digests import with_digests

ROOT = Path(__file__).parents[2]
WORDS = yaml.safe_load(Path(__file__).with_name("every_word.yaml").read_text())
MODELS = ((ClusterSpec, "spec"), (HostsFile, "hosts"), (PeopleFile, "people"))
SPECIAL = [each for each in f"{string.punctuation} " if each not in "._:/@+-"]
MARKED = re.compile("zq(.*?)qz")
"""What was inserted into a word. No text of ours has these letters."""
PACKED = re.compile("[A-Za-z0-9+/]{100,}")
"""A packed program in user data, which can have those letters by chance."""
ENDS = ("203.0.113.1", "203.0.113.2")
STORE = SimpleNamespace(script=lambda: "#!/usr/bin/python3\n")


Change = Callable[[str, str], str]


@cache
def worst(path: str, word: str) -> str:
    """Return the word with as many special characters between marks as its field accepts at once.

    Fields that accept a line break have a rule of `cluster.check` that refuses it (test_words.py).
    """
    places = () if takes(LEAVES[path], "\n") else (1, len(word) - 1)
    return max((_filled(LEAVES[path], word[:at], word[at:]) for at in places), key=len, default=word)


def harmless(path: str, word: str) -> str:
    """Return a word of the same length, for equal layout of drawings, with letters between the marks."""
    return MARKED.sub(lambda match: f"zq{'x' * len(match[1])}qz", worst(path, word))


def _filled(adapter: TypeAdapter[Any], before: str, after: str) -> str:
    inside = ""
    for each in SPECIAL:
        inside += each if takes(adapter, f"{before}zq{inside}{each}qz{after}") else ""
    return f"{before}zq{inside}qz{after}" if inside else before + after


class World:
    """All output for a cluster that something else reads: name -> text, or data that is never written by hand."""

    def __init__(self, folder: Path, change: Change) -> None:
        self.marked: set[str] = set()
        """What was inserted into words."""

        def noted(path: str, word: str) -> str:
            self.marked.update(MARKED.findall(change(path, word)))
            return change(path, word)

        spec, hosts, people = (changed(model, WORDS[name], noted) for model, name in MODELS)
        (folder / "people.yaml").write_text(yaml.safe_dump(people))
        self.cluster = Cluster(
            spec=with_digests(ClusterSpec.model_validate(spec)),
            hosts={"gpu": HostsFile.model_validate(hosts).hosts},
            authorities={"sjc1": "-----BEGIN CERTIFICATE-----\n"},
        )
        assert self.cluster.spec.tenancy
        self._roster = FileDirectory(folder / "people.yaml", self.cluster.spec.tenancy).read()
        own = self.cluster.spec.artefacts
        sums = {each.source: "0" * 64 for each in catalogue().values()}
        self._source, self._plan, self._folder = (
            ArtefactSource(own.mirror, sums, own.registry),
            plan(self.cluster),
            folder,
        )
        self.made = dict(self._all())

    def _all(self) -> Iterator[tuple[str, Any]]:
        site = self.cluster.spec.sites["sjc1"]
        yield from self._of_the_region()
        yield from self._of_workers_at_sites()
        yield from tree(machines(self.cluster)).items()
        papers = CertificateChain("PEM", ("A", "B"), b"\x30", datetime.datetime.now(datetime.UTC))
        (router,) = routers([Joined(self.cluster, {"sjc1/edge-1": ENDS}, {}, {"sjc1/edge-1": papers})])
        yield from gateways.variables(router, {}).items()
        for system in System:
            assert site.roce
            yield f"switch {system}", snippet(site.roce, system)
        yield from (("cluster.html", html(self.cluster)), ("cluster.svg", svg(draw(self.cluster))))
        yield "rook.yaml", text(objects(self.cluster, {}))
        yield "alertmanager.yaml", receivers.text(self.cluster)
        settings = self.cluster.spec.tenancy
        assert settings
        for tenant in self._roster.tenants():
            yield f"tenant {tenant.kind}", list(desired_objects(tenant, "x", self._roster, settings))

    def _of_the_region(self) -> Iterator[tuple[str, Any]]:
        cluster, plan_, source = self.cluster, self._plan, self._source
        configs = {
            "api": api_server(cluster, plan_, source),
            "worker": worker(cluster, "cpu", plan_, source),
            **{role: member(cluster, role, f"etcd-{role}-1", plan_, source) for role in ("main", "events")},
        }
        for name, config in configs.items():
            yield from _files(name, config)
            payload = Payload.of(config, source)
            yield f"{name}/payload.json", payload.text
            plain = Payload("{}")
            yield f"{name}/cloud-config", render(plain, STORE, "h")
            yield f"{name}/startup", startup_script(plain, STORE, "h")

    def _of_workers_at_sites(self) -> Iterator[tuple[str, Any]]:
        artefacts = ArtefactOutput(
            mirror=self._source.mirror, sha256=dict(self._source.sha256), registry=self._source.registry
        )
        outputs = ClusterOutputs(
            cluster="zebra", endpoint="api.zebra.internal:6443", balancers=("10.32.0.4",), konnectivity="k:8132",
            ca_pem="-----BEGIN CERTIFICATE-----\n", api_servers=(), etcds={}, artefacts=artefacts,
        )  # fmt: skip
        whole = inventory(self.cluster, outputs).data["all"]
        (host,) = whole["hosts"]
        of_groups = {name: each for group in whole["children"].values() for name, each in group["vars"].items()}
        given = {**whole["vars"], **of_groups, **whole["hosts"][host]}
        yield from ((f"variable {name}", value) for name, value in given.items())
        for each in declarations({**given, "inventory_hostname": host}):
            files = each.arguments.get("files", [])
            yield from ((f"{each.role}{file['path']}", file["text"]) for file in files)
            yield f"role {each.role}", {**each.arguments, "files": [{**file, "text": ""} for file in files]}
        templates = Environment(loader=FileSystemLoader(ROOT / "roles"), undefined=StrictUndefined, trim_blocks=True)
        yield "lvmlocal.conf", templates.get_template("storage_host/templates/lvmlocal.conf.j2").render(given)
        yield "grub", self._booted_with(given["boot_words"])

    def _booted_with(self, words: list[str]) -> str:
        path = ROOT / "roles/boot/files/menagerie_boot.py"
        loaded = importlib.util.spec_from_file_location("menagerie_boot", path)
        assert loaded and loaded.loader
        program = importlib.util.module_from_spec(loaded)
        loaded.loader.exec_module(program)
        (self._folder / "etc/menagerie").mkdir(parents=True)
        (self._folder / "etc/menagerie/boot.json").write_text(json.dumps({"words": words}))
        return str(program.Machine(self._folder).drop_in)


def _files(name: str, config: HostConfig) -> Iterator[tuple[str, str]]:
    return ((f"{name}{file.path}", file.text) for file in config.files)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def of_shell(text: str) -> list[str]:
    """Return the lines. Marked text must be in single quotes, where a shell interprets nothing."""
    read = [re.sub("'[^']*'", lambda quoted: MARKED.sub("", quoted[0]), line) for line in lines(text)]
    assert not [line for line in read if MARKED.search(line)]
    return read


def of_grub(text: str) -> list[str]:
    """Return the words after a shell has read the text, which must not run any command."""
    command = f'{text}\nprintf %s "$GRUB_CMDLINE_LINUX_DEFAULT"'
    return subprocess.run(["sh", "-e"], input=command, capture_output=True, text=True, check=True).stdout.split()


def of_ipxe(text: str) -> list[list[str]]:
    """ipxe.org/scripting: blanks separate, ${} expands, # at the start of a line is a comment, || and && join."""
    return [re.split(r" +|(\$\{[^}]*\}|\|\||&&)", line) for line in lines(text)]


def of_dnsmasq(text: str) -> list[list[str]]:
    """dnsmasq(8): # after a blank starts a comment, quotes protect commas."""
    settings = [line for line in lines(text) if not line.startswith("#")]
    assert not [line for line in settings if re.search(r"\s#|[\"\\]", line)]
    return [re.split("[=,]", line) for line in settings]


def of_preseed(text: str) -> list[list[str]]:
    """debconf-set-selections(1): owner, question, type and the rest of the line."""
    return [line.split(None, 3) for line in lines(text)]


def of_swanctl(text: str) -> list[tuple[str, ...]]:
    """strongswan.conf(5): sections, and settings whose value is in quotes unless it is plain. In quotes a backslash
    escapes. A single * as part of a name is a wildcard ("Identity Parsing")."""
    parsed: list[tuple[str, ...]] = []
    for line in lines(text):
        match = re.fullmatch(r'([\w-]+) \{|\}|(\w+) = (?:"([^"\\]*)"|([\w./: -]*))', line)
        assert match, line
        assert "*" not in (match[3] or ""), line
        parsed.append((line[:1] if line == "}" else "", *(each or "" for each in match.groups())))
    return parsed


def of_lvm(text: str) -> list[str]:
    """lvm.conf(5): strings in quotes, where a backslash escapes."""
    assert "\\" not in text
    return [_named(each) for each in re.findall(r'"([^"]*)"', text)]


def _named(pattern: str) -> str:
    """Convert a regular expression between bars back to the name with * and ?."""
    match = re.fullmatch(r"[ar]\|((\[[.+]\]|\.\*?|[^][|.*+?()\\])*)\|", pattern)
    assert match, pattern
    turned = {"[.]": ".", "[+]": "+", ".*": "*", ".": "?"}
    return re.sub(r"\[.\]|\[\+\]|\.\*|\.", lambda piece: turned[piece[0]], match[1])


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: list[object] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, *attrs))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(tag)

    def handle_data(self, data: str) -> None:
        self.parts.append([data])


READERS: dict[str, Callable[[Any], Any]] = {
    "*.json": json.loads,
    "*.sh": of_shell,
    "*.ipxe": of_ipxe,
    "*/preseed.cfg": of_preseed,
    "dnsmasq.conf": of_dnsmasq,
    "alertmanager.yaml": yaml.safe_load,
    "vpn_gateway_connections": of_swanctl,
    "lvmlocal.conf": of_lvm,
    "variable storage_host_lvm_filter": lambda patterns: [_named(each) for each in patterns],
    "grub": of_grub,
    "cluster.*": lambda text: _Page(text).parts,
}
"""Readers of formats that marked words reach. A new format fails until it has a reader here."""


def read(name: str, made: Any) -> Any:
    readers = [reader for pattern, reader in READERS.items() if fnmatch(name, pattern)]
    assert readers or name.startswith("variable ") or not isinstance(made, str), name
    return readers[0](made) if readers else made


def is_marked(made: Any) -> bool:
    return MARKED.search(PACKED.sub("", str(made))) is not None


def unmarked(value: Any, known: set[str]) -> Any:
    """Remove what was inserted into words, which must be complete. Labels have a - instead of characters they can't have."""
    if isinstance(value, str):
        assert set(MARKED.findall(value)) <= {*known, *("-" * len(each) for each in known)}, value
        return re.sub("(?<=menagerie.boot=)[0-9a-f]+", "", MARKED.sub("", value))
    if isinstance(value, dict):
        return {unmarked(key, known): unmarked(each, known) for key, each in value.items()}
    return [unmarked(each, known) for each in value] if isinstance(value, list | tuple) else value


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("plain"), harmless)


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("spoilt"), worst)


def takes_more(path: str) -> bool:
    return any(worst(path, sample) != sample for sample in SAMPLES if takes(LEAVES[path], sample))


def test_every_field_that_accepts_special_characters_is_rendered() -> None:
    paths: set[str] = set()

    def change(path: str, word: str) -> str:
        paths.update([path] if worst(path, word) != word else [])
        return word

    for model, name in MODELS:
        changed(model, WORDS[name], change)
    assert len(paths) > 30
    assert {path for path in LEAVES if takes_more(path)} <= paths


def test_words_are_only_data_in_all_rendered_formats(plain: World, spoilt: World) -> None:
    assert plain.made.keys() == spoilt.made.keys()
    for name, made in spoilt.made.items():
        if not is_marked(made):
            assert made == plain.made[name], name
            continue
        content = unmarked(read(name, made), spoilt.marked)
        assert content == unmarked(read(name, plain.made[name]), plain.marked), name


def test_every_format_with_a_reader_is_reached(spoilt: World) -> None:
    """No special character reaches units, cloud-init, FRR, nftables and switches."""
    reached = [name for name, made in spoilt.made.items() if is_marked(made)]
    assert {pattern for pattern in READERS if any(fnmatch(name, pattern) for name in reached)} == READERS.keys()


def test_shells_and_dnsmasq_accept_files_with_special_characters(spoilt: World, tmp_path: Path) -> None:
    scripts = [made for name, made in spoilt.made.items() if name.endswith(".sh") and name.startswith("machines/")]
    assert len(scripts) == 2
    for script in scripts:
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    if dnsmasq := shutil.which("dnsmasq"):
        (tmp_path / "dnsmasq.conf").write_text(spoilt.made["dnsmasq.conf"])
        subprocess.run([dnsmasq, "--test", "-C", tmp_path / "dnsmasq.conf"], capture_output=True, check=True)


def test_ssh_reads_a_key_path_with_spaces_as_one_file(spoilt: World) -> None:
    key = spoilt.cluster.spec.sites["sjc1"].ssh.private_key
    assert key and " " in key
    with Ssh(spoilt.cluster, "10.8.1.11 ssh-ed25519 AAAA\n") as ssh:
        program, *words = ssh.command("zebra-gpu-1", ["true"])
    settings = subprocess.run([program, "-G", "-F", "none", *words], capture_output=True, text=True, check=True).stdout
    assert f"identityfile {key}" in settings.splitlines()
