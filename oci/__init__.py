"""Container images without any image builder: layers, configuration and manifest as blobs, and folders in OCI's image layout."""
