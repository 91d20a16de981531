"""The table of channels, and the lookup by URL."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from greenroom.alerts.rules.channels import chat, services
from greenroom.alerts.rules.message import Message, Post

GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Channel:
    """`write` gets (message, url, secret, now_ms); `problem` judges (status, body). `published`:
    Cloudflare's `type`. `secret_url`: what follows the host in the URL is a secret.
    """

    name: str
    help: str
    write: Callable[[Message, str, str, int], Post]
    hosts: str = ""
    paths: str = ""
    published: str = GENERIC
    secret_url: bool = False
    secret_help: str = ""
    problem: Callable[[int, bytes], str] = services.answered_2xx


_ROWS = (
    Channel(
        "slack",
        "Slack incoming webhooks; Mattermost and Rocket.Chat with `channel` set",
        chat.slack,
        r"hooks\.slack(-gov)?\.com",
        published="slack",
        secret_url=True,
    ),
    Channel(
        "discord",
        "Discord webhooks",
        chat.discord,
        r"(.+\.)?discord(app)?\.com",
        published="discord",
        secret_url=True,
    ),
    Channel(
        "gchat",
        "Google Chat webhooks of a space",
        chat.gchat,
        r"chat\.googleapis\.com",
        published="gchat",
        secret_url=True,
    ),
    Channel(
        "msteams",
        "Microsoft Teams workflows that begin with a webhook request",
        chat.msteams,
        r".+\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)",
        secret_url=True,
    ),
    Channel(
        "feishu",
        "custom bots of Feishu and Lark",
        chat.feishu,
        r"open\.(feishu\.cn|larksuite\.com)",
        published="feishu",
        secret_url=True,
        secret_help="the signing secret of the bot",  # noqa: S106  # a text for operators
        problem=services.answered_code_0,
    ),
    Channel(
        "opsgenie",
        "Opsgenie Alert API, `https://api.opsgenie.com/v2/alerts`",
        services.opsgenie,
        r"api\.(eu\.)?opsgenie\.com",
        published="opsgenie",
        secret_help="the API key",  # noqa: S106
    ),
    Channel(
        "datadog",
        "Datadog Events API, `https://api.datadoghq.com/api/v1/events`",
        services.datadog,
        r"(.+\.)?(datadoghq\.(com|eu)|ddog-gov\.com)",
        published="datadog",
        secret_url=True,
        secret_help="the API key",  # noqa: S106
    ),
    Channel(
        "splunk",
        "Splunk HTTP Event Collector",
        services.splunk,
        r".+\.splunkcloud\.com",
        r"/services/collector(/.*)?",
        published="splunk",
        secret_help="the token of the collector",  # noqa: S106
        problem=services.answered_code_0,
    ),
    Channel(
        "pagerduty",
        "PagerDuty Events API v2; usually by a PagerDuty service instead of a webhook",
        services.pagerduty,
        r"events\.(eu\.)?pagerduty\.com",
        secret_help="the routing key",  # noqa: S106
    ),
    Channel(
        GENERIC,
        "anything else: the published JSON payload",
        services.generic,
        secret_help=f"sent with every call in the header `{services.AUTH_HEADER}`",
    ),
)

CHANNELS: Mapping[str, Channel] = {row.name: row for row in _ROWS}


def channel_of(url: str) -> Channel:
    parts = urlsplit(url)
    host, path = (parts.hostname or "").lower(), parts.path or "/"
    for row in _ROWS:
        if (row.hosts and re.fullmatch(row.hosts, host)) or (
            row.paths and re.fullmatch(row.paths, path)
        ):
            return row
    return CHANNELS[GENERIC]


def shown_url(channel: Channel, url: str) -> str:
    """Hides path and query where they are secret, and always an `api_key` or token in the query."""
    parts = urlsplit(url)
    if channel.secret_url:
        return f"{parts.scheme}://{parts.netloc}/***"
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + ("?***" if parts.query else "")
