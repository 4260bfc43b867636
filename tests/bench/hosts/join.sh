# Join as a node, then start flannel and its pod network.
set -eu
printf '%s\n' "$DISCOVERY" > /run/discovery.conf
until curl -fsk -o /dev/null "https://$ENDPOINT:6443/readyz"; do sleep 0.2; done
kubeadm join --discovery-file /run/discovery.conf --tls-bootstrap-token "$TOKEN" \
    --ignore-preflight-errors=Swap,SystemVerification
systemd-run --quiet --unit=flanneld --property=Restart=always --property=RestartSec=1 --setenv=NODE_NAME="$NAME" \
    flanneld --kube-subnet-mgr --kubeconfig-file=/etc/kubernetes/kubelet.conf \
    --net-config-path=/etc/kube-flannel/net-conf.json --iface="$ADDRESS" --ip-masq
until [ -e /run/flannel/subnet.env ]; do sleep 0.1; done
. /run/flannel/subnet.env
mkdir -p /etc/cni/net.d
cat > /etc/cni/net.d/10-flannel.conflist <<CNI
{"cniVersion": "1.0.0", "name": "flannel", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true, "mtu": $FLANNEL_MTU,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$FLANNEL_SUBNET"}]],
            "routes": [{"dst": "$FLANNEL_NETWORK"}]}}]}
CNI
