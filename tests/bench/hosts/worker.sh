# Install a container runtime, and what kubeadm join will start.
set -eu
mkdir -p /opt/cni/bin /etc/containerd /etc/kube-flannel
curl -fsS "$CONTAINERD_URL" | tar -xz -C /usr/local &
curl -fsS "$CNI_URL" | tar -xz -C /opt/cni/bin &
cd /usr/local/bin
curl -fsS --parallel -o runc "$RUNC_URL" -o kubelet "$KUBELET_URL" -o kubeadm "$KUBEADM_URL" -o flanneld "$FLANNELD_URL"
chmod 755 runc kubelet kubeadm flanneld
wait
printf '%s\n' "$NET_CONF" > /etc/kube-flannel/net-conf.json
sysctl -qw net.ipv4.ip_forward=1
cat > /etc/containerd/config.toml <<'TOML'
version = 3
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
TOML
cat > /etc/systemd/system/kubelet.service <<'UNIT'
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
    --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=1
UNIT
systemctl daemon-reload
systemd-run --quiet --unit=containerd --property=Type=notify --property=Delegate=yes containerd
