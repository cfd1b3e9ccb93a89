"""Each project setting reaches the session (spec: config.md §1)."""

from __future__ import annotations

from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings


def test_every_setting_arrives(files):
    """What the file says about receiving, closing, normalising, pricing and redaction is what the session gets."""
    (files.root / "mine").mkdir()
    files.write(
        "clawtrace.yaml",
        "receiver: {host: '::1', grpc_port: 1, http_port: 2}\nsettle_ms: 3\ntrace_timeout_ms: 4\n"
        "trace: {parent_not_exported: [a]}\nrun_key: k\ndialects: [mine]\nmodel_pricing: {m: {per_request: 1}}\n"
        "redaction: {enabled: false, environment: false, kinds_off: [jwt], patterns: {id: 'E[0-9]+'}}\n",
    )
    settings = session_settings(load_project(files.root, {}))

    assert (settings.receiver.host, settings.receiver.grpc_port, settings.receiver.http_port) == ("::1", 1, 2)
    assert (settings.settle_ms, settings.trace_timeout_ms, settings.run_key) == (3, 4, "k")
    assert settings.parent_not_exported == ("a",)
    assert settings.dialects == (files.root / "mine",)
    assert settings.model_pricing.price_call(None, "m", None, None).usd == 1.0
    redaction = settings.redaction
    assert (redaction.enabled, redaction.environment, redaction.kinds_off) == (False, False, ("jwt",))
    assert redaction.patterns == (("id", "E[0-9]+"),)


def test_the_defaults_are_the_sessions_own(files):
    """A project without a file changes nothing."""
    from clawtrace.config.projects.session_settings import SessionSettings

    assert session_settings(load_project(files.root, {})) == SessionSettings()
