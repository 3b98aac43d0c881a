#!/usr/bin/env bash
# A client of socket protocol v1 in shell and socat, as old hook scripts are.
#
# usage: v1_client.sh SOCKET PROJECT_DIR REQUEST_ID <permission-request.json
# Prints the ack on the first line and the decision on the second.
set -euo pipefail

socket=$1 project=$2 id=$3
reply=$(mktemp)
trap 'rm -f "$reply"' EXIT

# socat closes its sending side at the end of the request and goes on reading.
printf '{"request_id":"%s","project_dir":"%s","raw_input_encoded":"%s"}' "$id" "$project" "$(base64 -w 0)" |
    socat -t 60 - "UNIX-CONNECT:$socket" >"$reply"

# JSON holds no zero byte and the length always begins with one.
split=$(LC_ALL=C grep -obUaP '\x00' "$reply" | head -n 1 | cut -d : -f 1)
length=$(od -An -t u4 --endian=big -j "$split" -N 4 "$reply" | tr -d ' ')
head -c "$split" "$reply"
printf '\n'
tail -c "+$((split + 5))" "$reply" | head -c "$length"
printf '\n'
