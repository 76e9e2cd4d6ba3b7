// Queries of Prometheus, evaluated by promtool, and the forms of its answers.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import t from 'tap';
import { PrometheusError, queries, queryPoints } from '../../src/live/prometheus.ts';
import { startPrometheus } from '../support/prometheus.ts';

/** Two replicas of each service, whose counters grow by these numbers a minute. */
const limiters = [
  ['ratelimit_decisions{result="ok",instance="a"}', 60],
  ['ratelimit_decisions{result="ok",instance="b"}', 120],
  ['ratelimit_decisions{result="shadow",instance="b"}', 60],
  ['ratelimit_decisions{result="over_limit",instance="a"}', 30],
  ['ratelimit_service_should_rate_limit_error{err_type="redis_error",instance="a"}', 15],
  ['ratelimit_service_response_time_seconds_bucket{le="0.001",instance="a"}', 60],
  ['ratelimit_service_response_time_seconds_bucket{le="0.002",instance="a"}', 120],
  ['ratelimit_service_response_time_seconds_bucket{le="+Inf",instance="a"}', 120],
] as const;
const authServers = [
  ['auth_ext_authz_checks_total{outcome="allowed",instance="c"}', 300],
  ['auth_ext_authz_checks_total{outcome="denied",instance="c"}', 12],
  ['auth_ext_authz_checks_total{outcome="unavailable",instance="c"}', 15],
] as const;

/** Durations of both services, whose bounds differ. */
const durationsOfBoth = [
  ...(
    [
      ['0.0005', 900],
      ['0.05', 900],
      ['0.1', 1000],
      ['0.25', 1000],
      ['+Inf', 1000],
    ] as const
  ).map(([le, count]) => [`ratelimit_service_response_time_seconds_bucket{le="${le}"}`, count] as const),
  ...['0.0005', '0.05', '0.25', '+Inf'].map(
    (le) => [`auth_ext_authz_check_duration_seconds_bucket{le="${le}"}`, 1000] as const,
  ),
];

type Series = readonly (readonly [series: string, increase: number])[];

/**
 * A file of `promtool test rules`.
 *
 * @see https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/
 */
function unitTest(series: Series, expected: Readonly<Record<string, number | undefined>>): string {
  return JSON.stringify({
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series.map(([name, increase]) => ({ series: name, values: `0+${increase}x20` })),
        promql_expr_test: Object.entries(queries).map(([name, query]) => ({
          expr: query.replaceAll('$W', '180s'),
          eval_time: '15m',
          exp_samples: expected[name] === undefined ? [] : [{ labels: '{}', value: expected[name] }],
        })),
      },
    ],
  });
}

t.test(
  'queries count all replicas, without what is not there',
  {
    skip: programIsMissing('promtool'),
  },
  async (t) => {
    const folder = makeTextFolder(t);
    const durations = { p50: 1, p99: 1.98 };
    const both = { allowed: 4, refused: 0.5, denied: 0.2, errors: 0.5, ...durations };
    folder.write('both.json', unitTest([...limiters, ...authServers], both));
    folder.write(
      'limiters.json',
      unitTest(limiters, { allowed: 4, refused: 0.5, errors: 0.25, ...durations }),
    );
    folder.write('auth.json', unitTest(authServers, { allowed: 5, denied: 0.2, errors: 0.25 }));
    folder.write(
      'durations.json',
      unitTest(durationsOfBoth, { p50: 0.263_157_894_736_842_1, p99: 209.999_999_999_999_74 }),
    );
    folder.write('none.json', unitTest([], {}));
    const files = ['both', 'limiters', 'auth', 'durations', 'none'].map((name) =>
      join(folder.path, `${name}.json`),
    );
    await t.resolves(promisify(execFile)(findBinary('promtool'), ['test', 'rules', ...files]));
  },
);

const range = { fromMs: 0, toMs: 240_000, stepSeconds: 120, timeoutMs: 10_000 };

t.test('points are of all series, and unknown values are gaps', async (t) => {
  const prometheus = await startPrometheus(t);
  prometheus.answer(({ start, step, query }) => ({
    status: 200,
    body: {
      status: 'success',
      data: {
        resultType: 'matrix',
        result: query.includes('denied')
          ? []
          : [
              {
                metric: {},
                values: [
                  [start + step, '2.5'],
                  [start + 2 * step, 'NaN'],
                ],
              },
            ],
      },
    },
  }));
  const points = await queryPoints(`${prometheus.url}/`, range);
  t.match(points, [
    { atMs: 0, allowed: undefined },
    { atMs: 120_000, allowed: 2.5, p99: 2.5, denied: undefined },
    { atMs: 240_000, allowed: undefined },
  ]);
  t.match(prometheus.requests()[0], { start: 0, end: 240, step: 120, query: /\[240s\]/ });
});

t.test('failures are named with their remedy', async (t) => {
  const prometheus = await startPrometheus(t);
  const rejects = async (message: RegExp, remedy: RegExp, url = prometheus.url) =>
    t.rejects(queryPoints(url, range), { name: PrometheusError.name, message, remedy });
  prometheus.answer(() => ({
    status: 422,
    body: { status: 'error', errorType: 'execution', error: 'query timed out' },
  }));
  await rejects(/it answered 422: execution, query timed out/, /Choose a shorter range/);
  for (const body of ['<html>Sign in', 'null', '{"status":"success"}']) {
    prometheus.answer(() => ({ status: 200, body }));
    await rejects(/it answered 200, which is not of the HTTP API of Prometheus/, /before \/api\/v1/);
  }
  await rejects(/ECONNREFUSED|refused|bad port/, /Check that it runs/, 'http://127.0.0.1:1');
});
