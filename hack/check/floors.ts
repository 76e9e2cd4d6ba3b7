import { dirname, join } from 'node:path';

/** Pairs that are left; each is removed with the work on one of its folders. */
const known: Readonly<Record<string, readonly string[]>> = {};

/**
 * Folders of a service or package that import each other, directly below its `src`, types included.
 *
 * @param sources text of TypeScript files by path from the root of the repository
 */
export function findMutualImports(sources: ReadonlyMap<string, string>): string[] {
  const imports = new Map<string, string>();
  for (const [path, text] of sources) {
    const from = toFolder(path);
    if (from === undefined) continue;
    for (const [, relative = ''] of text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
      const to = toFolder(join(dirname(path), relative));
      if (to === undefined || to.root !== from.root || to.name === from.name) continue;
      imports.set(`${from.root}: ${from.name} ${to.name}`, path);
    }
  }
  const found = [...imports].flatMap(([edge, path]) => {
    const [, root = '', from = '', to = ''] = /^(.+): (\S+) (\S+)$/.exec(edge) ?? [];
    const back = imports.get(`${root}: ${to} ${from}`);
    return back === undefined || from > to ? [] : [{ root, pair: `${from} ${to}`, files: [path, back] }];
  });
  const isKnown = ({ root, pair }: { readonly root: string; readonly pair: string }) =>
    known[root]?.includes(pair) === true;
  const gone = Object.entries(known).flatMap(([root, pairs]) =>
    pairs
      .filter((pair) => !found.some((each) => each.root === root && each.pair === pair))
      .map((pair) => `${root}: ${pair} no longer import each other: remove them from hack/check/floors.ts`),
  );
  return [
    ...found
      .filter((each) => !isKnown(each))
      .map(
        ({ root, pair, files }) =>
          `${root}: ${pair.replace(' ', ' and ')} import each other: ${files.join(', ')}`,
      ),
    ...gone,
  ];
}

/** The folder below `src` that has a file; undefined for files of no folder. */
function toFolder(path: string): { readonly root: string; readonly name: string } | undefined {
  const [, root, name] = /^(.+?\/src)\/([^/]+)\/.+\.ts$/.exec(path) ?? [];
  return root === undefined || name === undefined ? undefined : { root, name };
}
