#!/bin/sh
# Two hosts and a switch by hand, each a network namespace, joined by veth pairs:
#
#   a mrc0 ------- mrc0 s mrc1 ------- mrc0 b
#   10.0.0.1                         10.0.0.2
#
#   ./two-hosts.sh                    open a shell in the lab
#   ./two-hosts.sh COMMAND [ARG...]   run a command in it instead
#
# In there, `ip netns exec a ...` runs something on host a. Nothing forwards in s
# yet: that is the switch daemon's job, not the kernel's. docs/by-hand.md starts
# the daemons of scenarios/two-hosts-clean.toml here.
#
# Root or an ordinary user; needs iproute2 and util-linux. The machine's own
# network is not touched. The lab ends with the last process in it.
set -eu

mtu=4200
PATH=$PATH:/usr/sbin:/sbin
for tool in ip unshare; do
    command -v "$tool" >/dev/null && continue
    echo "$tool not found in PATH: install iproute2 and util-linux" >&2
    exit 1
done

# Start over in namespaces of our own, unless this is the second start already.
# An ordinary user becomes root of a user namespace.
here=$(readlink /proc/self/ns/net)
if [ "${MRC_LEFT_NETNS:-$here}" = "$here" ]; then
    export MRC_LEFT_NETNS="$here"
    [ "$(id -u)" -eq 0 ] && exec unshare --net --mount "$0" "$@"
    exec unshare --user --map-root-user --net --mount "$0" "$@"
fi
unset MRC_LEFT_NETNS

# `ip netns` keeps names in /run/netns. In a /run of our own nobody else sees them.
mount -t tmpfs -o mode=0755 mrc-lab /run

# Containers mount /proc/sys read-only.
[ -w /proc/sys/net/ipv4/ip_forward ] || mount -o remount,bind,rw /proc/sys

for node in a s b; do
    ip netns add "$node"
done

# Make both ends of each link where they belong. The addresses are those that the
# daemons expect: 02:49 (I), the number of the scenario's link and of its end for
# an interface, 02:4d (M) for the daemon on it, which hears its own alone.
ip link add mrc0 mtu $mtu address 02:49:00:00:00:00 netns a type veth \
    peer name mrc0 mtu $mtu address 02:49:00:00:00:01 netns s
ip link add mrc1 mtu $mtu address 02:49:00:00:01:00 netns s type veth \
    peer name mrc0 mtu $mtu address 02:49:00:00:01:01 netns b

# The kernel does not forward, does not drop what comes over an unexpected path,
# and does not speak unasked (IPv6 would).
for node in a s b; do
    # shellcheck disable=SC2016 # for the inner shell
    ip netns exec "$node" sh -c '
        echo 0 >/proc/sys/net/ipv4/ip_forward
        for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >"$file"; done
        for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
            [ ! -e "$file" ] || echo 1 >"$file"
        done'
done

# Every packet is one frame with a finished checksum, as on a real wire.
if command -v ethtool >/dev/null; then
    for end in 'a mrc0' 's mrc0' 's mrc1' 'b mrc0'; do
        ip netns exec "${end% *}" ethtool -K "${end#* }" tx off rx off tso off gso off gro off \
            >/dev/null
    done
else
    echo 'no ethtool: offloads stay on, captures show unfinished checksums' >&2
fi

# Each host knows the way to the other: the daemon at its port of the switch.
ip -n a address add 10.0.0.1/24 dev mrc0
ip -n b address add 10.0.0.2/24 dev mrc0
ip -n s link set mrc0 up
ip -n s link set mrc1 up
ip -n a link set mrc0 up
ip -n b link set mrc0 up
ip -n a neighbour add 10.0.0.2 lladdr 02:4d:00:00:00:01 dev mrc0 nud permanent
ip -n b neighbour add 10.0.0.1 lladdr 02:4d:00:00:01:00 dev mrc0 nud permanent

for end in 'a mrc0' 's mrc0' 's mrc1' 'b mrc0'; do
    echo "${end% *}: $(ip -n "${end% *}" -brief link show dev "${end#* }")"
done

[ $# -gt 0 ] || set -- "${SHELL:-/bin/sh}"
exec "$@"
