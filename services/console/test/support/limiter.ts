import { createAuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { serviceKey } from '@tollgate/kit/service-key';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { type AuthServer, authServerSecret, startRateLimitService } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';

/** Settings of the auth server that limiters need for the access tokens of people. */
export const authForLimiters = { SVC_API_KEYS_ENABLED: 'true' };

/** A rate limit service whose counter API accepts the access tokens of the auth server. */
export interface TestLimiter {
  /** URL of the counter API. */
  readonly url: string;
  /** Sends a request with a descriptor of one entry; its HTTP status. */
  send(domain: string, key: string, value: string): Promise<number>;
  logs(): string;
  stop(): Promise<void>;
}

/**
 * Starts a limiter with files of rules, `config/…` in force and `candidate/config/…` on trial, and
 * more settings, such as those of another source.
 */
export async function startLimiter(
  t: Test,
  auth: AuthServer,
  files: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): Promise<TestLimiter> {
  const folder = makeTextFolder(t);
  for (const [path, text] of Object.entries(files)) folder.write(path, text);
  const hasTrial = Object.keys(files).some((path) => path.startsWith('candidate/'));
  const { url, settings } = await counterApi(auth);
  const limiter = await startRateLimitService({
    ...{ RUNTIME_ROOT: folder.path, RUNTIME_SUBDIRECTORY: '', RUNTIME_WATCH_ROOT: 'false' },
    ...(hasTrial && { CANDIDATE_RUNTIME_SUBDIRECTORY: 'candidate' }),
    ...settings,
    ...more,
  });
  t.teardown(limiter.stop);
  return {
    url,
    async send(domain, key, value) {
      const body = JSON.stringify({ domain, descriptors: [{ entries: [{ key, value }] }] });
      const response = await fetch(`${limiter.httpUrl}/json`, { method: 'POST', body });
      await response.text();
      return response.status;
    },
    logs: () => limiter.logs(),
    stop: () => limiter.stop(),
  };
}

/** URL and settings of a counter API that accepts the access tokens of the auth server. */
export async function counterApi(
  auth: AuthServer,
): Promise<{ readonly url: string; readonly settings: Readonly<Record<string, string>> }> {
  const port = await freePort();
  const settings = {
    ...{ ADMIN_PORT: String(port), ADMIN_KEYS_URL: auth.url },
    ADMIN_KEYS_TOKEN: await createVerifier(auth),
  };
  return { url: `http://127.0.0.1:${port}`, settings };
}

async function createVerifier({ url }: AuthServer): Promise<string> {
  const client = createAuthClient({ url, token: serviceKey(authServerSecret), timeoutMs: 20_000 });
  const body = { name: `limiter-${crypto.randomUUID()}`, admin_scopes: ['keys:verify'] };
  return (await unwrap(client.POST('/admin/api-keys', { body }))).key;
}
