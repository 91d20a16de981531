"""Delivery of notifications: one sender at a time takes messages from the outbox and hands them to mail servers, webhooks and services."""
