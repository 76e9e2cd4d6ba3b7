import { runSteps } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { ClientRegistry } from '../../src/ads/clients.ts';
import { ResponseCache } from '../../src/ads/exchange.ts';
import { SnapshotStore } from '../../src/catalog/snapshot.ts';
import { accessConfigType } from '../../src/policies/access-config.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import { makePolicy } from '../support/policies.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/** The snapshot of a policy without limits. */
function accessSnapshot(host: string) {
  const objects = [makePolicy('shop/a', { hosts: [host] })];
  return runSteps(new PolicyCatalog().apply([{ type: 'replaced', objects }])).access;
}

t.test('a stream is served the type that it subscribes to first', async (t) => {
  const access = { snapshots: new SnapshotStore(() => 0), clients: new ClientRegistry() };
  const seen: unknown[] = [];
  const cache = new ResponseCache(accessConfigType);
  const onSeenPolicies = (names: unknown) => void seen.push(names);
  const served = { ...access, cache, clientNoun: 'auth server' as const, onSeenPolicies };
  const otherTypes = new Map([[accessConfigType, served]]);
  const { connect, limiters, snapshots } = await startAdsServer(t, {
    otherTypes,
    snapshot: testSnapshot({ shop: 1 }),
  });
  access.snapshots.set(accessSnapshot('a.test'));
  const client = connect();
  const auth = client.sotw();
  auth.send({ typeUrl: accessConfigType, node: { id: 'auth-1' } });
  const first = await auth.next();
  t.match(first, { typeUrl: accessConfigType, resources: [{ typeUrl: accessConfigType }] });
  const answer = { typeUrl: accessConfigType, responseNonce: first.nonce };
  auth.send({ ...answer, versionInfo: first.versionInfo });
  await awaitUntil(() => [...access.clients.all()][0]?.accepted, { what: 'the ACK' });
  t.equal(limiters.size, 0, 'it is no limiter');
  const metadata = { policies_seen: ['shop/a'] };
  auth.send({ ...answer, versionInfo: first.versionInfo, node: { metadata } });
  await awaitUntil(() => seen.length === 1, { what: 'the policies that checks had' });
  t.strictSame(seen, [['shop/a']]);

  const limiter = client.sotw();
  limiter.send({ node: { id: 'limiter-1' } });
  const rules = await limiter.next();
  t.match(rules, { resources: { length: 1 } });
  t.not(rules.typeUrl, accessConfigType);

  snapshots.set(testSnapshot({ shop: 2 }));
  access.snapshots.set(accessSnapshot('b.test'));
  t.match(await auth.next(), { typeUrl: accessConfigType }, 'only changes of its type');

  const delta = client.delta();
  delta.send({ typeUrl: accessConfigType, node: { id: 'auth-2' } });
  t.match(await delta.next(), { typeUrl: accessConfigType, resources: [{ name: 'shop' }] });
});
