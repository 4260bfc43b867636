# Fetch programs that need no unpacking, in parallel.
set -eu
cd /usr/local/bin
# shellcheck disable=SC2086
curl -fsS --parallel --remote-name-all $URLS
chmod 755 ./*
