import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import type { Condition } from '../../src/catalog/validation-result.ts';
import type { PolicyResult } from '../../src/policies/policy-result.ts';
import type { ObjectStatus } from '../../src/status/object-status.ts';
import { toPolicyStatus } from '../../src/status/policy-status.ts';
import { toStatusManifest } from '../../src/status/status-manifest.ts';

// The script runs in the Lua of Redis, which is there for other tests; Argo CD has 5.1, too.
const server = await startRedis({});
t.teardown(server.stop);
const script = readFileSync(join(import.meta.dirname, '../../../../examples/argo-cd/health.lua'), 'utf8');
const health = async (object: unknown) =>
  redisCommand(
    server,
    'EVAL',
    `local obj = cjson.decode(ARGV[1]) local function run() ${script} end local found = run() return found.status .. ': ' .. found.message`,
    '0',
    JSON.stringify(object),
  );

const accepted: Condition = { status: 'True', reason: 'Accepted', message: '3 limits' };
const enforced: Condition = { status: 'True', reason: 'Acknowledged', message: 'by 1 of 1' };

function makeObject(change: Partial<ObjectStatus>, generation = 1) {
  const status: ObjectStatus = {
    id: 'shop/web',
    uid: 'u',
    observedGeneration: 1,
    rules: 3,
    version: 'v',
    accepted,
    programmed: enforced,
    ...change,
  };
  return { metadata: { generation }, status: toStatusManifest(status, undefined, 0) };
}

t.test('Argo CD health follows the status', async (t) => {
  t.equal(await health({ metadata: { generation: 1 } }), 'Progressing: waiting for the xDS server');
  t.equal(
    await health({ metadata: { generation: 1 }, status: { observedGeneration: -1 } }),
    'Progressing: waiting for the xDS server',
  );
  t.equal(await health(makeObject({})), 'Healthy: by 1 of 1');
  t.equal(await health(makeObject({}, 2)), 'Progressing: waiting for the xDS server');
  const pending: Condition = { status: 'False', reason: 'Pending', message: 'by 0 of 1' };
  t.equal(await health(makeObject({ programmed: pending })), 'Progressing: by 0 of 1');
  const invalid: Condition = { status: 'False', reason: 'Invalid', message: 'spec: wrong' };
  t.equal(await health(makeObject({ accepted: invalid })), 'Degraded: spec: wrong');
});

t.test('Argo CD health follows the status of an AccessPolicy', async (t) => {
  const spec = { hosts: ['a.test'] };
  const result = {
    ...{ id: 'shop/a', namespace: 'shop', name: 'a', label: 'shop/a', generation: 1, heldBack: undefined },
    ...{ problems: [], warnings: [], ancestors: [], allowedHosts: [], inForce: { generation: 1, spec } },
  };
  const makePolicy = (programmed: Condition, problems: PolicyResult['problems'] = []) => ({
    metadata: { generation: 1 },
    status: toPolicyStatus({ result: { ...result, problems }, programmed, isSeen: false }, {}, 0),
  });
  const programmed: Condition = { status: 'True', reason: 'Programmed', message: 'acknowledged' };
  t.equal(await health(makePolicy(programmed)), 'Healthy: acknowledged');
  const absent: Condition = { status: 'Unknown', reason: 'NoClients', message: 'no auth server' };
  t.equal(await health(makePolicy(absent)), 'Progressing: no auth server');
  const problem = { source: '', field: 'spec.hosts', message: 'wrong', reason: 'Invalid' } as const;
  t.equal(await health(makePolicy(programmed, [problem])), 'Degraded: spec.hosts: wrong');
});
