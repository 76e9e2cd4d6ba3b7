import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { compileRules } from '../src/compile/compile.ts';
import { encodeBits, listRulePaths, listRules, pickByBits } from '../src/match/matched.ts';
import { readResource } from '../src/read/resource.ts';

const limit = (requestsPerUnit: number) => ({ unit: 'Minute', requestsPerUnit });

const manifest = {
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  kind: 'RateLimitConfig',
  spec: {
    domain: 'shop',
    descriptors: [
      { key: 'zebra', value: 'z*', rateLimit: limit(1) },
      {
        key: 'plan',
        descriptors: [
          { key: 'user', rateLimit: limit(2) },
          { key: 'ip', rateLimit: limit(3) },
        ],
      },
      { key: 'a', rateLimit: { unlimited: true }, descriptors: [{ key: 'b', rateLimit: limit(4) }] },
    ],
  },
};

t.test('compiled rules and the document list the same rules in the same order', async (t) => {
  const read = readResource(manifest, 'web');
  if (!read.ok) throw new Error('the manifest is valid');
  const compiled = runSteps(compileRules([read.document], { mergeDomains: false }));
  if (!compiled.ok) throw new Error('the rules are valid');
  const root = compiled.rules.domains.get('shop');
  const paths = ['shop.zebra_z*', 'shop.plan.user', 'shop.plan.ip', 'shop.a', 'shop.a.b'];
  t.strictSame(listRulePaths(read.document), paths);
  t.strictSame(root && listRules(root).map(({ path }) => path), paths);
});

t.test('rules on trial are listed after those in force', async (t) => {
  const read = readResource({ ...manifest, spec: { ...manifest.spec, trial: true } }, 'web');
  if (!read.ok) throw new Error('the manifest is valid');
  const inForce = { key: 'own', rateLimit: { unit: 'minute', requestsPerUnit: 1 } } as const;
  const paths = listRulePaths({ ...read.document, descriptors: [inForce] });
  t.strictSame([paths[0], paths.length], ['shop.own', 6]);
});

t.test('bits of any length select the same items again', async (t) => {
  const items = Array.from({ length: 19 }, (_, index) => index);
  for (const wanted of [[0], [7, 8], [18], items]) {
    const bits = encodeBits(items.map((item) => wanted.includes(item))) ?? '';
    t.strictSame(pickByBits(items, bits), wanted);
  }
  t.equal(encodeBits(items.map(() => false)), undefined);
  t.strictSame(pickByBits(items, '!!'), [], 'text of another client');
});
