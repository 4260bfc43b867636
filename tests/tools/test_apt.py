"""Where Debian's archives are, from what apt says of this machine's own."""

from __future__ import annotations

from tools import apt


def test_a_machine_of_an_older_release_has_the_newer_one_in_the_same_archives() -> None:
    listed = "bookworm main http://a/debian/\nbookworm-updates main http://a/debian/\nbookworm-security main http://s/debian-security/\n"
    assert apt.of_release(listed) == (
        ("http://a/debian", "trixie"),
        ("http://a/debian", "trixie-updates"),
        ("http://s/debian-security", "trixie-security"),
    )


def test_archives_of_others_and_components_other_than_main_do_not_count() -> None:
    assert (
        apt.of_release("jammy main http://u/ubuntu/\ntrixie contrib http://a/debian/\nstable main http://n/cuda/\n")
        == ()
    )


def test_the_first_of_two_mirrors_is_taken() -> None:
    listed = "trixie main http://a/debian/\ntrixie main http://b/debian/\n"
    assert apt.of_release(listed) == (("http://a/debian", "trixie"),)


def test_a_source_is_verified_by_debians_own_keys() -> None:
    line = apt.Source("http://a/debian", "trixie").line
    assert line == "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://a/debian trixie main"


def test_an_archive_of_security_updates_is_not_taken_for_the_main_one() -> None:
    listed = "bookworm main http://a/debian/\nbookworm-security main http://s/debian-security/\n"
    assert apt.of_release(listed) == (("http://a/debian", "trixie"), ("http://s/debian-security", "trixie-security"))
