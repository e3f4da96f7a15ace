
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
