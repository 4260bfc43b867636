"""An API-server host: units, flags, manifests, certificates, and the programs that run there, such as the audit-log shipper."""

from components.control_plane.render import host_config as host_config
