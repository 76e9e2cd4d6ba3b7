import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import type { ServiceProcess, XdsServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import { startTcpProxy, type TcpProxy } from '@tollgate/testkit/tcp-proxy';
import t, { type Test } from 'tap';
import { type SeededRandom, seededRandom } from '../../services/xds/test/support/seeded-random.ts';
import { limitsPath, manifest } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';
import { type AdjustableClock, makeAdjustableClock } from './support/stepped-clock.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');
const seed = Number(process.env.CHAOS_SEED ?? 27);
const seconds = Number(process.env.CHAOS_SECONDS ?? 60);
/** Long enough for a bookmark, which the API server sends about once a minute. */
const quietMs = 70_000;
const names = ['chaos-0', 'chaos-1', 'chaos-2', 'chaos-3', 'chaos-4', 'chaos-5'] as const;

/** Requests of each valid version of an object, in order; undefined where it was deleted. */
type History = (number | undefined)[];

/**
 * Each limiter enforces the last valid version of each object at any time. Versions take a moment
 * to arrive, so that a limiter may enforce an older one, but no older one than it did before.
 */
class Model {
  readonly histories = new Map<string, History>(names.map((name) => [name, [undefined]]));
  /** The newest version that a limiter has enforced, as an index, by limiter and object. */
  readonly #seen = new Map<string, number>();

  add(name: string, requests: number | undefined): void {
    this.histories.get(name)?.push(requests);
  }

  newest(name: string): number | undefined {
    return this.histories.get(name)?.at(-1);
  }

  /** Violations of the invariant by what a limiter enforces. */
  check(limiter: string, enforced: ReadonlyMap<string, number>): string[] {
    return names.flatMap((name) => {
      const history = this.histories.get(name) ?? [];
      const key = `${limiter} ${name}`;
      const from = this.#seen.get(key) ?? 0;
      const index = history.indexOf(enforced.get(name), from);
      if (index < 0)
        return [`${key}: enforces ${enforced.get(name)}, expected one of ${history.slice(from)}`];
      this.#seen.set(key, index);
      return [];
    });
  }
}

kubeSuite(
  t,
  `each limiter enforces the last valid version of each object, whatever fails (CHAOS_SEED=${seed})`,
  async (t, kube) => {
    await kube.apply(await readFile(crdFile, 'utf8'));
    const model = new Model();
    const { replicas, limiters, webhook } = await startControlPlane(t, kube);
    model.add(names[0], 1_000_000);
    await kube.apply(manifest({ name: names[0], domain: names[0], limits: { user: 1_000_000 } }));
    const startedMs = performance.now();
    const trace: string[] = [];
    const starting = new Set<ServiceProcess>();
    const violations: string[] = [];
    const checkAll = async () => {
      for (const [index, limiter] of limiters.entries()) {
        if (starting.has(limiter)) continue;
        const enforced = await readLimits(limiter).catch(() => undefined);
        if (enforced !== undefined && !starting.has(limiter))
          violations.push(...model.check(`limiter-${index}`, enforced));
      }
    };
    const watching = watchInvariant(checkAll, () => violations.length > 0);
    const processes = { replicas, limiters, starting, webhook };
    // One each, so that the order of the actions does not depend on time.
    const [edits, faults] = [seededRandom(seed), seededRandom(seed + 1)];
    const isOver = () => performance.now() - startedMs > seconds * 1_000 || violations.length > 0;
    const repeat = async (actions: [Action, ...Action[]], random: SeededRandom) => {
      while (!isOver()) {
        const done = await random.pick(actions)();
        trace.push(`${((performance.now() - startedMs) / 1_000).toFixed(1)} s: ${done}`);
        await delay(random.below(500));
      }
    };
    await Promise.all([
      repeat(makeEdits(kube, { random: edits, model }), edits),
      repeat(makeFaults(kube, { random: faults, processes }), faults),
    ]);
    const isSettled = async () => {
      const all = await Promise.all(limiters.map(readLimits));
      return all.every((enforced) => names.every((name) => enforced.get(name) === model.newest(name)));
    };
    const settle = () =>
      awaitUntil(isSettled, { what: 'all limiters to enforce the newest valid versions' }).then(
        () => undefined,
        String,
      );
    const failure = violations.length > 0 ? undefined : await settle();
    await watching.stop();
    t.comment(`${trace.length} actions, ${watching.rounds()} checks of all limiters`);
    t.comment(countKinds(trace));
    if (failure === undefined && violations.length === 0) await awaitStatuses(kube);
    const passed = t.strictSame(failure === undefined ? violations : [failure, ...violations], []);
    if (!passed) t.comment(`CHAOS_SEED=${seed}\n${trace.join('\n')}`);
    t.ok(watching.rounds() > 10, 'the invariant was checked');
  },
);

/** A replica, whose clock can be stepped, with the port of its webhook. */
interface Replica {
  readonly process: XdsServer;
  readonly clock: AdjustableClock;
  readonly admissionPort: number;
}

/** Two replicas with a limiter each, and the webhook of one of them behind a proxy. */
async function startControlPlane(t: Test, kube: KubeApiserver) {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { certFile, keyFile } = certificates.server;
  const start = async (name: string): Promise<Replica> => {
    const clock = makeAdjustableClock(t);
    const admissionPort = await freePort();
    const process = await startReplica(t, kube, name, {
      ...clock.settings,
      XDS_GRPC_TLS_CERT: certFile,
      XDS_GRPC_TLS_KEY: keyFile,
      XDS_ADMISSION_ENABLED: 'true',
      XDS_ADMISSION_HOST: '127.0.0.1',
      XDS_ADMISSION_PORT: String(admissionPort),
    });
    return { process, clock, admissionPort };
  };
  const replicas = [await start('replica-1'), await start('replica-2')];
  const limiters = await Promise.all(
    replicas.map(async ({ process }) => {
      const limiter = await startLimiter(process.address, {
        CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
        CONFIG_GRPC_XDS_SERVER_TLS_CACERT: certificates.ca.certFile,
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
      });
      t.teardown(limiter.stop);
      return limiter;
    }),
  );
  const webhook = await startTcpProxy(replicas[0]?.admissionPort ?? 0);
  t.teardown(webhook.stop);
  await kube.apply(webhookConfiguration(webhook.port, certificates.ca.cert));
  return { replicas, limiters, webhook };
}

/** As the chart has it, at an address of this machine. */
const webhookConfiguration = (port: number, authority: string): string =>
  JSON.stringify({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'tollgate-xds' },
    webhooks: [
      {
        name: 'validate.ratelimit.tollgate.dev',
        admissionReviewVersions: ['v1'],
        clientConfig: {
          url: `https://localhost:${port}/validate`,
          caBundle: Buffer.from(authority).toString('base64'),
        },
        rules: [
          {
            apiGroups: ['ratelimit.tollgate.dev'],
            apiVersions: ['*'],
            resources: ['ratelimitconfigs'],
            operations: ['CREATE', 'UPDATE'],
          },
        ],
        failurePolicy: 'Ignore',
        timeoutSeconds: 2,
        sideEffects: 'None',
      },
    ],
  });

interface Processes {
  readonly replicas: readonly Replica[];
  readonly limiters: readonly LimiterProcess[];
  /** Processes that are not ready: a limiter has no rules yet. */
  readonly starting: Set<ServiceProcess>;
  /** Between the API server and the webhook of a replica. */
  readonly webhook: TcpProxy;
}

/** Resolves to what was done: the kind, a colon and the rest. */
type Action = () => Promise<string>;

/** Edits of objects, the frequent ones several times. They are repeated until they succeed. */
function makeEdits(
  kube: KubeApiserver,
  { random, model }: { readonly random: SeededRandom; readonly model: Model },
): [Action, ...Action[]] {
  let version = 0;
  /** Names of the objects, by domain: a rename changes them. */
  const objects = new Map<string, string>(names.map((name) => [name, name]));
  const nameOf = (domain: string) => objects.get(domain) ?? domain;
  /** A replica may review a valid object before it has seen the last edit, but not for long. */
  const apply = (domain: string, requests: number) => {
    const text = manifest({ name: nameOf(domain), domain, limits: { user: requests } });
    return awaitUntil(() => kube.apply(text).then(() => true), { what: `${domain} to be applied` });
  };
  const edit: Action = async () => {
    const domain = random.pick(names);
    version += 1;
    // It may arrive before kubectl ends.
    model.add(domain, version);
    await apply(domain, version);
    return `edit: ${nameOf(domain)} = ${version}`;
  };
  const breakObject: Action = async () => {
    const domain = random.pick(names);
    const name = nameOf(domain);
    if (model.newest(domain) === undefined || !(await isStored(kube, name)))
      return `nothing: ${name} not stored yet`;
    version += 1;
    const text = invalidManifest({ name, domain, requestsPerUnit: version });
    const outcome = await awaitUntil(
      () =>
        kube.apply(text).then(
          () => 'stored',
          (error: Error) => {
            if (/denied the request: spec\.descriptors\[1\]\.key/.test(error.message)) return 'denied';
            throw error;
          },
        ),
      { what: `${name} to be applied or denied` },
    );
    return `invalid edit ${outcome}: ${name}`;
  };
  const erase = (domain: string) => {
    const isDeleted = async () =>
      (await kube.kubectl(['delete', 'rlc', nameOf(domain), '--ignore-not-found'])).code === 0;
    return awaitUntil(isDeleted, { what: `${nameOf(domain)} to be deleted` });
  };
  // One object stays: an empty list is held back.
  const pickErasable = () => names[1 + random.below(names.length - 1)] ?? names[1];
  const remove: Action = async () => {
    const domain = pickErasable();
    model.add(domain, undefined);
    await erase(domain);
    return `deletion: ${nameOf(domain)}`;
  };
  const rename: Action = async () => {
    const domain = pickErasable();
    const from = nameOf(domain);
    version += 1;
    model.add(domain, undefined);
    model.add(domain, version);
    await erase(domain);
    objects.set(domain, from === domain ? `${domain}-renamed` : domain);
    await apply(domain, version);
    return `rename: ${from} to ${nameOf(domain)} = ${version}`;
  };
  return [edit, edit, edit, edit, breakObject, breakObject, breakObject, remove, rename];
}

/** Faults, each with its end, but for those of the webhook and the clocks. */
function makeFaults(
  kube: KubeApiserver,
  { random, processes }: { readonly random: SeededRandom; readonly processes: Processes },
): [Action, ...Action[]] {
  const { replicas, limiters, webhook } = processes;
  const restart = async (what: string, process: ServiceProcess): Promise<string> => {
    const isKilled = random.below(2) === 0;
    processes.starting.add(process);
    await (isKilled ? process.kill() : process.stop());
    await delay(random.below(2_000));
    await process.restart();
    processes.starting.delete(process);
    return `${what} ${isKilled ? 'killed' : 'stopped'} and started`;
  };
  const pick = <T>(items: readonly T[]): { readonly index: number; readonly item: T } => {
    const index = random.below(items.length);
    const item = items[index];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return { index, item };
  };
  const restartReplica: Action = async () => {
    const { index, item } = pick(replicas);
    return `${await restart('replica', item.process)}: ${index}`;
  };
  const restartLimiter: Action = async () => {
    const { index, item } = pick(limiters);
    return `${await restart('limiter', item)}: ${index}`;
  };
  const restartApiserver: Action = async () => {
    await kube.killApiserver();
    await delay(random.below(3_000));
    await kube.startApiserver();
    return 'API server killed and started:';
  };
  const expire: Action = async () => {
    // Watches then resume from a bookmark.
    const isQuiet = seconds * 1_000 > 4 * quietMs && random.below(8) === 0;
    if (isQuiet) await delay(quietMs);
    await kube.compact();
    await kube.killApiserver();
    await kube.startApiserver();
    return `history compacted${isQuiet ? ' after a quiet minute' : ''}, API server restarted:`;
  };
  const breakWebhook: Action = async () => {
    const mode = random.pick(['refuse', 'hold']);
    webhook.set(mode === 'refuse' ? 'refuse' : 'hold');
    return `webhook down: ${mode}`;
  };
  const repairWebhook: Action = async () => {
    const { index, item } = pick(replicas);
    webhook.redirect(item.admissionPort);
    webhook.set('forward');
    return `webhook back: replica ${index}`;
  };
  const stepClock: Action = async () => {
    const { index, item } = pick(replicas);
    const stepMs = (random.below(2) === 0 ? 1 : -1) * random.below(2 * 3_600_000);
    item.clock.step(item.process, stepMs);
    return `clock step: replica ${index} by ${Math.round(stepMs / 1_000)} s`;
  };
  return [
    ...[restartReplica, restartReplica, restartLimiter, restartApiserver, expire],
    ...[breakWebhook, repairWebhook, repairWebhook, stepClock],
  ] as [Action, ...Action[]];
}

/** Such as `12 edit, 3 deletion`. */
function countKinds(trace: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const line of trace) {
    const kind = /^\S+ s: ([^:]+):/.exec(line)?.[1] ?? line;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
}

/** Every object has the status of its newest version. */
async function awaitStatuses(kube: KubeApiserver): Promise<void> {
  const isCurrent = async (): Promise<boolean> => {
    // Parsed boundary: the shape is that of the CRD.
    const { items } = (await kube.get(limitsPath('default'))) as {
      items: { metadata: { generation: number }; status?: { observedGeneration?: number } }[];
    };
    return items.every(({ metadata, status }) => status?.observedGeneration === metadata.generation);
  };
  await awaitUntil(isCurrent, { what: 'the statuses of the newest versions' });
}

/** Checks all the time, until stopped or violated. */
function watchInvariant(check: () => Promise<void>, isViolated: () => boolean) {
  let isStopped = false;
  let rounds = 0;
  const run = async () => {
    for (; !isStopped && !isViolated(); rounds += 1) {
      await check();
      await delay(50);
    }
  };
  const running = run();
  return {
    rounds: () => rounds,
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}

/** Requests by domain. */
async function readLimits(limiter: LimiterProcess): Promise<ReadonlyMap<string, number>> {
  const lines = await limiter.rules();
  return new Map(
    lines.flatMap((line) => {
      const [, domain, requests] = /^([^.]+)\.user: .*requests_per_unit=(\d+)/.exec(line) ?? [];
      return domain === undefined ? [] : [[domain, Number(requests)] as const];
    }),
  );
}

/** Valid for the API server, and refused by the loader. */
function invalidManifest({
  name,
  domain,
  requestsPerUnit,
}: {
  readonly name: string;
  readonly domain: string;
  readonly requestsPerUnit: number;
}): string {
  const descriptor = { key: 'user', rateLimit: { unit: 'Hour', requestsPerUnit } };
  const parsed = JSON.parse(manifest({ name, domain, limits: {} }));
  return JSON.stringify({ ...parsed, spec: { domain, descriptors: [descriptor, descriptor] } });
}

/** Whether the last valid version is stored: an invalid edit may replace another one unseen. */
async function isStored(kube: KubeApiserver, name: string): Promise<boolean> {
  const { code, stdout } = await kube.kubectl(['get', 'rlc', name, '-o', 'json']);
  if (code !== 0) return false;
  const { metadata, status } = JSON.parse(stdout);
  return status?.observedGeneration === metadata?.generation && status?.lastValid !== undefined;
}
