# Start API server, controller manager and scheduler with the flags that they need.
set -eu
pki=/etc/kubernetes/pki
run() {
    name=$1
    shift
    systemd-run --quiet --no-block --unit="$name" --property=Restart=always --property=RestartSec=1 "$name" "$@"
}
run kube-apiserver \
    --advertise-address="$ADDRESS" --secure-port=6443 --service-cluster-ip-range="$SERVICES" \
    --etcd-servers="$ETCD_MAIN" --etcd-servers-overrides="/events#$ETCD_EVENTS" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true \
    --allow-privileged=true --client-ca-file=$pki/ca.crt \
    --tls-cert-file=$pki/apiserver.crt --tls-private-key-file=$pki/apiserver.key \
    --kubelet-client-certificate=$pki/apiserver-kubelet-client.crt \
    --kubelet-client-key=$pki/apiserver-kubelet-client.key \
    --requestheader-client-ca-file=$pki/front-proxy-ca.crt --requestheader-allowed-names=front-proxy-client \
    --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
    --requestheader-username-headers=X-Remote-User \
    --proxy-client-cert-file=$pki/front-proxy-client.crt --proxy-client-key-file=$pki/front-proxy-client.key \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file=$pki/sa.pub --service-account-signing-key-file=$pki/sa.key
run kube-controller-manager \
    --kubeconfig=/etc/kubernetes/controller-manager.conf --controllers='*,bootstrapsigner,tokencleaner' \
    --use-service-account-credentials=true --allocate-node-cidrs=true --cluster-cidr="$PODS" \
    --service-cluster-ip-range="$SERVICES" --root-ca-file=$pki/ca.crt --client-ca-file=$pki/ca.crt \
    --service-account-private-key-file=$pki/sa.key \
    --cluster-signing-cert-file=$pki/ca.crt --cluster-signing-key-file=$pki/ca.key
run kube-scheduler --kubeconfig=/etc/kubernetes/scheduler.conf
