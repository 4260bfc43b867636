"""Configuration of an API-server host: units, flags, manifests, certificates. `host/` has the programs that run there."""

from components.control_plane.render import host_config as host_config
