import { getRequestFailure } from '@tollgate/kit/errors';
import type { Point } from './rates.ts';
import { quantileNames, type RateName, rateNames } from './replica-metrics.ts';

const limiterBuckets = 'sum by (le) (rate(ratelimit_service_response_time_seconds_bucket[$W]))';
const checkBuckets = 'sum by (le) (rate(auth_ext_authz_check_duration_seconds_bucket[$W]))';

/** The sum has the bounds that both services have. */
const quantile = (q: number) =>
  [`${limiterBuckets} + ${checkBuckets}`, limiterBuckets, checkBuckets]
    .map((buckets) => `1000 * histogram_quantile(${q}, ${buckets})`)
    .join(' or ');

/** Queries of the points, with the meaning of those of `toPoint`; `$W` is the window of a rate. */
export const queries: Readonly<Record<RateName | (typeof quantileNames)[number], string>> = {
  allowed:
    'sum(rate(ratelimit_decisions{result!="over_limit"}[$W])) or sum(rate(auth_ext_authz_checks_total{outcome="allowed"}[$W]))',
  refused: 'sum(rate(ratelimit_decisions{result="over_limit"}[$W]))',
  denied: 'sum(rate(auth_ext_authz_checks_total{outcome="denied"}[$W]))',
  errors:
    'sum(rate(ratelimit_service_should_rate_limit_error[$W]) or rate(auth_ext_authz_checks_total{outcome="unavailable"}[$W]))',
  p50: quantile(0.5),
  p99: quantile(0.99),
};

/** A rate needs two samples, which may be a minute apart. */
const minWindowSeconds = 180;

export interface RangeOptions {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepSeconds: number;
  readonly timeoutMs: number;
}

/** Points of more than the last hour. @throws PrometheusError */
export async function queryPoints(url: string, options: RangeOptions): Promise<readonly Point[]> {
  const names = [...rateNames, ...quantileNames];
  const columns = await Promise.all(names.map((name) => queryRange(url, queries[name], options)));
  const values = new Map(names.map((name, index) => [name, columns[index] ?? new Map<number, number>()]));
  const points: Point[] = [];
  for (let atMs = options.fromMs; atMs <= options.toMs; atMs += options.stepSeconds * 1000) {
    const read = (name: (typeof names)[number]) => values.get(name)?.get(Math.round(atMs / 1000));
    points.push({
      ...{ atMs, allowed: read('allowed'), refused: read('refused'), denied: read('denied') },
      ...{ errors: read('errors'), p50: read('p50'), p99: read('p99') },
    });
  }
  return points;
}

/** Prometheus does not answer a query. */
export class PrometheusError extends Error {
  /** Says what to do. */
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.name = 'PrometheusError';
    this.remedy = remedy;
  }
}

/** Values by Unix time in seconds. @see https://prometheus.io/docs/prometheus/latest/querying/api/ */
async function queryRange(url: string, query: string, options: RangeOptions): Promise<Map<number, number>> {
  const window = `${Math.max(minWindowSeconds, options.stepSeconds * 2)}s`;
  const parameters = new URLSearchParams({
    query: query.replaceAll('$W', window),
    start: String(Math.round(options.fromMs / 1000)),
    end: String(Math.round(options.toMs / 1000)),
    step: String(options.stepSeconds),
  });
  const address = `${url.replace(/\/+$/, '')}/api/v1/query_range?${parameters}`;
  const { status, body } = await request(address, options.timeoutMs);
  const answer = readAnswer(body);
  if (answer === undefined)
    throw new PrometheusError(
      `it answered ${status}, which is not of the HTTP API of Prometheus`,
      'PROMETHEUS_URL is the part of the address before /api/v1, and the console must not need to sign in there.',
    );
  if (answer.status !== 'success' || answer.data === undefined)
    throw new PrometheusError(
      `it answered ${status}: ${answer.errorType}, ${answer.error}`,
      'Choose a shorter range, or read the log of Prometheus.',
    );
  const values = (answer.data.result[0]?.values ?? []).map(
    ([at, text]) => [Math.round(at), Number(text)] as const,
  );
  return new Map(values.filter(([, value]) => Number.isFinite(value)));
}

async function request(address: string, timeoutMs: number) {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) });
    return { status: response.status, body: await response.text() };
  } catch (error) {
    throw new PrometheusError(
      getRequestFailure(error),
      'Check that it runs, that the console may reach it, and PROMETHEUS_URL.',
    );
  }
}

interface Answer {
  readonly status: 'success' | 'error';
  readonly data?: { readonly result: readonly { readonly values: readonly [number, string][] }[] };
  readonly errorType?: string;
  readonly error?: string;
}

/** Undefined for what is not an answer of Prometheus. */
function readAnswer(body: string): Answer | undefined {
  try {
    // Parsed boundary: the form of all answers of the HTTP API.
    const answer = JSON.parse(body) as Partial<Answer> | null;
    const { status, data } = answer ?? {};
    if (status === 'error' || (status === 'success' && Array.isArray(data?.result)))
      return { ...answer, status };
  } catch {
    // A page of a proxy.
  }
  return undefined;
}
