"""Programs that collect how hosts are set up. Each is one file without dependencies."""
