#!/usr/bin/env bash
# Runs PROGRAM, which takes a target, against a server on a Unix socket in a temporary folder; SERVER is its binary. With an
# empty SERVER there is none, and PROGRAM has to fail and say UNAVAILABLE.
set -euo pipefail

if [[ $# != 2 ]]; then
  echo "Usage: run_consumer.sh SERVER PROGRAM" >&2
  exit 2
fi
binary=$1 program=$2
folder=$(mktemp -d) server=''
stop() {
  if [[ -n $server ]] && kill "$server"; then wait "$server" || true; fi
  rm -rf "$folder"
}
trap stop EXIT
target=unix:$folder/triad.sock

if [[ -z $binary ]]; then
  if "$program" "$target" 2>"$folder/errors"; then
    echo "$program succeeded without a server" >&2
    exit 1
  fi
  cat "$folder/errors"
  grep -q UNAVAILABLE "$folder/errors"
  exit
fi

exec {log}< <(exec env -i PATH="$PATH" "$binary" --listen="$target" --http_listen=127.0.0.1:0 2>&1)
server=$!
ready=''
while [[ -z $ready ]] && IFS= read -r -u "$log" line; do
  echo "$line"
  if [[ $line == *"listening on unix:"* ]]; then ready=yes; fi
done
if [[ -z $ready ]]; then
  echo "the server ended before it listened" >&2
  exit 1
fi
"$program" "$target"
