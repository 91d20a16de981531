"""Analytics over GraphQL at POST /client/v4/graphql, as Cloudflare's clients expect it."""
