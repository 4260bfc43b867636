"""For every rule over resources: in each cloud, resources that comply and changes that break it."""

from __future__ import annotations

from tests.policies.rows_addresses import ADDRESSES
from tests.policies.rows_encryption import ENCRYPTION
from tests.policies.rows_identities import IDENTITIES
from tests.policies.rows_places import PLACES, TAGS
from tests.policies.rows_stores import STORES
from tests.policies.rows_user_data import USER_DATA

CASES = (*ENCRYPTION, *ADDRESSES, *STORES, *IDENTITIES, *USER_DATA, *PLACES, *TAGS)
