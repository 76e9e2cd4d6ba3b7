import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { serviceAccount, startAdmission } from '../support/admission.ts';
import { type DoubtfulObject, doubtfulObjects, existingObjects } from '../support/doubtful-objects.ts';

/** Characters of a message in the table. */
const maxShown = 150;

function toManifest(spec: string, { namespace = 'shop', name = 'doubtful' } = {}): string {
  const domain = /^domain:/m.test(spec) ? '' : `  domain: ${namespace}/${name}\n`;
  const body = spec.replaceAll(/^/gm, '  ');
  return `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { namespace: ${namespace}, name: ${name} }
spec:
${domain}${body}
`;
}

function classify(code: number, output: string): DoubtfulObject['outcome'] {
  if (code === 0) return 'accepted';
  return output.includes('admission webhook') ? 'webhook' : 'schema';
}

kubeSuite(
  t,
  'doubtful objects, applied by kubectl',
  async (t, kube) => {
    const { apply } = await startAdmission(t, kube, { namespaces: ['shop', 'bank'] });
    for (const { namespace, name, domain, key } of existingObjects) {
      const spec = `domain: ${domain}\ndescriptors: [{ key: ${key}, rateLimit: { unit: Minute, requestsPerUnit: 1 } }]`;
      await apply(toManifest(spec, { namespace, name }));
      const path = '-o=jsonpath={.status.conditions[0].status}';
      const isAccepted = async () =>
        (await kube.kubectl(['get', 'rlc', '-n', namespace, name, path])).stdout === 'True';
      await awaitUntil(isAccepted, { what: `the status of ${name}` });
    }

    t.ok(doubtfulObjects.length >= 33);
    for (const { name, spec, outcome, says } of doubtfulObjects) {
      const { code, stderr } = await apply(toManifest(spec), '--dry-run=server');
      const line = stderr
        .trim()
        .replaceAll(/\s+/g, ' ')
        .replace(/^.*denied the request: /, '');
      t.comment(`| ${name} | ${classify(code, stderr)} | ${(line || String(says)).slice(0, maxShown)} |`);
      t.equal(classify(code, stderr), outcome, name);
      if (typeof says === 'string') t.equal(stderr, '', name);
      else t.match(stderr, says, name);
    }
  },
  { users: [{ name: serviceAccount }] },
);
