"""Kinds of secrets, as data: literals that must appear, the pattern that decides, and where its shape is described.

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
    source: str
    """Who describes the shape: the issuer's documentation, or a rule of gitleaks' default configuration."""
    before: int | None = 0
    """How many characters of a match precede the literal, at least; None where the literal alone is enough."""
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
    """Say whether `text` is base64 of ``user:password``."""
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
"""What is in the place of a password without being one: the word itself, a variable, a placeholder, a mark, a port before a comma."""

SECRET_KINDS: tuple[SecretKind, ...] = (
    SecretKind(
        "private-key",
        ("-----BEGIN",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----BEGIN).){32,}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\\\s:,-]{32,})",
        "RFC 7468, OpenSSH PROTOCOL.key, RFC 9580; also in a Google service account's JSON file",
    ),
    SecretKind("age", ("AGE-SECRET-KEY-1",), "{start}AGE-SECRET-KEY-1[0-9A-Z]{58}", "age(1); gitleaks age-secret-key"),
    # Model providers and services around them.
    SecretKind("anthropic", ("sk-ant-",), "{start}sk-ant-[A-Za-z0-9_-]{20,}", "gitleaks anthropic-api-key"),
    SecretKind("openrouter", ("sk-or-",), "{start}sk-or-(?:v[0-9]-)?[A-Za-z0-9]{32,}", "openrouter.ai/docs"),
    SecretKind("langfuse", ("sk-lf-",), "{start}sk-lf-" + _UUID, "langfuse.com/docs"),
    SecretKind("openai", ("sk-",), "{start}sk-" + _RUN + "[A-Za-z0-9_-]{20,}", "gitleaks openai-api-key"),
    SecretKind("google", ("AIza",), "{start}AIza[A-Za-z0-9_-]{35}{after:[A-Za-z0-9_-]}", "gitleaks gcp-api-key"),
    SecretKind("huggingface", ("hf_",), "{start}hf_[A-Za-z0-9]{30,}", "gitleaks huggingface-access-token"),
    SecretKind("groq", ("gsk_",), "{start}gsk_[A-Za-z0-9]{40,}", "console.groq.com/docs"),
    SecretKind("xai", ("xai-",), "{start}xai-[A-Za-z0-9]{60,}", "docs.x.ai"),
    SecretKind("perplexity", ("pplx-",), "{start}pplx-[A-Za-z0-9]{40,}", "gitleaks perplexity-api-key"),
    SecretKind("replicate", ("r8_",), "{start}r8_[A-Za-z0-9]{37}{end}", "replicate.com/docs"),
    SecretKind("nvidia", ("nvapi-",), "{start}nvapi-[A-Za-z0-9_-]{60,}", "docs.api.nvidia.com"),
    SecretKind("langsmith", ("lsv2_",), "{start}lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "docs.smith.langchain.com"),
    SecretKind("tavily", ("tvly-",), "{start}tvly-" + _RUN + "[A-Za-z0-9-]{20,}", "docs.tavily.com"),
    SecretKind("pinecone", ("pcsk_",), "{start}pcsk_[A-Za-z0-9_]{40,}", "docs.pinecone.io"),
    # Code and packages.
    SecretKind(
        "github",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        "{start}gh[pousr]_[A-Za-z0-9]{30,}",
        "docs.github.com, About authentication to GitHub",
    ),
    SecretKind("github", ("github_pat_",), "{start}github_pat_[A-Za-z0-9_]{22,}", "gitleaks github-fine-grained-pat"),
    SecretKind(
        "gitlab",
        ("glpat-", "gldt-", "glptt-", "glrt-", "glcbt-"),
        "{start}gl(?:pat|dt|ptt|rt|cbt)-[A-Za-z0-9_.-]{20,}",
        "docs.gitlab.com, Token overview",
    ),
    SecretKind("npm", ("npm_",), "{start}npm_[A-Za-z0-9]{36,}", "gitleaks npm-access-token"),
    SecretKind("pypi", ("pypi-AgE",), "{start}pypi-AgE[A-Za-z0-9_-]{50,}", "gitleaks pypi-upload-token"),
    SecretKind("rubygems", ("rubygems_",), "{start}rubygems_[0-9a-f]{48}", "gitleaks rubygems-api-token"),
    SecretKind("docker", ("dckr_",), "{start}dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", "docs.docker.com, access tokens"),
    SecretKind(
        "docker-auth",
        ("auth",),
        r"auth{quote}\s{0,8}:\s{0,8}{quote}(?P<secret>[A-Za-z0-9+/]{8,}={0,2}){quote}",
        "docker config.json(5), auths",
        check=_holds_credentials,
    ),
    # Clouds.
    SecretKind("aws", ("AKIA", "ASIA"), "{start}A[KS]IA[0-9A-Z]{16}{end}", "gitleaks aws-access-token"),
    SecretKind(
        "aws-secret",
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey", "aws_secret_key"),
        "(?:ecret_access_key|ECRET_ACCESS_KEY|ecretAccessKey|aws_secret_key)"
        "{is}(?P<secret>[A-Za-z0-9/+]{40}){after:[A-Za-z0-9/+=]}",
        "docs.aws.amazon.com, Manage access keys",
    ),
    SecretKind(
        "aws-session",
        ("ession_token", "ESSION_TOKEN", "essionToken"),
        "(?:ession_token|ESSION_TOKEN|essionToken){is}(?P<secret>[A-Za-z0-9/+=]{100,})",
        "docs.aws.amazon.com, GetSessionToken",
    ),
    SecretKind("google-oauth", ("GOCSPX-",), "{start}GOCSPX-[A-Za-z0-9_-]{20,}", "developers.google.com, OAuth client"),
    SecretKind("google-oauth", ("ya29.",), r"{start}ya29\.[A-Za-z0-9_-]{20,}", "cloud.google.com, access tokens"),
    SecretKind(
        "azure-storage",
        ("AccountKey", "SharedAccessKey"),
        "(?:AccountKey|SharedAccessKey){is}(?P<secret>[A-Za-z0-9+/]{42,86}={1,2})",
        "learn.microsoft.com, Configure connection strings",
    ),
    SecretKind(
        "azure-sas", ("sig=",), "{start}sig=(?P<secret>[A-Za-z0-9%]{43,}(?:%3[Dd]|=))", "learn.microsoft.com, SAS"
    ),
    SecretKind(
        "azure-client",
        ("Q~",),
        r"{before:[A-Za-z0-9_~.-]}[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
        "gitleaks azure-ad-client-secret",
        before=4,
    ),
    SecretKind(
        "digitalocean",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        "{start}do[opr]_v1_[0-9a-f]{64}",
        "gitleaks digitalocean-pat",
    ),
    SecretKind(
        "heroku",
        ("HRKU-", "HEROKU_API_KEY"),
        "(?:{start}HRKU-[A-Za-z0-9_-]{36,}|HEROKU_API_KEY{is}(?P<secret>" + _UUID + "))",
        "gitleaks heroku-api-key",
    ),
    SecretKind(
        "flyio", ("fo1_", "fm2_"), "{start}(?:fo1_[A-Za-z0-9_-]{43}|fm2_[A-Za-z0-9+/=]{100,})", "gitleaks flyio"
    ),
    SecretKind("databricks", ("dapi",), "{start}dapi[0-9a-f]{32}(?:-[0-9])?{end}", "gitleaks databricks-api-token"),
    SecretKind(
        "supabase", ("sbp_", "sb_secret_"), "{start}(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,})", "supabase.com"
    ),
    SecretKind(
        "planetscale",
        ("pscale_",),
        r"{start}pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}",
        "gitleaks planetscale-password",
    ),
    # Secrets' keepers and builders.
    SecretKind(
        "vault",
        ("hvs.", "hvb.", "hvr."),
        r"{start}hv[sbr]\.[A-Za-z0-9_-]{24,}",
        "developer.hashicorp.com, Vault tokens",
    ),
    SecretKind(
        "terraform",
        (".atlasv1.",),
        r"{start}[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
        "gitleaks hashicorp-tf-api-token",
        before=14,
    ),
    SecretKind(
        "doppler",
        ("dp.",),
        r"{start}dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,44}",
        "docs.doppler.com",
    ),
    SecretKind("pulumi", ("pul-",), "{start}pul-[0-9a-f]{40}{end}", "gitleaks pulumi-api-token"),
    SecretKind("tailscale", ("tskey-",), "{start}tskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}", "tailscale.com/kb"),
    SecretKind(
        "1password", ("ops_eyJ",), "{start}ops_eyJ[A-Za-z0-9+/=_-]{100,}", "gitleaks 1password-service-account-token"
    ),
    # Watching.
    SecretKind(
        "grafana",
        ("glsa_", "glc_"),
        "{start}(?:glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})",
        "gitleaks grafana-service-account-token",
    ),
    SecretKind(
        "newrelic",
        ("NRAK-", "NRII-"),
        "{start}NR(?:AK-[A-Z0-9]{27}|II-[A-Za-z0-9-]{32}){end}",
        "gitleaks new-relic-user-api-key",
    ),
    SecretKind(
        "datadog",
        ("DD_API_KEY", "DD-API-KEY", "dd-api-key", "DD_APP_KEY", "DD-APPLICATION-KEY", "DATADOG_API_KEY"),
        "(?:DD_API_KEY|DD-API-KEY|dd-api-key|DD_APP_KEY|DD-APPLICATION-KEY|DATADOG_API_KEY)"
        "{is}(?P<secret>[0-9a-f]{32}(?:[0-9a-f]{8})?){end}",
        "docs.datadoghq.com, API and application keys",
    ),
    SecretKind(
        "sentry", ("sntrys_", "sntryu_"), "{start}sntry[su]_[A-Za-z0-9+/=_-]{60,}", "gitleaks sentry-user-token"
    ),
    SecretKind(
        "dynatrace", ("dt0c01.",), r"{start}dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}", "gitleaks dynatrace-api-token"
    ),
    # Payment and shops.
    SecretKind(
        "stripe",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"),
        "{start}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,}={0,2})",
        "docs.stripe.com/keys",
    ),
    SecretKind(
        "shopify",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        "{start}shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",
        "gitleaks shopify-access-token",
    ),
    SecretKind("square", ("sq0atp-", "sq0csp-"), "{start}sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}", "developer.squareup.com"),
    SecretKind(
        "square",
        ("EAAA",),
        "{before:[A-Za-z0-9+/]}EAAA(?!A{6})[A-Za-z0-9_-]{60}{after:[A-Za-z0-9+/=_-]}",
        "developer.squareup.com, access tokens",
    ),
    # Messages.
    SecretKind(
        "slack",
        ("xoxa-", "xoxb-", "xoxe-", "xoxe.xox", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        r"{start}(?:xox[abeoprs](?:\.xox[bp])?|xapp)-(?=[A-Za-z0-9-]{0,200}[0-9])[A-Za-z0-9-]{16,}",
        "gitleaks slack-bot-token and others",
    ),
    SecretKind(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{30,})",
        "gitleaks slack-webhook-url",
    ),
    SecretKind(
        "discord",
        ("/api/webhooks/",),
        r"/api/webhooks/(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{50,})",
        "discord.com/developers/docs, Webhook",
    ),
    SecretKind(
        "discord",
        ("Bot ", "DISCORD_TOKEN", "DISCORD_BOT_TOKEN"),
        r"(?:Bot +|DISCORD_(?:BOT_)?TOKEN{is})(?P<secret>[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,})",
        "discord.com/developers/docs, Reference: Authentication",
    ),
    SecretKind(
        "telegram",
        (":AA",),
        "{before:[0-9]}[0-9]{8,10}:AA[A-Za-z0-9_-]{33}{after:[A-Za-z0-9_-]}",
        "core.telegram.org/bots/api; gitleaks telegram-bot-api-token",
        before=8,
    ),
    SecretKind(
        "sendgrid", ("SG.",), r"{start}SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}", "gitleaks sendgrid-api-token"
    ),
    SecretKind("brevo", ("xkeysib-",), "{start}xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", "gitleaks sendinblue-api-token"),
    SecretKind(
        "twilio",
        ("SK", "TWILIO_AUTH_TOKEN"),
        "(?:{start}SK[0-9a-f]{32}|TWILIO_AUTH_TOKEN{is}(?P<secret>[0-9a-f]{32})){end}",
        "gitleaks twilio-api-key",
    ),
    SecretKind(
        "mailgun",
        ("mailgun", "Mailgun", "MAILGUN", "api:key-"),
        r"(?:[Mm]ailgun|MAILGUN|api:)[^\n]{0,60}?(?P<secret>key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}){end}",
        "gitleaks mailgun-private-api-token",
    ),
    SecretKind("mailchimp", ("-us",), "{start}[0-9a-f]{32}-us[0-9]{1,2}{end}", "gitleaks mailchimp-api-key", before=32),
    # Work.
    SecretKind(
        "linear", ("lin_api_", "lin_oauth_"), "{start}lin_(?:api|oauth)_[A-Za-z0-9]{40,}", "gitleaks linear-api-key"
    ),
    SecretKind(
        "notion",
        ("ntn_", "secret_"),
        "{start}(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}{end})",
        "gitleaks notion-api-token",
    ),
    SecretKind(
        "atlassian", ("ATATT3", "ATCTT3"), "{start}AT[AC]TT3[A-Za-z0-9_=-]{50,}", "gitleaks atlassian-api-token"
    ),
    SecretKind(
        "airtable", ("pat",), r"{start}pat[A-Za-z0-9]{14}\.[0-9a-f]{64}{end}", "airtable.com/developers, tokens"
    ),
    SecretKind("figma", ("figd_",), "{start}figd_[A-Za-z0-9_-]{40,}", "developers.figma.com, access tokens"),
    SecretKind("postman", ("PMAK-",), "{start}PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "gitleaks postman-api-token"),
    # Any service.
    SecretKind(
        "jwt",
        ("eyJ",),
        r"{start}eyJ[A-Za-z0-9_-]{8,1024}\.(?:eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
        r"|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){3})",
        "RFC 7519; RFC 7516 for five parts",
    ),
    SecretKind(
        "bearer",
        ("Bearer ", "bearer "),
        r"{start}[Bb]earer +(?P<secret>(?=[A-Za-z0-9._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,})",
        "RFC 6750",
    ),
    SecretKind(
        "basic-auth",
        ("Basic ", "basic "),
        "{start}[Bb]asic +(?P<secret>[A-Za-z0-9+/]{6,}={0,2})",
        "RFC 7617",
        check=_holds_credentials,
    ),
    SecretKind(
        "url-password",
        ("://",),
        r"://[^\s/?#:@\"'\\<>]{0,64}:(?P<secret>" + _NO_PASSWORD + r"[^\s/?#\"'\\<>]{3,128})@(?=[A-Za-z0-9\[_-])",
        "RFC 3986, userinfo",
    ),
    SecretKind(
        "assigned",
        ("_API_KEY", "_ACCESS_KEY", "_SECRET_KEY", "_TOKEN", "_SECRET", "_PASSWORD"),
        r"_(?:API_KEY|ACCESS_KEY|SECRET_KEY|TOKEN|SECRET|PASSWORD){is}"
        r"(?P<secret>(?![/.~])(?!process\.env|os\.environ)(?=[A-Za-z0-9_./+=~-]{0,200}[0-9])[A-Za-z0-9_./+=~-]{16,})",
        "what `env` and `.env` files print; the value as in gitleaks generic-api-key",
    ),
)
"""Order matters: what an earlier kind replaced, a later one no longer sees (`anthropic` goes before `openai`)."""
