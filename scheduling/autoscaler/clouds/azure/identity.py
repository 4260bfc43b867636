"""Who the autoscaler is to Azure, found where the provider of the stack finds it, and as workload identities are given to pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from cluster.reading import UnreadableError, read_text
from scheduling.autoscaler.clouds.bearer import Bearers, Token
from scheduling.autoscaler.clouds.http import Http, Request
from scheduling.autoscaler.clouds.identity import NoneHereError, from_program, never_throttled, of_machine, told_json
from scheduling.autoscaler.groups import GroupError

_METADATA = "http://169.254.169.254"
_AUTHORITY = "https://login.microsoftonline.com"
_RESOURCE = "https://management.azure.com/"
_LEAST_S = 600
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ADVICE = (
    "in a pod, give its service account a workload identity (AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE); "
    "on a machine of Azure set ARM_USE_MSI=true; elsewhere run `az login`, or set ARM_CLIENT_ID, ARM_CLIENT_SECRET and "
    "ARM_TENANT_ID; the role is in docs/azure-role-autoscaler.json"
)


class AzureBearers(Bearers):
    """Of Azure's resource manager."""

    def __init__(self, http: Http, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._http = http
        self._environment = environment

    def subscription(self) -> str:
        """GroupError where nothing names one."""
        found = self._get("ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID") or self.token().project
        if not found:
            raise GroupError("ARM_SUBSCRIPTION_ID is not set; `az account list --output table` tells the ids")
        return found

    def _get(self, *names: str) -> str:
        return next((self._environment[name] for name in names if self._environment.get(name)), "")

    def _new(self) -> Token:
        for way in (self._principal, self._machine, self._program):
            try:
                return way()
            except NoneHereError:
                continue
        raise GroupError(f"there are no credentials for Azure: {_ADVICE}")

    def _principal(self) -> Token:
        """ "Microsoft identity platform and the OAuth 2.0 client credentials flow"."""
        client, tenant = self._get("ARM_CLIENT_ID", "AZURE_CLIENT_ID"), self._get("ARM_TENANT_ID", "AZURE_TENANT_ID")
        secret = self._get("ARM_CLIENT_SECRET", "AZURE_CLIENT_SECRET")
        file = self._get("ARM_OIDC_TOKEN_FILE_PATH", "AZURE_FEDERATED_TOKEN_FILE")
        if not secret and not file:
            raise NoneHereError
        if not client or not tenant:
            raise GroupError(f"ARM_CLIENT_ID or ARM_TENANT_ID is not set, and what proves who it is; {_ADVICE}")
        form = {"grant_type": "client_credentials", "client_id": client, "scope": f"{_RESOURCE}.default"}
        if secret:
            form["client_secret"] = secret
        else:
            try:
                form |= {"client_assertion": read_text(Path(file)).strip(), "client_assertion_type": _ASSERTION}
            except UnreadableError as error:
                raise GroupError(f"the token of the workload identity: {error}") from None
        url = f"{(self._get('AZURE_AUTHORITY_HOST') or _AUTHORITY).rstrip('/')}/{tenant}/oauth2/v2.0/token"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request = Request("POST", url, headers, urlencode(form).encode())
        told = told_json(self._http.ask(lambda: request, never_throttled), url, _ADVICE)
        return Token.lasting(told["access_token"], float(told["expires_in"]))

    def _machine(self) -> Token:
        """ "How to use managed identities to acquire an access token"."""
        if self._get("ARM_USE_MSI").lower() not in ("1", "true"):
            raise NoneHereError
        client = self._get("ARM_CLIENT_ID", "AZURE_CLIENT_ID")
        query = {"api-version": "2018-02-01", "resource": _RESOURCE, **({"client_id": client} if client else {})}
        url = f"{self._get('ARM_MSI_ENDPOINT') or _METADATA}/metadata/identity/oauth2/token?{urlencode(query)}"
        try:
            answer = of_machine(self._http, lambda: Request("GET", url, {"Metadata": "true"}))
        except NoneHereError:
            raise GroupError(f"ARM_USE_MSI is set, and this machine gives no identity; {_ADVICE}") from None
        told = json.loads(answer.body)
        return Token.lasting(told["access_token"], float(told["expires_in"]))

    def _program(self) -> Token:
        command = ["az", "account", "get-access-token", "--resource", _RESOURCE, "--output", "json"]
        told = from_program(command, self._environment)
        # It answers with a token that lives for five minutes at least.
        return Token.lasting(told["accessToken"], _LEAST_S, told.get("subscription", ""))
