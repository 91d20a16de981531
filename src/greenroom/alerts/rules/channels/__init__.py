from greenroom.alerts.rules.channels.table import (
    CHANNELS,
    GENERIC,
    Channel,
    channel_of,
    shown_url,
)

__all__ = ["CHANNELS", "GENERIC", "Channel", "channel_of", "shown_url"]
