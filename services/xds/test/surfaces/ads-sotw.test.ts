import { status } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { namesIn } from '../support/names-in.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

const node = { id: 'limiter-1' };

t.test('rule 1: a request without a type URL ends the stream', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().sotw();
  stream.send({ typeUrl: '' });
  t.same(await stream.ended, { code: status.INVALID_ARGUMENT, details: 'type URL is required for ADS' });
});

t.test('a limiter gets all resources, and what changes, and is known by what it acknowledged', async (t) => {
  const { connect, snapshots, onlyClient, clients, metrics } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1, blog: 2 }),
  });
  const stream = connect().sotw();
  stream.send({ node });
  const first = await stream.next();
  t.same(namesIn(first), ['blog', 'shop']);
  t.equal(first.versionInfo, snapshots.current()?.version);
  t.match(onlyClient(), { nodeId: 'limiter-1', protocol: 'sotw', accepted: undefined, rejection: undefined });
  stream.ack(first);
  await awaitUntil(() => onlyClient().accepted, { what: 'the ACK' });
  t.same(
    [...(onlyClient().accepted ?? [])],
    [
      ['blog', '2'],
      ['shop', '1'],
    ],
  );
  t.equal(onlyClient().acceptedVersion, first.versionInfo);

  snapshots.set(testSnapshot({ shop: 5 }));
  const second = await stream.next();
  t.same(namesIn(second), ['shop'], 'the complete set: what is not in it is gone');
  stream.cancel();
  await awaitUntil(() => clients.size === 0, { what: 'the client to be forgotten' });
  t.equal((await metrics.streams.get()).values[0]?.value, 0);
});
