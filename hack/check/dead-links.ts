import { posix } from 'node:path';
import { headingAnchors, proseOf } from './markdown-anchors.ts';

/**
 * Links in Markdown that lead to no file, or to no heading, of the repository: `path:line: …`, one for each. Addresses elsewhere are
 * not looked at.
 *
 * @param files all paths of the repository; folders are those that they are in.
 * @param pages the Markdown pages among them, text by path.
 */
export function deadLinks(files: readonly string[], pages: ReadonlyMap<string, string>): string[] {
  const present = new Set(files.flatMap((path) => [path, ...foldersOf(path)]));
  const anchors = new Map<string, ReadonlySet<string>>();
  const anchorsOf = (path: string, text: string) => {
    const found = anchors.get(path) ?? headingAnchors(text);
    anchors.set(path, found);
    return found;
  };
  return [...pages].flatMap(([path, text]) =>
    linksIn(text).flatMap(({ link, line }) => {
      const [file = '', anchor = ''] = link.split('#', 2);
      const target =
        file === '' ? path : posix.join(posix.dirname(path), decodeURIComponent(file)).replace(/\/$/, '');
      if (!present.has(target)) return [`${path}:${line}: leads to no file: ${link}`];
      const page = pages.get(target);
      const isDead = anchor !== '' && page !== undefined && !anchorsOf(target, page).has(anchor);
      return isDead ? [`${path}:${line}: leads to no heading: ${link}`] : [];
    }),
  );
}

/** `[text](target)` and `[name]: target`, but for addresses with a scheme. */
function linksIn(text: string): { link: string; line: number }[] {
  return proseOf(text).flatMap(({ prose, line }) => {
    const found = prose.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)|^\[[^\]]+\]: (\S+)/g);
    return [...found]
      .map(([, inline, reference]) => inline ?? reference ?? '')
      .filter((link) => !/^[a-z][a-z+.-]*:/i.test(link))
      .map((link) => ({ link, line }));
  });
}

function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return ['.', ...parts.slice(1).map((_part, at) => parts.slice(0, at + 1).join('/'))];
}
