"""Files that are not specs, and malicious specs: refused with a message, within limits, and never echoed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.problems import SpecError
from cluster.tenancy import Tenancy
from controllers.tenancy.directory.files import FileDirectory
from tests.forked import GIB, Ended, command

SPECS = Path(__file__).parents[1] / "specs"
SPEC = (SPECS / "valid-onprem.yaml").read_text()
SECRET = "c2VjcmV0LXRoYXQtbm9ib2R5LXNlZXM"

FOREIGN = {
    "key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n-----END OPENSSH PRIVATE KEY-----\n",
    "old key": f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n{SECRET}\n",
    "token": f"{SECRET}\n",
    "number": "8675309867530986753",
    "shadow": f"root:$y$j9T${SECRET}:19000:0:99999:7:::\nbin:*:19000::::::\n",
    "kubeconfig": f"apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {{token: {SECRET}}}\n",
    "service account": f'{{"type": "service_account", "private_key": "{SECRET}"}}',
    "environment": f"AWS_SECRET_ACCESS_KEY={SECRET}\n",
    "password": f"password: {SECRET}\n",
    "key of a key": f"{SECRET}: 1\n",
    "twice": f"{SECRET}: 1\n{SECRET}: 2\n",
    "tag": f"!{SECRET} x\n",
    "alias": f"*{SECRET}\n",
    "list": f"- {SECRET}\n",
    "open": f"[{SECRET}, '{SECRET}\n",
    "colons": f"a: {SECRET}: b\n",
}
DEEP = {
    "mappings": "x: " + "{a: " * 40_000,
    "anchors": "".join(f"[&a{number} " for number in range(40_000)),
    "comments": "[#\n" * 40_000,
    "dashes": "- " * 1_500_000,
    "one word": "-" * 3_000_000,
    "rules": ("-" * 900 + "x\n") * 3300,
    "digits": "name: " + "9" * 100_000,
    "hexadecimal": "name: 0x" + "f" * 100_000,
    "keys": "? " * 3_000_000,
    "keys in keys": "{" * 3_000_000,
    "one key": f"? {'x' * 1_000_000}\n: 1\n",
    "one key again": "x: 1\n" * 400_000,
    "left out": f"x: 1\nx: [{'1, ' * 1_000_000}]\n",
    "tags": "".join(f"%TAG !{number}! x\n" for number in range(60_000)) + "---\na: 1\n",
    "aliases": "a: &a [1]\n"
    + "\n".join(f"b{n}: &b{n} [{'*a, ' * 9}*{f'b{n - 1}' if n else 'a'}]" for n in range(20_000)),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(spec: str = SPEC, hosts: str | None = None) -> str:
    Path("cluster.yaml").write_text(spec)
    if hosts is not None:
        Path("hosts-jaguar.yaml").write_text(hosts)
    return "cluster.yaml"


def refused(ended: Ended) -> list[str]:
    assert ended.code == 2, ended.text[-2000:]
    assert "Traceback" not in ended.text
    assert "this is a bug" not in ended.text
    return ended.text.splitlines()


def reveals_nothing(ended: Ended) -> None:
    assert ended.code == 2, ended.text
    assert SECRET not in ended.text
    assert "8675309" not in ended.text


@pytest.mark.parametrize("text", FOREIGN.values(), ids=list(FOREIGN))
def test_nothing_of_a_file_of_another_kind_is_revealed(text: str) -> None:
    """As a hosts file and as a spec, as text and as JSON; with --debug, no exception caught inside shows."""
    for file in (written(hosts=text), written(text)):
        reveals_nothing(command("--debug", "check", file))
        reveals_nothing(command("check", file, "--json"))


@pytest.mark.parametrize("kind", ["key", "token", "kubeconfig", "password"])
def test_nothing_of_a_file_given_as_people_or_switches_is_revealed(kind: str) -> None:
    Path("file.yaml").write_text(FOREIGN[kind])
    reveals_nothing(command("--debug", "roce", "plan", str(SPECS / "valid-roce.yaml"), "--facts", "file.yaml"))
    with pytest.raises(SpecError) as caught:
        FileDirectory(Path("file.yaml"), Tenancy.model_validate({"directory": {"file": "file.yaml"}})).read()
    assert SECRET not in f"{caught.value} {caught.value.__context__} {caught.value.problems}"


@pytest.mark.parametrize("text", DEEP.values(), ids=list(DEEP))
def test_extreme_nesting_and_length_are_refused(text: str) -> None:
    for words in (("check", written(text)), ("check", written(hosts=text))):
        ended = command(*words)
        lines = refused(ended)
        assert ended.cpu_s < 10
        assert len(lines) < 10
        assert len(ended.text) < 3000


@pytest.fixture(params=["device", "pipe", "circle", "folder", "long", "NUL", "huge"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    name = "odd"
    match request.param:
        case "device":
            name = "/dev/zero"
        case "pipe":
            os.mkfifo(name)
        case "circle":
            os.symlink(name, name)
        case "folder":
            os.mkdir(name)
        case "long":
            name = "d/" * 2500
        case "NUL":
            name = "a\\0b"
        case "huge":
            with open(name, "wb") as file:
                file.truncate(50 * GIB)
    yield name


def test_a_path_to_a_special_file_is_refused(odd: str) -> None:
    """As the hosts file, as the authority of registries, and as the spec, except NUL, which a command line cannot contain."""
    spec = SPEC.replace("hosts: hosts-jaguar.yaml", f'hosts: "{odd}"')
    assert spec != SPEC
    ended = command("check", written(spec), wall_s=20)
    assert any("CFG-010" in line for line in refused(ended)), ended.text
    mirrored = SPEC.replace(
        "    link_mtu: 9000\n",
        f'    registries: {{mirrors: [{{address: "m:5000", of: [docker.io]}}], ca: "{odd}"}}\n    link_mtu: 9000\n',
    )
    hosts = (SPECS / "hosts-jaguar.yaml").read_text()
    ended = command("check", written(mirrored, hosts), wall_s=20)
    assert any(code in line for line in refused(ended) for code in ("REG-003", "CFG-030")), ended.text
    if "\\0" not in odd:
        os.symlink(odd, "other.yaml") if len(odd) < 255 else None
        refused(command("check", "other.yaml" if len(odd) < 255 else f"{odd}cluster.yaml", wall_s=20))


def test_seven_thousand_machines_with_nine_links_each_load() -> None:
    """See docs/how-to/links.md. Measured: 2.9 s of CPU and 260 MB; the limits leave room for busy machines."""
    names = [f"ens{number}f0" for number in range(1, 10)]
    lines = ["hosts:"]
    for host in range(7500):
        rack = host // 30
        lines.append(
            f"- name: gpu-{host}\n  rack: r{rack}\n  address: 10.{8 + rack // 250}.{rack % 250}.{10 + host % 30}"
        )
        mac = f"{host >> 8:02x}:{host & 255:02x}"
        cables = (
            f"    {name}: {{mac: 'b8:59:9f:{at:02x}:{mac}', switch: l-{rack}-{at}, port: {host % 30}}}"
            for at, name in enumerate(names)
        )
        lines += ["  links:", *cables]
    racks = ", ".join(f"r{rack}: 10.{8 + rack // 250}.{rack % 250}.0/24" for rack in range(250))
    links = ", ".join(f"{name}: {{mtu: 9000}}" for name in names)
    spec = SPEC.replace("r1: 10.8.0.0/24, r2: 10.8.1.0/24", racks).replace("10.64.0.0/12", "10.96.0.0/11")
    spec = spec.replace("    link_mtu: 9000\n", f"    link_mtu: 9000\n    links: {{gpu: {{{links}}}}}\n")
    ended = command("check", written(spec, "\n".join(lines) + "\n"), cpu_s=20, memory=GIB)
    assert ended.code == 0, ended.text
    assert ended.text.startswith("1 checked, no errors: jaguar\n")


def test_a_million_machines_are_refused_with_the_limit_that_they_exceed() -> None:
    short = "".join(f"- {{name: g{number}}}\n" for number in range(1_000_000))
    text = " ".join(refused(command("check", written(hosts=f"hosts:\n{short}"), memory=GIB)))
    assert "a list or a mapping has more than 10,000 entries, the limit" in text
    wide = f"- [{'1, ' * 100}]\n" * 5000
    text = " ".join(refused(command("check", written(hosts=f"hosts:\n{wide}"), memory=GIB)))
    assert "has more than 350,000 values, the limit" in text
    long = "".join(f"- {{name: gpu-{number}, rack: r1, address: 10.8.0.1}}\n" for number in range(1_000_000))
    text = " ".join(refused(command("check", written(hosts=f"hosts:\n{long}"), memory=GIB)))
    assert "the limit is 33,554,432 bytes" in text


@pytest.mark.parametrize(
    "entry", ["{{name: GPU_{0}, rack: r1, address: 10.8.0.1}}", "{{name: g{0}, rack: r1, address: 1.1.1.1, x{0}: 1}}"]
)
def test_of_ten_thousand_bad_machines_twenty_are_listed(entry: str) -> None:
    hosts = "hosts:\n" + "".join(f"- {entry.format(number)}\n" for number in range(10_000))
    ended = command("check", written(hosts=hosts))
    lines = refused(ended)
    assert len(lines) < 150
    assert any(re.search(r"and 9,\d\d\d more; --json has all", line) for line in lines)


def test_overlaps_of_two_thousand_racks_are_reported_in_few_lines() -> None:
    racks = ", ".join(f"r{number}: 10.8.0.0/24" for number in range(2000))
    ended = command(
        "check",
        written(SPEC.replace("r1: 10.8.0.0/24, r2: 10.8.1.0/24", racks), (SPECS / "hosts-jaguar.yaml").read_text()),
    )
    assert len(refused(ended)) < 150
    assert ended.cpu_s < 10


def test_a_value_of_a_megabyte_is_not_printed_in_full() -> None:
    ended = command("check", written(SPEC.replace("name: jaguar", f"name: {'x' * 1_000_000}")))
    text = " ".join(refused(ended))
    assert "isn't valid; use lower case letters" in text
    assert len(text) < 2000


@pytest.mark.parametrize("sign", ["\x1b[31m", "\u202e", "\u2066", "\x07", "\u200b", "\x85", "\u2028"])
def test_control_characters_in_a_spec_are_escaped(sign: str) -> None:
    escaped = "".join(f"\\U{ord(c):08x}" for c in sign)
    ended = command("check", written(SPEC.replace("name: jaguar", f'name: "a{escaped}b"')))
    refused(ended)
    assert "a\\" in ended.text
    assert sign not in ended.text


def test_control_characters_on_the_command_line_are_escaped() -> None:
    ended = command("check", "\x1b[31mred\u202e")
    assert ended.code == 2
    assert not {"\x1b", "\u202e"} & set(ended.text)
