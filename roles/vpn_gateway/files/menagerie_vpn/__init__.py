"""An edge router's tunnels, for Menagerie's role vpn_gateway. Standard library alone, for the Python that a host has."""
