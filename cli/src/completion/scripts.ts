/**
 * Shells load these for completion. Each asks `tollgate complete -- <words>`, which prints lines of
 * a word, a tab and its description; without any, the shell completes files. Words of the line are
 * passed on as they are, and never evaluated.
 */
export const completionScripts = {
  bash: `_tollgate() {
  local word description
  COMPREPLY=()
  while IFS=$'\\t' read -r word description; do
    COMPREPLY+=("$word")
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _tollgate tollgate
`,
  zsh: `#compdef tollgate
_tollgate() {
  local line
  local -a candidates
  while IFS= read -r line; do
    candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then _describe tollgate candidates; else _files; fi
}
(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit; }
compdef _tollgate tollgate
`,
  fish: `function __tollgate_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l found ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path "$current"
  end
end
complete -c tollgate -f -a '(__tollgate_complete)'
`,
} as const;
