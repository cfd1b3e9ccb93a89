"""No secret comes through, ordinary text does."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sink import MemorySink, rows
from otlp_messages import as_json, logs, record, span, traces

from clawtrace.errors import ReceiverError
from clawtrace.receiver.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.literals import Literals
from clawtrace.receiver.redact import RedactionSettings, Redactor, environment_secrets
from clawtrace.receiver.request import Request
from clawtrace.receiver.secret_kinds import SECRET_KINDS

# Put together at run time, so that no scanner takes this file for a leak.
BODY = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
SECRETS = {
    "anthropic": "sk-" + "ant-api03-" + BODY,
    "openrouter": "sk-" + "or-v1-" + "0123456789abcdef" * 4,
    "langfuse": "sk-" + "lf-01234567-89ab-cdef-0123-456789abcdef",
    "openai": "sk-" + "proj-" + BODY,
    "stripe": "sk_" + "live_" + BODY[:24],
    "github": "ghp_" + BODY[:36],
    "gitlab": "glpat-" + BODY[:20],
    "huggingface": "hf_" + BODY[:34],
    "groq": "gsk_" + BODY + "abcdefghijkl",
    "npm": "npm_" + BODY[:36],
    "aws": "AKIA" + "IOSFODNN7EXAMPL2",
    "google": "AIza" + BODY[:35],
    "slack": "xoxb-" + "123456789012-abcdefghijkl",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + BODY,
    "private-key": "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA\nabc=\n-----END RSA PRIVATE KEY-----",
}


def mark(kind: str, secret: str) -> str:
    return f"[REDACTED:{kind}:{hashlib.sha256(secret.encode()).hexdigest()[:8]}]"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(environ={})


class TestKinds:
    def test_every_kind_is_tested(self):
        """Each kind of the table has a sample here (`bearer` has its own test)."""
        assert {kind.name for kind in SECRET_KINDS} == {*SECRETS, "bearer"}

    @pytest.mark.parametrize("kind", SECRETS)
    @pytest.mark.parametrize(
        "context", ["{}", "key={}", "use {} now", '"{}"', "https://x/?t={}&u=1", "(`{}`)", "\t{}\n", "ünï {} 😀"]
    )
    def test_replaced_wherever_it_stands(self, redactor, kind, context):
        """A secret is replaced by its kind and a hash that is equal for equal values; the text around it stays."""
        secret = SECRETS[kind]
        text = context.format(secret)

        assert context.format(mark(kind, secret)) == redactor.clean(text)
        assert redactor.suspects(text.encode(), escaped=False)

    @pytest.mark.parametrize("kind", SECRETS)
    def test_replaced_inside_of_json_text(self, redactor, kind):
        """The same inside of JSON text in JSON text, directly after an escaped line break, with the same hash."""
        text = json.dumps([{"content": json.dumps({"out": "line\n" + SECRETS[kind] + "\nend"})}])
        cleaned = redactor.clean(text)

        assert mark(kind, SECRETS[kind]) in cleaned
        assert SECRETS[kind][8:20] not in cleaned
        assert json.loads(json.loads(cleaned)[0]["content"])["out"].startswith("line\n[REDACTED")

    def test_bearer_tokens(self, redactor):
        """Of `Authorization: Bearer …` only the token is replaced."""
        token = "0123456789abcdef0123"

        assert f"Bearer {mark('bearer', token)}, ok" == redactor.clean(f"Bearer {token}, ok")

    @pytest.mark.parametrize(
        "text",
        [
            "task-2024-08-06-annual-report-final-version",
            "the disk-usage-of-node-0123456789abcdef0123 is high",
            "sk-learn-contrib-lightning-project-list",
            "pip install sk-video scikit-learn",
            "Bearer authentication is required by the server",
            "a bearer of good news 12345",
            "eyJ in the middle of base64: aGVsbG8eyJhbGciOiJIUzI1NiJ9aGVsbG8",
            "hf_hub_download(repo_id='x')",
            "AKIA",
            "npm_config_registry=https://registry.example.org/",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "toolu_01A09q90qw90lq917835lq9 call_abc123def456ghi789 chatcmpl-9XyZ0123456789abcdef",
            "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ],
    )
    def test_ordinary_text_stays(self, redactor, text):
        """What only looks like a secret at first glance stays as it is."""
        assert text == redactor.clean(text)


class TestEnvironment:
    def test_which_values_are_secrets(self):
        """The variable's name and the value's look decide; paths, words and short values are left alone."""
        environ = {
            "OPENAI_API_KEY": "not-so-secret-but-long",
            "DB_PASSWORD": "hunter2hunter2",
            "SHORT_TOKEN": "abc123",
            "SSH_KEY_FILE": "/home/me/.ssh/id_rsa_0",
            "SECRET_URL": "https://vault.example.com/v1",
            "TOKEN_URL": "https://user:pa55@vault.example.com/v1",
            "DEFAULT_KEYMAP": "password",
            "PASSWORD": "swordfish",
            "HOME_DIRECTORY": "a-value-that-is-long-enough-1",
        }

        assert {"not-so-secret-but-long", "hunter2hunter2", "https://user:pa55@vault.example.com/v1"} == set(
            environment_secrets(environ)
        )

    @pytest.mark.parametrize("value", ['pa"ss\\wörd/1', "plainvalue1", "line\nbreak1"])
    @pytest.mark.parametrize("levels", [0, 1, 2, 3])
    def test_value_is_found_at_every_level_of_escaping(self, value, levels):
        """A value with quotes, backslashes or accents is found in plain text and inside of JSON in JSON."""
        redactor = Redactor(environ={"MY_TOKEN": value})
        for ascii_only in (True, False):
            text = f"before {value} after"
            for _ in range(levels):
                text = json.dumps(text, ensure_ascii=ascii_only)
            cleaned = redactor.clean(text)

            assert mark("env", value) in cleaned
            assert redactor.suspects(text.encode(), escaped=False)

    def test_switched_off(self):
        """Each part can be switched off."""
        settings = RedactionSettings(environment=False, kinds_off=("jwt",))
        redactor = Redactor(settings, environ={"MY_TOKEN": "plainvalue1"})

        assert f"plainvalue1 {SECRETS['jwt']}" == redactor.clean(f"plainvalue1 {SECRETS['jwt']}")
        assert SECRETS["aws"] not in redactor.clean(SECRETS["aws"])
        assert SECRETS["aws"] == Redactor(RedactionSettings(enabled=False)).clean(SECRETS["aws"])


class TestOwnPatterns:
    def test_own_pattern(self):
        """A project's pattern is a kind like the others."""
        redactor = Redactor(RedactionSettings(patterns=(("customer", r"CUST-\d+"),)), environ={})

        assert f"for {mark('customer', 'CUST-123')}." == redactor.clean("for CUST-123.")
        assert redactor.suspects(b"anything", escaped=False)

    def test_a_pattern_that_never_ends_hides_the_whole_text(self):
        """A catastrophic pattern is cut off, and what it could not clear is not stored."""
        redactor = Redactor(RedactionSettings(patterns=(("slow", r"(a|aa)+$"),)), environ={})
        text = "a" * 60 + "b"

        assert mark("slow", text) == redactor.clean(text)

    @pytest.mark.parametrize(
        ("redaction", "words"),
        [
            (RedactionSettings(patterns=(("bad", "("),)), "'bad': '(' is no regular expression"),
            (RedactionSettings(kinds_off=("jwtt",)), "'jwtt'; the kinds are anthropic"),
        ],
    )
    def test_settings_that_cannot_be_meant(self, redaction, words):
        """A wrong pattern or kind is an error that names it."""
        with pytest.raises(ReceiverError, match=re.escape(words)):
            Redactor(redaction)


class TestLiterals:
    @settings(max_examples=300, deadline=None)
    @given(st.text(alphabet="askeghp_-xobyJAKIzZ B", max_size=30))
    def test_agrees_with_plain_search(self, text):
        """The anchored expressions find exactly what searching literal by literal finds."""
        every = [literal for kind in SECRET_KINDS for literal in kind.literals]
        literals = Literals(every, ["héllo"])

        assert any(one in text for one in every) == literals.in_text(text)
        assert any(one in text for one in every) == literals.in_bytes(text.encode())


class TestEverywhere:
    """A secret planted in each place of a request reaches no column."""

    SECRET = SECRETS["github"]

    def _request(self):
        secret = self.SECRET
        made = span(
            f"name {secret}",
            attributes={"text": secret, "list": [secret], "map": {"k": {"d": secret}}, "bytes": secret.encode()},
            links=["b1"],
        )
        made.status.message = f"failed with {secret}"
        made.events.add(name="e", attributes=[]).attributes.add(key="k").value.string_value = secret
        made.links[0].attributes.add(key="k").value.string_value = secret
        return traces(made, resource={"process.command_args": ["run", secret], "secret": secret})

    def _stored(self, signal, body, is_json):
        intake = Intake(Attribution(MemorySink().run_no), Redactor(environ={}))
        intake.add(Request(signal, "http/json" if is_json else "grpc", body, is_json, 1))
        taken = intake.take()
        return rows(taken.spans) if signal == "traces" else rows(taken.logs)

    @pytest.mark.parametrize("is_json", [False, True])
    def test_spans(self, is_json):
        """Span names, attributes of every type, resources, events, links and status messages are cleaned."""
        message = self._request()
        body = json.dumps(as_json(message)).encode() if is_json else message.SerializeToString()
        (found,) = self._stored("traces", body, is_json)

        assert self.SECRET not in repr(found)
        assert mark("github", self.SECRET) == found["attributes"]["text"]
        assert mark("github", self.SECRET) == found["resource"]["secret"]
        assert "bytes" in found["attributes"]
        import base64

        assert mark("github", self.SECRET).encode() == base64.b64decode(found["attributes"]["bytes"])

    @pytest.mark.parametrize("is_json", [False, True])
    def test_log_records(self, is_json):
        """Bodies and attributes of log records are cleaned."""
        message = logs(record("e", body={"said": self.SECRET}, attributes={"a": self.SECRET}))
        body = json.dumps(as_json(message)).encode() if is_json else message.SerializeToString()
        (found,) = self._stored("logs", body, is_json)

        assert self.SECRET not in repr(found)
        assert {"said": mark("github", self.SECRET)} == json.loads(found["body"])

    def test_reasons_of_rejections(self):
        """A reason that quotes the sender quotes no secret."""
        document = as_json(traces(span("s")))
        document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["endTimeUnixNano"] = "hunter2hunter2"
        intake = Intake(Attribution(MemorySink().run_no), Redactor(environ={"MY_PASSWORD": "hunter2hunter2"}))
        answer = intake.add(Request("traces", "http/json", json.dumps(document).encode(), True, 1))
        (note,) = intake.take().notes

        assert answer.rejected == 1
        assert "hunter2" not in answer.message + note.receipt.reason

    def test_a_secret_written_with_json_escapes(self):
        """A sender that writes the characters of a secret as escapes does not get it past."""
        escaped = "".join(f"\\u{ord(character):04x}" for character in self.SECRET)
        body = json.dumps(as_json(traces(span("s", attributes={"a": "HERE"})))).replace("HERE", escaped).encode()
        (found,) = self._stored("traces", body, True)

        assert {"a": mark("github", self.SECRET)} == found["attributes"]
