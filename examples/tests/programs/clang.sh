#!/bin/sh
# A device linker that joins its inputs.
left=$#
while [ "$left" -gt 0 ]; do
    case $1 in
    -o) out=$2 && shift && left=$((left - 1)) ;;
    *.o) set -- "$@" "$1" ;;
    esac
    shift
    left=$((left - 1))
done
cat "$@" >"$out"
