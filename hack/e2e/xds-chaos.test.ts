import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import type { ServiceProcess } from '@tollgate/testkit/services';
import t from 'tap';
import { type SeededRandom, seededRandom } from '../../services/xds/test/support/seeded-random.ts';
import { manifest } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');
const seed = Number(process.env.CHAOS_SEED ?? 27);
const seconds = Number(process.env.CHAOS_SECONDS ?? 60);
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
    const replicas = [await startReplica(t, kube, 'replica-1'), await startReplica(t, kube, 'replica-2')];
    const limiters = await Promise.all(
      replicas.map(async ({ address }) => {
        const limiter = await startLimiter(address, {
          CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
          XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
          XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
        });
        t.teardown(limiter.stop);
        return limiter;
      }),
    );
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
    const processes = { replicas, limiters, starting };
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
    const passed = t.strictSame(failure === undefined ? violations : [failure, ...violations], []);
    if (!passed) t.comment(`CHAOS_SEED=${seed}\n${trace.join('\n')}`);
    t.ok(watching.rounds() > 10, 'the invariant was checked');
  },
  // The history is in etcd only, so that a compaction ends watches with 410.
  { args: ['--watch-cache=false'] },
);

interface Processes {
  readonly replicas: readonly ServiceProcess[];
  readonly limiters: readonly LimiterProcess[];
  /** Processes that are not ready: a limiter has no rules yet. */
  readonly starting: Set<ServiceProcess>;
}

type Action = () => Promise<string>;

/** Edits of objects, the frequent ones several times. They are repeated until they succeed. */
function makeEdits(
  kube: KubeApiserver,
  { random, model }: { readonly random: SeededRandom; readonly model: Model },
): [Action, ...Action[]] {
  let version = 0;
  const apply = (name: string, text: string) =>
    awaitUntil(() => kube.apply(text).then(() => true), { what: `${name} to be applied` });
  const edit: Action = async () => {
    const name = random.pick(names);
    version += 1;
    // It may arrive before kubectl ends.
    model.add(name, version);
    await apply(name, manifest({ name, domain: name, limits: { user: version } }));
    return `${name} = ${version}`;
  };
  const breakObject: Action = async () => {
    const name = random.pick(names);
    if (model.newest(name) === undefined || !(await isStored(kube, name))) return `${name}: not stored yet`;
    version += 1;
    await apply(name, invalidManifest(name, version));
    return `${name} invalid`;
  };
  const remove: Action = async () => {
    // One object stays: an empty list is held back.
    const name = names[1 + random.below(names.length - 1)] ?? names[1];
    model.add(name, undefined);
    const isDeleted = async () =>
      (await kube.kubectl(['delete', 'rlc', name, '--ignore-not-found'])).code === 0;
    await awaitUntil(isDeleted, { what: `${name} to be deleted` });
    return `${name} deleted`;
  };
  return [edit, edit, edit, edit, breakObject, breakObject, breakObject, remove];
}

/** Faults, each with its end. */
function makeFaults(
  kube: KubeApiserver,
  { random, processes }: { readonly random: SeededRandom; readonly processes: Processes },
): [Action, ...Action[]] {
  const restart = async (what: string, process: ServiceProcess): Promise<string> => {
    const isKilled = random.below(2) === 0;
    processes.starting.add(process);
    await (isKilled ? process.kill() : process.stop());
    await delay(random.below(2_000));
    await process.restart();
    processes.starting.delete(process);
    return `${what} ${isKilled ? 'killed' : 'stopped'} and started`;
  };
  const restartOne = (what: string, all: readonly ServiceProcess[]) => (): Promise<string> => {
    const index = random.below(all.length);
    const process = all[index];
    if (process === undefined) throw new Error(`there is no ${what} ${index}`);
    return restart(`${what} ${index}`, process);
  };
  const restartApiserver: Action = async () => {
    await kube.killApiserver();
    await delay(random.below(3_000));
    await kube.startApiserver();
    return 'API server killed and started';
  };
  const expire: Action = async () => {
    await kube.compact();
    await kube.killApiserver();
    await kube.startApiserver();
    return 'history compacted, API server restarted';
  };
  const { replicas, limiters } = processes;
  return [restartOne('replica', replicas), restartOne('limiter', limiters), restartApiserver, expire];
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
function invalidManifest(name: string, requestsPerUnit: number): string {
  const descriptor = { key: 'user', rateLimit: { unit: 'Hour', requestsPerUnit } };
  const parsed = JSON.parse(manifest({ name, domain: name, limits: {} }));
  return JSON.stringify({ ...parsed, spec: { domain: name, descriptors: [descriptor, descriptor] } });
}

/** Whether the last valid version is stored: an invalid edit may replace another one unseen. */
async function isStored(kube: KubeApiserver, name: string): Promise<boolean> {
  const { code, stdout } = await kube.kubectl(['get', 'rlc', name, '-o', 'json']);
  if (code !== 0) return false;
  const { metadata, status } = JSON.parse(stdout);
  return status?.observedGeneration === metadata?.generation && status?.lastValid !== undefined;
}
