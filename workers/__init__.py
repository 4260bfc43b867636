"""Workers: what every one of them is told, and what one in the region is given at boot."""

from workers.render import host_config as host_config
