"""Output of several releases of perftest."""

from __future__ import annotations

import pytest

from network.roce.perftest import CONNECT, PerftestError, PerftestResult, command, parse, reason
from tests.roce.support import REFUSED, document, printed

LISTENING = "\n************************************\n* Waiting for client to connect... *\n************************************\n"
OLD = """ Mtu             : 1024[B]
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000           11066.59           11064.77\t\t   0.177036
"""
SIZES = """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 2          1000           0.029629            0.028911            1.806916
 4096       1000             23.08              22.96  \t\t   0.700620
 65536      1000             92.42              92.40  \t\t   0.176244
"""


def test_the_average_the_peak_and_the_mtu_are_read() -> None:
    assert parse(printed(97.66, peak=98.1)) == PerftestResult(97.66, 98.1, 4096)


def test_with_a_duration_there_is_no_peak() -> None:
    assert parse(printed(97.66)) == PerftestResult(97.66, None, 4096)


def test_output_of_the_receiver_before_the_result_does_not_matter() -> None:
    assert parse(LISTENING + printed(97.66)).gbit_s == 97.66


def test_megabytes_are_2_to_the_20() -> None:
    result = parse(OLD)
    assert (round(result.gbit_s, 1), round(result.peak_gbit_s or 0, 1), result.mtu) == (92.8, 92.8, 1024)
    assert parse(OLD.replace("MB/sec", "MiB/sec")) == result


def test_the_last_of_several_sizes_counts() -> None:
    assert parse(SIZES) == PerftestResult(92.4, 92.42, None)


@pytest.mark.parametrize("before", ["", "some warning\n"])
def test_json_is_read_with_the_requested_unit(before: str) -> None:
    assert parse(before + document(97.66)) == PerftestResult(97.66, None, 4096)
    assert round(parse(document(11064.77, mtu=1024), gigabits=False).gbit_s, 1) == 92.8


def test_json_with_a_trailing_comma_or_a_list_of_sizes_is_read() -> None:
    assert parse('{"test_info": {"Mtu": 4096,}, "results": {"BW_average": 97.5,},}').gbit_s == 97.5
    assert parse('{"results": [{"BW_average": 1.5}, {"BW_average": 97.5}]}') == PerftestResult(97.5, None, None)


@pytest.mark.parametrize(
    "text", ['{"results": {}}', '{"results": [', '{"results": {"BW_average": "x"}}', '{"results": []}']
)
def test_json_without_a_result_is_an_error(text: str) -> None:
    with pytest.raises(PerftestError, match="the JSON document has no result"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (REFUSED, "the hosts can't reach each other on TCP port 18515"),
        ("bash: line 1: ib_write_bw: command not found\n", "install perftest"),
        ("timeout: failed to run command 'ib_write_bw': No such file or directory\n", "install perftest"),
        ("IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n", "there is no such RDMA device"),
        (
            " Port number 1 state is Down\n Couldn't set the link layer\n",
            "the port is not active: check cable and switch",
        ),
        ("Failed to modify QP 300 to RTR\n Unable to Connect the HCA's through the link\n", "compare GID index"),
        ("Couldn't allocate MR\n failed to create mr\n", "too little locked memory"),
        (
            " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n",
            "don't arrive",
        ),
        (" Completion with error at client\n Failed status 10: wr_id 0 syndrom 0x88\n", "RDMA failed"),
        ("ethernet_read_keys: Couldn't read remote address\n", "the other end stopped"),
    ],
)
def test_errors_are_reported_with_their_meaning_and_perftests_message(text: str, meaning: str) -> None:
    with pytest.raises(PerftestError) as error:
        parse(text)
    assert meaning in str(error.value)
    assert any(line.strip() in str(error.value) for line in text.splitlines())


def test_the_last_line_of_an_unknown_error_is_reported() -> None:
    assert reason("----\nsomething new\n----\n") == "no result (something new)"
    assert reason("") == "no result and no output"
    assert "no result" in reason(printed(1).split(" #bytes")[0])


def test_only_a_receiver_that_does_not_listen_yet_is_worth_a_retry() -> None:
    assert CONNECT.search(REFUSED)
    assert not CONNECT.search(" Failed status 12: wr_id 0 syndrom 0x81")


def test_packets_get_the_mark_of_the_fabric() -> None:
    words = command("mlx5_0", 1, 3, 106, seconds=5, message=65536, queues=4)
    assert words[:7] == ("ib_write_bw", "-d", "mlx5_0", "-i", "1", "-x", "3")
    assert words[words.index("--tclass") + 1] == "106"
