#!/bin/sh
# A device linker that joins its inputs.
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2 && shift ;;
    *.o) code="$code $1" ;;
    esac
    shift
done
cat $code >"$out"
