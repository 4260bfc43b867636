"""Any bytes and any values: `check` exits with 0 or 2, with messages, within 1 GB and 10 s of CPU time.

The examples are always the same; `make soak` tries MENAGERIE_FUZZ others per test, from a seed that it prints and that
MENAGERIE_FUZZ_SEED repeats.
"""

from __future__ import annotations

import copy
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cluster import schema
from tests.forked import GIB, forked

SPECS = Path(__file__).parents[1] / "specs"
TEXTS = {path.stem: path.read_text() for path in sorted(SPECS.glob("valid-*.yaml"))}
HOSTS = (SPECS / "hosts-jaguar.yaml").read_text()
_SOAK = int(os.environ.get("MENAGERIE_FUZZ") or 0)
_SEED = int(os.environ.get("MENAGERIE_FUZZ_SEED") or secrets.randbelow(2**32))
_settings = settings(
    max_examples=_SOAK or 12,
    derandomize=not _SOAK,
    database=None,
    deadline=None,
    print_blob=True,
    phases=[Phase.generate],  # each example is a batch; the failing file is in the message
    suppress_health_check=list(HealthCheck),
)


def some(test: Any) -> Any:
    """Use the same examples each time, or others from the seed."""
    if not _SOAK:
        return _settings(test)
    print(f"MENAGERIE_FUZZ_SEED={_SEED}", flush=True)
    return seed(_SEED)(_settings(test))


_WORDS = ["", "x", "1", "-1", "true", "null", "10.8.0.0/16", "::/0", "8GiB", "15m", "../..", "/dev/zero", "{{ x }}", "\x1b[0m", "\u202e",
          "a" * 300, "*", "&a", "!x", "\0"]  # fmt: skip
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS) | st.text(max_size=8)
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def _of(part: dict[str, Any], definitions: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:  # noqa: C901
    """Return values that a part of the JSON Schema accepts, and some that it doesn't."""
    if "$ref" in part:
        return _of(definitions[part["$ref"].rpartition("/")[2]], definitions, depth)
    if "enum" in part or "const" in part:
        return st.sampled_from(part.get("enum") or [part["const"]])
    if "anyOf" in part:
        return st.one_of([_of(each, definitions, depth) for each in part["anyOf"]])
    known = [part["default"]] if "default" in part else []
    known += part.get("examples", [])
    match part.get("type"):
        case "object" if "properties" in part:
            needed = set(part.get("required", ()))
            keys = {
                key: st.deferred(lambda inner=inner: _of(inner, definitions, depth + 1))
                for key, inner in part["properties"].items()
            }
            return st.fixed_dictionaries(
                {key: keys[key] for key in keys if key in needed},
                optional={key: keys[key] for key in keys if key not in needed} if depth < 4 else {},
            )
        case "object":
            inner = part.get("additionalProperties") or next(iter(part.get("patternProperties", {}).values()), {})
            values = _of(inner, definitions, depth + 1) if isinstance(inner, dict) and inner else _scalars
            return st.dictionaries(st.sampled_from(["a", "gpu", "r1", "sjc1", "ens1f0"]), values, max_size=3)
        case "array":
            return st.lists(_of(part.get("items", {}), definitions, depth + 1), max_size=3)
        case "integer":
            return st.integers(part.get("minimum", -2), part.get("maximum", 70_000)) | st.sampled_from(known or [0])
        case "number":
            return st.floats(part.get("minimum"), part.get("maximum")) | st.sampled_from(known or [0.5])
        case "boolean":
            return st.booleans()
        case "string":
            shaped = [st.from_regex(part["pattern"], fullmatch=True)] if "pattern" in part else []
            return st.one_of(*shaped, st.sampled_from([*known, "10.8.0.0/24", "10.8.0.9", "jaguar"]))
    return _scalars


def _drawn(of: Any) -> st.SearchStrategy[Any]:
    root = schema.schema(of)
    return _of(root, root["$defs"])


def _places(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*prefix, key)
        yield from _places(inner, (*prefix, key))


@st.composite
def _changed(draw: st.DrawFn) -> bytes:
    """A valid spec with some values replaced by arbitrary ones."""
    data = yaml.safe_load(TEXTS[draw(st.sampled_from(sorted(TEXTS)))])
    for _ in range(draw(st.integers(1, 4))):
        changed = copy.deepcopy(data)
        place = draw(st.sampled_from(list(_places(data))))
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = draw(_trees)
        data = changed
    return _dumped(data)


@st.composite
def _broken(draw: st.DrawFn) -> bytes:
    """The bytes of a valid file with pieces removed, repeated, swapped or overwritten."""
    data = bytearray(draw(st.sampled_from([*TEXTS.values(), HOSTS])).encode())
    for _ in range(draw(st.integers(1, 5))):
        at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        piece = draw(
            st.binary(max_size=6)
            | st.sampled_from(
                [bytes(data[at:end]), b"- ", b"[", b"{", b"&a ", b"*a", b"\t", b": ", b"---\n", b"? ", b"|\n", b"'"]
            )
        )
        data[at : draw(st.sampled_from([at, end]))] = piece * draw(st.sampled_from([1, 1, 1, 200]))
    return bytes(data)


def _dumped(data: Any) -> bytes:
    try:
        return yaml.dump(data, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=False).encode(
            "utf-8", "surrogatepass"
        )
    except yaml.YAMLError:
        return repr(data).encode("utf-8", "surrogatepass")


def _tried(folder: Path, files: list[tuple[bytes, bytes]]) -> None:
    """Check all in a child process; if that fails, each alone to find the failing one."""
    if (ended := _child(folder, files)) is not None and len(files) > 1:
        for one in files:
            _tried(folder, [one])
        raise AssertionError(f"only together: {ended}")
    assert ended is None, f"{ended}\ncluster.yaml: {files[0][0][:4000]!r}\nhosts: {files[0][1][:2000]!r}"


def _child(folder: Path, files: list[tuple[bytes, bytes]]) -> str | None:
    from cli.running import run

    def work() -> int:
        for spec, hosts in files:
            (folder / "cluster.yaml").write_bytes(spec)
            for name in ("hosts-jaguar.yaml", "hosts.yaml"):
                (folder / name).write_bytes(hosts)
            for words in (("check", str(folder / "cluster.yaml")), ("check", str(folder / "cluster.yaml"), "--json")):
                code = run(words)
                if code not in (0, 2):
                    return code
        return 0

    ended = forked(work, cpu_s=10 if len(files) == 1 else 60, memory=GIB, wall_s=600)
    defect = re.search(r"Traceback|this is a bug", ended.text)
    control = sorted({c for c in ended.text if c != "\n" and not c.isprintable()})
    if ended.code == 0 and not defect and not control:
        return None
    return f"ended with {ended.code}, {ended.cpu_s:.1f} s, {ended.peak >> 20} MiB: {control} {ended.text[-3000:]}"


_hosts = st.just(HOSTS.encode()) | _drawn("hosts").map(_dumped) | st.binary(max_size=60)


@some
@given(files=st.lists(st.tuples(_drawn("cluster").map(_dumped), _hosts), min_size=5, max_size=5))
def test_check_handles_any_spec_that_matches_the_schema(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[bytes, bytes]]
) -> None:
    _tried(tmp_path_factory.mktemp("spec"), files)


@some
@given(files=st.lists(st.tuples(_changed(), st.just(HOSTS.encode())), min_size=5, max_size=5))
def test_check_handles_any_value_in_a_valid_spec(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[bytes, bytes]]
) -> None:
    _tried(tmp_path_factory.mktemp("spec"), files)


@some
@given(files=st.lists(st.tuples(_broken() | st.binary(max_size=80), _broken()), min_size=8, max_size=8))
def test_check_handles_any_bytes(tmp_path_factory: pytest.TempPathFactory, files: list[tuple[bytes, bytes]]) -> None:
    _tried(tmp_path_factory.mktemp("spec"), files)
