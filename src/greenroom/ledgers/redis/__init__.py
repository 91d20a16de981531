"""Ledgers of many processes in Redis: functions, and their clients."""
