"""What a bring-up costs, measured against the same cluster made by hand; and a soak of faults."""
