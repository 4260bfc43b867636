"""menagerie-apply SHA256: change this running host to another payload, which its store must assign to it.

menagerie-boot applies the payload as at a boot. Then menagerie-apply stops units that the payload no longer lists,
restarts units that are older than their files, and removes files that only former payloads had. A former payload on the
disk marks an interrupted run; the next run completes it. An etcd restarts only while no other host restarts one.
"""
