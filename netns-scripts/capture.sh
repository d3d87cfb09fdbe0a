#!/bin/sh
# Captures what passes an interface of a running lab with an ordinary tool.
#
#   ./capture.sh HOST [INTERFACE [FILE]]   default mrc0, HOST-INTERFACE.pcap
#
# Ends with Ctrl-C, or with the run unless that is killed. `mrc run` keeps captures
# of its own; this one shows that the frames are real. `mrc run --hold` gives you
# time to start it.
set -eu
if [ $# -lt 1 ] || [ $# -gt 3 ]; then
    echo "usage: $0 HOST [INTERFACE [FILE]]" >&2
    exit 2
fi
host=$1
interface=${2:-mrc0}
file=${3:-$host-$interface.pcap}
if [ "$(id -u)" -eq 0 ]; then
    set -- tcpdump --interface "$interface" --immediate-mode -U -B 16384 -s 0 \
        --time-stamp-precision=nano -Z root -w -
else
    # As root of a user namespace tcpdump gives up, since it cannot change its
    # groups there. Wireshark's own tool does not try.
    set -- dumpcap -q -i "$interface" -B 16 -P -w -
fi
exec "$(dirname "$0")/enter.sh" "$host" "$@" >"$file"
