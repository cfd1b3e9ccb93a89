"""No secret comes through, ordinary text does."""

from __future__ import annotations

import html
import json
import re
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sink import MemorySink, rows
from otlp_messages import as_json, logs, record, span, traces
from secret_samples import SAMPLES, mark, of_kind

from clawtrace.errors import ReceiverError
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor, environment_secrets
from clawtrace.receiver.redaction.secret_kinds import SECRET_KINDS
from clawtrace.receiver.request import Request

REDACTOR = Redactor(environ={})


@pytest.fixture
def redactor() -> Redactor:
    return REDACTOR


class TestKinds:
    def test_every_kind_and_literal_is_tested(self):
        """Each literal of each kind of the table is in a sample, and there are forty kinds and more."""
        assert {kind.name for kind in SECRET_KINDS} == {sample.kind for sample in SAMPLES.values()}
        assert len({kind.name for kind in SECRET_KINDS}) >= 40
        for kind in SECRET_KINDS:
            of_it = [sample.text for sample in SAMPLES.values() if sample.kind == kind.name]
            assert [literal for literal in kind.literals if not any(literal in text for text in of_it)] == []

    @pytest.mark.parametrize("name", SAMPLES)
    def test_replaced_wherever_it_stands(self, redactor, name):
        """A secret is replaced by its kind and a hash that is equal for equal values; the text around it stays."""
        sample = SAMPLES[name]
        for context in ("{}", "key={}", "use {} now", '"{}"', "https://x/?t={}&u=1", "(`{}`)", "\t{}\n", "ünï {} 😀"):
            text = context.replace("{}", sample.text)

            assert context.replace("{}", sample.text.replace(sample.secret, sample.mark)) == redactor.clean(text)
            assert redactor.suspects(text.encode())

    @pytest.mark.parametrize("name", SAMPLES)
    @settings(max_examples=25)
    @given(before=st.binary(max_size=12), after=st.binary(max_size=12))
    def test_no_byte_next_to_a_text_hides_it(self, name, before, after):
        """In a request any byte may stand next to a text (lengths, tags, brackets): the request is suspected anyway."""
        assert REDACTOR.suspects(before + SAMPLES[name].text.encode() + after)

    @pytest.mark.parametrize("name", SAMPLES)
    def test_replaced_inside_of_json_text(self, redactor, name):
        """The same inside of JSON text in JSON text, directly after an escaped line break, with the same hash."""
        sample = SAMPLES[name]
        text = json.dumps([{"content": json.dumps({"out": "line\n" + sample.text + "\nend"})}])
        cleaned = redactor.clean(text)

        assert sample.text.replace(sample.secret, sample.mark) in json.loads(json.loads(cleaned)[0]["content"])["out"]

    @pytest.mark.parametrize("name", SAMPLES)
    def test_marks_stay(self, redactor, name):
        """A text that was cleaned is not changed by cleaning it again: marks are no secrets."""
        cleaned = redactor.clean(SAMPLES[name].text)

        assert cleaned == redactor.clean(cleaned)

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
            "a file with -----BEGIN OPENSSH PRIVATE KEY----- in its first line",
            "git commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12 of sha256:" + "0123456789abcdef" * 4,
            "id 123e4567-e89b-12d3-a456-426614174000, session_id=123e4567-e89b-12d3-a456-426614174000",
            "data:image/png;base64," + b64encode(bytes(range(256)) * 40).decode(),
            "data:image/gif;base64," + b64encode(bytes(3000)).decode(),
            "postgres://user:password@localhost/db https://user:${TOKEN}@x redis://:{password}@h https://u:***@h",
            "see http://localhost:8080,joe@example.org and mailto:joe@example.org at 10:30@noon",
            "max_tokens=4096 MAX_TOKEN=128000 GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }} export API_KEY=your-api-key-here",
            "token = os.environ['X_TOKEN']; ACME_TOKEN=process.env.ACME_TOKEN_2 DB_PASSWORD=/run/secrets/db_password_1",
            'Basic authentication: "auth": "none", "auth": "bm90LWNyZWRlbnRpYWxz"',
            "TASK SKILL RISK SKU00000000000000000000000000000000",
            "[REDACTED:aws:0123abcd] postgres://app:[REDACTED:url-password:0123abcd]@db/main",
            "C:\\new\\table http:\\/\\/example.org\\/path \\u003cb\\u003e",
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

    @pytest.mark.parametrize("value", ['pa"ss\\wörd/1', "plainvalue1", "line\nbreak1", "ключ№ё😀7дом", '\\"/\\"/\\"/9'])
    @pytest.mark.parametrize("levels", [0, 1, 2, 3, 5])
    def test_value_is_found_at_every_level_of_escaping(self, value, levels):
        """A value with quotes, backslashes or accents is found in plain text and inside of JSON in JSON."""
        redactor = Redactor(environ={"MY_TOKEN": value})
        for ascii_only in (True, False):
            text = f"before {value} after"
            for _ in range(levels):
                text = json.dumps(text, ensure_ascii=ascii_only)
            cleaned = redactor.clean(text)

            assert mark("env", value) in cleaned
            assert redactor.suspects(text.encode())

    @pytest.mark.parametrize("value", ["hunter2&hunter<3", "s3cr3t?>~ 8+/é"])
    @pytest.mark.parametrize("before", ["", "u", "us", "user:"])
    def test_value_is_found_in_other_notations(self, value, before):
        """In base64 wherever it begins there, of either alphabet, in a URL and in HTML; what stands around it is kept."""
        redactor = Redactor(environ={"MY_TOKEN": value})
        data = f"{before}{value}, and more".encode()

        for text in (
            b64encode(data).decode(),
            urlsafe_b64encode(data).decode(),
            quote(data, safe=""),
            html.escape(data.decode()),
        ):
            cleaned = redactor.clean(f'{{"a": "x {text} y"}}')
            assert mark("env", value) in cleaned
            assert cleaned.startswith('{"a": "x ')
            assert redactor.suspects(text.encode())
        assert redactor.clean(b64encode(b"another value").decode()) == b64encode(b"another value").decode()

    def test_switched_off(self):
        """Each part can be switched off."""
        settings = RedactionSettings(environment=False, kinds_off=("jwt",))
        redactor = Redactor(settings, environ={"MY_TOKEN": "plainvalue1"})

        assert f"plainvalue1 {of_kind('jwt').secret}" == redactor.clean(f"plainvalue1 {of_kind('jwt').secret}")
        assert of_kind("aws").secret not in redactor.clean(of_kind("aws").secret)
        assert of_kind("aws").secret == Redactor(RedactionSettings(enabled=False)).clean(of_kind("aws").secret)


class TestOwnPatterns:
    def test_own_pattern(self):
        """A project's pattern is a kind like the others."""
        redactor = Redactor(RedactionSettings(patterns=(("customer", r"CUST-\d+"),)), environ={})

        assert f"for {mark('customer', 'CUST-123')}." == redactor.clean("for CUST-123.")
        assert redactor.suspects(b"anything")

    def test_a_pattern_that_never_ends_hides_the_whole_text(self):
        """A catastrophic pattern is cut off, and what it could not clear is not stored."""
        redactor = Redactor(RedactionSettings(patterns=(("slow", r"(a|aa)+$"),)), environ={})
        text = "a" * 60 + "b"

        assert mark("slow", text) == redactor.clean(text)

    @pytest.mark.parametrize(
        ("redaction", "words"),
        [
            (RedactionSettings(patterns=(("bad", "("),)), "'bad': '(' is not a valid regular expression"),
            (RedactionSettings(kinds_off=("jwtt",)), "'jwtt'; the kinds are 1password"),
        ],
    )
    def test_settings_that_cannot_be_meant(self, redaction, words):
        """A wrong pattern or kind is an error that names it."""
        with pytest.raises(ReceiverError, match=re.escape(words)):
            Redactor(redaction)


class TestTricks:
    def test_a_mark_shields_nothing(self):
        """A secret next to, inside or around what looks like a mark is replaced all the same."""
        secret, shield = of_kind("github").secret, "[REDACTED:aws:0123abcd]"
        kept = mark("github", secret)
        hidden = f"{shield}hunter2hunter2"

        assert f"{shield}{kept}" == REDACTOR.clean(f"{shield}{secret}")
        assert f"[REDACTED:{kept}:0123abcd]" == REDACTOR.clean(f"[REDACTED:{secret}:0123abcd]")
        assert f"redis://u:{mark('url-password', hidden)}@h" == REDACTOR.clean(f"redis://u:{hidden}@h")


class TestEscapes:
    """Characters hidden by JSON escapes."""

    @given(st.data())
    @settings(max_examples=200)
    def test_any_character_may_be_escaped(self, data):
        """Whichever characters of a secret are written as escapes, at one or two levels, its mark is the same."""
        secret = of_kind("github").secret
        hidden = "".join(
            data.draw(st.sampled_from([character, f"\\u{ord(character):04x}", f"\\\\u{ord(character):04X}"]))
            for character in secret
        )

        assert f'{{"a": "{mark("github", secret)}"}}' == REDACTOR.clean(f'{{"a": "{hidden}"}}')
        assert REDACTOR.suspects(hidden.encode())

    def test_escapes_stay_where_they_hide_nothing(self):
        """A text without a secret keeps its escapes."""
        text = r'{"a": "\u003cb\u003e https:\/\/example.org"}'

        assert text == REDACTOR.clean(text)
        assert not REDACTOR.suspects(text.encode())

    def test_a_key_has_one_hash_however_its_lines_are_broken(self):
        """Plain, with carriage returns, and escaped inside of JSON: one key, one mark."""
        key = of_kind("private-key").secret
        forms = (
            key,
            key.replace("\n", "\r\n"),
            key.replace("\n", "\\n"),
            key.replace("\n", "\\u000a").replace("/", "\\/"),
        )

        assert {mark("private-key", key)} == {REDACTOR.clean(form) for form in forms}


class TestHostileText:
    """Texts made to keep the writer busy."""

    @pytest.mark.parametrize("literal", sorted({literal for kind in SECRET_KINDS for literal in kind.literals}))
    def test_repeated_literals_cost_little(self, literal):
        """A text of nothing but a literal and its neighbours is read in about linear time."""
        text = "-" + (literal + "-") * 4_000 + literal * 4_000
        began = time.process_time()
        REDACTOR.suspects(text.encode())
        REDACTOR.clean(text)

        assert time.process_time() - began < 5


class TestEverywhere:
    """A secret planted in each place of a request reaches no column."""

    SECRET = of_kind("github").secret

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
        assert mark("github", self.SECRET).encode() == b64decode(found["attributes"]["bytes"])

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

    def test_keys_that_become_equal(self):
        """Halves of characters are replaced; of keys that are equal then the last counts: DuckDB refuses a repeated key."""
        texts = ["\\ud800", "\\udfff"]
        body = json.dumps(as_json(traces(span("s", attributes={"KEY0": 1, "KEY1": 2}))))
        for place, text in enumerate(texts):
            body = body.replace(f"KEY{place}", text)
        (found,) = self._stored("traces", body.encode(), True)

        assert found["attributes"] == {"\ufffd": "2"}
