import { runSteps } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { ConfigObject } from '../../src/catalog/source.ts';
import type { Context } from '../../src/context.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import type { Leadership } from '../../src/kube/lease.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import type { ObjectStatus } from '../../src/status/object-status.ts';
import { policyStatuses } from '../../src/status/policy-status.ts';
import type { StatusWriter } from '../../src/status/reporter.ts';
import { rateLimitConfigStatuses, type StatusManifest } from '../../src/status/status-manifest.ts';
import { KubernetesStatusWriter, type KubernetesStatusWriterOptions } from '../../src/status/writer.ts';
import { connectApi, createEditor, prepareCluster } from '../support/cluster.ts';
import {
  type Answer,
  inTurn,
  json,
  refusal,
  type ScriptedServer,
  startScriptedServer,
} from '../support/kube-server.ts';
import { makePolicy } from '../support/policies.ts';
import { recordingContext } from '../support/recording-logger.ts';
import { startSource } from '../support/source-under-test.ts';

const accepted = { status: 'True', reason: 'Accepted', message: '3 limits' } as const;
const enforced = { status: 'True', reason: 'Acknowledged', message: '1 of 1' } as const;
const pending = { status: 'False', reason: 'Pending', message: '0 of 1' } as const;

function toObjectStatus(id: string, rest: Partial<ObjectStatus> = {}): ObjectStatus {
  return {
    id,
    uid: `uid-${id}`,
    observedGeneration: 1,
    rules: 3,
    version: 'v1',
    accepted,
    programmed: pending,
    ...rest,
  };
}

function makeObject(id: string, status?: unknown): ConfigObject {
  const [namespace = '', name = ''] = id.split('/');
  const manifest = {
    metadata: { namespace, name, resourceVersion: '1' },
    ...(status !== undefined && { status }),
  };
  return { id, namespace, name, uid: `uid-${id}`, generation: 1, createdMs: 0, order: id, manifest };
}

/** A leadership that the test controls. */
function makeLeadership(leads = true) {
  const listeners = new Set<(leader: boolean) => void>();
  let leader = leads;
  const leadership: Leadership = {
    isLeader: () => leader,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const set = (next: boolean): void => {
    leader = next;
    for (const listener of listeners) listener(next);
  };
  return { leadership, set };
}

interface Writing {
  readonly writer: StatusWriter;
  readonly logs: readonly Record<string, unknown>[];
  /** Count of writes by result. */
  results(): Promise<Record<string, number>>;
}

type WriterOptions = KubernetesStatusWriterOptions<ObjectStatus, StatusManifest>;

async function startWriter(
  t: Test,
  {
    trace,
    nowMs = Date.now,
    ...options
  }: Pick<WriterOptions, 'api' | 'objects'> &
    Partial<WriterOptions> &
    Partial<Pick<Context, 'trace' | 'nowMs'>>,
): Promise<Writing> {
  const { context, lines } = recordingContext({ nowMs, trace });
  const { statusWrites } = context.metrics;
  const writer = new KubernetesStatusWriter(context, {
    kind: rateLimitConfigStatuses,
    leadership: makeLeadership().leadership,
    debounceMs: 5,
    backoff: { initialMs: 5, maxMs: 20 },
    ...options,
  });
  writer.start();
  t.teardown(() => writer.close());
  return {
    writer,
    logs: lines,
    async results() {
      const { values } = await statusWrites.get();
      return Object.fromEntries(values.map(({ labels, value }) => [String(labels.result), value]));
    },
  };
}

/** An API server that stores each status, or answers as scripted. */
async function statusServer(t: Test, ...script: Answer[]): Promise<ScriptedServer> {
  const accept: Answer = (response, { body }) => json(JSON.parse(body))(response, noRequest);
  const server = await startScriptedServer(inTurn(...script, accept));
  t.teardown(() => server.stop());
  return server;
}

const noRequest = { method: '', path: '', query: new URLSearchParams(), headers: {}, body: '' };

const paths = ({ requests }: ScriptedServer) => requests.map(({ path }) => path);
const arrive = (server: ScriptedServer, count: number) =>
  awaitUntil(() => server.requests.length === count, { what: `${count} writes` });
const parseBody = (server: ScriptedServer, index: number) => JSON.parse(server.requests[index]?.body ?? '{}');

const base = '/apis/ratelimit.tollgate.dev/v1alpha1/namespaces/shop/ratelimitconfigs';

t.test('the status of a policy is written for the generation that it is of', async (t) => {
  const server = await statusServer(t);
  const { context } = recordingContext({});
  const makePolicyObject = (generation: number) => {
    const metadata = { namespace: 'shop', name: 'orders', resourceVersion: `${generation}` };
    const { apiVersion, kind } = policyStatuses.resource;
    const manifest = { apiVersion, kind, metadata, spec: { hosts: ['a.test'] } };
    return { ...makePolicy('shop/orders', {}, { generation }), manifest };
  };
  const objects = new Map([['shop/orders', makePolicyObject(2)]]);
  const writer = new KubernetesStatusWriter(context, {
    ...{ kind: policyStatuses, api: server.api, objects, debounceMs: 5 },
    leadership: makeLeadership().leadership,
  });
  writer.start();
  t.teardown(() => writer.close());
  const put = (generation: number) => {
    const change = runSteps(
      new PolicyCatalog().apply([{ type: 'replaced', objects: [makePolicyObject(generation)] }]),
    );
    for (const result of change.results) writer.put({ result, programmed: enforced, isSeen: false });
  };
  put(1);
  put(2);
  await arrive(server, 1);
  t.match(server.requests[0]?.path, /\/namespaces\/shop\/accesspolicies\/orders\/status$/);
  t.match(parseBody(server, 0), {
    kind: 'AccessPolicy',
    metadata: { resourceVersion: '2' },
    status: { observedGeneration: 2, target: 'a.test', lastValid: { generation: 2 } },
  });
});

t.test('status is applied to the status subresource of its object only', async (t) => {
  const server = await statusServer(t);
  const objects = new Map([['shop/web', makeObject('shop/web')]]);
  const now = () => Date.parse('2026-01-02T03:04:05.678Z');
  const { writer, results } = await startWriter(t, { api: server.api, objects, nowMs: now });
  writer.put(toObjectStatus('shop/web'));
  await arrive(server, 1);
  const [request] = server.requests;
  t.match(request, {
    method: 'PATCH',
    path: `${base}/web/status`,
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });
  t.equal(request?.query.toString(), 'fieldManager=tollgate-xds&force=true');
  const times = { observedGeneration: 1, lastTransitionTime: '2026-01-02T03:04:05Z' };
  t.strictSame(parseBody(server, 0), {
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { namespace: 'shop', name: 'web', resourceVersion: '1' },
    status: {
      observedGeneration: 1,
      rules: 3,
      version: 'v1',
      conditions: [
        { type: 'Accepted', ...accepted, ...times },
        { type: 'Programmed', ...pending, ...times },
        { type: 'Ready', ...pending, ...times },
        {
          type: 'Matched',
          status: 'Unknown',
          reason: 'Observing',
          message: 'not known yet whether requests match every rule',
          ...times,
        },
        { type: 'Reconciling', ...pending, ...times, status: 'True' },
      ],
    },
  });
  await awaitUntil(async () => (await results()).written === 1, { what: 'the count' });
});

t.test('latest of several changes within the debounce time is written once', async (t) => {
  const server = await statusServer(t);
  const objects = new Map(['shop/web', 'shop/api'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, debounceMs: 50, concurrency: 1 });
  for (let rules = 1; rules <= 20; rules += 1) writer.put(toObjectStatus('shop/web', { rules }));
  writer.put(toObjectStatus('shop/api'));
  await arrive(server, 2);
  t.strictSame(paths(server), [`${base}/web/status`, `${base}/api/status`]);
  t.equal(parseBody(server, 0).status.rules, 20);
});

t.test('statuses of edits are written before all that wait', async (t) => {
  const gate = Promise.withResolvers<void>();
  const server = await startScriptedServer((response, { body }) => {
    void gate.promise.then(() => json(JSON.parse(body))(response, noRequest));
  });
  t.teardown(() => server.stop());
  const ids = Array.from({ length: 20 }, (_, index) => `shop/${index}`);
  const objects = new Map([...ids, 'shop/edited'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, concurrency: 1, debounceMs: 0 });
  for (const id of ids) writer.put(toObjectStatus(id));
  await arrive(server, 1);
  writer.put(toObjectStatus('shop/edited'), { isEdit: true });
  gate.resolve();
  await arrive(server, ids.length + 1);
  t.equal(paths(server)[1], `${base}/edited/status`);
});

t.test('nothing is collected for the last status of an edit', async (t) => {
  const server = await statusServer(t);
  const objects = new Map(['shop/pending', 'shop/edited'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, debounceMs: 60_000 });
  writer.put(toObjectStatus('shop/pending'), { isEdit: true });
  writer.put(toObjectStatus('shop/edited', { programmed: enforced }), { isEdit: true });
  await arrive(server, 1);
  t.strictSame(paths(server), [`${base}/edited/status`]);
});

t.test('number of limiters that an earlier release has written is removed', async (t) => {
  const server = await statusServer(t);
  const objects = new Map([['shop/web', makeObject('shop/web')]]);
  const { writer } = await startWriter(t, { api: server.api, objects });
  writer.put(toObjectStatus('shop/web'));
  await arrive(server, 1);
  const limiters = { connected: 3, acknowledged: 3 };
  objects.set('shop/web', makeObject('shop/web', { ...parseBody(server, 0).status, limiters }));
  writer.put(toObjectStatus('shop/web'));
  await arrive(server, 2);
  t.strictSame(parseBody(server, 1).status, parseBody(server, 0).status);
});

t.test('status that the object has is not written, whatever fields others added', async (t) => {
  const server = await statusServer(t);
  const objects = new Map(['shop/same', 'shop/other'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  writer.put(toObjectStatus('shop/same'));
  await arrive(server, 1);
  // The source has not delivered it yet: the response of the API server counts.
  writer.put(toObjectStatus('shop/same'));
  writer.put(toObjectStatus('shop/other'));
  await arrive(server, 2);
  // Now it has, with fields of another writer.
  const { status } = parseBody(server, 0);
  const added = { type: 'Reviewed', status: 'True' };
  objects.set(
    'shop/same',
    makeObject('shop/same', { ...status, x: 1, conditions: [added, ...status.conditions] }),
  );
  writer.put(toObjectStatus('shop/same'));
  writer.put(toObjectStatus('shop/other', { rules: 4 }));
  await arrive(server, 3);
  t.strictSame(
    paths(server),
    ['same', 'other', 'other'].map((name) => `${base}/${name}/status`),
  );
});

t.test('status that another replica wrote stays while limiters reconnect', async (t) => {
  const server = await statusServer(t);
  const { leadership, set } = makeLeadership(false);
  const conditions = [{ type: 'Programmed', ...enforced, observedGeneration: 1 }];
  const stored = { observedGeneration: 1, version: 'v1', conditions };
  const objects = new Map([
    ['shop/same', makeObject('shop/same', stored)],
    ['shop/edited', makeObject('shop/edited', { ...stored, version: 'v0' })],
  ]);
  const { writer } = await startWriter(t, { api: server.api, objects, leadership, concurrency: 1 });
  const starting = { programmed: pending, isProvisional: true };
  for (const id of objects.keys()) writer.put(toObjectStatus(id, starting));
  set(true);
  await arrive(server, 1);
  writer.put(toObjectStatus('shop/same', { programmed: pending }));
  await arrive(server, 2);
  t.strictSame(paths(server), [`${base}/edited/status`, `${base}/same/status`], 'once it is known');
});

t.test('condition keeps its transition time until its status changes', async (t) => {
  const server = await statusServer(t);
  const old = '2020-01-01T00:00:00Z';
  const conditions = [
    { type: 'Accepted', ...accepted, observedGeneration: 1, lastTransitionTime: old },
    { type: 'Programmed', ...pending, observedGeneration: 1, lastTransitionTime: old },
    { type: 'Ready', ...pending, observedGeneration: 1, lastTransitionTime: old },
  ];
  const objects = new Map([['shop/web', makeObject('shop/web', { conditions })]]);
  const { writer } = await startWriter(t, { api: server.api, objects });
  const programmed = { status: 'True', reason: 'Acknowledged', message: '1 of 1' } as const;
  writer.put(toObjectStatus('shop/web', { programmed, accepted: { ...accepted, message: '4 limits' } }));
  await arrive(server, 1);
  const [first, second] = parseBody(server, 0).status.conditions;
  t.match(first, { type: 'Accepted', message: '4 limits', lastTransitionTime: old });
  t.match(second, { type: 'Programmed', status: 'True' });
  t.not(second.lastTransitionTime, old);
});

t.test('Reconciling and Stalled are there only while they are True', async (t) => {
  const server = await statusServer(t);
  const objects = new Map([['shop/web', makeObject('shop/web')]]);
  const { writer } = await startWriter(t, { api: server.api, objects });
  const types = (index: number) =>
    parseBody(server, index).status.conditions.map(({ type }: { type: string }) => type);
  const refused = { status: 'False', reason: 'Nacked', message: '1 of 1' } as const;
  const invalid = { status: 'False', reason: 'Invalid', message: 'spec.domain: is required' } as const;
  const changes = [{}, { programmed: enforced }, { programmed: refused }, { accepted: invalid }] as const;
  for (const [index, change] of changes.entries()) {
    writer.put(toObjectStatus('shop/web', change));
    await arrive(server, index + 1);
    objects.set('shop/web', makeObject('shop/web', parseBody(server, index).status));
  }
  const always = ['Accepted', 'Programmed', 'Ready', 'Matched'];
  t.strictSame(
    changes.map((_, index) => types(index)),
    [[...always, 'Reconciling'], always, [...always, 'Stalled'], [...always, 'Stalled']],
  );
  t.match(parseBody(server, 3).status.conditions.at(-1), { ...invalid, status: 'True' });
});

t.test('a condition that no longer holds is removed, although nothing else differs', async (t) => {
  const server = await statusServer(t);
  const objects = new Map([['shop/web', makeObject('shop/web')]]);
  const { writer } = await startWriter(t, { api: server.api, objects });
  const programmed = { status: 'True', reason: 'Acknowledged', message: '1 of 1' } as const;
  writer.put(toObjectStatus('shop/web', { programmed }));
  await arrive(server, 1);
  const { status } = parseBody(server, 0);
  const stale = { ...status.conditions[2], type: 'Stalled' };
  objects.set('shop/web', makeObject('shop/web', { ...status, conditions: [...status.conditions, stale] }));
  writer.put(toObjectStatus('shop/web', { programmed }));
  await arrive(server, 2);
  t.equal(parseBody(server, 1).status.conditions.length, 4);
});

t.test('message that exceeds the bound of the CRD is cut', async (t) => {
  const server = await statusServer(t);
  const objects = new Map([['shop/web', makeObject('shop/web')]]);
  const { writer } = await startWriter(t, { api: server.api, objects });
  writer.put(toObjectStatus('shop/web', { accepted: { ...accepted, message: 'x'.repeat(100_000) } }));
  await arrive(server, 1);
  const { length } = parseBody(server, 0).status.conditions[0].message;
  t.ok(length > 30_000 && length <= 32_768, `${length} characters`);
});

t.test('only the leader writes, and a new leader writes all differences', async (t) => {
  const server = await statusServer(t);
  const { leadership, set } = makeLeadership(false);
  const objects = new Map(['shop/a', 'shop/b', 'shop/gone'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, leadership, concurrency: 1 });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  writer.forget('shop/gone');
  t.equal(server.requests.length, 0);
  set(true);
  await arrive(server, 2);
  t.strictSame(paths(server), [`${base}/a/status`, `${base}/b/status`]);

  set(false);
  writer.put(toObjectStatus('shop/b', { rules: 9 }));
  set(true);
  await arrive(server, 3);
  t.equal(paths(server)[2], `${base}/b/status`);
});

t.test('replica that loses the leadership during a round stops', async (t) => {
  const { leadership, set } = makeLeadership();
  const server = await statusServer(t, (response, { body }) => {
    set(false);
    json(JSON.parse(body))(response, noRequest);
  });
  const objects = new Map(['shop/a', 'shop/b', 'shop/c'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, leadership, concurrency: 1 });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await arrive(server, 1);
  set(true);
  await arrive(server, 3);
  t.strictSame(
    paths(server).toSorted(),
    ['a', 'b', 'c'].map((name) => `${base}/${name}/status`),
  );
});

t.test('status of a deleted object with the same name is not written', async (t) => {
  const server = await statusServer(t);
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  writer.put(toObjectStatus('shop/a', { uid: 'former' }));
  writer.put(toObjectStatus('shop/b'));
  await arrive(server, 1);
  t.strictSame(paths(server), [`${base}/b/status`]);
});

t.test('deleted object is skipped and does not block others', async (t) => {
  const server = await statusServer(t, refusal(404, 'NotFound'));
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer, results, logs } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await awaitUntil(async () => (await results()).written === 1, { what: 'the second' });
  t.strictSame(await results(), { gone: 1, written: 1 });
  t.notOk(logs.some(({ level }) => level !== 'debug'));
});

t.test('changed object is written once the source has delivered the change', async (t) => {
  const server = await statusServer(t, refusal(409, 'Conflict'));
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer, results, logs } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await awaitUntil(async () => (await results()).written === 1, { what: 'the second' });
  writer.put(toObjectStatus('shop/b', { rules: 4 }));
  await arrive(server, 3);
  t.strictSame(
    paths(server),
    ['a', 'b', 'b'].map((name) => `${base}/${name}/status`),
    'not tried in vain',
  );

  objects.set('shop/a', makeObject('shop/a'));
  await arrive(server, 4);
  t.equal(paths(server)[3], `${base}/a/status`);
  await awaitUntil(async () => (await results()).written === 3, { what: 'the answer to the last one' });
  t.strictSame(await results(), { conflict: 1, written: 3 });
  t.notOk(logs.some(({ level }) => level !== 'debug'));
});

t.test('failed write is retried with the latest status and logged once', async (t) => {
  const server = await statusServer(
    t,
    refusal(503, 'Unavailable'),
    (response) => void response.destroy(),
    refusal(503, 'Unavailable'),
  );
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer, results, logs } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  writer.put(toObjectStatus('shop/a'));
  writer.put(toObjectStatus('shop/b'));
  await awaitUntil(() => server.requests.length > 0, { what: 'the first attempt' });
  writer.put(toObjectStatus('shop/a', { rules: 8 }));
  await awaitUntil(async () => (await results()).written === 2, { what: 'both' });
  t.equal((await results()).failed, 3);
  t.match(
    server.requests
      .slice(3)
      .map(({ body }) => JSON.parse(body).status.rules)
      .toSorted(),
    [3, 8],
  );
  t.strictSame(
    logs.map(({ reason }) => reason),
    ['Unavailable it is', 'socket hang up', 'Unavailable it is'],
  );
});

t.test('writes go on as soon as the API server is ready after an outage', async (t) => {
  let probes = 0;
  const server = await startScriptedServer((response, request) => {
    if (request.path === '/readyz') probes += 1;
    if (probes < 3) refusal(503, 'Unavailable')(response, request);
    else json(request.method === 'PATCH' ? JSON.parse(request.body) : 'ok')(response, request);
  });
  t.teardown(() => server.stop());
  const waits: number[] = [];
  const objects = new Map([['shop/a', makeObject('shop/a')]]);
  const { writer, results } = await startWriter(t, {
    api: server.api,
    objects,
    debounceMs: 0,
    backoff: { initialMs: 3_600_000, maxMs: 3_600_000 },
    random: () => 0,
    sleep: async (ms) => void waits.push(ms),
  });
  writer.put(toObjectStatus('shop/a'));
  await awaitUntil(async () => (await results()).written === 1, { what: 'the status' });
  t.strictSame(await results(), { failed: 1, written: 1 });
  t.strictSame(
    waits.filter((ms) => ms > 0),
    [1_000, 1_000, 1_000],
  );
});

t.test('missing permission is logged once for all refused statuses', async (t) => {
  const server = await statusServer(t, refusal(403, 'Forbidden'), refusal(403, 'Forbidden'));
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer, results, logs } = await startWriter(t, { api: server.api, objects });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await awaitUntil(async () => (await results()).written === 2, { what: 'both' });
  t.strictSame(await results(), { refused: 2, written: 2 });
  t.equal(logs.length, 1);
  t.match(
    logs.map(({ reason }) => reason),
    ['not allowed to patch ratelimitconfigs/status.ratelimit.tollgate.dev in namespace shop: grant it'],
  );
});

t.test('refused status is retried, with a log line', async (t) => {
  const server = await statusServer(t, refusal(403, 'Forbidden'), refusal(403, 'Forbidden'));
  const objects = new Map(['shop/a', 'shop/b'].map((id) => [id, makeObject(id)]));
  const { writer, results, logs } = await startWriter(t, { api: server.api, objects });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await awaitUntil(async () => (await results()).written === 2, { what: 'both' });
  t.match(logs, [{ '@message': 'API server refused a status, retrying', retryWithinMs: 20 }]);
});

t.test('with a missing permission one object of its namespace is retried at a time', async (t) => {
  const forbidden = refusal(403, 'Forbidden');
  const server = await statusServer(t, ...Array.from({ length: 6 }, () => forbidden));
  const objects = new Map(['shop/a', 'shop/b', 'shop/c'].map((id) => [id, makeObject(id)]));
  const { writer, results } = await startWriter(t, { api: server.api, objects, concurrency: 1 });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await awaitUntil(async () => (await results()).written === 3, { what: 'all of them' });
  t.strictSame(
    paths(server),
    ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'].map((name) => `${base}/${name}/status`),
  );
  t.strictSame(await results(), { refused: 6, written: 3 });
});

t.test('writes keep to rate and concurrency', async (t) => {
  let open = 0;
  let most = 0;
  const threeOpen = Promise.withResolvers<void>();
  const server = await startScriptedServer((response, { body }) => {
    open += 1;
    most = Math.max(most, open);
    if (open === 3) threeOpen.resolve();
    const answer = (): void => {
      open -= 1;
      json(JSON.parse(body))(response, noRequest);
    };
    // The first answers wait, so that a slow machine has as many requests open at once.
    void threeOpen.promise.then(() => setTimeout(answer, 5));
  });
  t.teardown(() => server.stop());
  const objects = new Map(
    Array.from({ length: 60 }, (_, index) => [`shop/${index}`, makeObject(`shop/${index}`)]),
  );
  const startedMs = performance.now();
  const { writer } = await startWriter(t, {
    api: server.api,
    objects,
    concurrency: 3,
    writesPerSecond: 200,
    burst: 10,
  });
  for (const id of objects.keys()) writer.put(toObjectStatus(id));
  await arrive(server, 60);
  t.equal(most, 3);
  // 10 at once, 50 at 5 ms each.
  t.ok(performance.now() - startedMs >= 245, 'not faster than the rate');
});

kubeSuite(t, 'the status of an object in a cluster', async (t, kube) => {
  await prepareCluster(kube, ['shop']);
  const api: ApiClient = await connectApi(kube);
  t.teardown(() => api.close());
  const editor = createEditor(kube, api);
  const following = await startSource(api);
  t.teardown(() => following.source.close());
  const { writer, results, logs } = await startWriter(t, { api, objects: following.source.objects });
  const known = async (id: string): Promise<ConfigObject> => {
    await awaitUntil(() => following.source.objects.get(id), { what: `${id} to be known` });
    return following.source.objects.get(id) ?? makeObject(id);
  };
  const written = (count: number) =>
    awaitUntil(async () => (await results()).written === count, { what: `${count} writes` });

  await t.test('can be read, and leaves the generation as it is', async (t) => {
    await editor.create('shop', 'web');
    const { uid } = await known('shop/web');
    writer.put(toObjectStatus('shop/web', { uid }));
    await written(1);
    const live = await editor.get('shop', 'web');
    t.match(live, {
      metadata: { generation: 1 },
      status: { rules: 3, version: 'v1' },
    });
    t.match(
      live.metadata.managedFields.find(({ subresource }) => subresource === 'status'),
      {
        manager: 'tollgate-xds',
        operation: 'Apply',
      },
    );
    t.match((await kube.kubectl(['get', 'rlc', '-n', 'shop', 'web'])).stdout, /web +.*True/);
  });

  await t.test('comes back to the source with the same generation and is not written again', async (t) => {
    const back = () =>
      awaitUntil(
        () => JSON.stringify(following.source.objects.get('shop/web')?.manifest).includes('"version":"v1"'),
        {
          what: 'the event',
        },
      );
    await back();
    const object = following.source.objects.get('shop/web');
    t.equal(object?.generation, 1);
    const before = await editor.get('shop', 'web');
    writer.put(toObjectStatus('shop/web', { uid: object?.uid ?? '' }));
    await editor.create('shop', 'marker');
    const { uid } = await known('shop/marker');
    writer.put(toObjectStatus('shop/marker', { uid }));
    await written(2);
    t.equal((await editor.get('shop', 'web')).metadata.resourceVersion, before.metadata.resourceVersion);
  });

  await t.test('of a deleted object with the same name is refused by the API server', async (t) => {
    const former = await known('shop/web');
    await editor.delete('shop', 'web');
    await editor.create('shop', 'web');
    // A source that has not received the event.
    const late = await startWriter(t, { api, objects: { get: () => former } });
    late.writer.put(toObjectStatus('shop/web', { uid: former.uid, rules: 99 }));
    await awaitUntil(async () => (await late.results()).conflict === 1, { what: 'the refusal' });
    t.strictSame((await editor.get('shop', 'web')).status, { observedGeneration: -1 });
  });

  await t.test('changed by another client is restored at the next check', async (t) => {
    const { uid } = await known('shop/marker');
    // Otherwise the first write would not be a repair.
    await awaitUntil(
      () => JSON.stringify(following.source.objects.get('shop/marker')?.manifest).includes('"version":"v1"'),
      { what: 'the status to come back' },
    );
    const healing = await startWriter(t, { api, objects: following.source.objects, recheckMs: 50 });
    healing.writer.put(toObjectStatus('shop/marker', { uid }));
    const vandal = JSON.stringify({ status: { rules: 77 } });
    await kube.kubectl([
      'patch',
      'rlc',
      '-n',
      'shop',
      'marker',
      '--subresource=status',
      '--type=merge',
      '-p',
      vandal,
    ]);
    await awaitUntil(async () => (await healing.results()).written === 1, { what: 'the repair' });
    t.equal((await editor.get('shop', 'marker')).status?.rules, 3);
  });

  await t.test('is written without the last valid version while the CRD has no field for it', async (t) => {
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/lastValid';
    const removal = JSON.stringify([{ op: 'remove', path }]);
    const crd = 'ratelimitconfigs.ratelimit.tollgate.dev';
    t.match(await kube.kubectl(['patch', 'crd', crd, '--type=json', '-p', removal]), { code: 0 });
    const { uid } = await known('shop/marker');
    const lastValid = { generation: 1, spec: { domain: 'marker' } };
    const late = await startWriter(t, { api, objects: following.source.objects });
    const isWarned = () =>
      late.logs.some(({ reason }) => /CRD has no status\.lastValid/.test(String(reason)));
    let rules = 10;
    await awaitUntil(
      () => {
        // The API server takes a moment to use the new schema.
        late.writer.put(toObjectStatus('shop/marker', { uid, lastValid, rules: ++rules }));
        return isWarned();
      },
      { what: 'the warning' },
    );
    late.writer.put(toObjectStatus('shop/marker', { uid, lastValid, rules: 5 }));
    await awaitUntil(async () => (await editor.get('shop', 'marker')).status?.rules === 5, {
      what: 'the status',
    });
    t.equal(late.logs.length, 1);
  });
  t.strictSame(
    logs.filter(({ level }) => level !== 'debug'),
    [],
  );
});
