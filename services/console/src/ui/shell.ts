/**
 * A command whose standard input is a text. It ends at a delimiter that is none of its lines, so
 * that the shell runs nothing of it.
 */
export function withInput(command: string, text: string): string {
  const lines = new Set(text.split('\n'));
  let delimiter = 'EOF';
  while (lines.has(delimiter)) delimiter += '_';
  return `${command} <<'${delimiter}'\n${text.replace(/\n?$/, '\n')}${delimiter}`;
}

/** An argument of a command: the shell runs nothing of it. */
export function quoteArgument(text: string): string {
  return /^[\w./:=,@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
