# An image for pools with NVIDIA GPUs, on Debian 13: docs/how-to/images.md.
#
#   packer init examples/images
#   packer build -only='amazon-ebs.gpu' -var aws_region=us-east-1 -var nvidia_key=nvidia.asc examples/images

packer {
  required_version = ">= 1.14.0"
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = "~> 1"
    }
    azure = {
      source  = "github.com/hashicorp/azure"
      version = "~> 2"
    }
    googlecompute = {
      source  = "github.com/hashicorp/googlecompute"
      version = "~> 1"
    }
  }
}

variable "driver_branch" {
  description = "First number of the driver's version."
  type        = string
  default     = "580"
}

variable "nvidia_repository" {
  description = "NVIDIA's packages for Debian 13, or a mirror of them."
  type        = string
  default     = "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/"
}

variable "nvidia_key" {
  description = "File with the repository's public key, ASCII-armoured. Compare its fingerprint with NVIDIA's."
  type        = string
}

variable "nvswitch" {
  description = "Whether the machines have NVSwitches: 8 H100s or more of one board."
  type        = bool
  default     = true
}

variable "aws_region" {
  type    = string
  default = "us-east-1"
}

variable "azure_subscription" {
  type    = string
  default = ""
}

variable "azure_location" {
  type    = string
  default = "eastus"
}

variable "azure_gallery" {
  description = "A Compute Gallery with an image definition menagerie-gpu: Linux, generation 2, with trusted launch supported."
  type = object({
    resource_group = string
    name           = string
  })
  default = {
    resource_group = "images"
    name           = "images"
  }
}

variable "google_project" {
  type    = string
  default = ""
}

variable "google_zone" {
  type    = string
  default = "us-central1-a"
}

locals {
  stamp = formatdate("YYYYMMDDhhmm", timestamp())
}

# The driver is compiled without a GPU, so an ordinary machine builds the image.
source "amazon-ebs" "gpu" {
  region        = var.aws_region
  instance_type = "c7i.2xlarge"
  ssh_username  = "admin"
  ami_name      = "menagerie-gpu-${local.stamp}"
  imds_support  = "v2.0"
  encrypt_boot  = true

  source_ami_filter {
    # Debian's own account.
    owners      = ["136693071363"]
    most_recent = true
    filters = {
      name                = "debian-13-amd64-*"
      root-device-type    = "ebs"
      virtualization-type = "hvm"
    }
  }

  launch_block_device_mappings {
    device_name           = "/dev/xvda"
    volume_size           = 20
    volume_type           = "gp3"
    delete_on_termination = true
  }

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
  }
}

source "azure-arm" "gpu" {
  use_azure_cli_auth = true
  subscription_id    = var.azure_subscription
  location           = var.azure_location
  vm_size            = "Standard_D8s_v5"
  os_type            = "Linux"
  image_publisher    = "Debian"
  image_offer        = "debian-13"
  image_sku          = "13-gen2"

  shared_image_gallery_destination {
    subscription   = var.azure_subscription
    resource_group = var.azure_gallery.resource_group
    gallery_name   = var.azure_gallery.name
    image_name     = "menagerie-gpu"
    image_version  = formatdate("YYYY.M.Dhhmm", timestamp())
  }
}

source "googlecompute" "gpu" {
  project_id              = var.google_project
  zone                    = var.google_zone
  machine_type            = "n2-standard-8"
  ssh_username            = "packer"
  source_image_project_id = ["debian-cloud"]
  source_image_family     = "debian-13"
  image_name              = "menagerie-gpu-${local.stamp}"
  image_family            = "menagerie-gpu"
}

build {
  sources = ["source.amazon-ebs.gpu", "source.azure-arm.gpu", "source.googlecompute.gpu"]

  provisioner "file" {
    sources     = [for name in ["install.sh", "manifest.py", "packages.txt", "nvidia-packages.txt"] : "${path.root}/${name}"]
    destination = "/tmp/"
  }

  provisioner "file" {
    source      = var.nvidia_key
    destination = "/tmp/nvidia.asc"
  }

  provisioner "shell" {
    execute_command = "sudo env {{ .Vars }} sh {{ .Path }}"
    environment_vars = [
      "BRANCH=${var.driver_branch}",
      "REPOSITORY=${var.nvidia_repository}",
      "NVSWITCH=${var.nvswitch}",
    ]
    inline = ["sh /tmp/install.sh /tmp"]
  }

  # What is in the image, for `doctor`.
  provisioner "file" {
    direction   = "download"
    source      = "/usr/share/menagerie/image.json"
    destination = "menagerie-gpu-${source.type}-${local.stamp}.json"
  }

  # Last: it removes the login over which Packer works.
  provisioner "shell" {
    only            = ["azure-arm.gpu"]
    execute_command = "sudo sh {{ .Path }}"
    inline          = ["/usr/sbin/waagent -force -deprovision+user && sync"]
    skip_clean      = true
  }
}
