import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { formatOutages } from '../../src/catalog/source.ts';
import { type Answer, page, refusal, startScriptedServer, watch } from '../support/kube-server.ts';
import { startSource } from '../support/source-under-test.ts';

/** A source of the namespaces shop, web and bank, with the given answers to their lists. */
async function follow(t: Test, answerTo: (namespace: string) => Answer) {
  const server = await startScriptedServer((response, request) => {
    const [, namespace = ''] = /namespaces\/([^/]+)/.exec(request.path) ?? [];
    (request.query.has('watch') ? watch() : answerTo(namespace))(response, request);
  });
  t.teardown(() => server.stop());
  const { source } = await startSource(server.api, { namespaces: ['shop', 'web', 'bank'] });
  t.teardown(() => source.close());
  return () => source.outages();
}

t.test('only the forbidden namespace is reported', async (t) => {
  const outages = await follow(t, (namespace) =>
    namespace === 'web' ? refusal(403, 'Forbidden') : page([], '1'),
  );
  await awaitUntil(() => outages().length === 1, { what: 'the outage' });
  t.match(outages()[0]?.reason, /^not allowed to list .* in namespace web/);
});

t.test('outage of all namespaces is reported once', async (t) => {
  const listed = new Set<string>();
  const outages = await follow(t, (namespace) => {
    listed.add(namespace);
    return refusal(503, 'Starting');
  });
  await awaitUntil(() => listed.size === 3 && outages().length === 1, { what: 'the outage' });
  t.match(outages(), [{ reason: 'Starting it is' }]);
});

t.test('no outage, no text', async (t) => {
  t.equal(formatOutages([]), '');
});

t.test('excess outages are counted', async (t) => {
  const outages = ['a', 'b', 'c', 'd', 'e'].map((reason) => ({ reason, sinceMs: 0 }));
  const since = '(since 1970-01-01T00:00:00.000Z)';
  t.equal(formatOutages(outages), `a ${since}; b ${since}; c ${since}; and 2 more`);
});
