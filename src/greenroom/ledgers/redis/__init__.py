"""Ledgers of many processes in Redis: its functions, and the clients that call them."""
