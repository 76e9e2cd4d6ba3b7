import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder, type TextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import type { SourceEvent } from '../../src/catalog/source.ts';
import { FolderSource } from '../../src/sources/folder.ts';
import { recordingContext } from '../support/recording-logger.ts';
import { documents, manifestText } from '../support/yaml-manifests.ts';

type List = SourceEvent & { type: 'replaced' };

/** Follows the folder `config`; the source is closed when the test ends. */
async function follow(
  t: Test,
  folder: TextFolder,
  options: { namespaces?: readonly string[]; folder?: string } = {},
) {
  const { context, registry, lines } = recordingContext();
  const source = new FolderSource(context, {
    folder: join(folder.path, 'config'),
    namespaces: [],
    ...options,
  });
  const lists: List[] = [];
  const policies: List[] = [];
  t.teardown(() => source.close());
  await source.policies.start({
    onEvent: (event) => event.type === 'replaced' && policies.push(event),
    onTargets: () => undefined,
  });
  await source.start((event) => {
    if (event.type === 'replaced') lists.push(event);
  });
  const last = (): List => lists.at(-1) ?? { type: 'replaced', objects: [], problems: [] };
  return {
    last,
    lists,
    lines,
    source,
    /** Lines of the metrics whose value is not 0. */
    counted: async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => /^tollgate_xds_source_\w+_total.* [1-9]/.test(line)),
    policies: () => (policies.at(-1)?.objects ?? []).map(({ name }) => name).toSorted(),
    ids: () => last().objects.map(({ id }) => id),
    problems: () => (last().problems ?? []).map(({ source: at, message }) => `${at}: ${message}`),
    until: (attempt: () => boolean, what: string) => awaitUntil(attempt, { what }),
  };
}

t.test('every manifest below the folder is an object with the identity in its file', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/b/two.yml', documents(manifestText('x', 1, 'shop'), manifestText('z')));
  folder.write('config/a.yaml', manifestText('a'));
  folder.write(
    'config/c.json',
    JSON.stringify({ apiVersion: 'v', kind: 'RateLimitConfig', metadata: { name: 'j' } }),
  );
  folder.write('config/README.md', manifestText('readme'));
  folder.write('config/.hidden.yaml', manifestText('hidden'));
  const { last, ids } = await follow(t, folder);
  t.strictSame(ids(), ['default/a', 'shop/x', 'default/z', 'default/j']);
  t.match(last().objects[1], {
    namespace: 'shop',
    name: 'x',
    uid: 'shop/x',
    generation: 1,
    createdMs: 0,
    label: 'b/two.yml#1',
    manifest: { spec: { domain: 'x' } },
  });
  t.strictSame(last().problems, []);
});

t.test('changed file is an event, and only changed objects have another generation', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', documents(manifestText('a'), manifestText('b')));
  const { last, until } = await follow(t, folder);
  folder.write('config/a.yaml', documents(manifestText('a'), `# a comment\n${manifestText('b', 20)}`));
  await until(() => last().objects.some(({ generation }) => generation > 1), 'the change');
  t.match(last().objects, [
    { id: 'default/a', generation: 1 },
    {
      id: 'default/b',
      generation: 2,
      manifest: { spec: { descriptors: [{ rateLimit: { requestsPerUnit: 20 } }] } },
    },
  ]);
});

t.test('added and removed files are events', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { ids, until } = await follow(t, folder);
  folder.write('config/new/b.yaml', manifestText('b'));
  await until(() => ids().includes('default/b'), 'the new file');
  rmSync(join(folder.path, 'config/a.yaml'));
  await until(() => !ids().includes('default/a'), 'the end of a file');
  t.strictSame(ids(), ['default/b']);
});

t.test('object that returns with other content has another generation', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { last, ids, until } = await follow(t, folder);
  rmSync(join(folder.path, 'config/a.yaml'));
  await until(() => ids().length === 0, 'the end of the file');
  folder.write('config/a.yaml', manifestText('a', 99));
  await until(() => ids().length === 1, 'the file again');
  t.ok((last().objects[0]?.generation ?? 0) > 1);
});

t.test('file that is not YAML keeps its objects, and the problem has the line', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  folder.write('config/b.yaml', manifestText('b'));
  const { ids, problems, last, until } = await follow(t, folder);
  folder.write('config/a.yaml', `${manifestText('a')}\tbroken: [\n`);
  await until(() => problems().length === 1, 'the problem');
  t.strictSame(ids(), ['default/a', 'default/b']);
  t.match(problems()[0], /^a\.yaml:\d+:\d+: /);
  folder.write('config/a.yaml', manifestText('a', 11));
  await until(() => problems().length === 0, 'the repair');
  t.match(last().objects[0], {
    id: 'default/a',
    manifest: { spec: { descriptors: [{ rateLimit: { requestsPerUnit: 11 } }] } },
  });
});

t.test(
  'unreadable file keeps its objects',
  { skip: process.getuid?.() === 0 ? 'root reads everything' : false },
  async (t) => {
    const folder = makeTextFolder(t);
    folder.write('config/a.yaml', manifestText('a'));
    const { ids, problems, until } = await follow(t, folder);
    chmodSync(join(folder.path, 'config/a.yaml'), 0);
    await until(() => problems().length === 1, 'the problem');
    t.strictSame(ids(), ['default/a']);
  },
);

t.test('file that is no longer UTF-8 keeps its objects', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { ids, problems, until } = await follow(t, folder);
  writeFileSync(join(folder.path, 'config/a.yaml'), Buffer.from([0x61, 0xc3, 0x28]));
  folder.write('config/b.yaml', manifestText('b'));
  await until(() => ids().includes('default/b') && problems().length > 0, 'the problem');
  t.strictSame(problems(), ['a.yaml: the file is not UTF-8']);
  t.ok(ids().includes('default/a'));
});

t.test('unreadable folder keeps everything and is followed when it is back', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { ids, problems, until } = await follow(t, folder);
  renameSync(join(folder.path, 'config'), join(folder.path, 'away'));
  await until(() => problems().length === 1, 'the problem');
  t.match(problems()[0], /config: cannot be read: /);
  t.strictSame(ids(), ['default/a']);
  folder.write('away/b.yaml', manifestText('b'));
  renameSync(join(folder.path, 'away'), join(folder.path, 'config'));
  await until(() => ids().includes('default/b'), 'the folder to be back');
  t.strictSame(problems(), []);
});

t.test('reads and failures are counted', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { ids, problems, until, counted } = await follow(t, folder);
  t.match(await counted(), [/^tollgate_xds_source_relists_total \d+$/]);
  writeFileSync(join(folder.path, 'config/b.yaml'), Buffer.from([0x61, 0xc3, 0x28]));
  await until(() => problems().length === 1, 'the file that cannot be read');
  t.match(await counted(), [/relists_total [2-9]/, /errors_total{operation="read"} [1-9]/]);
  rmSync(join(folder.path, 'config/b.yaml'));
  await until(() => problems().length === 0, 'the end of the file');
  renameSync(join(folder.path, 'config'), join(folder.path, 'away'));
  await until(() => problems().length === 1, 'the folder that cannot be read');
  t.match(await counted(), [/relists_total/, /{operation="read"}/, /errors_total{operation="list"} [1-9]/]);
  t.strictSame(ids(), ['default/a']);
});

t.test('second object of a name is a problem that names both files', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a', 1));
  folder.write('config/b.yaml', documents(manifestText('b'), manifestText('a', 2, 'default')));
  const { last, ids, problems } = await follow(t, folder);
  t.strictSame(ids(), ['default/a', 'default/b']);
  t.match(last().objects[0], { label: 'a.yaml#1' });
  t.strictSame(problems(), ['b.yaml#2: default/a is already in a.yaml#1: rename one']);
});

t.test('unknown kind of our API is a problem, and the object keeps its version', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', documents(manifestText('a'), manifestText('b')));
  const { ids, problems, until } = await follow(t, folder);
  const misspelled = manifestText('a', 5).replace('RateLimitConfig', 'RatelimitConfig');
  folder.write('config/a.yaml', documents(misspelled, manifestText('b')));
  await until(() => problems().length === 1, 'the problem');
  t.strictSame(problems(), [
    "a.yaml#1: kind: ratelimit.tollgate.dev has no 'RatelimitConfig' (did you mean RateLimitConfig?)",
  ]);
  t.strictSame(ids().toSorted(), ['default/a', 'default/b']);

  folder.write('config/a.yaml', documents(misspelled.replace(/^kind: .*\n/m, ''), manifestText('b')));
  await until(() => problems()[0]?.includes('nothing') === true, 'the other problem');
  t.strictSame(ids().toSorted(), ['default/a', 'default/b'], 'stays as long as the problem does');

  folder.write('config/a.yaml', manifestText('b'));
  await until(() => problems().length === 0, 'the removal');
  t.strictSame(ids(), ['default/b']);
});

const policy = (name: string) =>
  `apiVersion: policy.tollgate.dev/v1alpha1\nkind: AccessPolicy\nmetadata: { name: ${name} }\nspec: { hosts: [${name}.test] }\n`;

t.test('a policy stays while its manifest cannot be identified', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', documents(policy('a'), policy('b')));
  const { policies, problems, until } = await follow(t, folder);
  const edits = [
    policy('a').replace('AccessPolicy', 'AccessPolice'),
    policy('a').replace('AccessPolicy', 'AccessPolice').replace('policy.tollgate', 'police.tollgate'),
    policy('a').replace('AccessPolicy', 'Policy').replace('policy.tollgate', 'police.tollgate'),
    policy('a').replace('AccessPolicy', 'Policy').replace('policy.tollgate.dev/v1alpha1', 'tollgate.io/v1'),
    policy('a').replace(/^kind: .*\n/m, ''),
    policy('a').replace('name: a', 'name: A_'),
    policy('a').replace('{ name: a }', '{}'),
    policy('a')
      .replace(/^metadata: .*\n/m, '')
      .replace(/^kind: .*\n/m, ''),
    'text\n',
  ];
  for (const edit of edits) {
    folder.write('config/a.yaml', documents(policy('a'), policy('b')));
    await until(() => problems().length === 0, 'the valid version');
    folder.write('config/a.yaml', documents(edit, policy('b')));
    await until(() => problems().length === 1, 'the problem');
    t.strictSame(policies(), ['a', 'b'], edit);
  }
  folder.write('config/a.yaml', policy('b'));
  await until(() => problems().length === 0, 'the removal');
  t.strictSame(policies(), ['b']);
});

t.test('policies that vanish stay while any file is broken, since they may have moved to it', async (t) => {
  const folder = makeTextFolder(t);
  const broken = {
    'no YAML': `${policy('a')}kind: [`,
    empty: '',
    'no kind': policy('a').replace(/^kind: .*\n/m, ''),
    'invalid name': policy('a').replace('name: a', 'name: A_'),
    'ambiguous scalar': policy('a').replace('name: a', 'name: a, generation: 0644'),
  };
  folder.write('config/b.yaml', policy('b'));
  const { policies, problems, lines, until } = await follow(t, folder);
  for (const [what, text] of Object.entries(broken)) {
    folder.write('config/a.yaml', policy('a'));
    await until(() => policies().length === 2, 'the policy');
    folder.write('config/renamed.yaml', text);
    await until(() => problems().length === 1, 'the problem');
    rmSync(join(folder.path, 'config/a.yaml'));
    await until(() => lines.at(-1)?.level === 'warning', 'the message');
    t.strictSame(policies(), ['a', 'b'], what);
    t.match(lines.at(-1), { policies: ['AccessPolicy/default/a'] });
    rmSync(join(folder.path, 'config/renamed.yaml'));
    await until(() => policies().length === 1, 'the removal');
    t.strictSame(policies(), ['b']);
    lines.splice(0);
  }
});

t.test('object that kubectl reads differently keeps its version, other kinds are not checked', async (t) => {
  const folder = makeTextFolder(t);
  const deployment = 'apiVersion: apps/v1\nkind: Deployment\nspec: { mode: 0644 }\n';
  folder.write('config/a.yaml', documents(manifestText('a'), manifestText('b'), deployment));
  const { last, problems, until } = await follow(t, folder);
  t.strictSame(problems(), []);
  const ambiguous = manifestText('a').replace('requestsPerUnit: 10', 'requestsPerUnit: 0100');
  folder.write('config/a.yaml', documents(ambiguous, manifestText('b', 7)));
  await until(() => problems().length === 1, 'the problem');
  t.strictSame(problems(), [
    'a.yaml:8:34: spec.descriptors[0].rateLimit.requestsPerUnit: 0100 is 100 here and 64 for kubectl: write 100',
  ]);
  const texts = last().objects.map(({ manifest }) => JSON.stringify(manifest));
  t.match(texts.toSorted(), [/"name":"a".*"requestsPerUnit":10\}/, /"name":"b".*"requestsPerUnit":7\}/]);

  folder.write(
    'config/a.yaml',
    `${deployment}---\nkind: List\nitems: [{ kind: RateLimitConfig, metadata: { name: yes } }]\n`,
  );
  await until(() => problems()[0]?.includes('items') === true, 'the item');
  t.match(problems(), [/^a\.yaml:6:\d+: items\[0\]\.metadata\.name: yes is text here and true for kubectl/]);
});

t.test('invalid manifest is a problem with file and document, other kinds are ignored', async (t) => {
  const folder = makeTextFolder(t);
  folder.write(
    'config/a.yaml',
    documents(
      'just text\n',
      'domain: d\ndescriptors: []\n',
      'apiVersion: v1\nkind: ConfigMap\n',
      'apiVersion: ratelimit.tollgate.dev/v1alpha1\nkind: RateLimitConfig\nspec: {}\n',
      manifestText('Bad_Name'),
      manifestText('x', 1, '"a/b"'),
      manifestText('good'),
    ),
  );
  const { ids, problems, lines } = await follow(t, folder);
  t.strictSame(ids(), ['default/good']);
  t.match(problems(), [
    /^a\.yaml#1: /,
    /^a\.yaml#2: this is a rule file of the rate limit service/,
    /^a\.yaml#4: metadata\.name: is required/,
    /^a\.yaml#5: metadata\.name: must be lower case .*not 'Bad_Name'/,
    /^a\.yaml#6: metadata\.namespace: must be lower case .*not 'a\/b'/,
  ]);
  t.equal(problems().length, 5);
  t.match(lines, [{ level: 'info', file: 'a.yaml#3', kind: 'ConfigMap' }]);
});

t.test('only objects of the selected namespaces count', async (t) => {
  const folder = makeTextFolder(t);
  folder.write(
    'config/a.yaml',
    documents(manifestText('a', 1, 'shop'), manifestText('b'), manifestText('c', 1, 'web')),
  );
  const { ids } = await follow(t, folder, { namespaces: ['shop', 'web'] });
  t.strictSame(ids(), ['shop/a', 'web/c']);
});

t.test('volume of Kubernetes is read once, and a swap of its link is noticed', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/..1/a.yaml', manifestText('a', 1));
  folder.write('config/..2/a.yaml', manifestText('a', 2));
  folder.swapLink('config/..data', '..1');
  folder.swapLink('config/a.yaml', '..data/a.yaml');
  const { ids, last, until } = await follow(t, folder);
  t.strictSame(ids(), ['default/a']);
  folder.swapLink('config/..data', '..2');
  await until(() => last().objects[0]?.generation !== 1, 'the swap');
  t.match(last().objects[0], {
    manifest: { spec: { descriptors: [{ rateLimit: { requestsPerUnit: 2 } }] } },
  });
});

t.test('missing folder or a file fails the start and names the setting', async (t) => {
  const folder = makeTextFolder(t);
  await t.rejects(follow(t, folder), { message: /config cannot be read \(ENOENT\): set XDS_FOLDER/ });
  folder.write('config', 'a file');
  await t.rejects(follow(t, folder), { message: /config is not a directory: set XDS_FOLDER/ });
});

t.test('empty folder is an empty set', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/README.md', '');
  const { lists, policies } = await follow(t, folder);
  t.strictSame(lists[0], { type: 'replaced', objects: [], problems: [] });
  t.strictSame(policies(), []);
});

t.test('closed source sends no event', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', manifestText('a'));
  const { source, lists } = await follow(t, folder);
  const before = lists.length;
  folder.write('config/b.yaml', manifestText('b'));
  await source.close();
  await source.close();
  t.equal(lists.length, before);
});
