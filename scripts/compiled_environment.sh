# shellcheck shell=sh
# Sourced by ./test --compiled: builds the compiled wheel, and installs it into .venv-compiled beside everything that the tests need.

export GREENROOM_COMPILED=1 # for the build, and so that the tests know what to expect
say "the compiled wheel (a few minutes)"
wheels=$(mktemp -d)
"$uv" build --quiet --wheel --out-dir "$wheels"
[ -x .venv-compiled/bin/python ] || "$uv" venv --quiet --clear --python "$(readlink -f .venv/bin/python)" .venv-compiled
UV_PROJECT_ENVIRONMENT=.venv-compiled "$uv" sync --quiet --frozen --all-groups --no-install-project
"$uv" pip install --quiet --no-deps --reinstall --python .venv-compiled/bin/python "$wheels"/*.whl
rm -r "$wheels"
