import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import {
  goodResources,
  manifestOf,
  unknownFieldResources,
} from '../../../packages/rules/test/helpers/resource-cases.ts';
import { renderPolicyCrd } from './access-policy.ts';
import { renderCrd } from './definition.ts';
import { renderKnownFieldsPolicy } from './known-fields-policy.ts';

const limit = { unit: 'Minute', requestsPerUnit: 10 };
const misspelled = {
  domain: 'shop',
  descriptors: [
    { key: 'a', rateLimit: limit, shadow_mode: true },
    { key: 'b', descriptors: [{ key: 'c', rateLimt: limit }] },
  ],
};

/** Paths of all objects with fields; those below `plans` are by name. */
function listObjects(value: unknown, path: readonly (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const inside = entries.flatMap(([key, child]) => listObjects(child, [...path, key]));
  return Array.isArray(value) || path.at(-1) === 'plans' ? inside : [[...path], ...inside];
}

kubeSuite(t, 'the policy of known fields, without the webhook', async (t, kube) => {
  await kube.apply(renderCrd());
  await kube.apply(renderPolicyCrd());
  await kube.apply(renderKnownFieldsPolicy());
  const create = (spec: unknown) =>
    kube.kubectl(['create', '--dry-run=server', '-f', '-'], {
      input: JSON.stringify(manifestOf(spec, 'one')),
    });
  const text = 'fields that this version does not know: ';
  // The API server learns of a policy within seconds.
  await awaitUntil(async () => (await create(misspelled)).stderr.includes(text), {
    what: 'the policy to be in force',
  });

  await t.test('unknown fields are named by a warning, and stored', async (t) => {
    const { code, stderr } = await create(misspelled);
    t.equal(code, 0);
    t.match(stderr, `${text}shadow_mode, rateLimt`);
  });

  await t.test('unknown fields are found on every level', async (t) => {
    t.ok(unknownFieldResources.length > 10);
    for (const { name, spec } of unknownFieldResources) t.match((await create(spec)).stderr, text, name);
  });

  await t.test('known fields cause no warning', async (t) => {
    t.ok(goodResources.length > 10);
    for (const { name, spec } of goodResources) {
      const { code, stderr } = await create(spec);
      t.equal(code, 0, name);
      t.equal(stderr, '', name);
    }
  });

  await t.test('unknown fields of access policies are found in every part', async (t) => {
    const createPolicy = (spec: object) =>
      kube.kubectl(['create', '--dry-run=server', '-f', '-'], {
        input: JSON.stringify({
          ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy', spec },
          metadata: { name: 'one', namespace: 'default' },
        }),
      });
    const window = { requests: 1, per: 'Minute' };
    const ofGateways = {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'main' }],
      defaults: { access: { roles: ['admin'] }, limits: [{ name: 'a', by: ['User'], ...window }] },
      overrides: { access: { type: 'Denied' }, limits: [{ name: 'b', by: ['Address'], ...window }] },
    };
    const ofHosts = {
      hosts: ['a.test'],
      access: { resource: { name: 'A', scopes: ['read'] } },
      rules: [
        {
          matches: [
            {
              path: { value: '/a' },
              headers: [{ name: 'x-a', value: 'a' }],
              queryParams: [{ name: 'a', value: 'a' }],
            },
          ],
          access: { type: 'Public' },
        },
      ],
      limits: [
        {
          name: 'a',
          by: ['User', { header: 'x-a' }],
          plans: { pro: { requests: 2 }, free: { requests: 1 } },
          ...window,
        },
      ],
    };
    await awaitUntil(async () => (await createPolicy({ ...ofHosts, unknown: 1 })).stderr.includes(text), {
      what: 'the policy to be in force',
    });
    for (const spec of [ofGateways, ofHosts]) {
      const { code, stderr } = await createPolicy(spec);
      t.equal(code, 0, stderr);
      t.equal(stderr, '');
      const parts = listObjects(spec);
      t.ok(parts.length > 5);
      for (const path of parts) {
        const changed = structuredClone(spec);
        const part = path.reduce((value: unknown, key) => Reflect.get(Object(value), key), changed);
        Object.assign(Object(part), { misspelled: 1 });
        t.match((await createPolicy(changed)).stderr, `${text}misspelled`, path.join('.'));
      }
    }
  });

  await t.test('unknown fields are refused where the binding denies', async (t) => {
    await kube.apply(
      renderKnownFieldsPolicy().replaceAll('validationActions: [Warn, Audit]', 'validationActions: [Deny]'),
    );
    await awaitUntil(async () => (await create(misspelled)).code !== 0, { what: 'the denial' });
    t.match(
      (await create(misspelled)).stderr,
      /denied request: fields that this version does not know: shadow/,
    );
  });
});
