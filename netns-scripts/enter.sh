#!/bin/sh
# Enters a host (or switch) of a running lab.
#
#   ./enter.sh HOST                    a shell there
#   ./enter.sh HOST COMMAND [ARG...]   one command there
#
# The lab's names are known to its own processes only, so the host is found by
# process: the newest `mrc run` that you may look into, or MRC_PID. The command
# runs in the folder that you are in.
set -eu
PATH=$PATH:/usr/sbin:/sbin
if [ $# -lt 1 ]; then
    echo "usage: $0 HOST [COMMAND [ARG...]]" >&2
    exit 2
fi
host=$1
shift
[ $# -gt 0 ] || set -- "${SHELL:-/bin/sh}"

pid=${MRC_PID:-$(pgrep -n -f '(^|/)mrc run ' || true)}
if [ -z "$pid" ]; then
    echo "no lab is running: start one with \`mrc run SCENARIO\`, or give its process in MRC_PID" >&2
    exit 2
fi

# A lab of an ordinary user lives in a user namespace; enter that first.
user=
if [ "$(readlink "/proc/$pid/ns/user")" != "$(readlink /proc/self/ns/user)" ]; then
    user='--user --preserve-credentials'
fi
# nsenter goes to / with the mounts; a folder that the lab does not have (it has a
# /run of its own) leaves you there.
# shellcheck disable=SC2016,SC2086 # for the inner shell; two words or none
exec nsenter --target "$pid" $user --mount --net -- \
    sh -c 'cd "$1" 2>/dev/null; shift; exec ip netns exec "$@"' sh "$PWD" "$host" "$@"
