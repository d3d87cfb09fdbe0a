#!/bin/sh
# Ends the newest running lab (or MRC_PID) and waits until nothing is left of it.
# A lab ends by itself, and with its process however that ends; this is for one
# that runs in the background.
set -eu
pid=${MRC_PID:-$(pgrep -n -f '(^|/)mrc run ' || true)}
if [ -z "$pid" ]; then
    echo 'no lab is running'
    exit 0
fi
kill -INT "$pid"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.5
done
if kill -0 "$pid" 2>/dev/null; then
    kill -KILL "$pid"
fi
echo "lab $pid is down"
