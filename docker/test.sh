#!/bin/sh
# Proves the image: two NICs and a switch in a container each, joined by veth
# pairs, and a write of 16 MiB from a to b.
#
#   docker/test.sh                              with podman, or with docker
#   ENGINE='podman --runtime runc' docker/test.sh
#
# As root. Nothing is pulled: the image is made of a static binary that is built
# here. The veth ends are made inside the containers' network namespaces and never
# appear in this machine's. All that is made is removed again.
set -eu
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
run=mrc-test-$$
image=$run-image
work=$(mktemp -d)

if [ -z "${ENGINE:-}" ]; then
    if command -v podman >/dev/null; then
        ENGINE=podman
    else
        ENGINE=docker
    fi
fi

fail() {
    echo "docker/test.sh: $*" >&2
    exit 1
}

# shellcheck disable=SC2086 # options are words of their own
engine() { $ENGINE "$@"; }

cleanup() {
    for node in a s b; do engine rm -f "$run-$node"; done >/dev/null 2>&1 || true
    engine rmi -f "$image" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

[ "$(id -u)" -eq 0 ] || fail 'run this as root: it joins the containers by veth pairs'
command -v ip >/dev/null || fail 'ip not found: install iproute2'
engine info >/dev/null 2>&1 ||
    fail "$ENGINE does not answer: install podman, or start the docker daemon"

# A C library linked in, since the image has none.
RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --target "$target"
strip -o "$work/mrc" "target/$target/release/mrc"
cp -r scenarios "$work/"
# Everything up to the stage that needs other images.
sed '/^FROM rust/,$d' docker/Dockerfile >"$work/Dockerfile"
engine build -t "$image" "$work" >/dev/null

start() {
    node=$1 kind=$2
    shift 2
    # Limits below those of this machine, which not every root may raise.
    engine run -d --name "$run-$node" --network none --cap-drop ALL --cap-add NET_RAW \
        --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$image" \
        "$kind" --scenario /scenarios/two-hosts-clean.toml --profile native --node "$node" \
        --control "/run/$node.sock" --wait 30 "$@" >/dev/null
}

start s switch --interface mrc0 --interface mrc1
start a nic --interface mrc0
start b nic --interface mrc0

pid() { engine inspect --format '{{.State.Pid}}' "$run-$1"; }

# The end of a link in a container's network namespace.
end() { echo "$2 mtu 4200 netns $(pid "$1")"; }

# Joins container $1's interface $2 and container $3's interface $4.
join() {
    # shellcheck disable=SC2046 # words
    ip link add $(end "$1" "$2") type veth peer name $(end "$3" "$4")
    for side in "$1 $2" "$3 $4"; do
        nsenter --target "$(pid "${side% *}")" --net ip link set "${side#* }" up
    done
}

join a mrc0 s mrc0
join s mrc1 b mrc0

for node in a s b; do
    tries=0
    until engine logs "$run-$node" 2>&1 | grep '^ready'; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "$node is not ready: $(engine logs "$run-$node" 2>&1)"
        sleep 0.1
    done
done

ctl() {
    node=$1
    shift
    engine exec "$run-$node" /mrc ctl "/run/$node.sock" "$@"
}
field() { awk -v name="$1" '$1 == name { print $2 }' "$2"; }

ctl b register --length '16 MiB' --access remote-write >"$work/b"
ctl a register --length '16 MiB' --flow 1:0:16777216:1 >"$work/a"
ctl a write --peer 10.0.0.2 --length '16 MiB' \
    --lkey "$(field rkey "$work/a")" --local-va "$(field va "$work/a")" \
    --rkey "$(field rkey "$work/b")" --remote-va "$(field va "$work/b")"
ctl a events --count 4

sent=$(ctl a digest "$(field rkey "$work/a")")
received=$(ctl b digest "$(field rkey "$work/b")")
if [ -z "$sent" ] || [ "$sent" != "$received" ]; then
    fail "sent $sent, received $received"
fi
echo "sha-256: equal ($sent), with $ENGINE"
