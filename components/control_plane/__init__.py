"""What a host of API servers is given: units, flags, manifests, certificates; in `host/` the programs on it."""

from components.control_plane.render import host_config as host_config
