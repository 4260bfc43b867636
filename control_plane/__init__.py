"""What an API-server host is given: `host_config`, one for all of them."""

from control_plane.render import host_config as host_config
