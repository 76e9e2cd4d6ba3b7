import { type AuthClient, RequestError, unwrap } from '@tollgate/admin-clients/clients';
import { parseDuration } from '@tollgate/kit/time';
import { authClient, readContext, type Source } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';

/** The keys of the running auth server. */
export interface ServerKeys {
  /** Ids of the keys in its JWKS. */
  readonly published: ReadonlySet<string>;
  /** Undefined without the admin scope `settings:read`. */
  readonly signing: string | undefined;
  readonly lifetimeSeconds: number | undefined;
}

/**
 * Asks the auth server of the context. Undefined if it has none.
 *
 * @throws RequestError
 */
export async function askServer(source: Source): Promise<ServerKeys | undefined> {
  const context = await readContext(source);
  const client = authClient(context);
  if (client === undefined) return undefined;
  // Parsed boundary: a key set has keys with ids.
  const { keys } = (await unwrap(client.GET('/.well-known/jwks.json'))) as {
    readonly keys: readonly { readonly kid?: string }[];
  };
  const published = new Set(keys.flatMap(({ kid }) => kid ?? []));
  const details = context.token === '' ? undefined : await readDetails(client);
  return {
    published,
    signing: details?.keys.find(({ state }) => state === 'signs')?.kid,
    lifetimeSeconds: details?.token_lifetime,
  };
}

/** Undefined without the right, and from servers that lack the operation. */
async function readDetails(client: AuthClient) {
  try {
    return await unwrap(client.GET('/admin/signing-keys'));
  } catch (error) {
    const isRefused = error instanceof RequestError && [401, 403, 404].includes(error.status ?? 0);
    if (!isRefused) throw error;
    return undefined;
  }
}

/** Seconds of `--token-lifetime`. @throws CommandFailure */
export function parseLifetime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new CommandFailure('--token-lifetime must be a duration such as 1h');
  return Math.ceil(ms / 1000);
}
