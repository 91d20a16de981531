"""HAProxy asks over SPOE: `frames` (bytes), `connection`, and `questions`."""
