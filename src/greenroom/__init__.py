"""Greenroom: a self-hosted virtual waiting room."""
