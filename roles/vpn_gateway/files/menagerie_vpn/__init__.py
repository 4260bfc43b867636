"""An edge router's tunnels, for Menagerie's role vpn_gateway. Standard library only, for the host's Python."""
