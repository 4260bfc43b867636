"""What looks after a cluster without an operator: controllers, their image, their objects and rights."""
