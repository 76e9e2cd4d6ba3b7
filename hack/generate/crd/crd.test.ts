import { readdirSync, readFileSync } from 'node:fs';
import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { formatProblem } from '@tollgate/rules/problem';
import { readResource } from '@tollgate/rules/read-resource';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { load } from 'js-yaml';
import t from 'tap';
import {
  badResources,
  conflictingResources,
  goodResources,
  manifestOf,
  type ResourceCase,
  unknownFieldResources,
} from '../../../packages/rules/test/helpers/resource-cases.ts';
import { renderCrd, statusSchema } from './definition.ts';
import { itemOf, type JsonSchema, listFields } from './json-schema.ts';
import { specSchema } from './spec-schema.ts';

const crdsFolder = new URL('../../../crds/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, crdsFolder), 'utf8');
const examples = readdirSync(new URL('examples/', crdsFolder)).map((name) => `examples/${name}`);

/** kubectl without --server-side keeps the manifest in an annotation, which may have no more. */
const maxAnnotationBytes = 262_144;

t.test('the CRD is small enough for kubectl apply', async (t) => {
  t.ok(JSON.stringify(load(renderCrd())).length < maxAnnotationBytes / 2);
});

for (const example of examples) {
  t.test(`the rules of ${example} compile without problems`, async (t) => {
    const result = readResource(load(read(example)), example);
    const compiled = result.ok ? runSteps(compileRules([result.document], { mergeDomains: true })) : result;
    t.same(compiled.ok ? compiled.warnings.map(formatProblem) : compiled.problems.map(formatProblem), []);
  });
}

const perMinute = { unit: 'Minute', requestsPerUnit: 10 };
const oneRule = { domain: 'shop/web', descriptors: [{ key: 'route', rateLimit: perMinute }] };

/** Names of the cases that the API server would store, and its words about the others. */
async function namesStored(
  kube: KubeApiserver,
  cases: readonly ResourceCase[],
  validate: 'ignore' | 'strict',
): Promise<{ stored: readonly string[]; errors: string }> {
  const manifests = cases.map(({ spec }, index) => manifestOf(spec, `case-${index}`));
  // A last one that is good shows that kubectl did get there.
  const documents = [...manifests, manifestOf(oneRule, 'last')].map((manifest) => JSON.stringify(manifest));
  const { stdout, stderr } = await kube.kubectl(
    ['create', '--dry-run=server', `--validate=${validate}`, '-o', 'name', '-f', '-'],
    { input: documents.join('\n---\n') },
  );
  if (!stdout.includes('/last\n')) throw new Error(`kubectl stopped before the end: ${stderr}`);
  const names = new Set(stdout.match(/case-\d+/g));
  const stored = cases.filter((_, index) => names.has(`case-${index}`)).map(({ name }) => name);
  return { stored, errors: stderr };
}

/** The API server drops what is null, and metadata keeps its nulls. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, name === 'metadata' ? field : withoutNulls(field)]),
  );
}

const explainedPaths = [
  'spec',
  'spec.descriptors',
  'spec.descriptors.rateLimit',
  `spec${'.descriptors'.repeat(8)}.rateLimit`,
  'spec.limits',
  'spec.limits.match',
  'spec.limits.rateLimit',
  'spec.limits.rateLimit.replaces',
  'status',
  'status.conditions',
  'status.limiters',
];

const root: JsonSchema = { properties: { spec: specSchema, status: statusSchema } };

/** The object at a path as `kubectl explain` has it. */
const schemaAt = (path: string): JsonSchema =>
  path.split('.').reduce((schema, name) => itemOf(schema.properties?.[name] ?? {}), root);

/** Fields and their descriptions in what `kubectl explain` prints, without types and values. */
function parseExplanation(text: string): [name: string, description: string][] {
  const [, ...fields] = text.split(/^ {2}(?=\S+\s+<)/m);
  return fields.map((field) => {
    const [head = '', ...lines] = field.split('\n');
    const description = lines.filter((line) => !/^ +enum: /.test(line)).join(' ');
    return [head.split(/\s/)[0] ?? '', description.replaceAll(/\s+/g, ' ').trim()];
  });
}

const getNames = (cases: readonly ResourceCase[]) => cases.map(({ name }) => name);

kubeSuite(t, 'the CRD in an API server', async (t, kube) => {
  await kube.apply(renderCrd());
  const ok = async (...args: Parameters<KubeApiserver['kubectl']>) => {
    const { code, stdout, stderr } = await kube.kubectl(...args);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const create = (manifest: object, ...args: readonly string[]) =>
    kube.kubectl(['create', ...args, '-f', '-'], { input: JSON.stringify(manifest) });

  t.test('its schema is structural and its names are accepted', async (t) => {
    const path = '-o=jsonpath={range .status.conditions[*]}{.type}={.status} {end}';
    const conditions = await ok(['get', 'crd', 'ratelimitconfigs.ratelimit.tollgate.dev', path]);
    t.notMatch(conditions, /NonStructuralSchema=True/);
    t.match(conditions, /NamesAccepted=True/);
  });

  t.test('every example is applied under strict validation', async (t) => {
    await ok(['create', 'namespace', 'shop']);
    for (const example of examples)
      t.match(
        await ok(['apply', '--validate=strict', '-f', '-'], { input: read(example) }),
        /created/,
        example,
      );
    await ok(['delete', 'rlc', '--all', '--namespace=shop']);
  });

  t.test('applying every example again changes nothing, client-side or server-side', async (t) => {
    for (const flags of [[], ['--server-side']]) {
      const apply = () => ok(['apply', ...flags, ...examples.flatMap((name) => ['-f', `crds/${name}`])]);
      await apply();
      // Before the status is written, the API server stores its default with the first
      // server-side apply, and drops it from the applied fields with the second.
      await apply();
      const unchanged = flags.length === 0 ? / unchanged\n/g : / serverside-applied\n/g;
      const generations = () =>
        ok(['get', 'rlc', '--namespace=shop', '-o=jsonpath={.items[*].metadata.resourceVersion}']);
      const before = await generations();
      t.equal((await apply()).match(unchanged)?.length, examples.length);
      t.equal(await generations(), before);
      await ok(['delete', 'rlc', '--all', '--namespace=shop']);
    }
  });

  t.test('objects are stored as written, without defaults in lists', async (t) => {
    for (const { name, spec } of goodResources) {
      const manifest = manifestOf(spec, 'written');
      const { stdout } = await create(manifest, '--dry-run=server', '-o', 'json');
      // Parsed boundary: of what kubectl prints one field is looked at.
      const stored = (JSON.parse(stdout) as { spec: unknown }).spec;
      t.same(withoutNulls(stored), withoutNulls(spec), name);
    }
  });

  t.test('resources that the reader accepts are stored', async (t) => {
    const { stored, errors } = await namesStored(kube, goodResources, 'strict');
    t.same(stored, getNames(goodResources), errors);
  });

  t.test('resources that the reader rejects are rejected for every client', async (t) => {
    t.same((await namesStored(kube, badResources, 'ignore')).stored, []);
  });

  t.test('unknown fields are kept for the webhook and the xDS server, which refuse them', async (t) => {
    for (const { name, spec, field } of unknownFieldResources) {
      const { stdout, stderr } = await create(manifestOf(spec, 'unknown'), '--dry-run=server', '-o', 'json');
      t.equal(stderr, '', name);
      const read = readResource(JSON.parse(stdout), 'stored');
      t.ok(!read.ok && read.problems.some((problem) => problem.field === field), name);
    }
  });

  t.test('conflicts beyond the schema are stored, and reported in the status', async (t) => {
    const { stored } = await namesStored(kube, conflictingResources, 'strict');
    t.same(stored, getNames(conflictingResources));
  });

  t.test('errors of the schema say what to write instead', async (t) => {
    const parseError = async (spec: object) =>
      (await create(manifestOf(spec), '--dry-run=server', '--validate=ignore')).stderr;
    const withDescriptor = (fields: object) => ({ domain: 'd', descriptors: [{ key: 'a', ...fields }] });
    t.match(
      await parseError(withDescriptor({ rateLimit: { unit: 'Day' } })),
      /rateLimit\.requestsPerUnit: Required value/,
    );
    t.match(await parseError({ domain: 'd' }), /set exactly one of descriptors and limits/);
  });

  t.test('the domain of an object cannot be changed', async (t) => {
    await create(manifestOf(oneRule));
    const patch = '{"spec":{"domain":"shop/other"}}';
    const { code, stderr } = await kube.kubectl(['patch', 'rlc', 'web', '--type=merge', '-p', patch]);
    t.equal(code, 1);
    t.match(stderr, /domain cannot be changed/);
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('objects are found by their domain', async (t) => {
    await create(manifestOf(oneRule, 'web'));
    await create(manifestOf({ ...oneRule, domain: 'shop/other' }, 'other'));
    const found = await ok(['get', 'rlc', '--field-selector=spec.domain=shop/web', '-o', 'name']);
    t.equal(found, 'ratelimitconfig.ratelimit.tollgate.dev/web\n');
    await ok(['delete', 'rlc', '--all']);
  });

  t.test('a new object is observed at generation -1, until the xDS server has validated it', async (t) => {
    await create(manifestOf(oneRule));
    t.equal(await ok(['get', 'rlc', 'web', '-o=jsonpath={.status}']), '{"observedGeneration":-1}');
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('a status is shown in columns and does not change the generation', async (t) => {
    await create(manifestOf(oneRule));
    const condition = (type: string, reason: string) => ({
      type,
      reason,
      status: 'True',
      message: 'fine',
      lastTransitionTime: '2026-01-02T03:04:05Z',
      observedGeneration: 1,
    });
    const status = {
      observedGeneration: 1,
      rules: 7,
      version: 'abc',
      conditions: [
        condition('Accepted', 'Accepted'),
        condition('Programmed', 'Acknowledged'),
        condition('Ready', 'Enforced'),
      ],
    };
    await ok([
      'patch',
      'rlc',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ]);
    const [header = '', row = ''] = (await ok(['get', 'rlc', '-o', 'wide'])).split('\n');
    t.same(header.trim().split(/ {2,}/), [
      'NAME',
      'DOMAIN',
      'RULES',
      'ACCEPTED',
      'PROGRAMMED',
      'AGE',
      'REASON',
    ]);
    t.match(row.replace(/ +/g, ' '), /^web shop\/web 7 True True \S+ Enforced$/);
    const narrow = await ok(['get', 'rlc']);
    t.notMatch(narrow, /REASON/);
    t.equal(await ok(['get', 'rlc', 'web', '-o=jsonpath={.metadata.generation} {.status.version}']), '1 abc');
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('a status with an unknown condition status is rejected', async (t) => {
    await create(manifestOf(oneRule));
    const conditions = [
      {
        type: 'Accepted',
        status: 'Maybe',
        reason: 'R',
        message: '',
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
    ];
    const patch = JSON.stringify({ status: { conditions } });
    const { stderr } = await kube.kubectl([
      'patch',
      'rlc',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      patch,
    ]);
    t.match(stderr, /Unsupported value: "Maybe"/);
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('objects are in the category tollgate, and not in all', async (t) => {
    await create(manifestOf(oneRule));
    t.match(await ok(['get', 'tollgate']), /web/);
    t.notMatch(await ok(['get', 'all']), /shop\/web/);
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('kubectl explain describes every field', async (t) => {
    for (const path of explainedPaths) {
      const fields = listFields(schemaAt(path)).map(([name, { description }]) => [name, description]);
      const explained = parseExplanation(await ok(['explain', `rlc.${path}`])).filter(
        ([, description]) => description !== '<no description>',
      );
      t.same(Object.fromEntries(explained), Object.fromEntries(fields), path);
    }
    t.match(await ok(['explain', 'rlc.spec', '--recursive']), /\n {6}charge\s+<string>/);
  });

  t.test('two owners each have a limit of their own in one object', async (t) => {
    const applyAs = (owner: string, name: string, requestsPerUnit: number) => {
      const rateLimit = { unit: 'Minute', requestsPerUnit };
      const limits = [{ name, match: [{ key: 'tenant', value: name }], rateLimit }];
      const args = ['apply', '--server-side', `--field-manager=${owner}`, '-f', '-'];
      return kube.kubectl(args, { input: JSON.stringify(manifestOf({ domain: 'shop/web', limits })) });
    };
    t.equal((await applyAs('team-a', 'a', 1)).code, 0);
    t.equal((await applyAs('team-b', 'b', 2)).code, 0);
    t.equal((await applyAs('team-a', 'a', 3)).code, 0);
    const path = '-o=jsonpath={range .spec.limits[*]}{.name}={.rateLimit.requestsPerUnit} {end}';
    t.equal(await ok(['get', 'rlc', 'web', path]), 'a=3 b=2 ');
    const { code, stderr } = await applyAs('team-b', 'a', 9);
    t.equal(code, 1);
    t.match(stderr, /conflict with "team-a"/);
    await ok(['delete', 'rlc', 'web']);
  });

  t.test('the longest list of descriptors is accepted in one request', async (t) => {
    const descriptors = Array.from({ length: 4096 }, (_, index) => ({
      key: 'tenant',
      value: `t${index}`,
      rateLimit: perMinute,
    }));
    const { stored, errors } = await namesStored(
      kube,
      [{ name: 'long', spec: { domain: 'd', descriptors } }],
      'strict',
    );
    t.same(stored, ['long'], errors);
    const longer = [
      {
        name: 'longer',
        spec: { domain: 'd', descriptors: [...descriptors, { key: 'x', rateLimit: perMinute }] },
      },
    ];
    t.match((await namesStored(kube, longer, 'strict')).errors, /must have at most 4096 items/);
  });

  t.test('the admission policy ties domains of new objects to namespaces', async (t) => {
    await ok(['create', 'namespace', 'platform']);
    const inNamespace = (namespace: string, domain: string, ...args: readonly string[]) =>
      create(manifestOf({ ...oneRule, domain }), `--namespace=${namespace}`, ...args);
    t.equal((await inNamespace('shop', 'older')).code, 0);
    await kube.apply(
      `${read('admission-policy.yaml')}
  matchResources:
    namespaceSelector:
      matchExpressions: [{ key: kubernetes.io/metadata.name, operator: NotIn, values: [platform] }]`,
    );
    const dryRun = '--dry-run=server';
    // The API server learns of a policy within seconds.
    await awaitUntil(async () => (await inNamespace('shop', 'bank', dryRun)).stderr.includes('belong'), {
      what: 'the policy to be in force',
    });
    t.match(
      (await inNamespace('shop', 'bank', dryRun)).stderr,
      /domain 'bank' does not belong to namespace 'shop': use 'shop' or 'shop\/<name>'/,
    );
    const labels = ['label', 'rlc', 'web', '--namespace=shop', 'team=a'];
    t.equal((await kube.kubectl(labels)).code, 0, 'objects from before can be changed');
    await ok(['delete', 'rlc', 'web', '--namespace=shop']);
    t.match((await inNamespace('shop', 'shopping', dryRun)).stderr, /does not belong to namespace 'shop'/);
    for (const [namespace, domain] of [
      ['shop', 'shop'],
      ['shop', 'shop/web'],
      ['platform', 'bank'],
    ] as const)
      t.equal((await inNamespace(namespace, domain, dryRun)).code, 0, domain);
  });
});
