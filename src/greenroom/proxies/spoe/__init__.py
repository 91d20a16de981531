"""HAProxy asks over SPOE: `frames` are the bytes of its protocol, `connection` is one connection,
`questions` is what is asked.
"""
