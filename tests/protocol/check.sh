#!/usr/bin/env bash
# check.sh MODEL [define...]: lets spin visit every state of the protocol model. With a define that begins with BREAK_ the model
# must be found wrong (an assertion), otherwise it must hold.
set -euo pipefail
model=$(readlink -f "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
spin -a "${@/#/-D}" "$model" >spin.log || { cat spin.log; exit 1; }
cc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c
./pan -m100000 | tee pan.log | grep -E 'pan:1|errors:|states, stored' || true
grep -q 'pan: elapsed' pan.log || { cat pan.log; exit 1; }  # it ran to its end
grep -qE 'max search depth too small|out of memory|truncated' pan.log && { cat pan.log; exit 1; }
if [[ " $*" == *" BREAK_"* ]]; then
  grep -q 'pan:1: assertion violated' pan.log || { echo "nothing was found though $* undoes a rule"; exit 1; }
else
  grep -q 'errors: 0' pan.log
fi
