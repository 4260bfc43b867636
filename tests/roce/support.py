"""A simulated fabric: hosts that answer like `menagerie-roce facts` and ib_write_bw.

Texts are perftest's (perftest_parameters.h, perftest_communication.c, and outputs in "To Spray or Not to Spray", Juniper
2023); none was recorded on real hardware.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clients.remote.executor import Done
from cluster.pools import Host
from cluster.roce import Device, Roce
from cluster.spec import Cluster
from network.roce import wire

LINE = "-" * 87


def printed(gbit_s: float, *, mtu: int = 4096, message: int = 65536, peak: float = 0.0) -> str:
    """Return the output of ib_write_bw with --report_gbits on the sender."""
    return f"""{LINE}
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 4\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : ON
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : {mtu}[B]
 Link type       : Ethernet
 GID index       : 3
 Max inline data : 0[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
{LINE}
 local address: LID 0000 QPN 0x0121 PSN 0xc97e49 RKey 0x202f00 VAddr 0x007ff87e05f000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:02:02
 remote address: LID 0000 QPN 0x011f PSN 0xf1eb2 RKey 0x202f00 VAddr 0x007f4dcc873000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:01:02
{LINE}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 {message:<7}    {931000:<10}       {peak:<7.2f}            {gbit_s:<7.2f}\t\t   0.186272
{LINE}
"""


def document(average: float, *, mtu: int = 4096) -> str:
    """Return the document that --out_json writes."""
    return json.dumps(
        {
            "test_info": {"test": "RDMA_Write_BW_Test", "Device": "mlx5_0", "Mtu": mtu, "Link_type": "Ethernet"},
            "results": {"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 0.0, "BW_average": average, "MsgRate": 0.18},
        }
    )


REFUSED = "Couldn't connect to 10.6.0.1:18515\n Unable to open file descriptor for socket connection\n"


def fabric(build: Callable[..., Cluster], hosts: int = 4, rails: int = 1, **roce: object) -> Cluster:
    """Return the lab's cluster with hosts h1 … at a separate site, in Azure because a lab has no RDMA."""
    names = [f"rail-{number}" for number in range(rails)]
    ports = {name: Device(interface=f"ens{number}") for number, name in enumerate(names)}
    model = Roce.model_validate({"rails": {"gpu": ports}, **roce})
    changes = {
        "name": "kestrel",
        "sites": {"sjc1": {"racks": {"r1": "10.6.0.0/16"}, "roce": model.model_dump(mode="json")}, "onprem": None},
        "pools": {"gpu": {"site": "sjc1", "hosts": "hosts.yaml"}, "workers": None, "region": None},
    }
    machines = tuple(
        Host.model_validate({"name": f"h{number}", "rack": "r1", "address": f"10.6.{number // 250}.{number % 250 + 1}"})
        for number in range(1, hosts + 1)
    )
    return build(changes, {"gpu": machines})


@dataclass
class Fabric:
    """An executor. share(rail, sender, receiver): share of the line, or text that perftest prints instead of a result.

    faults: host -> its facts instead of the usual ones. refuse: how often each sender fails to connect first.
    """

    share: Callable[[str, str, str], float | str] = lambda *_: wire.limit(4096)
    gbit_s: int = 100
    rails: int = 1
    faults: dict[str, Done] = field(default_factory=dict)
    refuse: int = 0
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    most_busy: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: dict[str, int] = {}

    def start(self, host: str, words: Sequence[str]) -> _Running:
        with self._lock:
            self.calls.append((host, tuple(words)))
        if words[-1] == "facts":
            return _Running(lambda: self.faults.get(host) or Done(0, json.dumps(self._facts())))
        receives = words[-1] == "--report_gbits"
        with self._lock:
            assert host not in self.busy or not receives, f"{host} is in two pairs at once"
            if receives:
                self.busy.add(host)
                self.most_busy = max(self.most_busy, len(self.busy))
        if receives:
            return _Running(lambda: Done(124, ""), lambda: self._end(host))
        return _Running(lambda: self._sent(host, words))

    def _end(self, host: str) -> None:
        with self._lock:
            self.busy.discard(host)

    def _facts(self) -> dict[str, object]:
        return {
            f"rail-{number}": {
                "interface": f"ens{number}", "rdma": f"mlx5_{number}", "port": 1, "gid_index": 3,
                "gbit_s": self.gbit_s, "mtu": 4096, "state": "ACTIVE",
            }
            for number in range(self.rails)
        }  # fmt: skip

    def _sent(self, sender: str, words: Sequence[str]) -> Done:
        with self._lock:
            tries = self._refused[sender] = self._refused.get(sender, 0) + 1
        if tries <= self.refuse:
            return Done(1, REFUSED)
        high, low = words[-1].split(".")[2:]
        rail = f"rail-{words[words.index('-d') + 1].removeprefix('mlx5_')}"
        share = self.share(rail, sender, f"h{int(high) * 250 + int(low) - 1}")
        if isinstance(share, str):
            return Done(1, share)
        return Done(0, printed(share * self.gbit_s))


class _Running:
    def __init__(self, done: Callable[[], Done], end: Callable[[], None] = lambda: None) -> None:
        self._done, self._end = done, end

    def wait(self, timeout_s: float) -> Done:
        return self._done()

    def stop(self) -> None:
        self._end()
