import { Resolver } from 'node:dns/promises';

/** The values of TXT records, or why they are unknown. */
export type TxtLookup =
  | { readonly ok: true; readonly values: readonly string[] }
  | { readonly ok: false; readonly code: string };

/** Tries of each server. The second one waits twice as long. */
const tries = 2;

/**
 * Looks up TXT records. The message of DNS bounds the answer to 64 KiB.
 *
 * @param servers empty: those of the system
 */
export async function lookUpTxt(
  name: string,
  { servers, timeoutMs }: { readonly servers: readonly string[]; readonly timeoutMs: number },
): Promise<TxtLookup> {
  const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / 3), tries });
  if (servers.length > 0) resolver.setServers(servers);
  // Several servers would take a multiple of the time.
  const deadline = setTimeout(() => resolver.cancel(), timeoutMs);
  try {
    const records = await resolver.resolveTxt(name);
    return { ok: true, values: records.map((strings) => strings.join('')) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return code === 'ENOTFOUND' || code === 'ENODATA' ? { ok: true, values: [] } : { ok: false, code };
  } finally {
    clearTimeout(deadline);
  }
}
