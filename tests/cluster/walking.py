"""Walk the models of specs, hosts files and people files to find all fields that accept free text."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from cluster.pools import HostsFile
from cluster.spec import ClusterSpec
from controllers.tenancy.directory.files import PeopleFile

# Each field accepts at least one of these.
SAMPLES = (
    *("a", "root", "x-1", "eth1a", "m7i.large", "Ready", "10.8.0.1", "10.8.0.0/24", "1.36.4", "2", "64", "10%", "a.example.org"),
    *("https://a.example.org/b", "ldaps://a.example.org", "http://10.8.0.5:8642", "a.example.org:5000", "/data/etcd", "a.yaml"),
    *("0000:1a:00.0", "nvme-SAMSUNG*", "pci=realloc", "ou=a,dc=b", "(a=b)", "C=US, CN=a b", "f" * 64, "02:00:00:00:00:01"),
    "arn:aws:acm:us-east-1:123456789012:certificate/abc",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICGTXi7fQMqDwQUUn6SciDSEk7spf23+bIK+GcfgbfcT ops@menagerie",
)  # fmt: skip

Leaf = tuple[str, TypeAdapter[Any]]


def leaves(annotation: Any, path: str = "", meta: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """Yield (path, validator) of each field of a model that accepts free text, also as a key and in a list."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from leaves(inner, path, (*meta, *more))
    elif get_origin(annotation) in (Union, types.UnionType):
        for choice in get_args(annotation):
            yield from leaves(choice, path, meta)
    elif get_origin(annotation) is dict:
        key, value = get_args(annotation)
        yield from leaves(key, f"{path}{{key}}")
        yield from leaves(value, f"{path}{{}}")
    elif get_origin(annotation) is tuple:
        yield from leaves(get_args(annotation)[0], f"{path}[]")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            own = [each for each in field.metadata if get_origin(field.annotation) not in (tuple, dict)]
            yield from leaves(field.annotation, f"{path}.{name}", tuple(own))
    elif annotation not in (int, bool, float, type(None)) and not _is_chosen(annotation):
        yield path, TypeAdapter(Annotated[annotation, *meta] if meta else annotation)


def _is_chosen(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum))


LEAVES = dict(each for model in (ClusterSpec, HostsFile, PeopleFile) for each in leaves(model))


def takes(adapter: TypeAdapter[Any], text: str) -> bool:
    try:
        adapter.validate_python(text, strict=True)
    except ValidationError:
        return False
    return True


def changed(annotation: Any, data: Any, change: Callable[[str, str], str], path: str = "") -> Any:
    """Return data of a model with change(path, text) applied to each free text."""
    if get_origin(annotation) is Annotated:
        return changed(get_args(annotation)[0], data, change, path)
    if get_origin(annotation) in (Union, types.UnionType):
        (choice,) = set(get_args(annotation)) - {int, type(None)}
        return changed(choice, data, change, path)
    if get_origin(annotation) is dict:
        key, value = get_args(annotation)
        return {
            changed(key, name, change, f"{path}{{key}}"): changed(value, each, change, f"{path}{{}}")
            for name, each in data.items()
        }
    if get_origin(annotation) is tuple:
        return [changed(get_args(annotation)[0], each, change, f"{path}[]") for each in data]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        return {name: changed(fields[name].annotation, each, change, f"{path}.{name}") for name, each in data.items()}
    return change(path, data) if path in LEAVES and isinstance(data, str) else data
