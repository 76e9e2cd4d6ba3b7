import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { seenAs, startEdge } from './support/edge.ts';
import { domain, identityRateLimits } from './support/envoy-config.ts';
import { programmed, statusWhen } from './support/limits.ts';
import { startAuth, startAuthDatabase, startRedisLimiter, startReplica } from './support/processes.ts';
import { getStatuses } from './support/requests.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

const routes = `
routes:
  - path: /public/**
    access: public
default: authenticated
`;

kubeSuite(t, 'limits of users, plans and roles, from a cluster', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  await kube.apply(limits({ free: 3 }));
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  const settings = { SVC_EXT_AUTHZ_ROUTES_FILE: join(folder.path, 'routes.yaml') };
  const [xds, redis, auth] = await Promise.all([
    startReplica(t, kube, 'replica-1'),
    startRedis(),
    startAuthDatabase(t).then((url) => startAuth(t, url, settings)),
  ]);
  t.teardown(redis.stop);
  const limiter = await startRedisLimiter(t, { xds, redis });
  const edge = await startEdge(t, {
    limiters: { ports: [limiter.grpcPort] },
    listeners: [{ name: 'ingress', failureModeDeny: true }],
    extAuthz: { ports: [auth.extAuthzPort] },
    rateLimits: identityRateLimits,
  });
  const url = edge.url('ingress');
  await statusWhen(kube, 'identity', programmed);

  await t.test('a user has the limit of the plan, at most the general one', async (t) => {
    const ada = await auth.signUp('ada@example.com');
    t.same(await getStatuses(url, ada.accessToken, 4), [200, 200, 200, 429], 'three on the free plan');
    await auth.change(ada.userId, { app_metadata: { plan: 'pro' } });
    await seenAs(url, ada.accessToken, ({ plan }) => plan === 'pro');
    t.same(await getStatuses(url, ada.accessToken, 3), [200, 200, 429], 'no user has more than six');

    const ben = await auth.signUp('ben@example.com');
    t.same(await getStatuses(url, ben.accessToken, 1), [200], 'another user is counted apart');
  });

  await t.test('a limit of a user overrides that of the plan', async (t) => {
    const cleo = await auth.signUp('cleo@example.com');
    await auth.change(cleo.userId, { app_metadata: { limit: { requests_per_unit: 5, unit: 'year' } } });
    const { plan } = await seenAs(url, cleo.accessToken, ({ limit }) => `${limit}`.includes('5'));
    t.equal(plan, 'free');
    t.same(await getStatuses(url, cleo.accessToken, 6), [200, 200, 200, 200, 200, 429]);
  });

  await t.test('users of a role share its limit', async (t) => {
    const [dora, emil] = [await auth.signUp('dora@example.com'), await auth.signUp('emil@example.com')];
    for (const { userId, accessToken } of [dora, emil]) {
      await auth.change(userId, { role: 'support' });
      await seenAs(url, accessToken, ({ role }) => role === 'support');
    }
    t.same(await getStatuses(url, dora.accessToken, 1), [200]);
    t.same(await getStatuses(url, emil.accessToken, 2), [200, 429]);
    t.same(await getStatuses(url, dora.accessToken, 1), [429]);
  });

  await t.test(
    'those without a token share a limit where none is needed, and count nowhere else',
    async (t) => {
      t.same(await getStatuses(url, undefined, 4), [401, 401, 401, 401]);
      t.same(await getStatuses(`${url}/public/`, undefined, 3), [200, 200, 429]);
    },
  );

  await t.test('an edit of the object applies to users over their limit', async (t) => {
    const fred = await auth.signUp('fred@example.com');
    t.same(await getStatuses(url, fred.accessToken, 4), [200, 200, 200, 429]);
    await kube.apply(limits({ free: 5 }));
    await statusWhen(kube, 'identity', (now) => programmed(now) && now.observedGeneration === 2);
    t.same(await getStatuses(url, fred.accessToken, 2), [200, 429], 'the fifth, and the sixth');
  });
});

/**
 * Limits per year: the given one for users of the free plan, six for every user, two for a role and
 * without a token.
 */
function limits({ free }: { readonly free: number }): string {
  const rateLimit = (requestsPerUnit: number) => ({ unit: 'Year', requestsPerUnit });
  return JSON.stringify({
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name: 'identity', namespace: 'default' },
    spec: {
      domain,
      descriptors: [
        { key: 'user_id', rateLimit: rateLimit(6) },
        { key: 'plan', value: 'free', descriptors: [{ key: 'user_id', rateLimit: rateLimit(free) }] },
        { key: 'plan', value: 'pro', descriptors: [{ key: 'user_id', rateLimit: rateLimit(100) }] },
        { key: 'plan', value: 'anonymous', rateLimit: rateLimit(2) },
        { key: 'role', value: 'support', rateLimit: rateLimit(2) },
      ],
    },
  });
}
