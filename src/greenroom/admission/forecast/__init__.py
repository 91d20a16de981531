"""The wait estimate: how sessions end, who gives up, and what that makes of a place in line."""
