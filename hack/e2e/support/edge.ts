import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Echo, type EchoedRequest, startEcho } from '@tollgate/testkit/echo';
import { type Envoy, startEnvoy } from '@tollgate/testkit/envoy';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { type EnvoyConfigOptions, envoyConfig, whoamiPath } from './envoy-config.ts';

export interface Edge {
  readonly echo: Echo;
  /** URL of a listener, without a slash at the end. */
  url(listener: string): string;
  /**
   * The counters and gauges of Envoy whose names match, by name. It makes some of them with their
   * first count.
   */
  stats(filter: string): Promise<Readonly<Record<string, number | undefined>>>;
  /** The number of healthy endpoints of a cluster. */
  healthyEndpoints(cluster: string): Promise<number>;
  /** Ends Envoy as a crash would. */
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** Starts both; they are stopped when the test ends. */
export async function startEdge(t: Test, options: Omit<EnvoyConfigOptions, 'upstreamPort'>): Promise<Edge> {
  const echo = await startEcho();
  t.teardown(echo.stop);
  const listeners: { name: string; port: number; failureModeDeny: boolean }[] = [];
  for (const listener of options.listeners) listeners.push({ ...listener, port: await freePort() });
  const config = envoyConfig({ ...options, listeners, upstreamPort: echo.port });
  let envoy = await startEnvoy({ config });
  t.teardown(() => envoy.stop());
  const admin = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${envoy.adminPort}${path}`, {
      signal: AbortSignal.timeout(20_000),
    });
    return answer.text();
  };
  return {
    echo,
    url: (listener) => `http://127.0.0.1:${findPort(envoy, listener)}`,
    stats: async (filter) => readStats(await admin(`/stats?filter=${encodeURIComponent(filter)}`)),
    async healthyEndpoints(cluster) {
      const stats = readStats(await admin(`/stats?filter=cluster.${cluster}.membership_healthy`));
      return Object.values(stats)[0] ?? 0;
    },
    kill: () => envoy.kill(),
    async restart() {
      envoy = await startEnvoy({ config });
    },
  };
}

function findPort(envoy: Envoy, listener: string): number {
  const port = envoy.ports[listener];
  if (port === undefined) throw new Error(`there is no listener '${listener}'`);
  return port;
}

/** From lines such as `cluster.upstream.ratelimit.ok: 3`; histograms are left out. */
function readStats(text: string): Record<string, number> {
  const lines = text.split('\n').map((line) => line.split(': '));
  return Object.fromEntries(
    lines.flatMap(([name = '', value = '']) => (/^\d+$/.test(value) ? [[name, Number(value)]] : [])),
  );
}

/** The identity that the application behind Envoy receives. */
export interface Seen {
  readonly userId: unknown;
  readonly plan: unknown;
  readonly role: unknown;
  /** Own limit of the user as JSON; empty or `-` when there is none. */
  readonly limit: unknown;
}

/** Generous for a busy machine. */
const answerTimeoutMs = 20_000;

/** The identity that the application receives. The request is not counted. */
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

/** Waits for an identity: changes take effect after some milliseconds. */
export function seenAs(url: string, accessToken: string, fits: (seen: Seen) => boolean): Promise<Seen> {
  return awaitUntil(
    async () => {
      const seen = await whoami(url, accessToken);
      if (!fits(seen)) throw new Error(`it is ${JSON.stringify(seen)}`);
      return seen;
    },
    { what: 'the change of the user', everyMs: 20 },
  );
}
