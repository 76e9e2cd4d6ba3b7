import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { PolicySource } from '../../src/ext-authz/policy-source.ts';
import { SeenPolicies } from '../../src/ext-authz/seen-policies.ts';
import { startPolicyServer } from '../helpers/policy-server.ts';

t.test('each policy is reported once on a stream, in bounded reports', async (t) => {
  const seen = new SeenPolicies();
  const report = (): number => {
    const names = seen.collect() ?? [];
    seen.sent(names);
    return names.length;
  };
  t.equal(report(), 0);
  const names = Array.from({ length: 5_001 }, (_, index) => `shop/p${index}`);
  for (const name of [...names, ...names]) seen.add(name);
  t.same([report(), report(), report()], [5_000, 1, 0]);
  seen.retain(new Set(['shop/p1', 'shop/p2']));
  t.equal(report(), 0);
  seen.startStream();
  t.same(seen.collect(), ['shop/p1', 'shop/p2'], 'a new stream gets the policies in force');
});

t.test('policies that checks had are reported with the last ACK or NACK', async (t) => {
  const hosts = (host: string) => ({ hosts: [host] });
  const shop = { name: 'shop', policies: { a: hosts('a.test'), b: hosts('b.test') } };
  const server = await startPolicyServer(t, shop);
  const source = await PolicySource.open({
    settings: {
      extAuthzPolicyServer: server.url,
      ...{ extAuthzPolicyServerToken: '', extAuthzPolicyServerTls: false, extAuthzPolicyServerTlsCa: '' },
      ...{ extAuthzPolicyServerTlsCert: '', extAuthzPolicyServerTlsKey: '', extAuthzPolicyServerTlsSan: '' },
      extAuthzPolicyServerNodeId: 'auth-1',
    },
    logger: createLogger({ level: 'fatal', format: 'json' }),
    health: { set: () => undefined },
    ...{ metrics: undefined, tlsMetrics: undefined, reportIntervalMs: 20 },
  });
  t.teardown(() => source.close());
  source.start();
  const reports = () =>
    server.requests.flatMap(({ node, responseNonce }) => {
      const names = node?.metadata?.policies_seen;
      return names === undefined ? [] : [{ names, responseNonce }];
    });
  const reported = (count: number) =>
    awaitUntil(() => reports().length >= count, { what: `${count} reports` });
  await awaitUntil(() => source.current !== undefined, { what: 'the policies' });
  t.same(reports(), [], 'no check, no report');
  source.see('shop/a');
  source.see('shop/a');
  source.see(undefined);
  await reported(1);
  source.see('shop/a');
  source.see('shop/b');
  await reported(2);
  t.same(reports(), [
    { names: ['shop/a'], responseNonce: '1-1' },
    { names: ['shop/b'], responseNonce: '1-1' },
  ]);

  const problem = await server.reject({
    ...{ name: 'shop', policies: { a: hosts('a.test'), c: hosts('c.test'), d: {} } },
  });
  source.see('shop/c');
  await reported(3);
  const last = server.requests.at(-1);
  t.same(reports()[2], { names: ['shop/c'], responseNonce: '2-1' });
  t.match(last, { errorDetail: { message: problem } }, 'a repeated NACK is still a NACK');
});
