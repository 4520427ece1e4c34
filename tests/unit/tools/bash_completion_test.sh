#!/bin/bash
# The bash completion of triad, as bash itself would use it. Usage: bash_completion_test.sh PATH_OF_triad
set -u   # not -e: no interactive shell has it, and compgen fails when it offers nothing
source <("$1" completion bash)

# expect WORD... -- LINE...: completing the last word of LINE offers every WORD.
expect() {
  local wanted=()
  while [[ $1 != -- ]]; do wanted+=("$1"); shift; done
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _triad
  for word in "${wanted[@]}"; do
    [[ " ${COMPREPLY[*]} " == *" $word "* ]] || { echo "'$*' offers '${COMPREPLY[*]}', not '$word'"; exit 1; }
  done
}

expect attend bench forward layers health info completion -- triad ""
expect attend -- triad at
expect --query --causal --json -- triad attend --
expect tokens_heads packed -- triad attend --layout ""
expect bottom_right -- triad attend --alignment b
expect bash zsh fish -- triad completion ""
expect --layer --input --position-offsets -- triad forward --
expect tokens_heads packed -- triad forward --layout ""
expect --concurrency --find-max --html -- triad bench --
expect constant poisson -- triad bench --arrivals ""
expect list get load unload import -- triad layers ""
expect --from --force -- triad layers import --
expect load -- triad layers lo
expect --layer-version --json -- triad layers unload --
COMP_WORDS=(triad attend --query "") COMP_CWORD=3
_triad
[[ ${#COMPREPLY[@]} == 0 ]] || { echo "a file name is left to bash, was '${COMPREPLY[*]}'"; exit 1; }
