import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { StringValueSchema } from '@bufbuild/protobuf/wkt';
import { createLogger } from '@tollgate/kit/logger';
import { startAdsServer, type TestResponse } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { AdsClient } from '../src/client.ts';
import { incremental, type ResourceChanges } from '../src/incremental.ts';
import type { ResourceSubscriber } from '../src/subscription.ts';
import { typeUrl } from './helpers/follow-server.ts';

/** A response with texts by name. */
function textsResponse(versionInfo: string, texts: object = {}, ...removed: string[]): TestResponse {
  const resources = Object.entries(texts).map(([name, value]) => ({
    ...{ name, typeUrl, value: toBinary(StringValueSchema, create(StringValueSchema, { value })) },
  }));
  return { versionInfo, typeUrl, resources, removed };
}

/** A client that keeps texts. It rejects the text `bad`, and nevertheless has the others. */
function followTexts(t: Test, serverUrl: string) {
  const texts = new Map<string, string>();
  const versions = new Map<string, string>();
  const subscriber: ResourceSubscriber<ResourceChanges> = {
    typeName: StringValueSchema.typeName,
    async apply({ changed, removed }) {
      const problems: string[] = [];
      for (const name of removed) for (const map of [texts, versions]) map.delete(name);
      for (const [name, { version, value }] of changed) {
        const text = fromBinary(StringValueSchema, value).value;
        if (text === 'bad') problems.push(`${name}: bad is rejected`);
        else texts.set(name, text);
        versions.set(name, text === 'bad' ? '' : version);
      }
      return problems.length === 0
        ? { ok: true }
        : { ok: false, problem: problems.join('\n'), isInForce: true };
    },
    versions: () => versions,
    onAnswer: () => undefined,
  };
  const client = new AdsClient(
    {
      protocol: incremental,
      node: { id: 'pod-1', userAgentName: 'tollgate-test', metadata: {} },
      stream: { serverUrl, headers: {}, maxMessageBytes: 4_194_304 },
      tls: undefined,
      backoff: { connectRetryMs: 20, initialMs: 40, maxMs: 100, jitter: 0 },
      ...{ reportIntervalMs: 0, maxMessageSetting: '' },
    },
    {
      logger: createLogger({ level: 'fatal', format: 'json' }),
      ...{ onConnected: () => undefined, onCertificate: () => undefined, sleep: () => Promise.resolve() },
    },
  );
  t.teardown(() => client.close());
  void client.start(subscriber);
  return texts;
}

t.test('applies changes, and names on a new stream what it has', async (t) => {
  const server = await startAdsServer(t);
  server.send(textsResponse('1', { a: 'A', b: 'B', c: 'C' }));
  const texts = followTexts(t, server.url);
  t.match(await server.answerTo('1'), { typeUrl, errorDetail: undefined, node: undefined });
  const [first] = server.requests;
  t.match(first, { typeUrl, node: { id: 'pod-1' }, responseNonce: '' });
  t.same(first?.initialResourceVersions, {});
  server.send(textsResponse('2', { b: 'B2' }, 'c', 'never sent'));
  await server.answerTo('2');
  t.same(Object.fromEntries(texts), { a: 'A', b: 'B2' });

  server.send(textsResponse('3', { a: 'bad', d: 'D' }));
  t.match((await server.answerTo('3')).errorDetail, { code: 3, message: 'a: bad is rejected' });
  t.same(Object.fromEntries(texts), { a: 'A', b: 'B2', d: 'D' }, 'the rest is in force');
  server.send(textsResponse('4'));
  t.match(await server.answerTo('4'), { errorDetail: undefined });
  server.endStreams();
  const again = await awaitUntil(() => server.requests.find(({ stream }) => stream === 2), {
    what: 'a request on a new stream',
  });
  t.match(again, { node: { id: 'pod-1' } });
  t.same(again?.initialResourceVersions, { a: '', b: '2', d: '3' });
});

t.test('responses that are not of its type, or contradict themselves, change nothing', async (t) => {
  const server = await startAdsServer(t);
  server.send(textsResponse('1', { a: 'A' }));
  const texts = followTexts(t, server.url);
  await server.answerTo('1');
  const [resource] = textsResponse('', { a: 'other' }).resources ?? [];
  if (resource === undefined) throw new TypeError('a response has its resources');
  const other = 'type.googleapis.com/google.protobuf.BytesValue';
  const invalid: readonly (readonly [Partial<TestResponse>, RegExp])[] = [
    [{ typeUrl: other }, /^the response is of type '.*BytesValue', not /],
    [{ resources: [{ ...resource, typeUrl: other }] }, /^a: the resource is of type '.*BytesValue', not /],
    [{ resources: [resource, resource] }, /^a: the resource is in the response twice$/],
  ];
  for (const [index, [response, message]] of invalid.entries()) {
    const version = `bad-${index}`;
    server.send({ ...textsResponse(version), ...response });
    t.match((await server.answerTo(version)).errorDetail?.message, message);
  }
  t.same(Object.fromEntries(texts), { a: 'A' });
});
