import { unwrap } from '@tollgate/admin-clients/clients';
import { getRequestFailure } from '@tollgate/kit/errors';
import type { Limiter } from '../connection/connect.ts';
import { withoutSlash } from '../connection/inputs.ts';
import { checkConnection, fetchPage, type Page } from './endpoint.ts';
import { type Finding, fail, pass } from './finding.ts';
import { checkVersion, type ServiceCheckOptions } from './version.ts';

/** The page of each service that responds 2xx when it is ready, and what other statuses mean. */
const readiness = {
  auth: {
    path: '/ready',
    remedies: {
      403: 'the context has the URL of another service: correct it',
      503: 'check PostgreSQL, SVC_DB_DATABASE_URL and migrations: tollgate-auth check says more',
    },
  },
  xds: { path: '/readyz', remedies: {} },
  console: { path: '/readyz', remedies: {} },
} as const;

/** Port, certificate, clock, readiness and version of a service. */
export async function checkService(
  kind: keyof typeof readiness,
  url: string,
  options: ServiceCheckOptions,
): Promise<readonly Finding[]> {
  const { path, remedies } = readiness[kind];
  const ready = await checkReady(withoutSlash(url) + path, options.nowMs, remedies);
  const isReady = ready.some(({ check, ok }) => check === 'ready' && ok);
  return isReady ? [...ready, await checkVersion(kind, url, options)] : ready;
}

const readyRemedy = 'check what the service needs, such as Redis or the xDS server; its log has the reason';

/** A page that responds 2xx when its service is ready. */
export async function checkReady(
  target: string,
  nowMs: () => number,
  remedies: Readonly<Record<number, string>> = {},
): Promise<readonly Finding[]> {
  const connection = await checkConnection(target, nowMs());
  if (connection.some(({ check, ok }) => check === 'port' && !ok)) return connection;
  const check = { check: 'ready', target } as const;
  try {
    const { clock, ...page } = await fetchPage(target, nowMs);
    return [...connection, ...(clock ? [clock] : []), describeReadiness(check, page, remedies)];
  } catch (error) {
    return [
      ...connection,
      fail(check, getRequestFailure(error), 'correct the problem of the connection first'),
    ];
  }
}

function describeReadiness(
  check: { readonly check: 'ready'; readonly target: string },
  { status, text }: Omit<Page, 'clock'>,
  remedies: Readonly<Record<number, string>>,
): Finding {
  const [said = ''] = text.trim().slice(0, 200).split('\n');
  if (status >= 200 && status < 300) return pass(check, said === '' ? 'ready' : said);
  if (status === 404) return fail(check, '404', 'the service has no such page: correct the URL');
  return fail(check, `${status} ${said}`.trim(), remedies[status] ?? readyRemedy);
}

/** Port, certificate, clock and version of a counter API, and whether its counters can be read. */
export async function checkLimiter(
  { url, client }: Limiter,
  options: ServiceCheckOptions,
): Promise<readonly Finding[]> {
  const { nowMs } = options;
  const connection = await checkConnection(url, nowMs());
  if (connection.some(({ check, ok }) => check === 'port' && !ok)) return connection;
  const clock = (await fetchPage(url, nowMs).catch(() => undefined))?.clock;
  const check = { check: 'ready', target: url } as const;
  const query = { limit: 1 };
  const found = await unwrap(client.GET('/v1/overrides', { params: { query } })).then(
    () => pass(check, 'accepts the token, and reads its store'),
    // Typed by `unwrap`, which throws nothing else.
    (error: { readonly code: string; readonly message: string; readonly status?: number }) =>
      fail(check, `${error.code}: ${error.message}`, limiterRemedy(error.status)),
  );
  const version = found.ok ? [await checkVersion('ratelimit', url, options)] : [];
  return [...connection, ...(clock ? [clock] : []), found, ...version];
}

function limiterRemedy(status: number | undefined): string {
  if (status === 401 || status === 403)
    return 'sign in (tollgate login), or set a token: tollgate context set --help';
  return status === 404
    ? 'the URL is that of another port: ADMIN_PORT is the counter API'
    : 'check Redis or memcached, and its URL; the log of the limiter has the reason';
}
