"""HTTP/1.1 as bytes: heads, bodies and limits. No sockets."""
