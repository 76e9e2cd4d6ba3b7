import { status } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { maxLimiterClasses } from '../../src/ads/limits.ts';
import type { SotwTestStream } from '../support/ads-client.ts';
import { configsIn, namesIn } from '../support/names-in.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

const node = { id: 'limiter-1' };

/** Subscribes and acknowledges every response. */
async function subscribe(stream: SotwTestStream): Promise<void> {
  stream.send({ node });
  stream.ack(await stream.next());
}

t.test('limiter receives all resources, then changes, and its accepted version is known', async (t) => {
  const { connect, snapshots, onlyLimiter, limiters, metrics } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1, blog: 2 }),
  });
  const stream = connect().sotw();
  stream.send({ node });
  const first = await stream.next();
  t.same(
    configsIn(first).map(({ domain, descriptors }) => [domain, descriptors[0]?.rateLimit?.requestsPerUnit]),
    [
      ['blog', 2],
      ['shop', 1],
    ],
  );
  t.match(onlyLimiter(), {
    nodeId: 'limiter-1',
    protocol: 'sotw',
    accepted: undefined,
    rejection: undefined,
  });
  t.match(onlyLimiter().peer, /^127\.0\.0\.1:\d+$/);
  stream.ack(first);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  t.same(Object.fromEntries(onlyLimiter().accepted ?? []), { blog: '2', shop: '1' });
  t.equal(onlyLimiter().acceptedVersion, first.versionInfo);

  snapshots.set(testSnapshot({ shop: 5 }));
  const second = await stream.next();
  t.same(namesIn(second), ['shop'], 'rule 8: the complete set: what is not in it is gone');
  stream.cancel();
  await awaitUntil(() => limiters.size === 0, { what: 'the client to be forgotten' });
  t.equal((await metrics.streams.get()).values[0]?.value, 0);
});

t.test('rule 1: a request without a type URL ends only its stream', async (t) => {
  const { connect, metrics } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const client = connect();
  const [wrong, right] = [client.sotw(), client.sotw()];
  wrong.send({ typeUrl: '' });
  t.same(await wrong.ended, { code: status.INVALID_ARGUMENT, details: 'type URL is required for ADS' });
  await subscribe(right);
  t.match((await metrics.refusedStreams.get()).values, [{ labels: { reason: 'no_type_url' }, value: 1 }]);
});

t.test('rule 2: the node of the first request is that of the stream', async (t) => {
  const { connect, onlyLimiter, logLines } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().sotw();
  stream.send({ typeUrl: 'type.googleapis.com/another.Type', node });
  stream.send();
  stream.ack(await stream.next(), { node: { id: 'another node' } });
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  t.equal(onlyLimiter().nodeId, 'limiter-1');
  t.match(
    logLines.find((line) => line['@message'] === 'limiter connected'),
    { node: 'limiter-1', level: 'info' },
  );
});

t.test(
  'rules 3, 10, 11 and 15: a reconnecting client with an old version and nonce is answered',
  async (t) => {
    for (const snapshot of [testSnapshot({ shop: 1 }), testSnapshot({})]) {
      const { connect, onlyLimiter } = await startAdsServer(t, { snapshot });
      const old = connect().sotw();
      old.send({ node });
      const { versionInfo, nonce: responseNonce } = await old.next();
      old.send({ node, versionInfo, responseNonce });
      await awaitUntil(() => onlyLimiter().acceptedVersion === versionInfo, { what: 'the ACK' });
      old.cancel();

      const stream = connect().sotw();
      stream.send({ node, versionInfo, responseNonce });
      const again = await stream.next();
      t.equal(again.versionInfo, snapshot.version, 'the version is of the content, and no count');
      t.same(namesIn(again), [...snapshot.resources.keys()]);
      stream.send({ node, versionInfo, responseNonce: again.nonce });
      await awaitUntil(() => onlyLimiter().acceptedVersion === versionInfo, {
        what: 'the ACK of the new stream',
      });
      t.equal(stream.responses.length, 1);
    }
  },
);

t.test('rule 4: nonces grow, and a stale one is not an answer', async (t) => {
  const { connect, snapshots, onlyLimiter } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
  });
  const stream = connect().sotw();
  await subscribe(stream);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  snapshots.set(testSnapshot({ shop: 2 }));
  const second = await stream.next();
  const nonces = stream.responses.map(({ nonce }) => nonce);
  const [first = '', prefix = ''] = /^([\w-]{12})1$/.exec(nonces[0] ?? '') ?? [];
  t.same(nonces, [first, `${prefix}2`]);
  stream.send({
    responseNonce: first,
    errorDetail: { $typeName: 'google.rpc.Status', code: 3, message: 'late', details: [] },
  });
  stream.ack(second);
  await awaitUntil(() => onlyLimiter().acceptedVersion === second.versionInfo, { what: 'the ACK' });
  t.equal(onlyLimiter().rejection, undefined);
});

t.test('rules 5 and 6: after a NACK nothing is sent until the content changes', async (t) => {
  const { connect, snapshots, onlyLimiter, metrics, logLines, clock } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
  });
  const stream = connect().sotw();
  await subscribe(stream);
  snapshots.set(testSnapshot({ shop: 2 }));
  const bad = await stream.next();
  // A limiter that answers each response at once and repeats its answer.
  for (let round = 0; round < 50; round += 1) {
    stream.nack(bad, "shop: duplicate descriptor composite key 'user'", { versionInfo: 'old', node });
  }
  await awaitUntil(() => onlyLimiter().rejection, { what: 'the NACK' });
  t.match(onlyLimiter(), {
    acceptedVersion: testSnapshot({ shop: 1 }).version,
    rejection: {
      snapshotVersion: bad.versionInfo,
      message: "shop: duplicate descriptor composite key 'user'",
      atMs: clock.nowMs(),
    },
  });
  t.same([...(onlyLimiter().rejection?.resources ?? [])], [['shop', '2']]);

  snapshots.set(testSnapshot({ shop: 3 }));
  const good = await stream.next();
  t.equal(onlyLimiter().rejection, undefined, 'its replacement is on the way');
  stream.ack(good);
  await awaitUntil(() => onlyLimiter().acceptedVersion === good.versionInfo, { what: 'the ACK' });
  t.equal(stream.responses.length, 3, 'one response for each content');
  t.match((await metrics.nacks.get()).values, [{ labels: { protocol: 'sotw' }, value: 1 }]);
  t.match((await metrics.acks.get()).values, [{ value: 2 }]);
  t.match((await metrics.pushes.get()).values, [{ value: 3 }]);
  const rejections = logLines.filter((line) => line['@message'] === 'limiter rejected the configuration');
  t.match(rejections, [{ level: 'warning', node: 'limiter-1', rejection: /duplicate descriptor/ }]);
  t.equal(rejections.length, 1);
});

t.test('rule 6: the message of a NACK is cut', async (t) => {
  const { connect, onlyLimiter } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().sotw();
  stream.send();
  stream.nack(await stream.next(), 'x'.repeat(100_000));
  await awaitUntil(() => onlyLimiter().rejection, { what: 'the NACK' });
  t.equal(onlyLimiter().rejection?.message.length, 2_000);
});

t.test('rule 7: names, "*" and an empty list', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ a: 1, b: 1, c: 1 }) });
  const stream = connect().sotw();
  stream.send({ resourceNames: ['a', 'c'] });
  const some = await stream.next();
  t.same(namesIn(some), ['a', 'c']);
  stream.send({ responseNonce: some.nonce, resourceNames: ['*'] });
  const all = await stream.next();
  t.same(namesIn(all), ['a', 'b', 'c']);
  stream.send({ responseNonce: all.nonce, resourceNames: [] });
  stream.send({ responseNonce: all.nonce, resourceNames: ['b'] });
  t.same(namesIn(await stream.next()), ['b'], 'and nothing for who wanted nothing');
});

t.test('rule 7: the subscription of a limiter is known as it changes', async (t) => {
  const { connect, onlyLimiter, limiters } = await startAdsServer(t, {
    snapshot: testSnapshot({ a: 1, b: 1 }),
  });
  const stream = connect().sotw();
  stream.send({ resourceNames: ['a'] });
  stream.ack(await stream.next(), { resourceNames: ['b'] });
  const { nonce } = await stream.next();
  await awaitUntil(() => limiters.size === 1, { what: 'the limiter' });
  t.strictSame(onlyLimiter().names, new Set(['b']));
  stream.send({ responseNonce: nonce, resourceNames: ['*'] });
  await stream.next();
  t.equal(onlyLimiter().names, undefined);
});

t.test('rule 9: nothing is sent before the source has synced, then an empty set is', async (t) => {
  const { connect, limiters, snapshots } = await startAdsServer(t);
  const stream = connect().sotw();
  stream.send({ node });
  await awaitUntil(() => limiters.size === 1, { what: 'the subscription' });
  t.same(stream.responses, []);
  snapshots.set(testSnapshot({}));
  t.same(namesIn(await stream.next()), []);
});

t.test('rule 12: changes while a response is unanswered are sent together', async (t) => {
  const { connect, snapshots } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().sotw();
  stream.send({ node });
  const first = await stream.next();
  for (let limit = 2; limit <= 100; limit += 1) snapshots.set(testSnapshot({ shop: limit }));
  stream.ack(first);
  const second = await stream.next();
  t.equal(second.versionInfo, testSnapshot({ shop: 100 }).version);
  t.equal(stream.responses.length, 2);
});

t.test('rule 13: an unknown type gets no response, and the stream continues', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().sotw();
  stream.send({ typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster', node });
  await subscribe(stream);
  stream.send({ typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster', responseNonce: '1' });
  stream.end();
  t.match(await stream.ended, { code: status.OK });
  t.equal(stream.responses.length, 1);
});

t.test('propagation time is observed for limiters that were connected before the change', async (t) => {
  const { connect, snapshots, metrics, clock } = await startAdsServer(t);
  snapshots.set(testSnapshot({ shop: 1 }));
  clock.advance(60_000);
  const stream = connect().sotw();
  await subscribe(stream);
  snapshots.set(testSnapshot({ shop: 2 }));
  const second = await stream.next();
  clock.advance(250);
  stream.ack(second);
  await awaitUntil(async () => (await metrics.acks.get()).values[0]?.value === 2, { what: 'the ACK' });
  const { values } = await metrics.propagationSeconds.get();
  const of = (name: string) =>
    values.find(({ metricName }) => metricName === `tollgate_xds_propagation_seconds_${name}`)?.value;
  t.equal(of('count'), 1);
  t.equal(of('sum'), 0.25);
});

/** A snapshot with a domain for all limiters, and one for those of a class. */
function snapshotWithClass(limiterClass: string) {
  const { resources } = testSnapshot({ own: 2 });
  return { ...testSnapshot({ shop: 1 }), classes: new Map([[limiterClass, resources]]) };
}

const ofClass = (limiterClass: string) => ({
  node: { id: 'limiter', metadata: { 'tollgate.dev/limiter-class': limiterClass } },
});

t.test('class in the metadata of the node selects the resources', async (t) => {
  const { connect, limiters } = await startAdsServer(t, { snapshot: snapshotWithClass('dev') });
  const client = connect();
  const [dev, edge, common, delta] = [client.sotw(), client.sotw(), client.sotw(), client.delta()];
  dev.send(ofClass('dev'));
  edge.send(ofClass('edge'));
  common.send();
  delta.send(ofClass('dev'));
  const [ofDev, ofEdge, ofCommon] = [await dev.next(), await edge.next(), await common.next()];
  t.equal(ofDev.resources.length, 2);
  t.equal(ofEdge.resources.length, 1);
  t.equal(ofEdge.versionInfo, ofCommon.versionInfo);
  t.not(ofDev.versionInfo, ofCommon.versionInfo);
  t.strictSame(
    (await delta.next()).resources.map(({ name }) => name),
    ['own', 'shop'],
  );
  t.strictSame([...limiters.classes()].sort(), ['dev', 'edge']);
});

t.test('class that is no name, and one too many, end the stream', async (t) => {
  const { connect, metrics, limiters } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const client = connect();
  const invalid = client.sotw();
  invalid.send(ofClass('Dev'));
  t.match(await invalid.ended, { code: status.INVALID_ARGUMENT, details: /lower-case name/ });
  for (let i = 0; i < maxLimiterClasses; i += 1) client.sotw().send(ofClass(`class-${i}`));
  await awaitUntil(() => limiters.size === maxLimiterClasses, { what: 'all limiters' });
  const tooMany = client.sotw();
  tooMany.send(ofClass('another'));
  t.match(await tooMany.ended, { code: status.RESOURCE_EXHAUSTED });
  const known = client.sotw();
  known.send(ofClass('class-1'));
  t.ok(await known.next());
  const reasons = (await metrics.refusedStreams.get()).values.map(({ labels }) => labels.reason);
  t.strictSame(reasons, ['invalid_class', 'too_many_classes']);
});

t.test(
  'repeated ACK with matched rules is no change, and belongs to the acknowledged response',
  async (t) => {
    const reported: unknown[] = [];
    const { connect, onlyLimiter, snapshots } = await startAdsServer(t, {
      snapshot: testSnapshot({ shop: 1 }),
      onMatches: ({ version }, matchedRules) => reported.push([version, matchedRules]),
    });
    const stream = connect().sotw();
    const withRules = {
      node: { id: 'limiter', metadata: { 'tollgate.dev/matched-rules': { shop: 'AQ==' } } },
    };
    stream.send({ node });
    const first = await stream.next();
    stream.ack(first);
    stream.ack(first, withRules);
    await awaitUntil(() => reported.length === 1, { what: 'the report' });
    t.strictSame(reported, [[testSnapshot({ shop: 1 }).version, { shop: 'AQ==' }]]);
    t.ok(onlyLimiter().reportsMatches);
    t.equal(stream.responses.length, 1);
    snapshots.set(testSnapshot({ shop: 2 }));
    const second = await stream.next();
    stream.ack(second);
    stream.ack(first, withRules);
    stream.ack(second, withRules);
    await awaitUntil(() => reported.length > 1, { what: 'the next report' });
    t.strictSame(
      reported.slice(1),
      [[testSnapshot({ shop: 2 }).version, { shop: 'AQ==' }]],
      'a stale one is ignored',
    );
  },
);
