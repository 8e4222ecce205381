#!/bin/sh
# Starts a server, lets a client work with it and stop it, and waits for it. Usage: redis.sh SOCKET COMMAND...
socket=$1
shift
"$@" &
server=$!
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
    kill -0 $server || exit 1
    sleep 0.02
done
redis-benchmark -s "$socket" -q -r 20000 -n 60000 -d 200 -P 16 -t set,get,lpush,hset,spop >/dev/null
redis-cli -s "$socket" shutdown nosave
wait $server
