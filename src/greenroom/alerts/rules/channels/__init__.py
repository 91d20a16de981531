"""Every channel that a webhook can speak: one row of CHANNELS is its hosts, its format, and what it
calls delivered.
"""

from greenroom.alerts.rules.channels.table import (
    CHANNELS,
    GENERIC,
    Channel,
    channel_of,
    shown_url,
)

__all__ = ["CHANNELS", "GENERIC", "Channel", "channel_of", "shown_url"]
