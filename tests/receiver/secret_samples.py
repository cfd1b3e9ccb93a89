"""Secrets of every kind, put together at run time, so that no scanner takes this folder for a leak."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

_DICE = random.Random(20_261_120)
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_BREAKS = re.compile(r"[\r\n\t]+")


@dataclass(frozen=True)
class Sample:
    """A secret, and the text that it is recognised in."""

    kind: str
    text: str
    secret: str

    @property
    def mark(self) -> str:
        """What must stand in its place."""
        return mark(self.kind, self.secret)

    @property
    def pieces(self) -> list[str]:
        """Parts of the secret, none of which may be left: they hold no character that JSON would escape."""
        return [piece for piece in re.split(r"[^A-Za-z0-9_.+=-]+", self.secret) if len(piece) > 9] or [self.secret]


def mark(kind: str, secret: str) -> str:
    return f"[REDACTED:{kind}:{hashlib.sha256(_BREAKS.sub(chr(10), secret).encode()).hexdigest()[:8]}]"


def some(count: int, alphabet: str = _ALNUM) -> str:
    """Random characters, a digit among the first and a letter among the last."""
    return "7" + "".join(_DICE.choice(alphabet) for _ in range(count - 2)) + "a"


def _upper(count: int) -> str:
    return some(count - 1, _UPPER)[:-1] + "QZ"


def _uuid() -> str:
    return "-".join(some(size, _HEX) for size in (8, 4, 4, 4, 12))


def _base64(count: int) -> str:
    return some(count, _ALNUM + "+/")


def _pem(label: str) -> str:
    lines = "\n".join(_base64(64) for _ in range(6))
    return f"-----BEGIN {label}" + f" KEY-----\n{lines}\n-----END {label} KEY-----"


def _credentials() -> str:
    return base64.b64encode(f"robot:{some(15)}".encode()).decode()


_WHOLE: tuple[tuple[str, str, str], ...] = (
    ("age", "AGE-SECRET-" + "KEY-1", _upper(58)),
    ("anthropic", "sk-" + "ant-api03-", some(93)),
    ("openrouter", "sk-" + "or-v1-", some(64, _HEX)),
    ("langfuse", "sk-" + "lf-", _uuid()),
    ("openai", "sk-" + "proj-", some(74)),
    ("openai", "sk-", some(48)),
    ("google", "AI" + "za", some(35)),
    ("huggingface", "hf" + "_", some(34)),
    ("groq", "gsk" + "_", some(52)),
    ("xai", "xai" + "-", some(80)),
    ("perplexity", "pplx" + "-", some(48)),
    ("replicate", "r8" + "_", some(37)),
    ("nvidia", "nvapi" + "-", some(64)),
    ("langsmith", "lsv2" + "_pt_", some(32, _HEX) + "_" + some(10, _HEX)),
    ("tavily", "tvly" + "-dev-", some(32)),
    ("pinecone", "pcsk" + "_", some(5) + "_" + some(60)),
    *(("github", f"gh{letter}" + "_", some(36)) for letter in "pousr"),
    ("github", "github" + "_pat_", some(22) + "_" + some(59)),
    *(("gitlab", f"gl{word}" + "-", some(20)) for word in ("pat", "dt", "ptt", "rt", "cbt")),
    ("npm", "npm" + "_", some(36)),
    ("pypi", "pypi-AgE" + "IcHlwaS5vcmc", some(120)),
    ("rubygems", "rubygems" + "_", some(48, _HEX)),
    ("docker", "dckr" + "_pat_", some(27)),
    ("aws", "AK" + "IA", _upper(16)),
    ("aws", "AS" + "IA", _upper(16)),
    ("google-oauth", "GOC" + "SPX-", some(28)),
    ("google-oauth", "ya" + "29.", some(120)),
    ("azure-client", "", some(3) + "8" + "Q~" + some(34)),
    *(("digitalocean", f"do{letter}" + "_v1_", some(64, _HEX)) for letter in "por"),
    ("heroku", "HR" + "KU-", some(60)),
    ("flyio", "fo1" + "_", some(43)),
    ("flyio", "fm2" + "_", some(160)),
    ("databricks", "da" + "pi", some(32, _HEX)),
    ("supabase", "sb" + "p_", some(40, _HEX)),
    ("supabase", "sb_" + "secret_", some(31)),
    ("planetscale", "pscale" + "_pw_", some(43)),
    *(("vault", f"hv{letter}" + ".", some(90)) for letter in "sbr"),
    ("terraform", "", some(14) + ".atlas" + "v1." + some(67)),
    ("doppler", "dp" + ".pt.", some(43)),
    ("pulumi", "pul" + "-", some(40, _HEX)),
    ("tailscale", "tskey" + "-auth-", some(12) + "-" + some(32)),
    ("1password", "ops" + "_eyJ", some(260)),
    ("grafana", "glsa" + "_", some(32) + "_" + some(8, _HEX)),
    ("grafana", "glc" + "_", some(60)),
    ("newrelic", "NR" + "AK-", _upper(27)),
    ("newrelic", "NR" + "II-", some(32)),
    ("sentry", "sntry" + "s_", some(120)),
    ("sentry", "sntry" + "u_", some(64, _HEX)),
    ("dynatrace", "dt0" + "c01.", some(24) + "." + some(64)),
    *(("stripe", f"{word}" + "_", some(24)) for word in ("sk_live", "rk_live", "sk_test", "rk_test")),
    ("stripe", "whs" + "ec_", some(32)),
    *(("shopify", f"shp{word}" + "_", some(32, _HEX)) for word in ("at", "ca", "pa", "ss")),
    ("square", "sq0" + "atp-", some(22)),
    ("square", "sq0" + "csp-", some(43)),
    ("square", "EA" + "AA", some(60)),
    *(("slack", f"xox{letter}" + "-", f"{some(12, string.digits)[:-1]}4-{some(24)}") for letter in "abeoprs"),
    ("slack", "xoxe.xo" + "xp-", "1-" + some(160)),
    ("slack", "xa" + "pp-", "1-A" + some(60)),
    ("telegram", "", some(10, string.digits)[:-1] + "1" + ":A" + "A" + some(33)),
    ("sendgrid", "SG" + ".", some(22) + "." + some(43)),
    ("brevo", "xkey" + "sib-", some(64, _HEX) + "-" + some(16)),
    ("twilio", "S" + "K", some(32, _HEX)),
    ("mailchimp", "", some(32, _HEX) + "-" + "us21"),
    ("linear", "lin" + "_api_", some(40)),
    ("linear", "lin" + "_oauth_", some(64)),
    ("notion", "nt" + "n_", some(46)),
    ("notion", "secr" + "et_", some(43)),
    ("atlassian", "ATA" + "TT3", some(186)),
    ("atlassian", "ATC" + "TT3", some(186)),
    ("airtable", "pa" + "t", some(14) + "." + some(64, _HEX)),
    ("figma", "fig" + "d_", some(40)),
    ("postman", "PM" + "AK-", some(24, _HEX) + "-" + some(34, _HEX)),
    ("jwt", "eyJhbGciOiJIUzI1" + "NiJ9.eyJ", some(40) + "." + some(43)),
    ("jwt", "eyJhbGciOiJSU0Et" + "T0FFUCJ9.", ".".join(some(size) for size in (342, 16, 64, 22))),
    ("private-key", "", _pem("RSA PRIVATE")),
    ("private-key", "", _pem("OPENSSH PRIVATE")),
    ("private-key", "", _pem("PRIVATE")),
)
"""Kind, beginning, rest: recognised wherever they stand."""

_INSIDE: tuple[tuple[str, str, str, str], ...] = (
    ("docker-auth", '{"auths": {"registry.example.org": {"au' + 'th": "', _credentials(), '"}}}'),
    *(("aws-secret", f"{name}=", _base64(40), "") for name in ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY")),
    ("aws-secret", '"secretAccessKey": "', _base64(40), '"'),
    ("aws-secret", "aws_secret_key: ", _base64(40), ""),
    *(("aws-session", f"{name}=", _base64(300), "") for name in ("aws_session_token", "AWS_SESSION_TOKEN")),
    ("aws-session", '"SessionToken": "', _base64(300), '"'),
    ("azure-storage", "DefaultEndpointsProtocol=https;AccountName=box;Account" + "Key=", _base64(86) + "==", ";x=y"),
    ("azure-storage", "SharedAccessKeyName=root;SharedAccess" + "Key=", _base64(43) + "=", ""),
    ("azure-sas", "https://box.blob.core.windows.net/c?sv=2024-11-04&si" + "g=", some(44) + "%3D", "&se=2027"),
    ("heroku", "HEROKU_API" + "_KEY=", _uuid(), ""),
    *(("datadog", f"{name}: ", some(32, _HEX), "") for name in ("DD-API-KEY", "dd-api-key", "DD_API_KEY")),
    *(("datadog", f"{name}=", some(40, _HEX), "") for name in ("DD_APP_KEY", "DD-APPLICATION-KEY", "DATADOG_API_KEY")),
    ("slack-webhook", "https://hooks.slack" + ".com/services/", f"T{_upper(9)}/B{_upper(9)}/{some(24)}", ""),
    ("discord", "https://discord.com/api/web" + "hooks/", f"{some(18, string.digits)[:-1]}1/{some(68)}", ""),
    *(
        ("discord", f"{name}", f"{some(26)}.{some(6)}.{some(38)}", "")
        for name in ("Bot ", "DISCORD_TOKEN=", "DISCORD_BOT_TOKEN=")
    ),
    ("twilio", "TWILIO_AUTH" + "_TOKEN=", some(32, _HEX), ""),
    *(("mailgun", f"{name} api: ", "key-" + some(32, _HEX), "") for name in ("mailgun", "Mailgun")),
    ("mailgun", "MAILGUN_API_KEY=", f"{some(32, _HEX)}-{some(8, _HEX)}-{some(8, _HEX)}", ""),
    ("mailgun", "curl --user 'ap" + "i:", "key-" + some(32, _HEX), "'"),
    ("bearer", "Authorization: Bear" + "er ", some(40), ""),
    ("bearer", "authorization: bear" + "er ", some(40), ""),
    ("basic-auth", "Authorization: Bas" + "ic ", _credentials(), ""),
    ("basic-auth", "authorization: bas" + "ic ", _credentials(), ""),
    ("url-password", "postgres://app:", some(16), "@db.internal:5432/main"),
    ("url-password", "redis://:", "p@" + some(14), "@cache:6379/0"),
    *(
        ("assigned", f"ACME{name}=", some(24), "")
        for name in ("_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_TOKEN", "_SECRET")
    ),
    ("assigned", 'export DB_PASSWORD="', some(24), '"'),
)
"""Kind, what stands before, the secret, what stands after: recognised by what is around them."""

SAMPLES: dict[str, Sample] = {}
for _kind, _start, _rest in _WHOLE:
    SAMPLES[f"{_kind}-{len(SAMPLES)}"] = Sample(_kind, _start + _rest, _start + _rest)
for _kind, _before, _secret, _after in _INSIDE:
    SAMPLES[f"{_kind}-{len(SAMPLES)}"] = Sample(_kind, _before + _secret + _after, _secret)


def of_kind(kind: str) -> Sample:
    """The first sample of a kind."""
    return next(sample for sample in SAMPLES.values() if sample.kind == kind)


def one_of_each() -> Iterator[Sample]:
    """One sample of every kind."""
    seen: set[str] = set()
    for sample in SAMPLES.values():
        if sample.kind not in seen:
            seen.add(sample.kind)
            yield sample
