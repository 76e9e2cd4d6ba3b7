import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import {
  goodResources,
  manifestOf,
  unknownFieldResources,
} from '../../../packages/rules/test/helpers/resource-cases.ts';
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

kubeSuite(t, 'the policy of known fields, without the webhook', async (t, kube) => {
  await kube.apply(renderCrd());
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

  await t.test('unknown fields are refused where the binding denies', async (t) => {
    await kube.apply(renderKnownFieldsPolicy().replace('[Warn, Audit]', '[Deny]'));
    await awaitUntil(async () => (await create(misspelled)).code !== 0, { what: 'the denial' });
    t.match(
      (await create(misspelled)).stderr,
      /denied request: fields that this version does not know: shadow/,
    );
  });
});
