#!/bin/sh
# Frames forwarded in a second by the Linux bridge and by `mrc switch`.
#
#   benches/forwarding.sh [MRC ...]
#
# Two hosts, two veth pairs and the one or the other between them, with frames
# of 4,170 and of 90 bytes. Each MRC is a binary, `target/release/mrc` or one of
# another revision; without any it is this revision's. They take turns with the
# bridge; medians of ROUNDS rounds of a second (default 7) are printed.
set -eu
cd "$(dirname "$0")/.."
exec cargo bench --quiet --locked --bench forwarding -- "$@"
