"""Every pinned version, one line each. `tools/*/go.mod` pin the same; a test compares them."""

KUBERNETES = "1.36.4"
ETCD = "3.6.14"  # the newest below 3.7, which Kubernetes 1.36 does not build against
CONTAINERD = "2.3.4"  # first yearly LTS line
RUNC = "1.4.3"
CNI_PLUGINS = "1.9.1"
CRICTL = "1.36.0"
FLANNEL = "0.28.4"
COREDNS = "1.14.6"
KONNECTIVITY = "0.34.0"
PAUSE = "3.10.2"  # the sandbox image that kubeadm 1.36 names
PULUMI = "3.259.0"
BUSYBOX = "1.36"  # the image of the test workload of verify
