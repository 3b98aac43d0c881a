#!/bin/sh
# A PermissionRequest hook whose behaviour the test chooses.
#
# $1 is a directory: `input` receives what Claude Code sent, `pid` says the hook
# waits, its answer is whatever appears in `answer`, and `terminated` appears
# when it was told to stop first.
dir=$1
cat >"$dir/input"
trap 'touch "$dir/terminated"; exit 0' TERM
echo $$ >"$dir/pid"
while [ ! -e "$dir/answer" ]; do
    sleep 0.05
done
cat "$dir/answer"
