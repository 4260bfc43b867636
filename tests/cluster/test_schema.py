"""The JSON Schema compared with the model it is generated from."""

import json
from pathlib import Path
from typing import Literal

import pytest
import yaml
from jsonschema import Draft202012Validator

from cluster import schema

SPECS = Path(__file__).parents[1] / "specs"
LAB = SPECS.parents[1] / "inventories" / "lab"
CLUSTER = Draft202012Validator(schema.schema("cluster"))
# Codes that only depend on a document's structure.
SHAPE = (
    "CFG-001", "CFG-003", "CFG-004-float", "CFG-005", "CFG-013", "CFG-014", "CFG-015", "CLD-004-taint",
    "ETC-003-not-a-path", "ETC-003-system-folder",
)  # fmt: skip
SHAPED = [path for path in SPECS.glob("invalid-*.yaml") if path.stem.removeprefix("invalid-").startswith(SHAPE)]
# Problems of hosts files, and one that YAML refuses before any schema.
ELSEWHERE = ("-host", "in-hosts", "key-is-a-list")


@pytest.mark.parametrize("of", ["cluster", "hosts"])
def test_the_schema_is_valid(of: Literal["cluster", "hosts"]) -> None:
    Draft202012Validator.check_schema(schema.schema(of))


@pytest.mark.parametrize(
    "path", [LAB / "cluster.yaml", *sorted(SPECS.glob("valid-*.yaml"))], ids=lambda path: path.stem
)
def test_the_schema_accepts_what_the_model_accepts(path: Path) -> None:
    CLUSTER.validate(yaml.safe_load(path.read_text()))


def test_the_schema_accepts_the_lab_s_hosts_file() -> None:
    Draft202012Validator(schema.schema("hosts")).validate(yaml.safe_load((LAB / "hosts.yaml").read_text()))


@pytest.mark.parametrize(
    "path", [path for path in SHAPED if not path.stem.endswith(ELSEWHERE)], ids=lambda path: path.stem
)
def test_the_schema_refuses_structures_that_the_model_refuses(path: Path) -> None:
    text = path.read_text().replace("direct_routing: yes", 'direct_routing: "yes"')
    assert not CLUSTER.is_valid(yaml.safe_load(text))


def test_every_key_is_described() -> None:
    top = schema.schema()
    for name, definition in [("ClusterSpec", top), *top["$defs"].items()]:
        for key, field in definition.get("properties", {}).items():
            referred = field.get("$ref", "").rpartition("/")[2]
            assert field.get("description") or top["$defs"].get(referred, {}).get("description"), f"{name}.{key}"


def test_defaults_are_written_as_an_operator_would() -> None:
    definitions = schema.schema()["$defs"]
    main, events = (definitions[name]["properties"] for name in ("EtcdCluster", "EtcdEvents"))
    assert (main["quota"]["default"], main["election_timeout"]["default"]) == ("8GiB", "1s")
    assert "default" not in main["backup"]
    assert (main["client_port"]["default"], events["data_dir"]["default"]) == (2379, "/var/lib/etcd/events")


def test_the_text_is_json_and_the_same_each_time() -> None:
    assert schema.text() == schema.text()
    assert json.loads(schema.text()) == schema.schema()
