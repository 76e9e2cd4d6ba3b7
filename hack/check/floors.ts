import { dirname, join } from 'node:path';

/**
 * Folders of a service or package that depend on each other, directly or through others, types
 * included: folders directly below `src` are floors. In services, so is a file beside them: through
 * a context that has everything, a folder would import those above it.
 *
 * @param sources text of TypeScript files by path from the root of the repository
 */
export function findCycles(sources: ReadonlyMap<string, string>): string[] {
  const graphs = new Map<string, Graph>();
  for (const [path, text] of sources) {
    const from = toFolder(path);
    if (from === undefined) continue;
    for (const [, relative = ''] of text.matchAll(/(?:from|import\(?)\s*'(\.[^']+)'/g)) {
      const to = toFolder(join(dirname(path), relative));
      if (to === undefined || to.root !== from.root || to.name === from.name) continue;
      const graph = graphs.get(from.root) ?? new Map<string, Map<string, string>>();
      graphs.set(from.root, graph);
      graph.set(from.name, (graph.get(from.name) ?? new Map<string, string>()).set(to.name, path));
    }
  }
  return [...graphs].flatMap(([root, graph]) => {
    const cycle = findCycle(graph);
    if (cycle === undefined) return [];
    const files = cycle.slice(1).map((to, i) => graph.get(cycle[i] ?? '')?.get(to));
    return [`${root}: ${cycle.join(' imports ')}: ${files.join(', ')}`];
  });
}

/** A file with an import, by the folders that have it and that it is of. */
type Graph = Map<string, Map<string, string>>;

/** The folders of one cycle, the first of them again at the end. */
function findCycle(graph: Graph): readonly string[] | undefined {
  const done = new Set<string>();
  const visit = (folder: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (done.has(folder)) return undefined;
    for (const next of graph.get(folder)?.keys() ?? []) {
      const cycle = visit(next, [...path, folder]);
      if (cycle !== undefined) return cycle;
    }
    done.add(folder);
    return undefined;
  };
  for (const folder of graph.keys()) {
    const cycle = visit(folder, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

/**
 * Folders of tests in services and packages that do not mirror `src`: no source folder or file has
 * their name. Examples are a folder beside `src`.
 *
 * @param paths all files of the repository
 */
export function findStrayTestFolders(paths: readonly string[]): string[] {
  const sources = new Set(paths.flatMap((path) => [path.replace(/\.ts$/, ''), ...parents(path)]));
  const stray = new Set<string>();
  for (const path of paths) {
    const [, root, below = ''] =
      /^((?:packages|services)\/[^/]+|cli|client-sdk)\/test\/(.+)\//.exec(path) ?? [];
    const mirrored = below.replace(/(?:^|\/)(?:helpers|support|testdata|integration)(?:\/.*)?$/, '');
    if (root === undefined || mirrored === '') continue;
    const isFound = ['src', ...(mirrored === 'examples' ? ['.'] : [])].some((folder) =>
      sources.has(join(root, folder, mirrored)),
    );
    if (!isFound) stray.add(`${root}/test/${mirrored}/: no ${root}/src/${mirrored}`);
  }
  return [...stray];
}

function parents(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [folder, ...parents(folder)];
}

/** The folder below `src` that has a file, or a file of a service beside folders. */
function toFolder(path: string): { readonly root: string; readonly name: string } | undefined {
  const [, root, name] = /^(services\/[^/]+\/src|.+?\/src(?=\/[^/]+\/))\/([^/]+)(?:\/.+)?$/.exec(path) ?? [];
  return root === undefined || name === undefined ? undefined : { root, name };
}
