import type { RuleProblem } from '@tollgate/rules/problem';

/** Most problems told of one object: a person corrects a few and tries again. */
const maxLines = 10;

/** Longest text, in characters: it is stored with the object, and etcd keeps many versions of each. */
const maxLength = 4096;

/** Longest line; a message may repeat what the manifest says. */
const maxLineLength = 500;

/**
 * Problems of one object, a line each: `<field>: <message> (<hint>)`. The object itself is not named, for this is read
 * in its own status. What is too much is counted: `and 7 more`.
 */
export function problemText(problems: readonly RuleProblem[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const problem of problems) {
    const line = cut(problemLine(problem));
    length += line.length + 1;
    if (lines.length === maxLines || length > maxLength) break;
    lines.push(line);
  }
  const left = problems.length - lines.length;
  if (left > 0) lines.push(`and ${left} more`);
  return lines.join('\n');
}

function problemLine({ field, path, message, hint }: RuleProblem): string {
  const place = field ?? path;
  const text = place === '' ? message : `${place}: ${message}`;
  return hint === undefined ? text : `${text} (${hint})`;
}

const cut = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, maxLineLength)}…`;
