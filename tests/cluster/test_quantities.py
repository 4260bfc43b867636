"""Sizes, durations, ranges and names: written, read, written again."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from cluster.quantities import (
    format_bytes,
    format_duration_ms,
    parse_address,
    parse_bytes,
    parse_data_dir,
    parse_duration_ms,
    parse_name,
    parse_network,
)


@given(st.integers(0, 2**60))
def test_a_size_is_read_back_as_it_was_written(value: int) -> None:
    assert parse_bytes(format_bytes(value)) == value


@given(st.integers(0, 10**15))
def test_a_duration_is_read_back_as_it_was_written(value: int) -> None:
    assert parse_duration_ms(format_duration_ms(value)) == value


@pytest.mark.parametrize("text", ["8GB", "8 gib", "-1GiB", "1.5GiB", "GiB", "8GiB ", "٨GiB", True, None, 8])
def test_what_is_not_a_size_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parse_bytes(text)
    assert refused.value.type == "CFG-003"


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_a_range_is_accepted_only_without_host_bits(address: int, prefix: int) -> None:
    network = IPv4Network((address, prefix), strict=False)
    assert parse_network(str(network)) == network
    text = f"{IPv4Network(address).network_address}/{prefix}"
    if text != str(network):
        with pytest.raises(PydanticCustomError, match="has host bits set") as refused:
            parse_network(text)
        assert refused.value.context is not None
        assert refused.value.context["meant"] == str(network)


@pytest.mark.parametrize("text", ["010.0.0.1", "10.0.0.01", "10.0.0", "10.0.0.256", "a", "", 1, None])
def test_what_is_not_an_address_is_refused(text: object) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parse_address(text)
    assert refused.value.type == "NET-003"


@given(st.text(max_size=80))
def test_a_refused_name_comes_with_a_valid_suggestion(text: str) -> None:
    try:
        assert parse_name(text) == text
    except PydanticCustomError as refused:
        assert refused.context is not None
        suggested = refused.context["hint"].removeprefix("write ")
        assert parse_name(suggested) == suggested


FOLDERS = [
    "/",
    "/usr",
    "data/etcd",
    "/my disk/etcd",
    "/var/../etc",
    "/data/etcd/",
    "/a/b%c",
    "/data//etcd",
    "/data/etcd\n",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_data_folder_that_others_may_use_is_refused(folder: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parse_data_dir(folder)
    assert refused.value.type == "ETC-003"


def test_a_plain_separate_folder_is_accepted() -> None:
    assert parse_data_dir("/mnt/nvme0/etcd-1.d") == "/mnt/nvme0/etcd-1.d"
