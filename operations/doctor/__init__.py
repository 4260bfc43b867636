"""Questions before the first `up`: whether the account, its rights, quotas and names, and this machine are ready. Reads only."""
