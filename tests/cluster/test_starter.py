"""First specs: for all options they pass `check` unchanged, together with the rest of the fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from itertools import combinations, product
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from yamllint import linter
from yamllint.config import YamlLintConfig

from cluster import catalogue, hardware, schema
from cluster.check import Checked
from cluster.check.ranges import ranges
from cluster.errors import RefusedError
from cluster.load import Loaded, check_paths
from cluster.problems import SpecError
from cluster.spec import Cloud, Cluster
from cluster.starter import Request, Starter, make
from cluster.starter import ranges as own_ranges
from cluster.writing import new_folder
from operations.init import prepare, write
from sandbox.lab import plan

ROOT = Path(__file__).resolve().parents[2]
LINT = YamlLintConfig(file=str(ROOT / ".yamllint"))
CLOUDS = catalogue.CLOUDS
ASKED = [
    *(Request("koala", cloud, gpu=gpu) for cloud, gpu in product(CLOUDS, ("", "h100"))),
    *(Request("koala", cloud, True, gpu=gpu) for cloud, gpu in product(CLOUDS, ("", "h100"))),
    Request("koala", Cloud.LAB),
    Request("koala", Cloud.LAB, True),
]
Load = Callable[[Starter], Cluster]


def case_id(asked: Request) -> str:
    return f"{asked.cloud}{'-site' if asked.site else ''}{f'-{asked.gpu}' if asked.gpu else ''}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with our lab, as in every checkout."""
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories" / "lab").symlink_to(ROOT / "inventories" / "lab")
    (tmp_path / "cluster").symlink_to(ROOT / "cluster")
    return tmp_path


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Return the cluster of a folder, which must not have any problem."""
    numbers = iter(range(1_000_000))

    def loaded(made: Starter) -> Cluster:
        folder = tmp_path_factory.getbasetemp() / f"starter-{next(numbers)}" / "inventories" / made.request.name
        new_folder(folder, made.files)
        (one,), problems = check_paths([folder / "cluster.yaml"])
        assert [str(problem) for problem in problems] == []
        return one.cluster

    return loaded


def fleet(root: Path) -> list[Loaded]:
    """Return all clusters of a checkout, which must not have any problem."""
    loaded, problems = check_paths(sorted((root / "inventories").glob("*/cluster.yaml")))
    assert [str(problem) for problem in problems] == []
    return loaded


def networks(one: Loaded) -> set[IPv4Network]:
    return {each.network for each in ranges(Checked(one.cluster, one.positions))}


@pytest.mark.parametrize("asked", ASKED, ids=case_id)
def test_a_first_spec_passes_check_unchanged_and_a_second_gets_other_ranges(root: Path, asked: Request) -> None:
    for name in ("koala", "zebu"):
        write(prepare(Request(name, asked.cloud, asked.site, asked.region, asked.gpu), root))
    one, _, other = fleet(root)
    assert (one.cluster.name, other.cluster.name) == ("koala", "zebu")
    assert not any(a.overlaps(b) for a, b in product(networks(one), networks(other)))


@pytest.mark.parametrize("asked", ASKED, ids=case_id)
def test_texts_pass_the_linter_and_name_their_schema(root: Path, asked: Request) -> None:
    prepared = prepare(asked, root)
    write(prepared)
    assert set(prepared.starter.files) == {path.name for path in prepared.folder.iterdir()}
    for path in prepared.folder.iterdir():
        first, *rest = path.read_text().splitlines()
        schema_file = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        assert schema_file.resolve() == ROOT / "cluster" / "schemas" / f"{path.stem}.schema.json"
        assert [str(problem) for problem in linter.run(path.read_text(), LINT)] == []
        assert rest[0].startswith("# ")
    text = prepared.starter.files["cluster.yaml"]
    assert len(text.splitlines()) < 60
    assert ("PLACEHOLDER" in text) is bool(prepared.starter.placeholders)


@pytest.mark.parametrize("of", ["cluster", "hosts"])
def test_the_schema_files_are_current(of: Literal["cluster", "hosts"]) -> None:
    """`menagerie show schema` prints the first; MENAGERIE_UPDATE_GOLDEN=1 rewrites both."""
    path = ROOT / "cluster" / "schemas" / f"{of}.schema.json"
    text = schema.text(of)
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, "run `make golden`"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_every_accepted_region_and_every_kind_of_gpu_passes_check(cloud: Cloud, load: Load) -> None:
    taken = []
    for region in catalogue.of(cloud).region_names:
        try:
            made = make(Request("koala", cloud, region=region), ())
        except RefusedError as refused:
            assert "write one of" in str(refused)
        else:
            taken.append(load(made).spec.control_plane.region)
    assert len(taken) > 20
    for kind in dict.fromkeys(getattr(hardware.clouds(), cloud).values()):
        spec = load(make(Request("koala", cloud, gpu=kind), ())).spec
        expected = hardware.of_pool(cloud, spec.pools["gpu"])
        assert expected
        assert expected.gpus
        assert expected.gpus.product == hardware.gpus().gpus[kind].product


def test_a_machine_type_can_be_given_as_the_kind_of_gpu(load: Load) -> None:
    asked = Request("koala", Cloud.AWS, region="us-east-1", gpu="p5.4xlarge")
    assert load(make(asked, ())).spec.pools["gpu"].machine == "p5.4xlarge"
    own = Request("koala", Cloud.AWS, site=True, gpu="dgx-h100")
    assert yaml.safe_load(make(own, ()).files["cluster.yaml"])["pools"]["gpu"]["hardware"] == "dgx-h100"


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
ODD = st.sampled_from(["null", "true", "on", "n", "1e3", "0x1f", "0", "2026-11-25", "12-30", "x" * 63, "a--b"])


@settings(max_examples=60)
@given(NAMES | ODD, st.sampled_from(ASKED))
def test_every_cluster_name_is_read_back_unchanged(load: Load, name: str, asked: Request) -> None:
    cluster = load(make(Request(name, asked.cloud, asked.site, gpu=asked.gpu), ()))
    assert cluster.name == name
    assert len({host.name for _, host in cluster.host_list()}) == len(cluster.host_list())


@settings(max_examples=60)
@given(st.text("aZ0-_./ é\n", min_size=1, max_size=65).filter(lambda text: text[0] not in "/"))
def test_a_name_is_accepted_exactly_if_check_accepts_it(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.mktemp("root")
    valid = len(name) <= 63 and name.strip("-") == name and set(name) <= set("a0-")
    try:
        prepare(Request(name, Cloud.LAB), root)
    except SpecError as error:
        assert not valid
        assert [problem.code for problem in error.problems] == ["CFG-005"]
    else:
        assert valid
    assert list(root.iterdir()) == []


def test_fifty_clusters_of_all_kinds_have_disjoint_ranges(load: Load, tmp_path: Path) -> None:
    clusters: list[Cluster] = []
    for number in range(50):
        asked = ASKED[number % len(ASKED)]
        made = make(Request(f"c{number}", asked.cloud, asked.site, gpu=asked.gpu), clusters)
        new_folder(tmp_path / "inventories" / f"c{number}", made.files)
        clusters.append(load(made))
    subnets = [networks(one) for one in fleet(tmp_path)]
    assert len(subnets) == 50
    assert not any(a.overlaps(b) for one, other in combinations(subnets, 2) for a, b in product(one, other))


def test_equal_fleets_give_equal_texts() -> None:
    for asked in ASKED:
        assert make(asked, ()).files == make(asked, ()).files


def test_other_addresses_in_use_by_the_fleet_are_avoided(root: Path) -> None:
    asked = Request("koala", Cloud.AWS)
    folder = root / "inventories" / "first"
    text = make(asked, ()).files["cluster.yaml"].replace("name: koala", "name: first")
    new_folder(folder, {"cluster.yaml": text.replace("[10.250.0.0/24]", "[10.2.3.0/24]")})
    assert prepare(asked, root).starter.ranges.pods == IPv4Network("10.3.0.0/16")


def kept_for() -> Iterator[tuple[str, IPv4Network]]:
    for path in (*(ROOT / "examples").glob("*/cluster.yaml"), ROOT / "inventories" / "lab" / "cluster.yaml"):
        (one,), _ = check_paths([path])
        yield from ((one.cluster.name, network) for network in own_ranges.used_ranges([one.cluster]))
    for network in (plan.SERVICES_RANGE, plan.STORE_RANGE, plan.UPLINK_RANGE, own_ranges.OPERATORS):
        yield "the lab's own", network


def test_ranges_of_examples_and_labs_are_reserved() -> None:
    """A copied example clashes with nothing created earlier."""
    wrong = [
        f"{whose} {network}"
        for whose, network in kept_for()
        if not any(network.subnet_of(kept) for kept in own_ranges.KEPT)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Request("lab", Cloud.LAB), "inventories/lab exists and was not changed"),
        (Request("koala", Cloud.AWS, region="useast1"), "did you mean us-east-1"),
        (Request("koala", Cloud.AWS, region="us-west-1"), "doesn't have 3 zones known to offer m7i.large or m6i.large"),
        (Request("koala", Cloud.GCP, region="us-west3", gpu="h200"), "us-west3 has a100-40, b200"),
        (Request("koala", Cloud.AZURE, gpu="v100"), "write one of t4, a100-pcie-80, h100-nvl"),
        (Request("koala", Cloud.AWS, True, gpu="t4"), "no kind of on-prem machines has GPU t4"),
        (Request("koala", Cloud.LAB, gpu="h100"), "a lab has no GPUs"),
        (Request("koala", Cloud.LAB, region="eastus"), "the region of a lab is local"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_alternatives(root: Path, asked: Request, message: str) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(RefusedError, match=message):
        prepare(asked, root)
    assert sorted(root.rglob("*")) == before


def test_a_cluster_that_cannot_be_loaded_blocks_init(root: Path) -> None:
    new_folder(root / "inventories" / "broken", {"cluster.yaml": "name: broken\n"})
    with pytest.raises(RefusedError, match=r"while broken can't be loaded; .*/menagerie check broken"):
        prepare(Request("koala", Cloud.AWS), root)


def test_a_name_that_clashes_with_another_cluster_is_refused_like_in_check(root: Path) -> None:
    """In a project of Google Cloud both would have the same resource names."""
    write(prepare(Request("m9lives", Cloud.GCP), root))
    with pytest.raises(SpecError) as refused:
        prepare(Request("9lives", Cloud.GCP), root)
    assert [(problem.code, problem.file) for problem in refused.value.problems] == [
        ("CFG-017", "inventories/9lives/cluster.yaml")
    ]
    assert not (root / "inventories" / "9lives").exists()


def test_the_first_writer_keeps_the_folder(root: Path) -> None:
    first, second = prepare(Request("koala", Cloud.AWS), root), prepare(Request("koala", Cloud.GCP), root)
    write(first)
    with pytest.raises(FileExistsError):
        write(second)
    assert "cloud: aws" in (first.folder / "cluster.yaml").read_text()
    assert {path.name for path in (root / "inventories").iterdir()} == {"koala", "lab"}


def test_a_full_disk_leaves_nothing_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(Request("koala", Cloud.AWS, True), root)
    monkeypatch.setattr("cluster.writing.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        write(prepared)
    assert {path.name for path in (root / "inventories").iterdir()} == {"lab"}
