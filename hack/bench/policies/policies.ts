import { setTimeout as delay } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema, CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startKubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { AuthServer, RateLimitService, XdsServer } from '@tollgate/testkit/services';
import { signUp, startAuth } from '../auth.ts';
import { runGrpcLoad } from '../grpc-load.ts';
import { monotonicMs, openCalls, readProcessUsage } from '../processes.ts';
import { type BenchOptions, formatCount, formatMegabytes, percentile, type Report } from '../report.ts';
import { formatTimes } from '../xds/edits.ts';
import { readMetric, startXds, startXdsLimiter } from '../xds/services.ts';
import { kubeVersions } from '../xds/xds.ts';
import {
  type AccessType,
  createPolicyObjects,
  hostOf,
  openPath,
  type PolicyObjects,
  routesPerPolicy,
} from './objects.ts';

/** Limits that the design has for 1,000 policies and 5,000 routes. */
const limits = { enforcedP99Ms: 1_000, growthBytes: 100e6 };

/** Flags that images start with: NODE_OPTIONS of the Dockerfile. */
const imageFlags: readonly string[] = ['--max-semi-space-size=8'];

const checkPath = '/envoy.service.auth.v3.Authorization/Check';
const enforcedTimeoutMs = 60_000;
const statusesTimeoutMs = 300_000;
/** Time between a response and the next check of a probe. */
const probeEveryMs = 2;
/** Edits while services/xds writes the first statuses, which takes 20 seconds. */
const earlyEdits = 25;
/** Checks in a second, far fewer than the auth server can answer. */
const checksPerSecond = 500;

/** Codes of google.rpc.Status that checks without a token get. */
const codes: Readonly<Record<AccessType, number>> = { Denied: 7, Authenticated: 16 };

interface Bed {
  readonly objects: PolicyObjects;
  readonly xds: XdsServer;
  readonly auth: AuthServer;
  readonly limiter: RateLimitService;
  /** Sends a check, and resolves to its code. */
  readonly check: (host: string, path: string, token?: string) => Promise<number>;
  readonly token: string;
  readonly durationMs: number;
}

/** From an edit of a policy or a route until the auth server enforces it, and what that costs. */
export async function benchPolicies({ quick, progress, ...options }: BenchOptions): Promise<Report> {
  const nodeFlags = [...imageFlags, ...options.nodeFlags];
  await using cleanup = new AsyncDisposableStack();
  const policies = 1_000;
  const edits = quick ? 25 : 200;
  const kube = await startKubeApiserver();
  cleanup.defer(kube.stop);
  const objects = await createPolicyObjects(kube);
  cleanup.defer(async () => objects.close());
  await objects.fill(1);
  const settings = {
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    XDS_LEASE_NAMESPACE: 'default',
  };
  const xds = await startXds(settings, { nodeFlags });
  cleanup.defer(xds.stop);
  const limiter = await startXdsLimiter(xds.address, 'limiter-1', nodeFlags);
  cleanup.defer(limiter.stop);
  const auth = cleanup.use(
    await startAuth(
      {
        SVC_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'false',
        SVC_EXT_AUTHZ_POLICY_SERVER: xds.address,
        SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
      },
      nodeFlags,
    ),
  );
  const calls = openCalls(auth.extAuthzAddress);
  cleanup.defer(async () => calls.close());
  const check: Bed['check'] = async (host, path, token) => {
    const reply = await calls.call(checkPath, toCheck(host, path, token));
    return fromBinary(CheckResponseSchema, reply).status?.code ?? 0;
  };
  const { access_token: token } = await signUp(auth.url);
  const bed: Bed = { ...{ objects, xds, auth, limiter, check, token }, durationMs: quick ? 1_000 : 5_000 };
  await untilCode(bed, hostOf(0), 'Authenticated');
  progress('checks with one policy');
  await measureChecks(bed, 1);
  const one = await measureChecks(bed, 1);
  progress(`${formatCount(policies)} policies`);
  await xds.stop();
  await objects.fill(policies - 1);
  // Hosts without a policy have the same answer as those of the other policies.
  await objects.fill(policies, 'Denied');
  const startedAt = monotonicMs();
  await xds.restart();
  await untilCode(bed, hostOf(policies * routesPerPolicy - 1), 'Denied');
  const servedMs = monotonicMs() - startedAt;
  progress('edits while first statuses are written');
  const edited = spread(edits, policies - 1);
  const early = await measureEdits(bed, () => editPolicies(bed, edited.slice(0, earlyEdits), 'Denied'));
  await editPolicies(bed, edited.slice(0, earlyEdits), 'Authenticated');
  await untilStatuses(bed, policies);
  const statusesMs = monotonicMs() - startedAt;
  const first = await measureChecks(bed, policies - 1);
  progress('edits');
  const ofPolicies = await measureEdits(bed, () => editPolicies(bed, edited, 'Denied'));
  const ofRoutes = await measureEdits(bed, () => editRoutes(bed, edited));
  await editPolicies(bed, edited, 'Authenticated');
  const last = await measureChecks(bed, policies - 1);
  const growth = (bytes: number) => bytes - one.rssBytes;
  const checksRow = (name: string, at: Checks) => [
    name,
    ...[at.p50Ms, at.p99Ms].map((ms) => ms.toFixed(2)),
    ...[at.cpuMicros.toFixed(0), formatMegabytes(at.rssBytes), formatMegabytes(growth(at.rssBytes))],
  ];
  const editsRow = (name: string, at: Edits) => [
    ...[name, ...formatTimes(at.samplesMs)],
    ...Object.values(at.cpuMs).map((ms) => ms.toFixed(0)),
  ];
  const p99 = Math.max(...[early, ofPolicies, ofRoutes].map(({ samplesMs }) => percentile(samplesMs, 99)));
  const mostGrowth = Math.max(...[first, last].map(({ rssBytes }) => growth(rssBytes)));
  const within = (isWithin: boolean): string => (isWithin ? 'yes' : 'NO');
  return {
    page: 'benchmarks-policies.md',
    title: 'Benchmarks of access policies',
    intro: `Written by \`make bench ARGS="policies --write"\` (hack/bench); do not edit by hand. ${formatCount(policies)} access policies, each for ${routesPerPolicy} HTTP routes, in 50 namespaces.`,
    sharedBy: 'etcd, kube-apiserver, the services, PostgreSQL and the load',
    programs: kubeVersions(),
    tables: [
      {
        title: 'From an edit until the auth server enforces it',
        head: ['edit', 'edits', 'p50 ms', 'p99 ms', 'max ms', 'auth CPU ms', 'xds CPU ms', 'limiter CPU ms'],
        rows: [
          editsRow('access of a policy', ofPolicies),
          editsRow('path of a route', ofRoutes),
          editsRow('access of a policy, while the first statuses are written', early),
        ],
        notes: [
          'from the 200 of the API server to a server-side apply until a check has the new answer; CPU of each edit, with checks and the status of objects',
          `all policies and routes at once: ${formatCount(servedMs)} ms from the start of services/xds, which has written the statuses of all policies after ${formatCount(statusesMs)} ms, 50 a second`,
        ],
      },
      {
        title: `Checks, ${checksPerSecond} a second`,
        head: ['policies', 'p50 ms', 'p99 ms', 'CPU µs each', 'auth RSS MB', 'growth MB'],
        rows: [
          checksRow('1', one),
          checksRow(formatCount(policies), first),
          checksRow('after the edits', last),
        ],
        notes: [
          `of one user, spread over the hosts of all policies; services run with ${imageFlags.join(' ')}, as in images`,
        ],
      },
      {
        title: 'Limits of the design',
        head: ['what', 'limit', 'measured', 'within it'],
        rows: [
          ['enforced, p99', '1,000 ms', `${formatCount(p99)} ms`, within(p99 < limits.enforcedP99Ms)],
          [
            'growth of the auth server',
            '100 MB',
            `${formatMegabytes(mostGrowth)} MB`,
            within(mostGrowth < limits.growthBytes),
          ],
        ],
      },
    ],
  };
}

function toCheck(host: string, path: string, token?: string): Uint8Array {
  const headers = {
    ...{ ':authority': host, ':method': 'GET', ':path': path, 'x-forwarded-for': '203.0.113.7' },
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const http = { method: 'GET', headers, path, host, scheme: 'https', protocol: 'HTTP/1.1' };
  return toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes: { request: { http } } }));
}

/** Sends checks until one without a token has this code; resolves to the time. */
async function untilCode({ check }: Bed, host: string, type: AccessType, path = openPath): Promise<number> {
  const deadline = monotonicMs() + enforcedTimeoutMs;
  for (;;) {
    const code = await check(host, path);
    const now = monotonicMs();
    if (code === codes[type]) return now;
    if (now > deadline) throw new Error(`a check of ${host} has the code ${code} instead of ${codes[type]}`);
    await delay(probeEveryMs);
  }
}

/** Waits until services/xds has written the status of each policy. */
async function untilStatuses({ xds }: Bed, policies: number): Promise<void> {
  const written = String.raw`tollgate_xds_status_writes_total\{result="written"\}`;
  const isDone = async () => (await readMetric(xds, written)) >= policies;
  await awaitUntil(isDone, { what: 'statuses of all policies', timeoutMs: statusesTimeoutMs, everyMs: 250 });
}

interface Checks {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
  readonly rssBytes: number;
}

async function measureChecks({ auth, token, durationMs, check }: Bed, policies: number): Promise<Checks> {
  const hosts = Array.from({ length: 1_000 }, (_, index) =>
    hostOf((index * 7) % (policies * routesPerPolicy)),
  );
  const [host = ''] = hosts;
  const code = await check(host, openPath, token);
  if (code !== 0) throw new Error(`a check of a user has the code ${code}`);
  const before = readProcessUsage(auth.pid);
  const { p50Ms, p99Ms, requests } = await runGrpcLoad({
    ...{ address: auth.extAuthzAddress, path: checkPath },
    messages: hosts.map((one) => toCheck(one, `${openPath}/7`, token)),
    ...{ connections: 4, streams: 1, durationMs, rate: checksPerSecond },
  });
  const after = readProcessUsage(auth.pid);
  const cpuMicros = ((after.cpuMs - before.cpuMs) * 1_000) / requests;
  return { p50Ms, p99Ms, cpuMicros, rssBytes: after.rssBytes };
}

interface Edits {
  readonly samplesMs: readonly number[];
  /** CPU time of an edit. */
  readonly cpuMs: Readonly<Record<'auth' | 'xds' | 'limiter', number>>;
}

async function measureEdits(
  { auth, xds, limiter }: Bed,
  run: () => Promise<readonly number[]>,
): Promise<Edits> {
  const read = () => [auth, xds, limiter].map(({ pid }) => readProcessUsage(pid).cpuMs);
  const before = read();
  const samplesMs = await run();
  const [ofAuth = 0, ofXds = 0, ofLimiter = 0] = read().map(
    (cpuMs, index) => (cpuMs - (before[index] ?? 0)) / samplesMs.length,
  );
  return { samplesMs, cpuMs: { auth: ofAuth, xds: ofXds, limiter: ofLimiter } };
}

async function editPolicies(
  bed: Bed,
  policies: readonly number[],
  type: AccessType,
): Promise<readonly number[]> {
  const samplesMs: number[] = [];
  for (const policy of policies) {
    const doneAt = await bed.objects.editPolicy(policy, type);
    samplesMs.push((await untilCode(bed, hostOf(policy * routesPerPolicy), type)) - doneAt);
  }
  return samplesMs;
}

/** A number of policies, spread over all of them. */
const spread = (count: number, policies: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => Math.floor((index * policies) / count));

/** Adds a path to the first route of policies that deny: elsewhere, the default access applies. */
async function editRoutes(bed: Bed, policies: readonly number[]): Promise<readonly number[]> {
  const samplesMs: number[] = [];
  for (const policy of policies) {
    const route = policy * routesPerPolicy;
    const doneAt = await bed.objects.editRoute(route, addedPath);
    samplesMs.push((await untilCode(bed, hostOf(route), 'Denied', addedPath)) - doneAt);
  }
  return samplesMs;
}

const addedPath = '/added';
