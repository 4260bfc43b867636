"""TLS 1.2 settings of all servers: etcd, the control plane, kubelets."""

CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
"""The strong suites of CIS 1.2.29 and 4.2.12, with forward secrecy and authenticated encryption, for EC and RSA keys.

HTTP/2 needs those with AES_128_GCM (RFC 9113, 9.2.2). TLS 1.3 has separate suites, which are all strong.
"""
