"""People and tokens: accounts, passwords, two-step codes, OpenID Connect."""
