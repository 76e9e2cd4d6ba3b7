import t from 'tap';
import { readLimitOverride } from '../../../src/ext-authz/headers.ts';
import type { Json } from '../../../src/users/user-json.ts';

t.test('app_metadata gives a user a limit of their own', (t) => {
  const limit = { requests_per_unit: 5, unit: 'minute' };
  const read = { ok: true, limit: { requestsPerUnit: 5, unit: 'MINUTE' } };
  t.same(readLimitOverride({ limit }), read);
  t.same(readLimitOverride({ rate_limit: limit }), read);
  t.same(readLimitOverride({ limit, rate_limit: { requests_per_unit: 6, unit: 'day' } }), read);
  for (const unit of ['second', 'Minute', 'HOUR', 'day', 'week', 'month', 'year'])
    t.match(readLimitOverride({ limit: { ...limit, unit } }), { limit: { unit: unit.toUpperCase() } });
  t.match(readLimitOverride({ limit: { ...limit, requests_per_unit: 4_294_967_295 } }), { ok: true });
  t.end();
});

t.test('there may be none', (t) => {
  for (const metadata of [{}, { limit: null }, { provider: 'email' }])
    t.same(readLimitOverride(metadata), { ok: true, limit: undefined });
  t.end();
});

t.test('what is no limit is told', (t) => {
  const bad: readonly Json[] = [
    ...[5, 'unlimited', true, [], {}, { unit: 'minute' }, { requests_per_unit: 5 }],
    ...[0, -1, 1.5, '5', 4_294_967_296, 1e300, null].map((requests_per_unit) => ({
      requests_per_unit,
      unit: 'minute',
    })),
    ...['minutes', '', 7, null, 'toString'].map((unit) => ({ requests_per_unit: 5, unit })),
  ];
  for (const limit of bad)
    t.match(readLimitOverride({ limit }), { ok: false, reason: /./ }, JSON.stringify(limit));
  t.end();
});
