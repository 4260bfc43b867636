# Start one member of an etcd, without TLS.
set -eu
curl -fsS "$ETCD_URL" | tar -xz -C /usr/local/bin --strip-components=1
systemd-run --quiet --no-block --unit=etcd --property=Type=notify --property=Restart=always \
    etcd --name="$NAME" --data-dir=/var/lib/etcd/data \
    --listen-client-urls="http://$ADDRESS:2379" --advertise-client-urls="http://$ADDRESS:2379" \
    --listen-peer-urls="http://$ADDRESS:2380" --initial-advertise-peer-urls="http://$ADDRESS:2380" \
    --initial-cluster="$MEMBERS" --initial-cluster-state=new
