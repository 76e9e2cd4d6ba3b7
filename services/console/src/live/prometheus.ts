import type { Point } from './rates.ts';
import { type RateName, rateNames } from './replica-metrics.ts';

/** Queries of the points; `$W` is the window of a rate. */
const queries: Readonly<Record<RateName | 'p50' | 'p99', string>> = {
  allowed:
    'sum(rate(ratelimit_decisions{result!="over_limit"}[$W])) or sum(rate(auth_ext_authz_checks_total{outcome="allowed"}[$W]))',
  refused: 'sum(rate(ratelimit_decisions{result="over_limit"}[$W]))',
  denied: 'sum(rate(auth_ext_authz_checks_total{outcome="denied"}[$W]))',
  errors:
    'sum(rate(ratelimit_service_should_rate_limit_error[$W])) + sum(rate(auth_ext_authz_checks_total{outcome="unavailable"}[$W]))',
  p50: '1000 * histogram_quantile(0.5, sum by (le) (rate(ratelimit_service_response_time_seconds_bucket[$W])))',
  p99: '1000 * histogram_quantile(0.99, sum by (le) (rate(ratelimit_service_response_time_seconds_bucket[$W])))',
};

export interface RangeOptions {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepSeconds: number;
  readonly timeoutMs: number;
}

/** Points of more than the last hour. @throws Error with the reason */
export async function queryPoints(url: string, options: RangeOptions): Promise<readonly Point[]> {
  const names = [...rateNames, 'p50', 'p99'] as const;
  const columns = await Promise.all(names.map((name) => queryRange(url, queries[name], options)));
  const values = new Map(names.map((name, index) => [name, columns[index] ?? new Map<number, number>()]));
  const points: Point[] = [];
  for (let atMs = options.fromMs; atMs <= options.toMs; atMs += options.stepSeconds * 1000) {
    const read = (name: (typeof names)[number]) => values.get(name)?.get(Math.round(atMs / 1000));
    const rates = { allowed: read('allowed') ?? 0, refused: read('refused') ?? 0 };
    points.push({
      ...{ atMs, ...rates, denied: read('denied') ?? 0, errors: read('errors') ?? 0 },
      ...{ p50: read('p50'), p99: read('p99') },
    });
  }
  return points;
}

/** Values by Unix time in seconds. @see https://prometheus.io/docs/prometheus/latest/querying/api/ */
async function queryRange(url: string, query: string, options: RangeOptions): Promise<Map<number, number>> {
  const window = `${Math.max(60, options.stepSeconds * 2)}s`;
  const parameters = new URLSearchParams({
    query: query.replaceAll('$W', window),
    start: String(Math.round(options.fromMs / 1000)),
    end: String(Math.round(options.toMs / 1000)),
    step: String(options.stepSeconds),
  });
  const address = `${url.replace(/\/+$/, '')}/api/v1/query_range?${parameters}`;
  const response = await fetch(address, { signal: AbortSignal.timeout(options.timeoutMs) });
  if (!response.ok) throw new Error(`Prometheus answered ${response.status}`);
  // Parsed boundary: the API of Prometheus.
  const { data } = (await response.json()) as {
    data: { result: readonly { values: readonly [number, string][] }[] };
  };
  const values = (data.result[0]?.values ?? []).map(([at, text]) => [Math.round(at), Number(text)] as const);
  return new Map(values.filter(([, value]) => Number.isFinite(value)));
}
