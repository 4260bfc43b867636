"""What an etcd host does for its members beside running them: backups and drills, and what gRPC can't do to a member."""
