"""What looks after a cluster from inside it: the program of its pods, their image, their objects, and bringing them about."""
