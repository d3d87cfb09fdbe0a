#!/bin/sh
# Captures what passes an interface of a running lab with an ordinary tool.
#
#   ./capture.sh HOST [INTERFACE [FILE]]   default mrc0, HOST-INTERFACE.pcap
#
# Ends with Ctrl-C or with the lab. `mrc run` keeps captures of its own; this one
# shows that the frames are real.
set -eu
if [ $# -lt 1 ] || [ $# -gt 3 ]; then
    echo "usage: $0 HOST [INTERFACE [FILE]]" >&2
    exit 2
fi
interface=${2:-mrc0}
file=${3:-$1-$interface.pcap}
exec "$(dirname "$0")/enter.sh" "$1" \
    tcpdump --interface "$interface" --immediate-mode -U -s 0 --time-stamp-precision=nano \
    -Z root -w - >"$file"
