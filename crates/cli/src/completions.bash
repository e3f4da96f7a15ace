
# WORDS -- WORD: completes what is after the last comma.
_offload_listed() {
    local before=""
    [[ "$3" != *,* ]] || before="${3%,*},"
    compgen -P "${before}" -W "$1" -- "${3##*,}"
}

_offload_or_files() {
    _offload "$@"
    if [[ "$2" != -* ]]; then
        local word words=()
        for word in "${COMPREPLY[@]}"; do
            [[ "${word}" == -* ]] || words+=("${word}")
        done
        COMPREPLY=("${words[@]}")
    fi
}

complete -F _offload_or_files -o bashdefault -o default offload
