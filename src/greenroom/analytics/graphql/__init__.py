"""Analytics over GraphQL, at POST /client/v4/graphql, in the shape that Cloudflare's clients
expect.

`datasets` says what can be asked, `schema` turns it into a GraphQL schema, `lenient` reads queries
of clients that declare their variables in different ways, `resolve` walks viewer, zones and
datasets, `endpoint` is the HTTP side.
"""
