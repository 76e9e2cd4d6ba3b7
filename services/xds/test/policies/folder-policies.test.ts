import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { AccessConfigSchema } from '@tollgate/proto/tollgate/policy/v1/access_config';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { accessConfigType } from '../../src/policies/access-config.ts';
import { connectAds } from '../support/ads-client.ts';
import { startApp } from '../support/start-app.ts';
import { documents, manifestText } from '../support/yaml-manifests.ts';

/** The text of a policy for the host `<name>.test`. */
const policyText = (name: string, more = '') =>
  `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name} }\nspec: { hosts: [${name}.test]${more} }\n`;

/** A folder of manifests, an xDS server for it, and an auth server that accepts what it gets. */
function makeFolder(t: Test) {
  const manifests = makeTextFolder(t);
  const data = join(makeTextFolder(t).path, 'data');
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const app = await startApp(t, { XDS_FOLDER: manifests.path, ...env });
    const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
    stream.send({ typeUrl: accessConfigType, node: { id: 'auth' } });
    const read = async (path: string) => (await fetch(`http://127.0.0.1:${app.ports.admin}${path}`)).text();
    return {
      lines: app.lines,
      readyz: () => read('/readyz'),
      page: () => read('/'),
      /** The next set of policies, by name: whether each was ever valid. */
      next: async () => {
        const response = await stream.next();
        const { versionInfo, nonce: responseNonce } = response;
        stream.send({ typeUrl: accessConfigType, versionInfo, responseNonce });
        return response.resources.flatMap(({ value }) =>
          fromBinary(AccessConfigSchema, value).policies.map(
            ({ name, spec }) => `${name}${spec === '' ? ' denied' : ''}`,
          ),
        );
      },
      stop: () => app.lifecycle.stop('test'),
    };
  };
  const untilStored = (count: number) =>
    awaitUntil(() => readdirSync(data).length === count, { what: `${count} stored versions` });
  return { manifests, data, start, untilStored };
}

t.test('policies stay when all of their files vanish, until an operator lets them go', async (t) => {
  const { manifests, start } = makeFolder(t);
  manifests.write('a.yaml', policyText('a'));
  manifests.write('b.yaml', documents(policyText('b'), manifestText('limits')));
  const { next, lines, page } = await start({ XDS_DELETION_DELAY: '0s' });
  t.same(await next(), ['a', 'b']);
  rmSync(join(manifests.path, 'a.yaml'));
  rmSync(join(manifests.path, 'b.yaml'));
  const find = (message: string, noun: string) => {
    const reason = `the source lists no ${noun} any more`;
    const isFound = (line: Record<string, unknown>) =>
      line.reason === reason && String(line['@message']).startsWith(message);
    return awaitUntil(() => lines.find(isFound), { what: `${message}: ${reason}` });
  };
  t.match(await find('held', 'policy'), { command: /^touch .*\/\.allow-policy-deletions$/ });
  t.match(await find('held', 'domain'), { command: /^touch .*\/\.allow-deletions$/ });
  manifests.write('.allow-deletions', '');
  await find('let held deletions through', 'domain');
  t.match(await page(), /Deletions of policies are held back/, 'these are allowed by a file of their own');
  manifests.write('.allow-policy-deletions', '');
  t.same(await next(), []);
  await find('let held deletions through', 'policy');
});

t.test('last valid versions of policies are in force after a restart', async (t) => {
  const { manifests, data, start, untilStored } = makeFolder(t);
  const env = { XDS_DATA_FOLDER: data, XDS_DELETION_DELAY: '0s' };
  manifests.write('a.yaml', policyText('a'));
  manifests.write('b.yaml', documents(policyText('b'), policyText('c'), manifestText('b')));
  const first = await start(env);
  t.same(await first.next(), ['a', 'b', 'c']);
  await untilStored(4);
  await first.stop();

  manifests.write('a.yaml', policyText('a', ', unknown: 1'));
  manifests.write('b.yaml', documents(policyText('b'), 'kind: ['));
  const second = await start(env);
  t.same(await second.next(), ['a', 'b', 'c'], 'one is invalid, two are in a broken file');
  t.equal(await second.readyz(), 'ok\n');
  manifests.write('b.yaml', policyText('b'));
  t.same(await second.next(), ['a', 'b']);
  await second.stop();

  rmSync(join(manifests.path, 'a.yaml'));
  rmSync(join(manifests.path, 'b.yaml'));
  const third = await start(env);
  t.same(await third.next(), ['a', 'b'], 'an unmounted folder at the start');
  await third.stop();
});

t.test('a host that was taken from a namespace while the server did not run is denied', async (t) => {
  const { manifests, data, start, untilStored } = makeFolder(t);
  const env = { XDS_DATA_FOLDER: data };
  manifests.write('a.yaml', policyText('a'));
  const first = await start({ ...env, XDS_ALLOWED_HOSTS: 'default=a.test' });
  t.same(await first.next(), ['a']);
  manifests.write('b.yaml', policyText('b'));
  await untilStored(2);
  await first.stop();
  const second = await start({ ...env, XDS_ALLOWED_HOSTS: 'default=other.test' });
  t.same(await second.next(), ['a denied'], 'the other one never had its host');
});

t.test('the stored version of a policy is forgotten when the policy is deleted', async (t) => {
  const { manifests, data, start, untilStored } = makeFolder(t);
  const env = { XDS_DATA_FOLDER: data, XDS_DELETION_DELAY: '0s' };
  manifests.write('a.yaml', policyText('a'));
  manifests.write('b.yaml', policyText('b'));
  const first = await start(env);
  t.same(await first.next(), ['a', 'b']);
  await untilStored(2);
  await first.stop();

  const { next } = await start(env);
  t.same(await next(), ['a', 'b']);
  rmSync(join(manifests.path, 'a.yaml'));
  t.same(await next(), ['b']);
  manifests.write('a.yaml', policyText('a', ', unknown: 1'));
  t.same(await next(), ['a denied', 'b']);
});

t.test('no policies are sent while a file is broken since the start', async (t) => {
  const { manifests, start } = makeFolder(t);
  manifests.write('a.yaml', policyText('a'));
  const broken = [
    `${policyText('b')}kind: [`,
    policyText('b').replace('AccessPolicy', 'AccessPolice'),
    policyText('b').replace('name: b', 'name: B_'),
    policyText('b').replace('name: b', 'name: b, generation: 0644'),
  ];
  for (const text of broken) {
    manifests.write('b.yaml', text);
    const { next, lines, readyz, stop } = await start();
    const reason = /^policies may be missing, and no version of this file is known: b\.yaml/;
    await awaitUntil(() => lines.some(({ level }) => level === 'error'), { what: 'the message' });
    t.match(
      lines.find(({ level }) => level === 'error'),
      { reason, '@message': 'access policies held back, auth servers keep theirs or deny' },
      text,
    );
    t.match(await readyz(), reason);
    manifests.write('b.yaml', policyText('b'));
    t.same(await next(), ['a', 'b']);
    t.equal(await readyz(), 'ok\n');
    await stop();
  }
});

t.test('a file that moves and breaks while no server runs keeps its stored policies', async (t) => {
  const { manifests, data, start, untilStored } = makeFolder(t);
  const env = { XDS_DATA_FOLDER: data, XDS_DELETION_DELAY: '0s', XDS_DELETION_GUARD: 'false' };
  manifests.write('a.yaml', policyText('a'));
  manifests.write('b.yaml', policyText('b'));
  const first = await start(env);
  t.same(await first.next(), ['a', 'b']);
  await untilStored(2);
  await first.stop();

  rmSync(join(manifests.path, 'a.yaml'));
  manifests.write('renamed.yaml', documents(policyText('a'), policyText('new'), 'kind: ['));
  const second = await start(env);
  await awaitUntil(() => second.lines.some(({ level }) => level === 'error'), { what: 'the message' });
  t.match(await second.readyz(), /^policies may be missing, and no version of this file is known: renamed/);
  const isStored = (name: string) => name.endsWith('.json');
  t.equal(readdirSync(data).filter(isStored).length, 2, 'stored versions stay');
  manifests.write('renamed.yaml', documents(policyText('a', ', unknown: 1'), policyText('new')));
  t.same(await second.next(), ['a', 'b', 'new'], 'the stored version of a policy that is still invalid');
});

t.test('a damaged stored version keeps the policies of a broken file from being served', async (t) => {
  const { manifests, data, start, untilStored } = makeFolder(t);
  const env = { XDS_DATA_FOLDER: data };
  manifests.write('a.yaml', documents(policyText('a'), policyText('b')));
  const first = await start(env);
  t.same(await first.next(), ['a', 'b']);
  await untilStored(2);
  await first.stop();

  const stored = readdirSync(data).map((name) => join(data, name));
  const ofB = stored.find((file) => readFileSync(file, 'utf8').includes('b.test'));
  writeFileSync(ofB ?? '', '{');
  manifests.write('a.yaml', documents(policyText('a'), policyText('b'), 'kind: ['));
  const second = await start(env);
  await awaitUntil(() => second.lines.some(({ level }) => level === 'error'), { what: 'the message' });
  t.match(await second.readyz(), /^policies may be missing, and no version of this file is known: a\.yaml/);
  manifests.write('a.yaml', documents(policyText('a'), policyText('b')));
  t.same(await second.next(), ['a', 'b']);
});

t.test('a broken file that names no policies does not keep limits from being served', async (t) => {
  const { manifests, start } = makeFolder(t);
  manifests.write('a.yaml', 'kind: [');
  const { readyz, page } = await start();
  await awaitUntil(async () => (await readyz()) === 'ok\n', { what: 'a first set' });
  t.match(await page(), /auth servers do not get them: policies may be missing/);
});

t.test('a folder without policies at the start sends none, unless that is allowed', async (t) => {
  const { manifests, start } = makeFolder(t);
  manifests.write('a.yaml', manifestText('a'));
  const strict = await start();
  await awaitUntil(async () => (await strict.readyz()) === 'ok\n', { what: 'limits' });
  t.match(await strict.page(), /there are no access policies, and XDS_ALLOW_NO_POLICIES=false/);
  await strict.stop();
  const { next } = await start({ XDS_ALLOW_NO_POLICIES: 'true' });
  t.same(await next(), []);
});
