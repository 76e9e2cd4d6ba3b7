import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { load } from 'js-yaml';
import t from 'tap';
import { manifest, programmed, statusWhen } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

/** The part of a CRD that the tests change. */
interface Definition {
  readonly spec: {
    readonly versions: {
      readonly schema: {
        readonly openAPIV3Schema: { properties: { spec: { properties: Record<string, unknown> } } };
      };
    }[];
  };
}

kubeSuite(t, 'a rollback to an older CRD and xDS server', async (t, kube) => {
  const text = await readFile(crdFile, 'utf8');
  /** The CRD of another release, with other fields of the spec. */
  const crdWith = (change: (fields: Record<string, unknown>) => void): string => {
    // Parsed boundary: our own file.
    const definition = load(text) as Definition;
    for (const { schema } of definition.spec.versions)
      change(schema.openAPIV3Schema.properties.spec.properties);
    return JSON.stringify(definition);
  };
  await kube.apply(text);
  const xds = await startReplica(t, kube, 'replica-1');
  const limiter = await startLimiter(xds.address, {
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
  });
  t.teardown(limiter.stop);

  await t.test('keeps an object on trial on trial', async (t) => {
    await kube.apply(manifest({ name: 'tried', domain: 'tried', limits: { user: 1 }, trial: true }));
    await statusWhen(kube, 'tried', programmed);
    await kube.apply(crdWith((fields) => void delete fields.trial));
    await kube.apply(manifest({ name: 'marker', domain: 'marker', limits: { user: 2 } }));
    await enforced(limiter, 'marker', 2);
    await xds.kill();
    await xds.restart();
    await statusWhen(kube, 'marker', programmed);
    t.equal((await limiter.decide('tried', { user: 'a' })).requestsPerUnit, undefined);
    const { accepted } = await statusWhen(kube, 'tried', programmed);
    t.equal(accepted?.reason, 'OnTrial');
    const { stdout } = await kube.kubectl(['get', 'rlc', 'tried', '-o', 'jsonpath={.spec.trial}']);
    t.equal(stdout, 'true');
  });

  await t.test('refuses a field of the newer one, and keeps the last valid version in force', async (t) => {
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 5 } }));
    await enforced(limiter, 'shop', 5);
    await statusWhen(kube, 'shop', programmed);
    await kube.apply(crdWith((fields) => Object.assign(fields, { newMode: { type: 'string' } })));
    const newer = JSON.parse(manifest({ name: 'shop', domain: 'shop', limits: { user: 9 } }));
    await kube.apply(JSON.stringify({ ...newer, spec: { ...newer.spec, newMode: 'gentle' } }));
    await kube.apply(text);
    const refused = () => statusWhen(kube, 'shop', ({ accepted }) => accepted?.status === 'False');
    t.match((await refused()).accepted, {
      reason: 'Invalid',
      message: /generation 1 stays in force.*newMode/s,
    });
    const { stdout } = await kube.kubectl(['get', 'rlc', 'shop', '-o', 'jsonpath={.spec.newMode}']);
    t.equal(stdout, 'gentle', 'the field is kept for the next upgrade');
    await xds.kill();
    await xds.restart();
    await kube.apply(manifest({ name: 'marker', domain: 'marker', limits: { user: 3 } }));
    await enforced(limiter, 'marker', 3);
    t.equal((await limiter.decide('shop', { user: 'a' })).requestsPerUnit, 5);
  });
});

function enforced(limiter: LimiterProcess, domain: string, requestsPerUnit: number): Promise<unknown> {
  return awaitUntil(
    async () => (await limiter.decide(domain, { user: 'a' })).requestsPerUnit === requestsPerUnit,
    { what: `the limit of ${domain} to be ${requestsPerUnit}` },
  );
}
