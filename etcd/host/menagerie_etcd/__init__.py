"""Programs of an etcd host: backups, drills, and actions on members that gRPC does not offer."""
