"""Disks, buckets and secrets, with the cluster's keys and with others."""

from __future__ import annotations

from tests.policies.support import Case, resource

KEY_OF_AWS = resource("aws:kms/key:Key", outputs={"arn": "arn:aws:kms:us-east-1:1:key/k"})
KEY_OF_GOOGLE = resource(
    "gcp:kms/cryptoKey:CryptoKey", {"keyRing": "projects/p/locations/us-central1/keyRings/r", "name": "k"}
)
OWN_OF_GOOGLE = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
KEY_OF_AZURE = resource(
    "azure-native:keyvault:Key", {"keyName": "k"}, outputs={"name": "k", "keyUriWithVersion": "https://v/keys/k/1"}
)
SET_OF_AZURE = resource(
    "azure-native:compute:DiskEncryptionSet",
    {"activeKey": {"keyUrl": "https://v/keys/k/1"}},
    outputs={"id": "/sub/RG/diskEncryptionSets/set", "name": "set"},
)
OWN_SET = "/sub/rg/diskEncryptionSets/set"
FOREIGN = "arn:aws:kms:us-east-1:2:key/foreign"
_EBS = {"encrypted": True, "kmsKeyId": "arn:aws:kms:us-east-1:1:key/k"}
_MANAGED = {"managedDisk": {"diskEncryptionSet": {"id": OWN_SET}}}
_BOTH = (KEY_OF_AZURE, SET_OF_AZURE)

ENCRYPTION = (
    Case(
        "disks-encrypted",
        (KEY_OF_AWS, resource("aws:ebs/volume:Volume", _EBS)),
        ({"encrypted": False}, {"encrypted": None}, {"kmsKeyId": None}, {"kmsKeyId": FOREIGN}),
    ),
    Case(
        "disks-encrypted",
        (KEY_OF_AWS, resource("aws:ec2/instance:Instance", {"rootBlockDevice": _EBS, "ebsBlockDevices": [_EBS]})),
        (
            {"rootBlockDevice": None},
            {"rootBlockDevice.kmsKeyId": None},
            {"ebsBlockDevices[].encrypted": False},
        ),
    ),
    Case(
        "disks-encrypted",
        (
            KEY_OF_AWS,
            resource(
                "aws:ec2/launchTemplate:LaunchTemplate",
                {"blockDeviceMappings": [{"ebs": {**_EBS, "encrypted": "true"}}]},
            ),
        ),
        (
            {"blockDeviceMappings": None},
            {"blockDeviceMappings": []},
            {"blockDeviceMappings[].ebs.encrypted": "false"},
            {"blockDeviceMappings[].ebs.kmsKeyId": FOREIGN},
        ),
    ),
    Case(
        "disks-encrypted",
        (*_BOTH, resource("azure-native:compute:Disk", {"encryption": {"diskEncryptionSetId": OWN_SET}})),
        ({"encryption": None}, {"encryption.diskEncryptionSetId": "/sub/rg/diskEncryptionSets/other"}),
    ),
    Case(
        "disks-encrypted",
        (
            *_BOTH,
            resource(
                "azure-native:compute:VirtualMachine",
                {
                    "storageProfile": {
                        "osDisk": _MANAGED,
                        "dataDisks": [{"createOption": "Empty", **_MANAGED}, {"createOption": "Attach"}],
                    },
                    "securityProfile": {"encryptionAtHost": True},
                },
            ),
        ),
        (
            {"storageProfile": None},
            {"storageProfile.osDisk.managedDisk": None},
            {"storageProfile.dataDisks[].managedDisk": None},
            {"securityProfile": None},
            {"securityProfile.encryptionAtHost": False},
        ),
    ),
    Case(
        "disks-encrypted",
        (
            *_BOTH,
            resource(
                "azure-native:compute:VirtualMachineScaleSet",
                {
                    "virtualMachineProfile": {
                        "storageProfile": {"osDisk": _MANAGED},
                        "securityProfile": {"encryptionAtHost": True},
                    }
                },
            ),
        ),
        (
            {"virtualMachineProfile.storageProfile.osDisk.managedDisk.diskEncryptionSet": None},
            {"virtualMachineProfile.securityProfile.encryptionAtHost": False},
        ),
    ),
    Case(
        "disks-encrypted",
        (KEY_OF_AZURE, SET_OF_AZURE),
        ({"activeKey.keyUrl": "https://other/keys/k2/1"}, {"activeKey": None}),
    ),
    Case(
        "disks-encrypted",
        (KEY_OF_GOOGLE, resource("gcp:compute/disk:Disk", {"diskEncryptionKey": {"kmsKeySelfLink": OWN_OF_GOOGLE}})),
        ({"diskEncryptionKey": None}, {"diskEncryptionKey.kmsKeySelfLink": f"{OWN_OF_GOOGLE}2"}),
    ),
    Case(
        "disks-encrypted",
        (KEY_OF_GOOGLE, resource("gcp:compute/instance:Instance", {"bootDisk": {"kmsKeySelfLink": OWN_OF_GOOGLE}})),
        ({"bootDisk": None}, {"bootDisk.kmsKeySelfLink": None}),
    ),
    *(
        Case(
            "disks-encrypted",
            (
                KEY_OF_GOOGLE,
                resource(
                    type_,
                    {
                        "disks": [
                            {"diskEncryptionKey": {"kmsKeySelfLink": f"{OWN_OF_GOOGLE}/cryptoKeyVersions/1"}},
                            {"type": "SCRATCH", "diskType": "local-ssd"},
                        ]
                    },
                ),
            ),
            ({"disks": None}, {"disks[].diskEncryptionKey": None}),
        )
        for type_ in (
            "gcp:compute/instanceTemplate:InstanceTemplate",
            "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
        )
    ),
    Case(
        "secrets-encrypted",
        (KEY_OF_AWS, resource("aws:secretsmanager/secret:Secret", {"kmsKeyId": "arn:aws:kms:us-east-1:1:key/k"})),
        ({"kmsKeyId": None}, {"kmsKeyId": FOREIGN}),
    ),
    Case(
        "secrets-encrypted",
        (
            KEY_OF_GOOGLE,
            resource(
                "gcp:secretmanager/secret:Secret",
                {
                    "replication": {
                        "userManaged": {"replicas": [{"customerManagedEncryption": {"kmsKeyName": OWN_OF_GOOGLE}}]}
                    }
                },
            ),
        ),
        (
            {"replication": {"auto": {}}},
            {"replication.userManaged.replicas[].customerManagedEncryption": None},
        ),
    ),
    Case(
        "buckets-encrypted",
        (
            KEY_OF_AWS,
            resource("aws:s3/bucket:Bucket", outputs={"bucket": "b"}),
            resource(
                "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
                {
                    "bucket": "b",
                    "rules": [
                        {
                            "applyServerSideEncryptionByDefault": {
                                "sseAlgorithm": "aws:kms",
                                "kmsMasterKeyId": "arn:aws:kms:us-east-1:1:key/k",
                            }
                        }
                    ],
                },
            ),
        ),
        (
            {"bucket": "another"},
            {"rules[].applyServerSideEncryptionByDefault.sseAlgorithm": "AES256"},
            {"rules[].applyServerSideEncryptionByDefault.kmsMasterKeyId": FOREIGN},
            {"rules[].applyServerSideEncryptionByDefault.kmsMasterKeyId": None},
        ),
    ),
    Case(
        "buckets-encrypted",
        (KEY_OF_GOOGLE, resource("gcp:storage/bucket:Bucket", {"encryption": {"defaultKmsKeyName": OWN_OF_GOOGLE}})),
        ({"encryption": None}, {"encryption.defaultKmsKeyName": "projects/other/k3"}),
    ),
    Case(
        "buckets-encrypted",
        (
            KEY_OF_AZURE,
            resource(
                "azure-native:storage:StorageAccount",
                {"encryption": {"keySource": "Microsoft.Keyvault", "keyVaultProperties": {"keyName": "k"}}},
            ),
        ),
        (
            {"encryption": None},
            {"encryption.keySource": "Microsoft.Storage"},
            {"encryption.keyVaultProperties.keyName": "another"},
        ),
    ),
)
