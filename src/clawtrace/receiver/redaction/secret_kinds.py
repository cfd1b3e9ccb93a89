"""Kinds of secrets, as data: literals that must appear, and the pattern that decides.

A comment says who describes the shape: the issuer's documentation, or a rule of gitleaks' default configuration.

All literals are searched in one pass over every request (`redact.py`); a pattern is asked only where a literal of its
kind was found. A pattern may contain

- ``{start}``: the left boundary. Not glued to a letter or digit (``task-…`` holds no key), but directly after an escape
  sequence counts as a boundary, because messages are often JSON inside of text;
- ``{end}``: the right boundary, no letter or digit follows;
- ``{before:[…]}``, ``{after:[…]}``: other boundaries, none of these characters is there;
- ``{is}``: what joins a name and its value, ``KEY=…``, ``key: …``, ``"key": "…"``, quotes escaped any number of times;
- ``{quote}``: a quote, escaped any number of times.

A group named ``secret`` limits what is replaced. Shapes are given generously where the literal alone is distinctive, and
exactly where it is not: hexadecimal digits, base64 and ordinary words are everywhere in agents' traffic.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["SECRET_KINDS", "SecretKind"]

_AFTER_ESCAPE = r"(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})"
_QUOTE = r"(?:\\*[\"']|\\+u002[27])"
_IS = rf"{_QUOTE}?\s{{0,8}}(?:=>|:=|[:=])\s{{0,8}}{_QUOTE}?"
_BOUNDARY = re.compile(r"\{(start|end|before|after)(?::(\[.*?\]))?\}")


class SecretKind(NamedTuple):
    """One kind of secret."""

    name: str
    """Appears in ``[REDACTED:name:hash8]``."""
    literals: tuple[str, ...]
    """Exact texts, one of which every secret of this kind holds."""
    pattern: str
    """Regular expression (`re`, ``.`` matches line breaks) that finds the secret."""
    before: int | None = 0
    """The least number of characters of a match before the literal; None if the literal alone is enough."""
    check: Callable[[str], bool] | None = None
    """Says of a candidate whether it is a secret, where a regular expression cannot."""

    def expression(self, *, bounded: bool) -> str:
        """Return the pattern with its places filled in.

        Args:
            bounded: False leaves out the boundaries: in the bytes of a request, a length or the next field's tag may
                be directly next to a text and look like a letter.
        """
        filled = self.pattern.replace("{is}", _IS).replace("{quote}", _QUOTE)
        return _BOUNDARY.sub(_boundary if bounded else "", filled)


def _boundary(place: re.Match[str]) -> str:
    side, characters = place[1], place[2] or "[A-Za-z0-9]"
    if side in ("start", "before"):
        return f"(?:(?<!{characters})|{_AFTER_ESCAPE})"
    return f"(?!{characters})"


def _holds_credentials(text: str) -> bool:
    """Return whether `text` is base64 of ``user:password``."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(":")
    return bool(user and colon and password) and plain.isprintable()


_RUN = r"(?=[A-Za-z0-9_-]{0,200}[A-Za-z0-9]{16})(?=[A-Za-z0-9_-]{0,200}[0-9])"
"""A key has a long unbroken stretch and a digit; ``sk-learn-contrib-projects-list`` has neither.

Where one secret's literal can be inside another candidate, lengths are bounded: ``-sk-sk-sk-…`` would else be
read to its end from each of its literals, which takes hours for a large request."""
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NO_PASSWORD = (
    r"(?!(?:pass|passwd|password|pwd|PASS|PASSWORD)@|\$[{(]|\$[A-Za-z_]+@|%\(|%[sdv]@|\{+[A-Za-z0-9_. -]*\}+@|[*xX.]+@"
    r"|\[REDACTED:[^\[\]@]+:[0-9a-f]{8}\]@|[0-9]{1,5}[,;)|])"
)
"""Values in the place of a password that are none: the word itself, a variable, a placeholder, a mark, a port before a comma."""


def _key(name: str, prefixes: str, rest: str) -> SecretKind:
    """Return the kind of keys that begin with one of some prefixes, written with spaces between them."""
    literals = tuple(prefixes.split())
    return SecretKind(name, literals, f"{{start}}(?:{'|'.join(map(re.escape, literals))}){rest}")


def _set(name: str, names: str, value: str) -> SecretKind:
    """Return the kind of values that are set under one of some names, which may also be ends of longer names."""
    literals = tuple(names.split())
    return SecretKind(name, literals, f"(?:{'|'.join(literals)}){{is}}(?P<secret>{value})")


SECRET_KINDS: tuple[SecretKind, ...] = (
    # RFC 7468, OpenSSH PROTOCOL.key, RFC 9580; also in a Google service account's JSON file
    SecretKind(
        "private-key",
        ("-----BEGIN",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----BEGIN).){32,}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\\\s:,-]{32,})",
    ),
    _key("age", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}"),  # age(1); gitleaks age-secret-key
    # Model providers and services around them.
    _key("anthropic", "sk-ant-", "[A-Za-z0-9_-]{20,}"),  # gitleaks anthropic-api-key
    _key("openrouter", "sk-or-", "(?:v[0-9]-)?[A-Za-z0-9]{32,}"),  # openrouter.ai/docs
    _key("langfuse", "sk-lf-", _UUID),  # langfuse.com/docs
    _key("openai", "sk-", _RUN + "[A-Za-z0-9_-]{20,}"),  # gitleaks openai-api-key
    _key("google", "AIza", "[A-Za-z0-9_-]{35}{after:[A-Za-z0-9_-]}"),  # gitleaks gcp-api-key
    _key("huggingface", "hf_", "[A-Za-z0-9]{30,}"),  # gitleaks huggingface-access-token
    _key("groq", "gsk_", "[A-Za-z0-9]{40,}"),  # console.groq.com/docs
    _key("xai", "xai-", "[A-Za-z0-9]{60,}"),  # docs.x.ai
    _key("perplexity", "pplx-", "[A-Za-z0-9]{40,}"),  # gitleaks perplexity-api-key
    _key("replicate", "r8_", "[A-Za-z0-9]{37}{end}"),  # replicate.com/docs
    _key("nvidia", "nvapi-", "[A-Za-z0-9_-]{60,}"),  # docs.api.nvidia.com
    _key("langsmith", "lsv2_", "(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),  # docs.smith.langchain.com
    _key("tavily", "tvly-", _RUN + "[A-Za-z0-9-]{20,}"),  # docs.tavily.com
    _key("pinecone", "pcsk_", "[A-Za-z0-9_]{40,}"),  # docs.pinecone.io
    # Code and packages.
    _key("github", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{30,}"),  # docs.github.com, About authentication to GitHub
    _key("github", "github_pat_", "[A-Za-z0-9_]{22,}"),  # gitleaks github-fine-grained-pat
    _key("gitlab", "glpat- gldt- glptt- glrt- glcbt-", "[A-Za-z0-9_.-]{20,}"),  # docs.gitlab.com, Token overview
    _key("npm", "npm_", "[A-Za-z0-9]{36,}"),  # gitleaks npm-access-token
    _key("pypi", "pypi-AgE", "[A-Za-z0-9_-]{50,}"),  # gitleaks pypi-upload-token
    _key("rubygems", "rubygems_", "[0-9a-f]{48}"),  # gitleaks rubygems-api-token
    _key("docker", "dckr_", "(?:pat|oat)_[A-Za-z0-9_-]{20,}"),  # docs.docker.com, access tokens
    # docker config.json(5), auths
    SecretKind(
        "docker-auth",
        ("auth",),
        r"auth{quote}\s{0,8}:\s{0,8}{quote}(?P<secret>[A-Za-z0-9+/]{8,}={0,2}){quote}",
        check=_holds_credentials,
    ),
    # Clouds.
    _key("aws", "AKIA ASIA", "[0-9A-Z]{16}{end}"),  # gitleaks aws-access-token
    # docs.aws.amazon.com, Manage access keys
    _set(
        "aws-secret",
        "ecret_access_key ECRET_ACCESS_KEY ecretAccessKey aws_secret_key",
        "[A-Za-z0-9/+]{40}{after:[A-Za-z0-9/+=]}",
    ),
    # docs.aws.amazon.com, GetSessionToken
    _set("aws-session", "ession_token ESSION_TOKEN essionToken", "[A-Za-z0-9/+=]{100,}"),
    _key("google-oauth", "GOCSPX-", "[A-Za-z0-9_-]{20,}"),  # developers.google.com, OAuth client
    _key("google-oauth", "ya29.", "[A-Za-z0-9_-]{20,}"),  # cloud.google.com, access tokens
    # learn.microsoft.com, Configure connection strings
    _set("azure-storage", "AccountKey SharedAccessKey", "[A-Za-z0-9+/]{42,86}={1,2}"),
    _key("azure-sas", "sig=", "(?P<secret>[A-Za-z0-9%]{43,}(?:%3[Dd]|=))"),  # learn.microsoft.com, SAS
    # gitleaks azure-ad-client-secret
    SecretKind(
        "azure-client",
        ("Q~",),
        r"{before:[A-Za-z0-9_~.-]}[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
        before=4,
    ),
    _key("digitalocean", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}"),  # gitleaks digitalocean-pat
    _key("heroku", "HRKU-", "[A-Za-z0-9_-]{36,}"),  # gitleaks heroku-api-key
    _set("heroku", "HEROKU_API_KEY", _UUID),
    _key("flyio", "fo1_", "[A-Za-z0-9_-]{43}"),  # gitleaks flyio
    _key("flyio", "fm2_", "[A-Za-z0-9+/=]{100,}"),
    _key("databricks", "dapi", "[0-9a-f]{32}(?:-[0-9])?{end}"),  # gitleaks databricks-api-token
    _key("supabase", "sbp_", "[0-9a-f]{40}"),  # supabase.com
    _key("supabase", "sb_secret_", "[A-Za-z0-9_-]{20,}"),
    _key("planetscale", "pscale_", "(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}"),  # gitleaks planetscale-password
    # Secrets' keepers and builders.
    _key("vault", "hvs. hvb. hvr.", "[A-Za-z0-9_-]{24,}"),  # developer.hashicorp.com, Vault tokens
    # gitleaks hashicorp-tf-api-token
    SecretKind("terraform", (".atlasv1.",), r"{start}[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", before=14),
    # docs.doppler.com
    _key("doppler", "dp.", r"(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,44}"),
    _key("pulumi", "pul-", "[0-9a-f]{40}{end}"),  # gitleaks pulumi-api-token
    _key("tailscale", "tskey-", "[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),  # tailscale.com/kb
    _key("1password", "ops_eyJ", "[A-Za-z0-9+/=_-]{100,}"),  # gitleaks 1password-service-account-token
    # Watching.
    _key("grafana", "glsa_", "[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}"),  # gitleaks grafana-service-account-token
    _key("grafana", "glc_", "[A-Za-z0-9+/]{32,}={0,2}"),
    _key("newrelic", "NRAK-", "[A-Z0-9]{27}{end}"),  # gitleaks new-relic-user-api-key
    _key("newrelic", "NRII-", "[A-Za-z0-9-]{32}{end}"),
    # docs.datadoghq.com, API and application keys
    _set(
        "datadog",
        "DD_API_KEY DD-API-KEY dd-api-key DD_APP_KEY DD-APPLICATION-KEY DATADOG_API_KEY",
        "[0-9a-f]{32}(?:[0-9a-f]{8})?{end}",
    ),
    _key("sentry", "sntrys_ sntryu_", "[A-Za-z0-9+/=_-]{60,}"),  # gitleaks sentry-user-token
    _key("dynatrace", "dt0c01.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),  # gitleaks dynatrace-api-token
    # Payment and shops.
    _key("stripe", "sk_live_ rk_live_ sk_test_ rk_test_", "[A-Za-z0-9]{16,}"),  # docs.stripe.com/keys
    _key("stripe", "whsec_", "[A-Za-z0-9+/]{32,}={0,2}"),
    _key("shopify", "shpat_ shpca_ shppa_ shpss_", "[0-9A-Fa-f]{32}"),  # gitleaks shopify-access-token
    _key("square", "sq0atp- sq0csp-", "[A-Za-z0-9_-]{22,}"),  # developer.squareup.com
    # developer.squareup.com, access tokens
    SecretKind("square", ("EAAA",), "{before:[A-Za-z0-9+/]}EAAA(?!A{6})[A-Za-z0-9_-]{60}{after:[A-Za-z0-9+/=_-]}"),
    # Messages.
    # gitleaks slack-bot-token and others
    SecretKind(
        "slack",
        ("xoxa-", "xoxb-", "xoxe-", "xoxe.xox", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        r"{start}(?:xox[abeoprs](?:\.xox[bp])?|xapp)-(?=[A-Za-z0-9-]{0,200}[0-9])[A-Za-z0-9-]{16,}",
    ),
    # gitleaks slack-webhook-url
    SecretKind(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{30,})",
    ),
    # discord.com/developers/docs, Webhook
    SecretKind("discord", ("/api/webhooks/",), r"/api/webhooks/(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{50,})"),
    # discord.com/developers/docs, Reference: Authentication
    SecretKind(
        "discord",
        ("Bot ", "DISCORD_TOKEN", "DISCORD_BOT_TOKEN"),
        r"(?:Bot +|DISCORD_(?:BOT_)?TOKEN{is})(?P<secret>[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,})",
    ),
    # core.telegram.org/bots/api; gitleaks telegram-bot-api-token
    SecretKind(
        "telegram",
        (":AA",),
        "{before:[0-9]}[0-9]{8,10}:AA[A-Za-z0-9_-]{33}{after:[A-Za-z0-9_-]}",
        before=8,
    ),
    _key("sendgrid", "SG.", r"[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),  # gitleaks sendgrid-api-token
    _key("brevo", "xkeysib-", "[0-9a-f]{64}-[A-Za-z0-9]{16}"),  # gitleaks sendinblue-api-token
    _key("twilio", "SK", "[0-9a-f]{32}{end}"),  # gitleaks twilio-api-key
    _set("twilio", "TWILIO_AUTH_TOKEN", "[0-9a-f]{32}{end}"),
    # gitleaks mailgun-private-api-token
    SecretKind(
        "mailgun",
        ("mailgun", "Mailgun", "MAILGUN", "api:key-"),
        r"(?:[Mm]ailgun|MAILGUN|api:)[^\n]{0,60}?(?P<secret>key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}){end}",
    ),
    # gitleaks mailchimp-api-key
    SecretKind("mailchimp", ("-us",), "{start}[0-9a-f]{32}-us[0-9]{1,2}{end}", before=32),
    # Work.
    _key("linear", "lin_api_ lin_oauth_", "[A-Za-z0-9]{40,}"),  # gitleaks linear-api-key
    _key("notion", "ntn_", "[A-Za-z0-9]{40,}"),  # gitleaks notion-api-token
    _key("notion", "secret_", "[A-Za-z0-9]{43}{end}"),
    _key("atlassian", "ATATT3 ATCTT3", "[A-Za-z0-9_=-]{50,}"),  # gitleaks atlassian-api-token
    _key("airtable", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}{end}"),  # airtable.com/developers, tokens
    _key("figma", "figd_", "[A-Za-z0-9_-]{40,}"),  # developers.figma.com, access tokens
    _key("postman", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}"),  # gitleaks postman-api-token
    # Any service.
    # RFC 7519; RFC 7516 for five parts
    _key(
        "jwt",
        "eyJ",
        r"[A-Za-z0-9_-]{8,1024}\.(?:eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){3})",
    ),
    # RFC 6750
    SecretKind(
        "bearer",
        ("Bearer ", "bearer "),
        r"{start}[Bb]earer +(?P<secret>(?=[A-Za-z0-9._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,})",
    ),
    # RFC 7617
    SecretKind(
        "basic-auth",
        ("Basic ", "basic "),
        "{start}[Bb]asic +(?P<secret>[A-Za-z0-9+/]{6,}={0,2})",
        check=_holds_credentials,
    ),
    # RFC 3986, userinfo
    SecretKind(
        "url-password",
        ("://",),
        r"://[^\s/?#:@\"'\\<>]{0,64}:(?P<secret>" + _NO_PASSWORD + r"[^\s/?#\"'\\<>]{3,128})@(?=[A-Za-z0-9\[_-])",
    ),
    # What `env` and `.env` files print; the value as in gitleaks generic-api-key
    _set(
        "assigned",
        "_API_KEY _ACCESS_KEY _SECRET_KEY _TOKEN _SECRET _PASSWORD",
        r"(?![/.~])(?!process\.env|os\.environ)(?=[A-Za-z0-9_./+=~-]{0,200}[0-9])[A-Za-z0-9_./+=~-]{16,}",
    ),
)
"""Order matters: what an earlier kind replaced, a later one no longer sees (`anthropic` goes before `openai`)."""
