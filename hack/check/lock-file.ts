/** The members of package-lock.json, version 3, that are read here. */
interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly integrity?: string;
  /** To a workspace. */
  readonly link?: boolean;
  readonly dev?: boolean;
}

/**
 * Development tools whose packages for some platforms the registry does not have, so that their
 * checksum is unknown: only biome 2.6 and newer format Markdown.
 */
const exempt = /^node_modules\/@biomejs\/cli-/;

/**
 * Packages that npm would install without comparing a checksum. Workspaces and the links to them
 * come from the checkout and have none.
 */
export function findUnverifiedPackages(text: string): string[] {
  // npm wrote it; its version 3 has this shape.
  const { packages } = JSON.parse(text) as LockFile;
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && link !== true)
    .filter(([path, { dev }]) => dev !== true || !exempt.test(path))
    .filter(([, { integrity }]) => !/^sha(?:384|512)-/.test(integrity ?? ''))
    .map(([path]) => `package-lock.json: ${path} has no integrity`);
}
