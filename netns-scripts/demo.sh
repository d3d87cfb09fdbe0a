#!/bin/sh
# Builds, then runs the two-hosts scenario: 64 MiB of real data over a lossy,
# trimming path between network namespaces. Ends with what came of it.
#
#   ./demo.sh                    in the wall clock, slowed some thousand times
#   ./demo.sh --clock exact      simulated: no namespaces, no privileges
#   ./demo.sh --clock exact-wires
#
# All arguments go to `mrc run`. Root or an ordinary user.
set -eu
cd "$(dirname "$0")/.."
# run.json says which commit ran.
MRC_COMMIT=$(git rev-parse HEAD 2>/dev/null || echo unknown)
export MRC_COMMIT
cargo build --release --locked
exec "${CARGO_TARGET_DIR:-target}/release/mrc" run scenarios/two-hosts.toml "$@"
