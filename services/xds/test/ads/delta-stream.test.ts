import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { DeltaDiscoveryResponse } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/** A response in short: `name=version …`, then `-removed …`. */
function brief({ resources, removedResources }: DeltaDiscoveryResponse): string {
  return [
    ...resources.map(({ name, version }) => `${name}=${version}`),
    ...removedResources.map((name) => `-${name}`),
  ].join(' ');
}

t.test('client receives all resources, then changes and removals', async (t) => {
  const { connect, snapshots, onlyLimiter } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1, blog: 2 }),
  });
  const stream = connect().delta();
  stream.send({ node: { id: 'limiter-1' } });
  const first = await stream.next();
  t.equal(brief(first), 'blog=2 shop=1');
  t.equal(first.systemVersionInfo, snapshots.current()?.version);
  const [any] = first.resources.flatMap(({ resource }) => resource ?? []);
  t.match(any && anyUnpack(any, RateLimitConfigSchema), { name: 'blog', domain: 'blog' });
  stream.ack(first);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  t.match(onlyLimiter(), {
    nodeId: 'limiter-1',
    protocol: 'delta',
    acceptedVersion: first.systemVersionInfo,
  });

  snapshots.set(testSnapshot({ shop: 3 }));
  const second = await stream.next();
  t.equal(brief(second), 'shop=3 -blog');
  stream.ack(second);
  await awaitUntil(() => onlyLimiter().accepted?.size === 1, { what: 'the second ACK' });
  t.same([...(onlyLimiter().accepted ?? [])], [['shop', '3']], 'all that it has, and not what was sent last');
});

t.test('reconnecting client with initial versions receives the difference', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1, blog: 2 }) });
  const stream = connect().delta();
  stream.send({ initialResourceVersions: { shop: '1', blog: '1', gone: '1' }, responseNonce: '17' });
  t.equal(brief(await stream.next()), 'blog=2 -gone');
  const upToDate = connect().delta();
  upToDate.send({ initialResourceVersions: { shop: '1', blog: '2' } });
  t.equal(brief(await upToDate.next()), '', 'empty, which says that it is up to date');
});

t.test('subscription change is not an ACK', async (t) => {
  const { connect, onlyLimiter } = await startAdsServer(t, { snapshot: testSnapshot({ a: 1, b: 1 }) });
  const stream = connect().delta();
  stream.send({ resourceNamesSubscribe: ['a'] });
  const first = await stream.next();
  t.equal(brief(first), 'a=1');
  stream.send({ resourceNamesSubscribe: ['b', 'x'] });
  stream.send({ resourceNamesUnsubscribe: ['a'] });
  stream.ack(first);
  t.equal(brief(await stream.next()), 'b=1 -x');
  t.same([...(onlyLimiter().accepted ?? [])], [['a', '1']]);
});

t.test('rejected response is not sent again until it changes', async (t) => {
  const { connect, snapshots, onlyLimiter } = await startAdsServer(t, { snapshot: testSnapshot({ a: 1 }) });
  const stream = connect().delta();
  stream.send();
  stream.ack(await stream.next());
  snapshots.set(testSnapshot({ a: 2 }));
  const bad = await stream.next();
  for (let round = 0; round < 50; round += 1) stream.nack(bad, 'a: no');
  await awaitUntil(() => onlyLimiter().rejection, { what: 'the NACK' });
  t.match(onlyLimiter(), {
    acceptedVersion: testSnapshot({ a: 1 }).version,
    rejection: { message: 'a: no' },
  });
  snapshots.set(testSnapshot({ a: 1 }));
  const good = await stream.next();
  t.equal(brief(good), 'a=1', 'taken back: parts of the rejected one may be in force');
  stream.ack(good);
  await awaitUntil(() => onlyLimiter().rejection === undefined, { what: 'the client to be content' });
  t.equal(stream.responses.length, 3);
});

t.test('request without a type URL ends the stream', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ a: 1 }) });
  const stream = connect().delta();
  stream.send({ typeUrl: '' });
  t.match(await stream.ended, { code: status.INVALID_ARGUMENT });
});

t.test('rejected resource stays rejected while others are accepted', async (t) => {
  const { connect, snapshots, onlyLimiter } = await startAdsServer(t, {
    snapshot: testSnapshot({ a: 1, b: 1 }),
  });
  const stream = connect().delta();
  stream.send();
  stream.nack(await stream.next(), 'a: no\u001b[31m');
  const rest = await stream.next();
  t.equal(brief(rest), 'b=1');
  stream.ack(rest);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  snapshots.set(testSnapshot({ a: 1, b: 2 }));
  const next = await stream.next();
  t.equal(brief(next), 'b=2');
  stream.ack(next);
  await awaitUntil(() => onlyLimiter().accepted?.get('b') === '2', { what: 'the second ACK' });
  t.match(onlyLimiter().rejection, { message: 'a: no\\u001b[31m' });
  t.same([...(onlyLimiter().rejection?.resources ?? [])], [['a', '1']]);
  t.same([...(onlyLimiter().accepted ?? [])], [['b', '2']]);
  snapshots.set(testSnapshot({ a: 2, b: 2 }));
  stream.ack(await stream.next());
  const { version } = testSnapshot({ a: 2, b: 2 });
  await awaitUntil(() => onlyLimiter().acceptedVersion === version, {
    what: 'the replacement to be accepted',
  });
  t.equal(onlyLimiter().rejection, undefined);
});
