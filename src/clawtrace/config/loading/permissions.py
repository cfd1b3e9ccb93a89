"""Checks that run a user's own code need the evaluation profile's leave (spec: config.md §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import HookPolicy
from clawtrace.config.cases.assertion_list import AssertionList
from clawtrace.errors import ConfigProblem

if TYPE_CHECKING:
    from clawtrace.config.suites.evaluation_profile import EvaluationProfile

__all__ = ["hook_policy", "hook_problems", "refusal"]


def hook_policy(profile: EvaluationProfile | None) -> HookPolicy:
    """Return what a profile allows; without one, nothing."""
    if profile is None:
        return HookPolicy()
    from clawtrace.runners.starting.environment import ALLOWED

    said = profile.security_policy
    env = (*(name for name in ALLOWED if not name.startswith("OTEL_")), *said.pass_env)
    return HookPolicy(said.allow_local_python_hooks, said.network_access, said.redact_secrets, env)


def hook_problems(found: AssertionList, policy: HookPolicy) -> list[ConfigProblem]:
    """Return the hooks of one file that may not run, or not in the way that the profile asks for."""
    hooks = {one.id for one in found.parsed if isinstance(one, Probe) and one.needs_permission}
    if not hooks:
        return []
    why = refusal(policy)
    places = [entry.place(("type",)) for entry in found.entries if entry.fields.get("id") in hooks]
    return [found.document.problem(place, why) for place in places] if why else []


def refusal(policy: HookPolicy) -> str:
    """Return why hooks may not run; empty where they may."""
    if not policy.allowed:
        return (
            "Python hooks are off: `security_policy: {allow_local_python_hooks: true}` in the evaluation profile allows "
            "them (`--evaluation-profile`)"
        )
    from clawtrace.assertions.probing.hook_process import network_can_be_denied

    if policy.network == "deny" and not network_can_be_denied():
        return (
            "this machine cannot block a hook's network access, but the evaluation profile says `network_access: "
            "deny`; `security_policy: {network_access: allow}` runs hooks with the network"
        )
    return ""
