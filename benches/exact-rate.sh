#!/bin/sh
# Simulated data packets per second of the exact clock on one core, process
# start, data and hashes included.
#
#   benches/exact-rate.sh MRC [MRC ...]
#
# Each MRC is a binary, `target/release/mrc` or one of another revision. They run
# in turn, so that a change in the machine's speed meets all of them; the medians
# of RUNS runs (default 7) are printed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runs=${RUNS:-7}
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# measure NAME PACKETS MRC...: a line with each binary's median rate.
measure() {
    name=$1 packets=$2
    shift 2
    for _ in $(seq "$runs"); do
        for mrc in "$@"; do
            began=$(date +%s%N)
            taskset -c 0 "$mrc" run "$here/$name.toml" --clock exact --no-captures \
                --out "$work/out" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
            echo "$(($(date +%s%N) - began)) $mrc" >>"$work/$name"
        done
    done
    for mrc in "$@"; do
        grep -F " $mrc" "$work/$name" | sort -n | awk -v name="$name" -v packets="$packets" '
            { time[NR] = $1; mrc = $2 }
            END {
                median = time[int((NR + 1) / 2)]
                printf "%-14s %8.0f packets/s  %.3f s (%.3f to %.3f)  %s\n", name,
                    packets / median * 1e9, median / 1e9, time[1] / 1e9, time[NR] / 1e9, mrc
            }'
    done
}

measure small-packets 524288 "$@"
measure full-packets 65536 "$@"
