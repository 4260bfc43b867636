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
CSI_PROVISIONER = "6.3.0"
CSI_ATTACHER = "4.12.0"
CSI_RESIZER = "2.2.1"
CSI_REGISTRAR = "2.17.0"
CSI_LIVENESS = "2.19.0"
AWS_EBS_CSI = "1.64.0"
AWS_EFS_CSI = "3.4.1"
AZURE_DISK_CSI = "1.34.5"
AZURE_FILE_CSI = "1.35.7"
GCP_PD_CSI = "1.26.0"
GCP_FILESTORE_CSI = "1.7.0"  # the newest that its README names on registry.k8s.io
ROOK = "1.20.6"  # supports Kubernetes 1.31 to 1.36 ("Prerequisites" of Rook)
CEPH = "20.2.4"  # the Ceph of Rook's own examples for that release
