"""Programs that are copied to control-plane hosts. Standard library only."""
