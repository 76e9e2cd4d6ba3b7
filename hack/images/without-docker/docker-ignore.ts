import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

interface Rule {
  readonly keeps: boolean;
  readonly pattern: string;
  readonly matches: RegExp;
}

/** The files of a folder that Docker would be sent, by its .dockerignore: paths below the folder. */
export async function contextFiles(root: string): Promise<readonly string[]> {
  const rules = parseDockerIgnore(await readFile(join(root, '.dockerignore'), 'utf8'));
  const files: string[] = [];
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const ignored = isIgnored(rules, path);
      if (!entry.isDirectory()) {
        if (!ignored) files.push(path);
      } else if (!ignored || mayKeepBelow(rules, path)) await visit(path);
    }
  };
  await visit('');
  return files;
}

/** Reads a .dockerignore. */
export function parseDockerIgnore(text: string): readonly Rule[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const keeps = line.startsWith('!');
      const pattern = line.slice(keeps ? 1 : 0);
      return { keeps, pattern, matches: toExpression(pattern) };
    });
}

/** The last rule that fits a path or a folder above it decides. */
export function isIgnored(rules: readonly Rule[], path: string): boolean {
  const parts = path.split('/');
  const paths = parts.map((_part, at) => parts.slice(0, at + 1).join('/'));
  const decisive = rules.findLast(({ matches }) => paths.some((candidate) => matches.test(candidate)));
  return decisive !== undefined && !decisive.keeps;
}

function mayKeepBelow(rules: readonly Rule[], folder: string): boolean {
  return rules.some(({ keeps, pattern }) => keeps && pattern.startsWith(`${folder}/`));
}

/** Of `*`, `**` and `?`. Unlike in a shell, they stand for a leading dot as well. */
function toExpression(pattern: string): RegExp {
  const source = pattern.replace(/\*\*\/|\*\*|\*|\?|[.+^$()|[\]{}\\]/g, (found) => {
    if (found === '**/') return '(?:.*/)?';
    if (found === '**') return '.*';
    if (found === '*') return '[^/]*';
    return found === '?' ? '[^/]' : `\\${found}`;
  });
  return new RegExp(`^${source}$`);
}
