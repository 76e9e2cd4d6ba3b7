// Our own 80 lines: remark-validate-links would bring 200 packages into the lock file for the same
// answer.
import { posix } from 'node:path';

/**
 * Relative links in Markdown whose file or heading does not exist, as `path:line: …`. URLs are not
 * checked.
 *
 * @param files all paths of the repository
 * @param pages text of the Markdown pages among them, by path
 */
export function findDeadLinks(files: readonly string[], pages: ReadonlyMap<string, string>): string[] {
  const present = new Set(files.flatMap((path) => [path, ...parentFolders(path)]));
  const anchors = new Map([...pages].map(([path, text]) => [path, headingAnchors(text)]));
  return [...pages].flatMap(([path, text]) =>
    findLinks(text).flatMap(({ link, line }) => {
      const [file = '', anchor = ''] = link.split('#', 2);
      const target =
        file === '' ? path : posix.join(posix.dirname(path), decodeURIComponent(file)).replace(/\/$/, '');
      if (!present.has(target)) return [`${path}:${line}: no such file: ${link}`];
      if (anchor === '' || anchors.get(target)?.has(anchor) !== false) return [];
      return [`${path}:${line}: no such heading: ${link}`];
    }),
  );
}

/** `[text](target)` and `[name]: target` without a URL scheme. */
function findLinks(text: string): { link: string; line: number }[] {
  return withoutCodeBlocks(text).flatMap(({ text: prose, line }) => {
    const found = prose
      .replace(/`[^`]*`/g, '')
      .matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)|^\[[^\]]+\]: (\S+)/g);
    return [...found]
      .map(([, inline, reference]) => inline ?? reference ?? '')
      .filter((link) => !/^[a-z][a-z+.-]*:/i.test(link))
      .map((link) => ({ link, line }));
  });
}

/**
 * GitHub's anchors: the heading's words in lower case, with `-1` and so on for repeated headings.
 */
export function headingAnchors(text: string): ReadonlySet<string> {
  const times = new Map<string, number>();
  return new Set(
    withoutCodeBlocks(text).flatMap(({ text: line }) => {
      const [, heading] = /^#{1,6} (.*)$/.exec(line) ?? [];
      if (heading === undefined) return [];
      const slug = toSlug(heading);
      const before = times.get(slug) ?? 0;
      times.set(slug, before + 1);
      return [before === 0 ? slug : `${slug}-${before}`];
    }),
  );
}

function withoutCodeBlocks(text: string): { text: string; line: number }[] {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) isCode = !isCode;
    return isFence || isCode ? [] : [{ text: line, line: index + 1 }];
  });
}

function toSlug(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

function parentFolders(path: string): string[] {
  const parts = path.split('/');
  return ['.', ...parts.slice(1).map((_part, index) => parts.slice(0, index + 1).join('/'))];
}
