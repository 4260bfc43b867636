# Create this host's certificates and kubeconfigs. AUTHORITIES: the first host's authorities, "" on the first host.
set -eu
mkdir -p /etc/kubernetes/pki
printf '%s\n' "$CONFIG" > /etc/kubernetes/kubeadm.yaml
if [ -n "$AUTHORITIES" ]; then
    printf %s "$AUTHORITIES" | base64 -d | tar -xz -C /etc/kubernetes/pki
fi
kubeadm init phase certs all --config /etc/kubernetes/kubeadm.yaml >&2
for name in super-admin controller-manager scheduler; do
    kubeadm init phase kubeconfig "$name" --config /etc/kubernetes/kubeadm.yaml >&2
done
cd /etc/kubernetes/pki
tar -cz ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key | base64 -w 0
