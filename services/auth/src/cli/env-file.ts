/** The variables of a file, or the first line that is none. */
export type EnvFile =
  | { readonly ok: true; readonly variables: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly line: number; readonly problem: string };

/**
 * Reads a file of variables as godotenv does, which GoTrue uses. Node's parseEnv is no substitute:
 * it cuts values at every `#` and has no `\"`.
 *
 * - `NAME=value` or `NAME: value`, optionally after `export`
 * - `#` starts a comment after a blank only
 * - double quotes have the escapes `\n`, `\"` and `\$`, single quotes none; both may span lines
 * - `$NAME` is not expanded
 *
 * @see https://github.com/joho/godotenv
 */
export function parseEnvFile(text: string): EnvFile {
  const source = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  const variables: Record<string, string> = Object.create(null);
  let at = 0;
  const fail = (problem: string): EnvFile => ({
    ok: false,
    line: source.slice(0, at).split('\n').length,
    problem,
  });
  for (;;) {
    at = matchAt(/(?:\s+|#[^\n]*)*/y, source, at)?.end ?? at;
    if (at >= source.length) return { ok: true, variables: { ...variables } };
    const name = matchAt(/(?:export[^\S\n]+)?([\w.]+)[^\S\n]*[=:][^\S\n]*/y, source, at);
    if (name === undefined) return fail('expected NAME=value');
    const value = valueAt(source, name.end);
    if (value === undefined) return fail(`the quotes of ${name.group} are not closed, or text follows them`);
    variables[name.group] = value.text;
    at = value.end;
  }
}

interface Value {
  readonly text: string;
  readonly end: number;
}

function valueAt(source: string, at: number): Value | undefined {
  const quote = source[at];
  if (quote !== '"' && quote !== "'") return plainValue(source, at);
  const quoted = quote === '"' ? /"((?:[^"\\]|\\.)*)"/sy : /'((?:[^'\\]|\\.)*)'/sy;
  const found = matchAt(quoted, source, at);
  const rest = found && matchAt(/[^\S\n]*(?:#[^\n]*)?(?=\n|$)/y, source, found.end);
  if (found === undefined || rest === undefined) return undefined;
  return { text: quote === '"' ? expandEscapes(found.group) : found.group, end: rest.end };
}

function plainValue(source: string, at: number): Value {
  const end = source.indexOf('\n', at);
  const line = source.slice(at, end === -1 ? undefined : end);
  return {
    text: line
      .replace(/\s#.*$/, '')
      .trim()
      .replaceAll('\\$', '$'),
    end: at + line.length,
  };
}

function expandEscapes(text: string): string {
  return text.replaceAll(/\\(.)/gs, (_escape, char: string) => ({ n: '\n', r: '\r' })[char] ?? char);
}

/** What a sticky pattern matches at a place. */
function matchAt(pattern: RegExp, source: string, at: number): { group: string; end: number } | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(source);
  return found === null ? undefined : { group: found[1] ?? '', end: pattern.lastIndex };
}
