"""Virtual machine scale sets of Azure."""
