import { awaitUntil } from '@tollgate/testkit/await-until';
import type { EchoedRequest } from '@tollgate/testkit/echo';
import { whoamiPath } from './envoy-ext-authz.ts';

/** Somebody as the application behind Envoy sees them. */
export interface Seen {
  readonly userId: unknown;
  readonly plan: unknown;
  readonly role: unknown;
  /** Of their own, as JSON; empty or `-` when there is none. */
  readonly limit: unknown;
}

/** A machine with other work is given time. */
const answerTimeoutMs = 20_000;

/** Whom the application sees; nothing is counted. */
export async function whoami(
  url: string,
  accessToken: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const answer = await fetch(`${url}${whoamiPath}`, {
    headers: { ...headers, authorization: `Bearer ${accessToken}` },
    signal: AbortSignal.timeout(answerTimeoutMs),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${whoamiPath} answered ${answer.status}: ${text}`);
  // Parsed boundary: what the echo answers.
  const { headers: seen } = JSON.parse(text) as EchoedRequest;
  return {
    userId: seen['x-auth-user-id'],
    plan: seen['x-auth-plan'],
    role: seen['x-auth-role'],
    limit: seen['x-limit'],
  };
}

/** Waits until the application sees somebody so: a change is noticed some milliseconds after it was made. */
export function seenAs(url: string, accessToken: string, fits: (seen: Seen) => boolean): Promise<Seen> {
  return awaitUntil(
    async () => {
      const seen = await whoami(url, accessToken);
      if (!fits(seen)) throw new Error(`it is ${JSON.stringify(seen)}`);
      return seen;
    },
    { what: 'the change of the user', timeoutMs: 20_000, everyMs: 20 },
  );
}
