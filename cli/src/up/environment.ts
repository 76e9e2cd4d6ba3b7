import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { serviceKey } from '@tollgate/kit/service-key';
import type { ServiceOptions } from './parts.ts';

const mainFile = resolve(import.meta.dirname, '../main.ts');

/**
 * Writes a file for shells with variables with which other commands reach the services, for the
 * owner of the file. `tollgate` is a function in it: the command need not be on PATH, and the
 * Node.js there may be older than its own.
 *
 * @returns its path
 */
export async function writeEnvironment(
  folder: string,
  { ports, jwtSecret, limiterToken }: Pick<ServiceOptions, 'ports' | 'jwtSecret' | 'limiterToken'>,
): Promise<string> {
  const variables = {
    TOLLGATE_AUTH_URL: `http://127.0.0.1:${ports.authHttp}`,
    TOLLGATE_KEY: serviceKey(jwtSecret),
    TOLLGATE_LIMITER_URLS: `http://127.0.0.1:${ports.limiterAdmin}`,
    TOLLGATE_LIMITER_TOKEN: limiterToken,
    TOLLGATE_XDS_URL: `http://127.0.0.1:${ports.xdsAdmin}`,
    TOLLGATE_CONSOLE_URL: `http://127.0.0.1:${ports.consoleAdmin}`,
  };
  const path = join(folder, 'env');
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${value}\n`);
  const command = [process.execPath, mainFile].map(quote).join(' ');
  await writeFile(path, `${lines.join('')}tollgate() { ${command} "$@"; }\n`, { mode: 0o600 });
  return path;
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
