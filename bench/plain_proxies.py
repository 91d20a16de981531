"""Proxies without greenroom, which tell the application the same as those of examples/: what
bench/proxies.py compares with.
"""

PLAIN = {
    "nginx": (
        """worker_processes 1; pid {folder}/plain.pid; error_log stderr; events {{ worker_connections 1024; }}
http {{ access_log off; request_pool_size 5k; upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }} }} }}"""
    ),
    "haproxy": (
        """defaults
  mode http
  timeout connect 5s
  timeout client 75s
  timeout server 75s
frontend visitors
  bind 127.0.0.1:{port}
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
  http-request del-header Forwarded
  default_backend origin
backend origin
  server origin 127.0.0.1:{origin}
"""
    ),
    "envoy": (
        """static_resources:
  listeners:
    - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: visitors
                use_remote_address: true
                route_config:
                  virtual_hosts:
                    - {{ name: o, domains: ["*"], routes: [{{ match: {{ prefix: "/" }}, route: {{ cluster: origin }} }}] }}
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
  clusters:
    - name: origin
      load_assignment:
        cluster_name: origin
        endpoints:
          - {{ lb_endpoints: [{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {origin} }} }} }} }}] }}
"""
    ),
    "caddy": (
        """{{
  admin off
  auto_https off
}}
http://:{port} {{
  reverse_proxy 127.0.0.1:{origin}
}}
"""
    ),
    "traefik": (
        """entryPoints: {{ web: {{ address: "127.0.0.1:{port}" }} }}
providers: {{ file: {{ filename: {folder}/plain-dynamic.yaml }} }}
"""
    ),
}
PLAIN_DYNAMIC = """http:
  routers:
    application: {{ rule: PathPrefix(`/`), entryPoints: [web], service: application }}
  services:
    application: {{ loadBalancer: {{ servers: [{{ url: "http://127.0.0.1:{origin}" }}] }} }}
"""
"""The second file of a plain Traefik."""
