import { resolve } from 'node:path';
import { type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';

/** A service of ours, started as in production: a process of its own, configured by its environment alone. */
export function startService(
  name: 'auth' | 'ratelimit' | 'xds',
  settings: Readonly<Record<string, string>>,
  readyUrl: string,
): Promise<ServerProcess> {
  const entryFile = resolve(import.meta.dirname, `../../../services/${name}/src/main.ts`);
  const assignments = Object.entries(settings).map(([variable, value]) => `${variable}=${value}`);
  return startServerProcess({
    command: 'env',
    args: ['-i', ...assignments, process.execPath, entryFile],
    ready: async () => {
      const answer = await fetch(readyUrl, { signal: AbortSignal.timeout(10_000) });
      if (!answer.ok) throw new Error(`${readyUrl} answered ${answer.status}: ${await answer.text()}`);
    },
  });
}
