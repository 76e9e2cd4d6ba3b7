import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import {
  type Answer,
  inTurn,
  item,
  json,
  page,
  refusal,
  type ScriptedServer,
  startScriptedServer,
  watch,
} from '../support/kube-server.ts';
import { followWith, type ReflectorUnderTest } from '../support/reflector-under-test.ts';

/**
 * Lists and watches are scripted separately.
 */
async function serve(t: Test, script: { lists: Answer[]; watches: Answer[] }): Promise<ScriptedServer> {
  const list = inTurn(...script.lists);
  const watchAnswer = inTurn(...script.watches);
  const server = await startScriptedServer((response, request) =>
    (request.query.get('watch') === 'true' ? watchAnswer : list)(response, request),
  );
  t.teardown(() => server.stop());
  return server;
}

function follow(t: Test, ...args: Parameters<typeof followWith>): ReflectorUnderTest {
  const following = followWith(...args);
  t.teardown(() => following.reflector.close());
  return following;
}

const getWatches = ({ requests }: ScriptedServer) => requests.filter(({ query }) => query.has('watch'));
const getLists = ({ requests }: ScriptedServer) => requests.filter(({ query }) => !query.has('watch'));
const seen = (following: ReflectorUnderTest, ...expected: string[]) =>
  awaitUntil(() => following.events.join() === expected.join(), { what: expected.join() });
const added = (object: unknown) => ({ type: 'ADDED', object });
const bookmark = (resourceVersion: string) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion } },
});
const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'old' } };

/** Writes raw bytes, then keeps, ends or cuts the connection. */
function raw(text: string, end: 'keep open' | 'end' | 'cut'): Answer {
  return (response) => {
    response.writeHead(200);
    response.flushHeaders();
    response.write(text, () => {
      if (end === 'end') response.end();
      if (end === 'cut') response.destroy();
    });
  };
}

t.test('list of several pages is one event, and the watch starts at its version', async (t) => {
  const server = await serve(t, {
    lists: [
      page([item('a', '1')], '10', 'p2'),
      page([item('b', '2')], '10', 'p3'),
      page([item('c', '3')], '10'),
    ],
    watches: [watch(added(item('d', '11')))],
  });
  const following = follow(t, server.api, { pageSize: 1 });
  await following.reflector.synced;
  await seen(following, 'replaced a b c', 'changed d');
  t.same(
    getLists(server).map(({ query }) => [query.get('limit'), query.get('continue')]),
    [
      ['1', null],
      ['1', 'p2'],
      ['1', 'p3'],
    ],
  );
  const [request] = getWatches(server);
  t.equal(request?.query.get('resourceVersion'), '10');
  t.equal(request?.query.get('allowWatchBookmarks'), 'true');
  const seconds = Number(request?.query.get('timeoutSeconds'));
  t.ok(seconds >= 290 && seconds <= 590, `timeoutSeconds is ${seconds}`);
  t.equal(request?.headers.authorization, 'Bearer open');
});

t.test('list with too large pages is read in smaller ones', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];
  const large = names.map((name) => item(name, '1', { spec: { domain: 'x'.repeat(1_000) } }));
  const server = await startScriptedServer(
    (response, request) => {
      if (request.query.has('watch')) return watch()(response, request);
      const from = Number(request.query.get('continue') ?? 0);
      const to = from + Number(request.query.get('limit'));
      page(large.slice(from, to), '10', to < large.length ? String(to) : '')(response, request);
    },
    { maxBodyBytes: 3_000 },
  );
  t.teardown(() => server.stop());
  await seen(follow(t, server.api, { pageSize: 20 }), ['replaced', ...names].join(' '));
  t.strictSame(
    server.requests.slice(0, 4).map(({ query }) => [query.get('limit'), query.get('continue')]),
    [
      ['20', null],
      ['2', null],
      ['2', '2'],
      ['2', '4'],
    ],
  );
});

t.test('object that is too large by itself is a failure', async (t) => {
  const huge = page([item('a', '1', { spec: { domain: 'x'.repeat(4_000) } })], '10');
  const server = await startScriptedServer(huge, { maxBodyBytes: 3_000 });
  t.teardown(() => server.stop());
  const following = follow(t, server.api);
  await awaitUntil(() => following.logs.length > 0, { what: 'a log line' });
  t.match(following.logs[0]?.reason, 'exceeds 3000 bytes');
});

t.test('list whose continue token has expired starts again', async (t) => {
  const server = await serve(t, {
    lists: [page([item('a', '1')], '10', 'p2'), refusal(410, 'Expired'), page([item('b', '2')], '20')],
    watches: [watch()],
  });
  const following = follow(t, server.api);
  await seen(following, 'replaced b');
  t.equal(getLists(server)[2]?.query.has('continue'), false);
});

t.test('objects have their type and no bookkeeping', async (t) => {
  const metadata = {
    ...item('a', '1').metadata,
    managedFields: [{ manager: 'kubectl' }],
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', owner: 'shop' },
  };
  const server = await serve(t, {
    lists: [page([{ metadata, spec: {} }], '10')],
    watches: [watch()],
  });
  const manifests: unknown[] = [];
  const following = follow(t, server.api, {}, (event) => {
    if (event.type === 'replaced') manifests.push(...event.objects.map(({ manifest }) => manifest));
  });
  await following.reflector.synced;
  t.strictSame(manifests, [
    {
      apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
      kind: 'RateLimitConfig',
      metadata: { ...item('a', '1').metadata, annotations: { owner: 'shop' } },
      spec: {},
    },
  ]);
});

t.test(
  'watch that expires by an event is followed by a list, of which only differences are passed on',
  async (t) => {
    const edited = item('edited', '12');
    const server = await serve(t, {
      lists: [
        page([item('same', '1'), item('edited', '2'), item('gone', '3')], '10'),
        page(
          [
            item('same', '1'),
            { ...edited, metadata: { ...edited.metadata, generation: 2 } },
            item('new', '13'),
          ],
          '20',
        ),
      ],
      watches: [watch(expired), watch()],
    });
    const following = follow(t, server.api);
    await seen(following, 'replaced edited gone same', 'deleted gone', 'changed edited', 'changed new');
    await awaitUntil(() => getWatches(server)[1]?.query.get('resourceVersion') === '20', {
      what: 'a watch from the new list',
    });
    t.equal(await following.metric('tollgate_xds_source_relists_total'), 2);
  },
);

t.test('watch that is refused as expired is followed by a list', async (t) => {
  const server = await serve(t, {
    lists: [page([], '10'), page([item('a', '11')], '20')],
    watches: [refusal(410, 'Gone'), watch()],
  });
  await seen(follow(t, server.api), 'replaced', 'changed a');
});

t.test('object deleted and created again between two lists causes both events', async (t) => {
  const reborn = item('a', '12');
  const server = await serve(t, {
    lists: [
      page([item('a', '1')], '10'),
      page([{ ...reborn, metadata: { ...reborn.metadata, uid: 'other' } }], '20'),
    ],
    watches: [watch(expired), watch()],
  });
  await seen(follow(t, server.api), 'replaced a', 'deleted a', 'changed a');
});

t.test('broken connection resumes after the last event or bookmark without a list', async (t) => {
  const line = (event: unknown) => `${JSON.stringify(event)}\n`;
  const server = await serve(t, {
    lists: [page([], '10')],
    watches: [
      raw(`${line(added(item('a', '11')))}{"type":"ADDED","obj`, 'cut'),
      raw(line(bookmark('15')), 'cut'),
      watch(added(item('b', '16'))),
    ],
  });
  const following = follow(t, server.api);
  await seen(following, 'replaced', 'changed a', 'changed b');
  t.same(
    getWatches(server).map(({ query }) => query.get('resourceVersion')),
    ['10', '11', '15'],
  );
  t.equal(getLists(server).length, 1);
});

t.test('duplicate event is passed on once', async (t) => {
  const event = added(item('a', '11'));
  const server = await serve(t, {
    lists: [page([], '10')],
    watches: [watch(event, event, added(item('b', '12')))],
  });
  await seen(follow(t, server.api), 'replaced', 'changed a', 'changed b');
});

t.test('watch that ends regularly is opened again, with a delay when it was short', async (t) => {
  let waits = 0;
  const random = (): number => {
    waits += 1;
    return 0.5;
  };
  const server = await serve(t, {
    lists: [page([], '10')],
    watches: [raw('', 'end'), raw('', 'end'), raw('', 'end'), watch(added(item('a', '11')))],
  });
  const backoff = { initialMs: 1, maxMs: 20, random };
  // With a stopped clock each watch is short, however busy the machine is.
  const following = follow(t, server.api, { backoff, now: () => 0 });
  await seen(following, 'replaced', 'changed a');
  t.equal(waits, 3, 'one waiting time for each watch that ended early');
});

t.test('line that is not JSON is followed by a list', async (t) => {
  const server = await serve(t, {
    lists: [page([], '10'), page([item('a', '11')], '20')],
    watches: [raw('<html>\n', 'keep open'), watch()],
  });
  await seen(follow(t, server.api), 'replaced', 'changed a');
});

t.test('event of an unknown type is followed by a list', async (t) => {
  const server = await serve(t, {
    lists: [page([], '10'), page([item('a', '11')], '20')],
    watches: [watch({ type: 'RENAMED', object: item('b', '11') }), watch()],
  });
  await seen(follow(t, server.api), 'replaced', 'changed a');
});

t.test('line without an end is aborted at its bound', async (t) => {
  let written = 0;
  const server = await serve(t, {
    lists: [page([], '10'), page([item('a', '11')], '20')],
    watches: [
      (response) => {
        response.writeHead(200);
        const chunk = Buffer.alloc(1024 * 1024, 'x');
        const more = (): void => {
          if (response.destroyed) return;
          written += chunk.length;
          response.write(chunk, more);
        };
        more();
      },
      watch(),
    ],
  });
  await seen(follow(t, server.api), 'replaced', 'changed a');
  t.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`);
});

t.test('idle watch is opened again at its version', async (t) => {
  const server = await serve(t, {
    lists: [page([], '10')],
    // A watch whose bookmark arrived too late is also closed.
    watches: [
      (response, request) => {
        const isFirst = request.query.get('resourceVersion') === '10';
        watch(isFirst ? bookmark('12') : added(item('a', '13')))(response, request);
      },
    ],
  });
  const following = follow(t, server.api, { idleTimeoutMs: 500 });
  await seen(following, 'replaced', 'changed a');
  t.ok(getWatches(server).some(({ query }) => query.get('resourceVersion') === '12'));
  t.equal(following.logs[0]?.reason, 'no data received for 500 ms');
  // The next watch is idle, too.
  t.strictSame(
    following.logs
      .map(({ level }) => level)
      .filter((level) => level !== 'debug')
      .slice(0, 2),
    ['warning', 'info'],
  );
});

t.test('objects are listed again after the resync interval', async (t) => {
  const server = await serve(t, {
    lists: [page([item('a', '1')], '10'), page([item('a', '1'), item('missed', '5')], '20')],
    watches: [watch()],
  });
  const following = follow(t, server.api, { resyncMs: 50 });
  await seen(following, 'replaced a', 'changed missed');
  t.equal(await following.metric('tollgate_xds_source_errors_total'), 0);
});

t.test('failures are logged once per reason and counted, and so is their end', async (t) => {
  const server = await serve(t, {
    lists: [refusal(503, 'Starting'), refusal(503, 'Starting'), refusal(403, 'Forbidden'), page([], '10')],
    watches: [watch()],
  });
  const following = follow(t, server.api);
  const logged = () => following.logs.filter(({ level }) => level !== 'debug');
  await awaitUntil(() => logged().length === 3, { what: 'two failures and their end in the log' });
  t.strictSame(
    logged().map(({ level, reason }) => [level, reason]),
    [
      ['warning', 'Starting it is'],
      [
        'warning',
        'not allowed to list ratelimitconfigs.ratelimit.tollgate.dev in all namespaces: grant it, see services/xds/deploy/rbac.yaml, or set XDS_NAMESPACES to the namespaces where it is granted',
      ],
      ['info', undefined],
    ],
  );
  t.equal(await following.metric('tollgate_xds_source_errors_total'), 3);
});

t.test('outage has its reason until objects are followed again', async (t) => {
  const rights: { missing: boolean } = { missing: true };
  const server = await startScriptedServer((response, request) => {
    const answer = request.query.has('watch') ? watch() : page([], '10');
    (rights.missing ? refusal(403, 'Forbidden') : answer)(response, request);
  });
  t.teardown(() => server.stop());
  const { reflector } = follow(t, server.api, { namespace: 'shop', now: () => 5_000 });
  t.equal(reflector.outage(), undefined);
  await awaitUntil(() => reflector.outage() !== undefined, { what: 'the outage' });
  t.match(reflector.outage(), { reason: 'not allowed to list ratelimitconfigs', sinceMs: 5_000 });
  t.match(reflector.outage()?.reason, 'in namespace shop');
  rights.missing = false;
  await awaitUntil(() => reflector.outage() === undefined, { what: 'the end of the outage' });
});

t.test('cluster without the CRD is retried with advice', async (t) => {
  const server = await serve(t, {
    lists: [refusal(404, 'NotFound'), page([item('a', '1')], '10')],
    watches: [watch()],
  });
  const following = follow(t, server.api);
  await seen(following, 'replaced a');
  t.match(following.logs[0]?.reason, /kubectl apply -f crds\/ratelimitconfigs\.yaml/);
});

t.test('Retry-After is respected', async (t) => {
  const waits: number[] = [];
  const server = await serve(t, {
    lists: [refusal(429, 'TooManyRequests', { 'retry-after': '7' }), page([], '10')],
    watches: [watch()],
  });
  const following = follow(t, server.api, { sleep: async (ms) => void waits.push(ms) });
  await following.reflector.synced;
  t.strictSame(waits, [7_000]);
});

/** A server that is down, and returns when its readiness was probed twice. */
async function returningServer(t: Test, { refuses }: { readonly refuses: Answer }) {
  let probes = 0;
  let lists = 0;
  const server = await startScriptedServer((response, request) => {
    const isDown = probes < 3;
    if (request.path === '/readyz') {
      probes += 1;
      return (probes < 3 ? refuses : json('ok'))(response, request);
    }
    if (request.query.has('watch')) return watch()(response, request);
    lists += 1;
    return (isDown ? refuses : page([item('a', '1')], '10'))(response, request);
  });
  t.teardown(() => server.stop());
  return { api: server.api, lists: () => lists };
}

/** Adds up the delays. */
function countingSleep() {
  const waits: number[] = [];
  const sleep = async (ms: number) => void waits.push(ms);
  return { sleep, waitedMs: () => waits.reduce((sum, ms) => sum + ms, 0) };
}

const oneHour = { initialMs: 3_600_000, maxMs: 3_600_000 };

for (const [outage, refuses] of [
  ['that is not ready', refusal(503, 'Starting')],
  ['that breaks connections', (response) => void response.destroy()],
  ['that has not loaded its roles', refusal(403, 'Forbidden')],
] satisfies [string, Answer][]) {
  t.test(`API server ${outage} is probed, and followed as soon as it is ready`, async (t) => {
    const { api, lists } = await returningServer(t, { refuses });
    const { sleep, waitedMs } = countingSleep();
    const following = follow(t, api, { backoff: oneHour, sleep, random: () => 0.5 });
    await seen(following, 'replaced a');
    t.equal(lists(), 2, 'no further list during the outage');
    t.equal(waitedMs(), 3 * 1_500);
  });
}

t.test('API server that is ready and refuses is left alone for the whole delay', async (t) => {
  const server = await startScriptedServer((response, request) =>
    (request.path === '/readyz' ? json('ok') : refusal(403, 'Forbidden'))(response, request),
  );
  t.teardown(() => server.stop());
  const { sleep, waitedMs } = countingSleep();
  const delays = Promise.withResolvers<void>();
  const following = follow(t, server.api, {
    backoff: oneHour,
    random: () => 0,
    sleep: (ms) => (ms > 10_000 ? delays.promise : sleep(ms)),
  });
  await awaitUntil(() => server.requests.length === 2, { what: 'a list and a probe' });
  t.equal(waitedMs(), 1_000);
  delays.resolve();
  await following.reflector.close();
});

t.test(
  'connections that always break although the API server is ready are retried with the whole delay',
  async (t) => {
    const server = await startScriptedServer((response, request) =>
      request.path === '/readyz' ? json('ok')(response, request) : void response.destroy(),
    );
    t.teardown(() => server.stop());
    const delays = Promise.withResolvers<void>();
    const following = follow(t, server.api, {
      backoff: oneHour,
      sleep: (ms) => (ms > 10_000 ? delays.promise : Promise.resolve()),
    });
    const count = (path: RegExp) => server.requests.filter((request) => path.test(request.path)).length;
    await awaitUntil(() => count(/readyz/) === 6, { what: 'the last probe' });
    t.equal(count(/ratelimitconfigs/), 6);
    delays.resolve();
    await following.reflector.close();
  },
);

for (const [whenMissing, expected] of [
  ['kept', ['replaced a']],
  ['deleted', ['replaced a', 'deleted a']],
] as const) {
  t.test(`objects of a kind that is no longer served are ${whenMissing}`, async (t) => {
    const server = await startScriptedServer(
      inTurn(page([item('a', '1')], '10'), refusal(404, 'NotFound'), refusal(404, 'NotFound')),
    );
    t.teardown(() => server.stop());
    const sleep = () => Promise.resolve();
    const { reflector, events, logs } = follow(t, server.api, { whenMissing, sleep });
    await awaitUntil(() => server.requests.length > 4, { what: 'further lists' });
    t.same(events, expected);
    t.equal(reflector.isMissing, whenMissing === 'deleted');
    if (whenMissing === 'kept') t.match(logs[0], { state: 'keeping known objects' });
    await reflector.close();
  });
}

t.test('a kind that is not served yet has no objects', async (t) => {
  const server = await startScriptedServer(
    inTurn(refusal(404, 'NotFound'), page([item('a', '1')], '10'), watch()),
  );
  t.teardown(() => server.stop());
  const following = follow(t, server.api, { whenMissing: 'kept', sleep: () => Promise.resolve() });
  await seen(following, 'replaced', 'changed a');
  t.equal(following.reflector.isMissing, false);
});

t.test('invalid list is a failure and removes nothing', async (t) => {
  const broken: Answer[] = [
    json({ items: 'none', metadata: { resourceVersion: '1' } }),
    json({ items: [], metadata: {} }),
    json({ items: [{ metadata: { name: 'nameless' } }], metadata: { resourceVersion: '1' } }),
    (response) => response.end('<html>'),
  ];
  const server = await serve(t, {
    lists: [page([item('a', '1')], '10'), ...broken, page([item('a', '1'), item('b', '2')], '20')],
    watches: [watch(expired), watch()],
  });
  await seen(follow(t, server.api), 'replaced a', 'changed b');
});

t.test('error of the handler is logged, and the next event follows', async (t) => {
  const server = await serve(t, {
    lists: [page([], '10')],
    watches: [watch(added(item('bad', '11')), added(item('good', '12')))],
  });
  const following = follow(t, server.api, {}, (event) => {
    if (event.type === 'changed' && event.object.name === 'bad') throw new Error('cannot bear it');
  });
  await seen(following, 'replaced', 'changed bad', 'changed good');
  t.strictSame(
    following.logs.map(({ level }) => level),
    ['error'],
  );
});

t.test('time of the last event is recorded', async (t) => {
  const server = await serve(t, { lists: [page([], '10')], watches: [watch(bookmark('11'))] });
  const before = Date.now() / 1_000;
  const following = follow(t, server.api);
  await following.reflector.synced;
  t.ok((await following.metric('tollgate_xds_source_last_event_timestamp_seconds')) >= before);
});

t.test('close ends a watch, a hanging list, and the delay between attempts', async (t) => {
  const hanging: ScriptedServer = await serve(t, { lists: [() => undefined], watches: [] });
  const refusing = await serve(t, { lists: [refusal(500, 'Broken')], watches: [] });
  const watching = await serve(t, { lists: [page([], '10')], watches: [watch()] });
  const apis: ApiClient[] = [hanging.api, refusing.api, watching.api];
  const all = apis.map((api) => followWith(api, { backoff: { initialMs: 1e6, maxMs: 1e6 } }));
  await awaitUntil(
    () => hanging.requests.length + refusing.requests.length + watching.requests.length === 4,
    {
      what: 'all requests',
    },
  );
  await Promise.all(all.map(({ reflector }) => reflector.close()));
  t.equal(getLists(refusing).filter(({ path }) => path !== '/readyz').length, 1);
});
