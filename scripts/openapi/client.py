"""Tests the package that openapi-python-client generates; run by clients.mjs."""

import importlib
import pkgutil
import sys

import fluxgate_client
from fluxgate_client import AuthenticatedClient, Client
from fluxgate_client.api.decisions import check
from fluxgate_client.api.rule_sets import list_rule_sets
from fluxgate_client.api.rules import delete_rule, get_rule, patch_rule, put_rule
from fluxgate_client.models import Band, Check, Decision, Problem, Rule, RulePatch, RuleToPut

for module in pkgutil.walk_packages(fluxgate_client.__path__, "fluxgate_client."):
    importlib.import_module(module.name)

url, token = sys.argv[1:]
api = AuthenticatedClient(base_url=url, token=token)

decision = check.sync(client=api, body=Check(client_ip="203.0.113.9", rule_set_id="shop"))
assert isinstance(decision, Decision) and decision.allowed, decision
assert decision.reason == "ALLOWED", decision

body = RuleToPut.from_dict({"algorithm": "FIXED_WINDOW", "bands": [{"capacity": 3, "window": "1m"}]})
created = put_rule.sync_detailed("shop", "typed", client=api, body=body)
assert created.status_code == 201 and isinstance(created.parsed, Rule), created
assert isinstance(created.parsed.bands[0], Band) and created.parsed.created_at.year > 2000
etag = created.headers["ETag"]
assert get_rule.sync_detailed("shop", "typed", client=api, if_none_match=f"W/{etag}").status_code == 304
patched = patch_rule.sync("shop", "typed", client=api, body=RulePatch.from_dict({"enabled": False}), if_match=etag)
assert isinstance(patched, Rule) and patched.enabled is False, patched
lost = delete_rule.sync("shop", "typed", client=api, if_match=etag)
assert isinstance(lost, Problem) and lost.status == 412 and lost.title == "Precondition Failed", lost
assert delete_rule.sync_detailed("shop", "typed", client=api).status_code == 204
missing = delete_rule.sync("shop", "typed", client=api)
assert isinstance(missing, Problem) and missing.code == "FLUXGATE_NOT_FOUND", missing
unauthorized = list_rule_sets.sync(client=Client(base_url=url))
assert isinstance(unauthorized, Problem) and unauthorized.code == "FLUXGATE_UNAUTHORIZED", unauthorized
print("The Python client works.")
