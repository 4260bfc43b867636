from __future__ import annotations

import os

import pytest


def entry(path, own, text="new\n", mode="0640"):
    return {"path": str(path), "text": text, "mode": mode, "owner": own, "block": False}


def test_a_file_is_replaced_in_one_step_with_its_mode(host, tmp_path, own):
    path = tmp_path / "deep" / "file"
    ((name, before, after, _),) = host("files").changes([entry(path, own)], [])
    assert (name, before) == (str(path), host("files").ABSENT)
    host("files").place(name, after)
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert os.listdir(path.parent) == ["file"]


def test_a_correct_file_is_left_alone(host, tmp_path, own):
    path = tmp_path / "file"
    host("files").place(str(path), host("files").desired("new\n", "0640", own))
    assert host("files").changes([entry(path, own)], [str(tmp_path / "gone")]) == []


@pytest.mark.parametrize("wrong", [{"text": "other\n"}, {"mode": "0600"}])
def test_content_and_mode_both_count(host, tmp_path, own, wrong):
    path = tmp_path / "file"
    host("files").place(str(path), host("files").desired("new\n", "0640", own))
    assert len(host("files").changes([entry(path, own, **wrong)], [])) == 1


def test_a_link_is_replaced_and_its_target_kept(host, tmp_path, own):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("keep")
    link.symlink_to(victim)
    ((name, _, after, _),) = host("files").changes([entry(link, own)], [])
    host("files").place(name, after)
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("keep", "new\n", False)


def test_the_difference_shows_both_texts_and_modes(host, tmp_path, own):
    path = tmp_path / "file"
    path.write_text("old\n")
    diff = host("files").difference(host("files").changes([entry(path, own)], [])[0])
    assert (diff["before"], diff["after"]) == ("old\n", "new\n")
    assert "(0640" in diff["after_header"]


def test_a_block_is_placed_once_at_the_head_and_the_rest_is_kept(host, tmp_path, own):
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    for text in ("10.0.0.1 w1", "10.0.0.2 w1"):
        block = {**entry(path, own, text, "0644"), "block": True}
        host("files").apply(host("files").changes([block], []))
        assert host("files").changes([block], []) == []
    assert path.read_text() == "# BEGIN menagerie\n10.0.0.2 w1\n# END menagerie\n127.0.0.1 localhost\n"


def test_a_block_in_a_missing_file_is_the_whole_file(host, tmp_path, own):
    (change,) = host("files").changes([{**entry(tmp_path / "new", own, "a"), "block": True}], [])
    assert change.after.content == b"# BEGIN menagerie\na\n# END menagerie\n"


def test_an_unknown_owner_is_refused_by_name(host, tmp_path):
    with pytest.raises(host("files").Refused, match="no owner nobody-here:root"):
        host("files").changes([entry(tmp_path / "x", "nobody-here:root")], [])


def test_a_file_that_can_not_be_written_is_named(host, tmp_path, own):
    (tmp_path / "file").touch()
    with pytest.raises(host("files").Refused, match="file/below can't be written"):
        host("files").apply(host("files").changes([entry(tmp_path / "file" / "below", own)], []))
