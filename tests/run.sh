#!/bin/sh
# Installs what the tests need where it can, says what is missing where it
# cannot, and runs the tests.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export PATH

# Tool and the Debian package that brings it.
needed='ip:iproute2 unshare:util-linux setpriv:util-linux nsenter:util-linux
    ethtool:ethtool tshark:tshark capinfos:wireshark-common dumpcap:wireshark-common
    tcpdump:tcpdump ping:iputils-ping iperf3:iperf3 pgrep:procps shellcheck:shellcheck cargo:cargo'

missing() {
    for pair in $needed; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair#*:}"
    done | sort -u
}

packages=$(missing)
if [ -n "$packages" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # one word a package
    apt-get install -q -y --no-install-recommends $packages
    packages=$(missing)
fi
if [ -n "$packages" ]; then
    echo "the tests need these packages, which are not installed:" >&2
    echo "$packages" | sed 's/^/    /' >&2
    echo "install them (Debian: apt-get install $(echo "$packages" | tr '\n' ' ')) and run this again" >&2
    exit 1
fi

if ! unshare --user --map-root-user --net true 2>/dev/null && [ "$(id -u)" -ne 0 ]; then
    echo 'the tests need network namespaces, and this machine forbids them to ordinary users:' >&2
    echo 'run this as root, or allow them (sysctl -w kernel.unprivileged_userns_clone=1)' >&2
    exit 1
fi

exec cargo test --locked "$@"
