# Create the objects that workers need to join, through this host's own API server.
set -eu
until curl -fsk -o /dev/null "https://$ADDRESS:6443/readyz"; do sleep 0.2; done
sed "s/$ENDPOINT:6443/$ADDRESS:6443/" /etc/kubernetes/super-admin.conf > /etc/kubernetes/here.conf
export KUBECONFIG=/etc/kubernetes/here.conf
kubeadm init phase upload-config all --config /etc/kubernetes/kubeadm.yaml --kubeconfig "$KUBECONFIG"
kubeadm init phase bootstrap-token --config /etc/kubernetes/kubeadm.yaml --kubeconfig "$KUBECONFIG" --skip-token-print
kubectl create clusterrole flannel --verb=get,list,watch --resource=nodes
kubectl create clusterrolebinding flannel --clusterrole=flannel --group=system:nodes
