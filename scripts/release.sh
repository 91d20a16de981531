#!/bin/sh
# Builds a release into dist/ and verifies it: wheel, source, chart, SBOM, checksums, notes. `scripts/release.sh`, on a clean checkout.
# It needs no secret: it prints the commands that sign and upload.
set -eu
cd "$(dirname -- "$0")/.."
. scripts/setup.sh
fill_environment --inexact
.venv/bin/python scripts/build_dashboard.py --check || { say "the libraries of the dashboard are missing: its charts would be too"; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
out=dist
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
[ -z "$(git status --porcelain)" ] || { say "the checkout has changes that are not committed"; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

say "wheel and source, twice: they must be the same bytes"
rm -rf "$out"
"$uv" export --quiet --frozen --no-dev --preview-features sbom-export --format cyclonedx1.5 --output-file "$work/raw.json" >/dev/null
# Without the moment and the random number of this run, which would make every wheel another.
.venv/bin/python - "$work/raw.json" "$work/greenroom.cdx.json" <<'PYTHON'
import json, pathlib, sys
found = json.loads(pathlib.Path(sys.argv[1]).read_text())
found.pop("serialNumber", None)
found["metadata"].pop("timestamp", None)
pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
PYTHON
for folder in "$out" "$work/again"; do
    GREENROOM_SBOM="$work/greenroom.cdx.json" "$uv" build --quiet --out-dir "$folder"
done
for file in "$out"/*.whl "$out"/*.tar.gz; do
    cmp "$file" "$work/again/${file##*/}"
done
cp "$work/greenroom.cdx.json" "$out/greenroom-$version.cdx.json"

say "chart"
# What `helm package` makes, with the commit's time instead of this run's.
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C charts -cf - greenroom | gzip -n >"$out/greenroom-chart-$version.tgz"
[ ! -x .venv/bin/helm ] || .venv/bin/helm lint --strict "$out/greenroom-chart-$version.tgz"

say "notes and checksums"
# What is new, in two minutes; the rest of the section is for those who upgrade.
awk '/^## \[/ { found = 1 } /^### / { if (found) exit } found' CHANGELOG.md >"$out/NOTES.txt"
(cd "$out" && sha256sum ./*.whl ./*.tar.gz ./*.tgz ./*.json >SHA256SUMS)

say "the wheel in a clean environment: its demo must let a visitor in"
"$uv" venv --quiet --python "$python" "$work/venv"
"$uv" pip install --quiet --python "$work/venv" "$out"/*.whl
[ "$("$work/venv/bin/greenroom" --version)" = "greenroom $version" ]
: >"$work/demo.log"
(cd "$work" && exec env -i HOME="$work" PATH=/usr/bin:/bin PYTHONUNBUFFERED=1 venv/bin/greenroom demo --listen 127.0.0.1:0 --control 127.0.0.1:0) >"$work/demo.log" 2>&1 &
server=$!
tries=0
until grep -q '^visitors' "$work/demo.log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { cat "$work/demo.log"; exit 1; }
    sleep 1 # the demo starts
done
"$work/venv/bin/python" - "$work/demo.log" <<'PYTHON'
import pathlib, re, sys, urllib.request
address = re.search(r"^visitors\s+(\S+)", pathlib.Path(sys.argv[1]).read_text(), re.M)[1]
answer = urllib.request.urlopen(address, timeout=30)
assert answer.status == 200 and "Set-Cookie" in answer.headers, (answer.status, answer.headers)
PYTHON
ls -l "$out"
say "verified. To publish: git tag -s v$version && git push origin v$version, then, with trusted publishing set up:"
say "    uvx sigstore sign $out/*.whl $out/*.tar.gz && uv publish --trusted-publishing automatic $out/*.whl $out/*.tar.gz"
