"""Finding, reading and returning specs."""

import difflib
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from cluster.check import check
from cluster.document import parse
from cluster.fields import MOST_COMPARED, few_guesses, near
from cluster.load import SpecError, check_paths, clusters, find_cluster, load, load_cluster
from cluster.problems import MOST_SHOWN, Problem

SPECS = Path(__file__).parents[1] / "specs"
ROOT = SPECS.parents[1]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def only(path: Path) -> Problem:
    with pytest.raises(SpecError) as refused:
        load_cluster(path)
    (problem,) = refused.value.problems
    return problem


def test_a_cluster_has_its_hosts_in_the_order_of_the_file() -> None:
    cluster = load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")
    assert [host.name for host in cluster.hosts["workers"]] == ["worker-1", "worker-2", "worker-3"]
    assert cluster.spec.network.pods == IPv4Network("10.200.0.0/16")


def test_a_host_keeps_its_position_if_one_before_it_is_left_out(tmp_path: Path) -> None:
    spec = (SPECS / "valid-onprem.yaml").read_text()
    hosts = (SPECS / "hosts-jaguar.yaml").read_text().replace("gpu-001", "GPU-001").replace("10.8.1.11", "10.7.1.11")
    write(tmp_path / "hosts-jaguar.yaml", hosts)
    _, problems = check_paths([write(tmp_path / "cluster.yaml", spec)])
    assert [(p.code, p.line, p.path) for p in problems] == [
        ("CFG-005", 3, "hosts[0].name"),
        ("INV-005", 5, "hosts[2].address"),
    ]


def test_all_stages_of_all_files_report_in_one_run(tmp_path: Path) -> None:
    spec = (SPECS / "valid-onprem.yaml").read_text()
    spec = (
        spec.replace("members: 5", "members: 4").replace("pods:", "pod_cidr:").replace("10.32.0.0/16", "10.64.0.0/16")
    )
    spec = spec.replace("members: 3", 'members: "3"').replace("region: eastus2", "region: eastus2\n  region: westus")
    hosts = (SPECS / "hosts-jaguar.yaml").read_text().replace("10.8.0.12", "10.8.0.012").replace("aa:bb:01", "aa:bb")
    write(tmp_path / "hosts-jaguar.yaml", hosts)
    _, problems = check_paths([write(tmp_path / "cluster.yaml", spec)])
    assert {p.code for p in problems} == {"CFG-001", "CFG-002", "CFG-003", "ETC-001", "NET-001", "NET-003", "INV-002"}
    assert [(p.file, p.line) for p in problems] == sorted((p.file, p.line) for p in problems)


def test_a_value_that_was_left_out_is_not_checked(tmp_path: Path) -> None:
    """Its default would be reported: the quota falls back to 8GiB, which is above disk_size."""
    spec = (
        (SPECS / "valid-smallest.yaml")
        .read_text()
        .replace("main: {machine: lab-small}", "main: {machine: lab-small, quota: 3GB, disk_size: 4GiB}")
    )
    _, problems = check_paths([write(tmp_path / "cluster.yaml", spec)])
    assert {problem.code for problem in problems} == {"CFG-003", "CFG-019"}


def test_a_cluster_with_warnings_is_loaded() -> None:
    loaded = load(SPECS / "invalid-NET-008-docker.yaml")
    assert [(problem.code, problem.severity) for problem in loaded.warnings] == [("NET-008", "warning")]


def test_positions_point_to_either_file() -> None:
    loaded = load(SPECS / "valid-onprem.yaml")
    spec, host = (
        loaded.positions.mark(("network", "pods")),
        loaded.positions.mark(("pools", "gpu", "hosts", 2, "address")),
    )
    assert (Path(spec.file).name, spec.line, spec.column, spec.path) == ("valid-onprem.yaml", 23, 9, "network.pods")
    assert (Path(host.file).name, host.line, host.path) == ("hosts-jaguar.yaml", 5, "hosts[2].address")


def test_a_default_has_the_position_of_its_parent() -> None:
    mark = load(SPECS / "valid-onprem.yaml").positions.mark(("network", "flannel", "vni"))
    assert (mark.line, mark.column) == (26, 12)


def test_a_cluster_without_a_file_is_reported_by_name() -> None:
    loaded = load(SPECS / "invalid-NET-008-docker.yaml")
    (problem,) = check(loaded.cluster)
    assert str(problem).startswith("jaguar: warning[NET-008] network.services 172.17.0.0/16")


def test_two_clusters_are_compared_without_files() -> None:
    one = load_cluster(SPECS / "valid-onprem.yaml")
    assert {problem.code for problem in check(one, [one])} == {"NET-001", "CFG-017", "INV-001"}


def test_the_same_file_given_twice_is_one_cluster() -> None:
    path = SPECS / "valid-onprem.yaml"
    loaded, problems = check_paths([path, path.parent / ".." / "specs" / path.name])
    assert (len(loaded), problems) == (1, [])


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (b"name: \xff\n", "CFG-010", 1),
        ("a: 1\nb: ä\n".encode("utf-16"), "CFG-010", 1),
        (b"name: a\nb: \x01\n", "CFG-011", 2),
        ("a: [1,\n", "CFG-011", 2),
        ("a: " + "[" * 200_000 + "]" * 200_000, "CFG-011", 1),
        ("a:\n" + "- " * 200_000 + "1", "CFG-011", 2),
        ("a: " + "[1,[" * 500 + "]]" * 500, "CFG-011", 1),
        ("", "CFG-012", 1),
        ("# only a comment\n", "CFG-012", 1),
        ("jaguar\n", "CFG-012", 1),
        ("a: [&a [1,1,1,1,1,1,1,1,1], &b [" + "*a," * 9 + "]]\n" + "\n", "CFG-012", 1),
    ],
)
def test_a_file_that_is_not_a_spec_gives_a_problem(tmp_path: Path, text: str | bytes, code: str, line: int) -> None:
    _, problems = check_paths([write(tmp_path / "cluster.yaml", text)])
    assert (problems[0].code, problems[0].line) == (code, line)


def test_aliases_that_expand_to_billions_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    document = parse("l0: &l0 [1, 1]\n" + "\n".join(levels), "bomb.yaml")
    assert [problem.code for problem in document.problems] == ["CFG-011"]


def test_only_the_first_of_thousands_of_unknown_keys_get_suggestions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suggestion compares a word with all known ones, and people only read twenty problems. Counts stay right."""
    compared: list[str] = []

    def count(word: str, known: list[str], **how: float) -> list[str]:
        compared.extend(known)
        return known[:1]

    monkeypatch.setattr(difflib, "get_close_matches", count)
    keys = "".join(f"  pod{number}: 1\n" for number in range(9000))
    path = tmp_path / "cluster.yaml"
    path.write_text((SPECS / "valid-onprem.yaml").read_text().replace("network:\n", f"network:\n{keys}"))
    _, problems = check_paths([path])
    unknown = [problem for problem in problems if problem.code == "CFG-001"]
    assert len(unknown) == 9000
    assert all("did you mean" in problem.message for problem in unknown[:MOST_SHOWN])
    assert len(compared) <= MOST_COMPARED


def test_suggestions_are_unlimited_outside_a_report() -> None:
    known = [f"pod{number}" for number in range(100)]
    with few_guesses():
        assert [bool(near("pods", known)) for _ in range(MOST_COMPARED // 100 + 1)][-2:] == [True, False]
    assert near("pods", known)


def test_a_hosts_file_belongs_to_one_pool(tmp_path: Path) -> None:
    """Each pool's file is read and compared separately, so five thousand pools with the same file took five thousand reads."""
    (tmp_path / "hosts.yaml").write_text("hosts: [{name: gpu-1, rack: r1, address: 10.8.0.5}]\n")
    path = tmp_path / "cluster.yaml"
    pools = "pools:\n  a: {site: sjc1, hosts: hosts.yaml}\n  b: {site: sjc1, hosts: ./hosts.yaml}\n"
    path.write_text((SPECS / "valid-onprem.yaml").read_text().partition("pools:\n")[0] + pools)
    _, problems = check_paths([path])
    assert [(problem.code, problem.path) for problem in problems if problem.is_error] == [("INV-001", "pools.b.hosts")]


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    path = write(tmp_path / "cluster.yaml", b"\xef\xbb\xbf" + (SPECS / "valid-smallest.yaml").read_bytes())
    assert load_cluster(path).name == "koala"


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", "yes"), ("10:20:30", "10:20:30"), ("0o17", 15), ("017", 17), ("1_000", "1_000"),
     ("2024-01-01", "2024-01-01"),
     ("True", True), ("~", None), ("1e3", 1000.0), ("!!str 1", "1"), ("0x1F", 31)],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    scalar = parse(f"a: {text}", "a.yaml").data["a"]
    assert (type(scalar), scalar) == (type(value), value)


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    assert only(tmp_path / "cluster.yaml").message == "there is no such file"


def test_a_folder_is_not_a_spec(tmp_path: Path) -> None:
    assert only(tmp_path).code == "CFG-010"


def test_a_cluster_is_found_by_name_folder_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "inventories" / "jaguar" / "cluster.yaml", "")
    monkeypatch.chdir(tmp_path)
    assert find_cluster("jaguar", tmp_path) == path
    assert find_cluster("inventories/jaguar", tmp_path).resolve() == path
    assert find_cluster(str(path), tmp_path) == path
    assert clusters(tmp_path) == ["jaguar"]


def test_a_folder_with_the_name_of_a_cluster_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "inventories" / "lab" / "cluster.yaml", "")
    (tmp_path / "lab").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_cluster("lab", tmp_path) == path


def test_an_unknown_cluster_suggests_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "inventories" / "jaguar" / "cluster.yaml", "")
    with pytest.raises(SpecError, match="there is no cluster jagaur; did you mean jaguar") as refused:
        find_cluster("jagaur", tmp_path)
    assert refused.value.problems[0].code == "CFG-016"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("jagaur", "inventories/jagaur/cluster.yaml"),
        ("inventories/jagaur", "inventories/jagaur/cluster.yaml"),
        ("inventories/jagaur/", "inventories/jagaur/cluster.yaml"),
        ("/elsewhere/jagaur", "/elsewhere/jagaur/cluster.yaml"),
    ],
)
def test_a_path_without_a_cluster_is_reported_as_given(tmp_path: Path, name: str, file: str) -> None:
    write(tmp_path / "inventories" / "jaguar" / "cluster.yaml", "")
    with pytest.raises(SpecError, match="did you mean jaguar") as refused:
        find_cluster(name, tmp_path)
    assert (refused.value.problems[0].file, refused.value.problems[0].hint) == (file, "write jaguar")


@pytest.mark.parametrize("name", ["", "..", "no/such", "x" * 300])
def test_any_name_without_a_cluster_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError):
        load_cluster(find_cluster(name, tmp_path))


def test_a_name_that_differs_from_the_folder_is_refused(tmp_path: Path) -> None:
    text = (SPECS / "valid-smallest.yaml").read_text()
    problem = only(write(tmp_path / "inventories" / "kiwi" / "cluster.yaml", text))
    assert (problem.code, problem.hint) == ("CFG-017", "write kiwi, or rename the folder to koala")


def test_problems_of_a_hosts_file_name_that_file(tmp_path: Path) -> None:
    write(tmp_path / "hosts-jaguar.yaml", "hosts: {}\n")
    problem = only(write(tmp_path / "cluster.yaml", (SPECS / "valid-onprem.yaml").read_bytes()))
    assert problem.file.endswith("hosts-jaguar.yaml")
    assert problem.message == "hosts is a mapping, but must be a list"


def test_thousands_of_hosts_are_loaded_and_compared(tmp_path: Path) -> None:
    machine = "  - {{name: gpu-{0:04}, rack: r{1}, address: 10.8.{1}.{2}}}\n"
    hosts = "hosts:\n" + "".join(machine.format(n, n % 20, 10 + n // 20) for n in range(2500))
    racks = ", ".join(f"r{n}: 10.8.{n}.0/24" for n in range(20))
    spec = (SPECS / "valid-onprem.yaml").read_text().replace("r1: 10.8.0.0/24, r2: 10.8.1.0/24", racks)
    write(tmp_path / "hosts-jaguar.yaml", hosts + machine.format(9999, 0, 10))
    problem = only(write(tmp_path / "cluster.yaml", spec))
    assert problem.message == "10.8.0.10 is given to gpu-0000 (line 2) and gpu-9999 (line 2502)"
