from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from cluster.disk_names import names_no_model, parser


@pytest.mark.parametrize("name", ["nvme-Micron_7450*", "wwn-0x5000c500a1b2c3d4", "*", "ata-ST4000?M*", "dm-name-a.b"])
def test_names_from_udev_are_accepted_with_wildcards(name: str) -> None:
    assert parser("CPH-005")(name) == name


@pytest.mark.parametrize("name", ["", "-x", ".x", "/dev/sdb", "nvme Micron", "nvme-$(reboot)", "nvme-[ab]", "a\n"])
@pytest.mark.parametrize("code", ["CPH-005", "PRV-003"])
def test_an_invalid_name_is_refused_with_the_code_of_its_field(name: str, code: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parser(code)(name)
    assert refused.value.type == code
    assert repr(name) in refused.value.message()


@pytest.mark.parametrize(
    ("name", "every"),
    [("nvme-*", True), ("*", True), ("scsi-0x*", True), ("mmc-*", True), ("nvme-Micron*", False), ("nvme-a", False)],
)
def test_a_wildcard_after_little_more_than_the_bus_matches_every_disk(name: str, every: bool) -> None:
    assert names_no_model(name) is every
