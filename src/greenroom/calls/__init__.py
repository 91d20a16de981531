"""Visitors in line who want to be called, by e-mail or browser push, before their turn and when it comes."""
