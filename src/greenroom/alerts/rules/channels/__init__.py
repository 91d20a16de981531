"""The channels of webhooks. A row of CHANNELS has hosts, a format, and what counts as delivered."""

from greenroom.alerts.rules.channels.table import (
    CHANNELS,
    GENERIC,
    Channel,
    channel_of,
    shown_url,
)

__all__ = ["CHANNELS", "GENERIC", "Channel", "channel_of", "shown_url"]
