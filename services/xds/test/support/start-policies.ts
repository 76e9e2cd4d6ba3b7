import { setImmediate as nextTurn } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { AccessConfigSchema } from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { Registry } from 'prom-client';
import type { Test } from 'tap';
import { type Client, ClientRegistry } from '../../src/ads/clients.ts';
import { type CommonSnapshot, SnapshotStore } from '../../src/catalog/snapshot.ts';
import type { ConfigObject, SourceEvent } from '../../src/catalog/source.ts';
import { PolicyLog } from '../../src/policies/policy-log.ts';
import { PolicyPipeline, type PolicyPipelineOptions } from '../../src/policies/policy-pipeline.ts';
import type { PolicyListener, PolicySource } from '../../src/policies/policy-source.ts';
import { makeLimiter } from './limiters.ts';
import { type ManualSchedule, manualSchedule } from './manual-schedule.ts';
import { recordingContext } from './recording-logger.ts';

/** A pipeline of policies whose source, time and clients are the test's. */
export interface TestPolicies {
  readonly pipeline: PolicyPipeline;
  readonly time: ManualSchedule;
  readonly lines: readonly Record<string, unknown>[];
  readonly registry: Registry;
  /** Published resources in order: `rules policy/shop/a`, `access shop`. */
  readonly published: readonly string[];
  readonly limiters: ClientRegistry;
  readonly authServers: ClientRegistry;
  tell(...events: readonly SourceEvent[]): void;
  /** All policies of the source. */
  replace(...objects: readonly ConfigObject[]): void;
  tellTargets(): void;
  /** Advances time until the events are applied. */
  settle(ms?: number): Promise<void>;
  /** Domains that limiters get; undefined before any. */
  rules(): readonly string[] | undefined;
  /** Policies that auth servers get, with their hosts; undefined before any. */
  access(): Readonly<Record<string, readonly string[]>> | undefined;
  /** The client acknowledges what it is sent now. */
  acknowledge(client: 'limiter' | 'auth server'): void;
}

export async function startPolicies(
  t: Test,
  {
    isReady = () => true,
    source,
    ...options
  }: Partial<Omit<PolicyPipelineOptions, 'source'>> & {
    /** Whether limiters get rules, since their other source was read. */
    readonly isReady?: () => boolean;
    readonly source?: Partial<PolicySource>;
  } = {},
): Promise<TestPolicies> {
  const time = manualSchedule();
  let nowMs = 0;
  const { context, lines, registry } = recordingContext({ nowMs: () => 5_000 });
  const limiters = { snapshots: new SnapshotStore(() => 0), clients: new ClientRegistry(time) };
  const authServers = { snapshots: new SnapshotStore(() => 0), clients: new ClientRegistry(time) };
  const published: string[] = [];
  const record = (kind: string) => (snapshot: CommonSnapshot) =>
    void published.push([kind, ...snapshot.resources.keys()].join(' '));
  limiters.snapshots.onChange(record('rules'));
  authServers.snapshots.onChange(record('access'));
  const told: { listener: PolicyListener | undefined } = { listener: undefined };
  const pipeline = new PolicyPipeline(context, {
    source: {
      start: async (listener) => {
        told.listener = listener;
      },
      close: async () => undefined,
      ...source,
    },
    limiters,
    authServers,
    setRules: (rules) => isReady() && limiters.snapshots.set(rules),
    reporters: [new PolicyLog(context.logger)],
    monotonicNow: () => nowMs,
    debounceMs: 5,
    allowEmpty: true,
    allowEmptyStart: true,
    sliceMs: Number.POSITIVE_INFINITY,
    schedule: time.schedule,
    ...options,
  });
  t.teardown(() => pipeline.close());
  await pipeline.start();
  const tell = (...events: readonly SourceEvent[]) => {
    for (const event of events) told.listener?.onEvent(event);
  };
  const clients = { limiter: limiters, 'auth server': authServers };
  return {
    pipeline,
    time,
    lines,
    registry,
    published,
    limiters: limiters.clients,
    authServers: authServers.clients,
    tell,
    replace: (...objects) => tell({ type: 'replaced', objects }),
    tellTargets: () => told.listener?.onTargets(),
    async settle(ms = 5) {
      nowMs += ms;
      time.advance(ms);
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    },
    rules: () => limiters.snapshots.current() && [...(limiters.snapshots.current()?.resources.keys() ?? [])],
    access: () => toHosts(authServers.snapshots.current()),
    acknowledge(kind) {
      const { snapshots, clients: registry } = clients[kind];
      registry.put(acknowledged(kind, snapshots.current()));
    },
  };
}

function acknowledged(kind: string, snapshot: CommonSnapshot | undefined): Client {
  const resources = [...(snapshot?.resources.values() ?? [])];
  const accepted = new Map(resources.map(({ name, version }) => [name, version]));
  return makeLimiter(kind, { accepted, acceptedVersion: snapshot?.version });
}

/** Hosts by policy. */
function toHosts(
  snapshot: CommonSnapshot | undefined,
): Readonly<Record<string, readonly string[]>> | undefined {
  if (snapshot === undefined) return undefined;
  const hosts: Record<string, readonly string[]> = {};
  for (const [namespace, { any }] of snapshot.resources) {
    const { policies } = fromBinary(AccessConfigSchema, fromBinary(AnySchema, any).value);
    for (const { name, spec, deniedHosts } of policies) {
      const id = `${namespace}/${name}`;
      const own = spec === '' ? deniedHosts.map((host) => `${host} denied`) : readHosts(spec);
      hosts[id] = [...(hosts[id] ?? []), ...own];
    }
  }
  return hosts;
}

// Parsed boundary: the specs of these tests have hosts.
const readHosts = (spec: string) => (JSON.parse(spec) as { hosts?: readonly string[] }).hosts ?? [];
