import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { Health } from '@tollgate/kit/health';
import { StartReport } from '@tollgate/kit/start-report';
import t, { type Test } from 'tap';
import { buildAdminServer } from '../../src/admin/server.ts';
import { ClientRegistry } from '../../src/ads/clients.ts';
import { SnapshotStore } from '../../src/catalog/snapshot.ts';
import type { Condition } from '../../src/catalog/validation-result.ts';
import type { ReplicaReport } from '../../src/status/client-report.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { makeLimiter, makeRejection } from '../support/limiters.ts';
import { badSpec, makeObject } from '../support/manifests.ts';
import { makePolicy, perUser } from '../support/policies.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { startPipeline } from '../support/start-pipeline.ts';
import { startPolicies, type TestPolicies } from '../support/start-policies.ts';

const noPolicyStatuses = {
  observationOf: () => undefined,
  countClients: () => ({ authServers: { connected: 0, acknowledged: 0 }, limiters: undefined }),
};

/** An admin server with the test's pipeline. */
async function startAdmin(
  t: Test,
  {
    token = '',
    policies,
    authServers = new ClientRegistry(),
    programmedOf,
    ...options
  }: Parameters<typeof startPipeline>[1] & {
    readonly token?: string;
    readonly policies?: TestPolicies['pipeline'];
    readonly authServers?: TestPolicies['authServers'];
    readonly programmedOf?: (id: string) => Condition | undefined;
  } = {},
) {
  const started = await startPipeline(t, options);
  let others: readonly ReplicaReport[] = [];
  const setOthers = (reports: readonly ReplicaReport[]) => {
    others = reports;
    started.setOthers(reports);
  };
  const { pipeline, store: snapshots, limiters, registry } = started;
  const health = new Health();
  const served = health.component('snapshot', { healthy: false });
  snapshots.onChange(() => served.set(true));
  const { logger, lines: adminLines } = recordingLogger();
  const deps = {
    registry,
    pipeline,
    policies,
    snapshots,
    limiters,
    authServers: { snapshots: new SnapshotStore(() => 0), clients: authServers },
    policyStatuses: programmedOf && { ...noPolicyStatuses, programmedOf },
    ...{ replica: 'xds-1', otherReplicas: () => others },
    health,
    logger,
    nowMs: () => 65_000,
    sourceName: 'folder' as const,
    report: new StartReport({ service: 'xds', version: '0.0.0', spec: {}, sources: { env: {} } }),
  };
  const server = buildAdminServer(deps, { host: '127.0.0.1', port: 0, token });
  const port = await server.start();
  t.teardown(() => server.stop(AbortSignal.timeout(1_000)));
  const ask = async (path: string, headers = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const askJson = async (path: string): Promise<unknown> => JSON.parse((await ask(path)).text);
  /** As a client behind a proxy in the Pod, or in another Pod. */
  const askFromAfar = (path: string) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const outgoing = request({ port, host: '127.0.0.1', path, localAddress: '127.0.0.6', agent: false });
      outgoing.once('error', reject);
      outgoing.once('response', (answer) =>
        readText(answer).then((text) => resolve({ status: answer.statusCode, text }), reject),
      );
      outgoing.end();
    });
  return { ...started, setOthers, health, ask, askJson, askFromAfar, adminLines };
}

t.test('page shows access policies with their problems and warnings', async (t) => {
  const { pipeline: policies, authServers, replace, settle } = await startPolicies(t);
  const nacked = { status: 'False', reason: 'Nacked', message: 'refused by auth server auth-1' } as const;
  const programmedOf = (id: string) => (id === 'shop/unused' ? nacked : undefined);
  const { ask } = await startAdmin(t, { policies, authServers, programmedOf });
  t.match((await ask('/')).text, /auth servers do not get them: access policies have not been read yet/);
  replace(
    makePolicy('shop/invalid', { hosts: ['a.test'], unknownField: {} }),
    makePolicy('shop/unused', { hosts: ['b.test'], limits: [{ ...perUser, only: true }] }, { generation: 3 }),
  );
  await settle();
  authServers.put(makeLimiter('auth-1', { rejection: makeRejection(new Map(), 'shop/unused: too new') }));
  const { text } = await ask('/');
  t.match(text, /Auth servers.*limiter-auth-1.*shop\/unused: too new/s);
  t.notMatch(text, 'auth servers do not get');
  t.match(text, /shop\/invalid.*nothing: its hosts are denied.*Invalid.*spec\.unknownField/);
  t.match(
    text,
    /shop\/unused.*generation 3.*Nacked.*refused by auth server auth-1.*Ineffective.*spec\.limits\[0\]\.only/,
  );
});

t.test('healthz succeeds at once, readyz when a snapshot is served', async (t) => {
  const { ask, tell, settle } = await startAdmin(t);
  t.match(await ask('/healthz'), { status: 200, text: 'ok\n' });
  t.match(await ask('/readyz'), { status: 503, text: 'the source has not synced yet\n' });
  tell(replaced(makeObject('ns/a')));
  await settle();
  t.match(await ask('/readyz'), { status: 200, text: 'ok\n' });
});

t.test('readyz and the page show the outage of the source and its start', async (t) => {
  const { ask, tell, lose, settle } = await startAdmin(t);
  lose({ reason: 'no right to list <shop>', sinceMs: 60_000 });
  const reason = 'no right to list <shop> (since 1970-01-01T00:01:00.000Z)';
  t.match(await ask('/readyz'), {
    status: 503,
    text: `the source has not synced yet: ${reason}\n`,
  });
  t.match((await ask('/')).text, 'Not ready: the source has not synced yet: no right to list &lt;');
  tell(replaced(makeObject('ns/a')));
  await settle();
  t.match(await ask('/readyz'), { status: 200, text: 'ok\n' }, 'what is known stays in force');
  const page = (await ask('/')).text;
  t.match(
    page,
    'The source cannot be followed, and known objects stay: no right to list &lt;shop&gt; (since 1970',
  );
  lose();
  t.notMatch((await ask('/')).text, 'cannot be followed');
});

t.test('readyz names other unhealthy components', async (t) => {
  const { ask, tell, settle, health } = await startAdmin(t);
  tell(replaced(makeObject('ns/a')));
  await settle();
  health.component('sigterm', { healthy: true }).set(false);
  t.match(await ask('/readyz'), { status: 503, text: 'not ready: sigterm\n' });
  t.match(await ask('/healthz'), { status: 200 });
});

t.test('metrics are those of the registry', async (t) => {
  const { ask } = await startAdmin(t);
  const { status, headers, text } = await ask('/metrics');
  t.equal(status, 200);
  t.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  t.match(text, /tollgate_xds_source_synced 0/);
});

t.test('/snapshot lists the served limits by domain', async (t) => {
  const { askJson, tell, settle, store } = await startAdmin(t);
  t.match(await askJson('/snapshot'), { version: null, total: 0, domains: [] });
  tell(
    replaced(
      makeObject('ns/b', { domain: 'b/ü' }),
      makeObject('ns/a', { domain: 'a', rules: [{ key: 'k', value: 'x' }] }),
    ),
  );
  await settle();
  const snapshot = store.current();
  const a = {
    domain: 'a',
    version: snapshot?.resources.get('a')?.version,
    rules: ['a.k_x: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: false'],
  };
  t.match(await askJson('/snapshot'), {
    version: snapshot?.version,
    total: 2,
    domains: [a, { domain: 'b/ü' }],
  });
  t.match(await askJson('/snapshot?limit=1'), { domains: [a], next: 'a' });
  t.match(await askJson('/snapshot?limit=1&after=a'), { domains: [{ domain: 'b/ü' }] });
  t.strictSame(await askJson('/snapshot?domain=a'), a);
  t.match(await askJson(`/snapshot?domain=${encodeURIComponent('b/ü')}`), { domain: 'b/ü' });
});

t.test('/snapshot compiles at most 100 domains and yields meanwhile', async (t) => {
  const { askJson, tell, settle } = await startAdmin(t);
  const rules = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}` }));
  tell(
    replaced(
      ...Array.from({ length: 150 }, (_, i) => makeObject(`ns/o${i}`, { domain: `d${1000 + i}`, rules })),
    ),
  );
  await settle();
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const page = await askJson('/snapshot?limit=1000');
  clearImmediate(next);
  t.match(page, { total: 150, next: 'd1099' });
  t.match(page, { domains: { length: 100 } });
  t.ok(turns > 5, `${turns} turns`);
});

t.test('unknown domain is not found', async (t) => {
  const { ask } = await startAdmin(t);
  t.match(await ask('/snapshot?domain=nope'), {
    status: 404,
    text: `{"message":"domain 'nope' is not served"}`,
  });
});

t.test('/objects lists objects with conditions, page by page', async (t) => {
  const { askJson, tell, settle } = await startAdmin(t);
  tell(
    replaced(makeObject('ns/b', { spec: badSpec, label: 'b.yaml#1' }), makeObject('ns/a', { generation: 4 })),
  );
  await settle();
  t.match(await askJson('/objects'), {
    total: 2,
    items: [
      {
        id: 'ns/a',
        domain: 'shop',
        generation: 4,
        inForce: 4,
        rules: 1,
        accepted: { status: 'True', reason: 'Accepted' },
        programmed: { status: 'Unknown', reason: 'NoClients' },
        limiters: { connected: 0, acknowledged: 0 },
      },
      { id: 'ns/b', label: 'b.yaml#1', accepted: { reason: 'Invalid', message: /spec\.descriptors\[0\]/ } },
    ],
  });
  t.match(await askJson('/objects?limit=1'), { total: 2, items: [{ id: 'ns/a' }], next: 'ns/a' });
  t.match(await askJson('/objects?limit=nonsense&after=ns/a'), { items: [{ id: 'ns/b' }] });
});

t.test('page shows domains, objects, limiters and problems', async (t) => {
  const { ask, tell, settle, limiters, store } = await startAdmin(t);
  tell({
    type: 'replaced',
    objects: [makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { spec: badSpec, label: 'b.yaml#2' })],
    problems: [{ source: 'c.yaml:3:1', message: 'no YAML' }],
  });
  await settle();
  const version = store.current()?.version ?? '';
  limiters.put(makeLimiter('1', { acceptedVersion: version, accepted: new Map() }));
  limiters.put(makeLimiter('2', { rejection: makeRejection(new Map(), 'a: will not') }));
  await settle();
  const { status, headers, text } = await ask('/');
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  t.match(headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/);
  for (const expected of [
    '1 limit in 1 domain, version',
    `<code>${version}</code>`,
    'Objects that are not accepted (1)',
    '<span class="dim">b.yaml#2</span>',
    'spec.descriptors[0].rateLimit.unit',
    'c.yaml:3:1: no YAML',
    'folder, 2 objects, last change 60 s ago',
    '<td>limiter-1</td>',
    'a: will not',
    '<a href="/snapshot?domain=a">a</a>',
  ])
    t.ok(text.includes(expected), expected);
});

t.test('/snapshot marks a rule without a limit as unlimited', async (t) => {
  const { askJson, tell, settle } = await startAdmin(t);
  const descriptors = [
    { key: 'open', rateLimit: { unlimited: true } },
    { key: 'shut', rateLimit: { unit: 'Second', requestsPerUnit: 0 } },
  ];
  tell(replaced(makeObject('ns/a', { spec: { domain: 'a', descriptors } })));
  await settle();
  t.match(await askJson('/snapshot?domain=a'), {
    rules: [
      'a.open: unlimited, shadow_mode: false, quota_mode: false',
      'a.shut: unit=SECOND requests_per_unit=0, shadow_mode: false, quota_mode: false',
    ],
  });
});

t.test('page and admin API show the number of limiters at other replicas', async (t) => {
  const { ask, askJson, limiters, setOthers } = await startAdmin(t, { hasReplicas: true });
  limiters.put(makeLimiter('1'));
  t.match((await ask('/')).text, '<dd>1 connected</dd>');
  setOthers([{ identity: 'b_1', replica: 'b', report: { groups: [{ count: 2 }, { count: 3 }] } }]);
  t.match((await ask('/')).text, '<dd>1 connected and 5 at other replicas</dd>');
  t.match(await askJson('/v1/clients'), {
    clients: { length: 1 },
    replicas: [
      { replica: 'xds-1', limiters: { connected: 1, current: 0, refusing: 0 } },
      { replica: 'b', limiters: { connected: 5 }, authServers: { connected: 0 } },
    ],
  });
});

t.test('text of objects and limiters is escaped', async (t) => {
  const { ask, tell, settle, limiters } = await startAdmin(t);
  const evil = '"><script>alert(1)</script>';
  tell({
    type: 'replaced',
    objects: [
      makeObject('ns/a', { domain: evil, label: evil }),
      makeObject('ns/b', {
        spec: { domain: 'd', descriptors: [{ key: evil, rateLimit: { unit: evil, requestsPerUnit: 1 } }] },
      }),
    ],
    problems: [{ source: evil, message: evil }],
  });
  await settle();
  limiters.put(
    makeLimiter('1', {
      nodeId: evil,
      peer: evil,
      acceptedVersion: evil,
      rejection: makeRejection(new Map(), evil),
    }),
  );
  await settle();
  for (const path of ['/', `/?find=${encodeURIComponent(evil)}`]) {
    const { text } = await ask(path);
    t.notOk(text.includes('<script'), path);
    t.ok(text.includes('&quot;&gt;&lt;script&gt;'), path);
  }
});

t.test('page filters by name and is bounded with 10,000 objects', async (t) => {
  const { ask, tell, settle, askJson } = await startAdmin(t);
  tell(replaced(...Array.from({ length: 10_000 }, (_, i) => makeObject(`ns/o${i}`, { domain: `d${i}` }))));
  await settle();
  const page = await ask('/');
  t.match(page.text, /Objects \(10000\)/);
  t.match(page.text, /and 9900 more/);
  t.ok(page.text.length < 200_000, `${page.text.length} characters`);
  const found = await ask('/?find=o9999');
  t.match(found.text, /Objects \(1 of 10000\)/);
  t.ok(found.text.includes('<td>ns/o9999</td>'));
  t.match(await askJson('/objects?limit=100000'), { total: 10_000, items: { length: 1000 } });
  t.match(await askJson('/v1/objects?limit=1000'), {
    total: 10_000,
    objects: { length: 1000 },
    next: String,
  });
});

t.test('rows hidden by the filter are counted', async (t) => {
  const { ask, limiters } = await startAdmin(t);
  limiters.put(makeLimiter('1'));
  const { text } = await ask('/?find=shared');
  t.match(text, '<h2>Limiters (0 of 1)</h2><p class="dim">none with that in its name</p>');
  t.match(text, '<h2>Objects (0)</h2><p class="dim">none</p>');
  t.match((await ask('/?find=limiter')).text, '<h2>Limiters (1)</h2>');
});

t.test('empty set that is held back is shown', async (t) => {
  const { ask, tell, settle } = await startAdmin(t, { allowEmpty: false });
  tell(replaced());
  await settle();
  t.match(await ask('/readyz'), { status: 503, text: /XDS_ALLOW_EMPTY=false/ });
  t.match((await ask('/')).text, /Not ready: there are no limits/);
  tell(changed(makeObject('ns/a')));
  await settle();
  tell(deleted('ns/a'));
  await settle();
  t.match(await ask('/readyz'), { status: 200 });
  t.match((await ask('/')).text, /Limiters keep theirs/);
});

t.test('unknown path is not found', async (t) => {
  const { ask } = await startAdmin(t);
  t.match(await ask('/nope'), { status: 404, text: 'page not found: / lists all pages\n' });
});

const pages = ['/', '/objects', '/snapshot', '/snapshot?domain=shop', '/v1/objects', '/v1/status'];
const probes = ['/healthz', '/metrics'];

t.test('pages without a token are for clients on loopback, health and metrics for all', async (t) => {
  const { ask, askFromAfar, tell, settle } = await startAdmin(t);
  tell(replaced(makeObject('ns/a')));
  await settle();
  for (const path of [...pages, ...probes]) t.equal((await ask(path)).status, 200, path);
  for (const path of [...probes, '/readyz']) t.equal((await askFromAfar(path)).status, 200, path);
  for (const path of pages) t.match(await askFromAfar(path), { status: 403, text: /XDS_ADMIN_TOKEN/ }, path);
});

t.test('pages with a token require it, on loopback too', async (t) => {
  const token = 'a-token-of-the-admin-page';
  const { ask, askFromAfar, tell, settle } = await startAdmin(t, { token });
  tell(replaced(makeObject('ns/a')));
  await settle();
  for (const path of probes) t.equal((await askFromAfar(path)).status, 200, path);
  for (const path of pages) {
    for (const authorization of [undefined, 'Bearer another-token-of-someone', token]) {
      const { status, headers, text } = await ask(path, authorization && { authorization });
      t.equal(status, 401, path);
      t.equal(headers.get('www-authenticate'), 'Bearer');
      t.notMatch(text, token);
    }
    t.equal((await ask(path, { authorization: `Bearer ${token}` })).status, 200, path);
  }
});
