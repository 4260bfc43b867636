"""Configuration of workers, at a site and in the region."""

from components.workers.render import host_config as host_config
