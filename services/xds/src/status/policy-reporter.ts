import { isDeepStrictEqual } from 'node:util';
import { runSteps, type Schedule, scheduleByTimer } from '@tollgate/kit/time';
import type { Condition } from '../catalog/validation-result.ts';
import { toValues } from '../gateway-api/objects.ts';
import { unprogrammedReasons, type XdsMetrics } from '../metrics.ts';
import type { PolicyReporter, PolicyResult } from '../policies/policy-result.ts';
import type { RolloutClients } from '../policies/rollout.ts';
import { type ClientGroup, groupClients, indexSubscribers, type Subscribers } from './client-groups.ts';
import { listClasses, type ReplicaReport, ReportedClients } from './client-report.ts';
import { countLimiters, toDomainStatus } from './domain-status.ts';
import type { PolicyObservation } from './policy-conditions.ts';
import { findAuthServerAnswer, toLimiterAnswer, toProgrammed } from './policy-programmed.ts';
import { formatTarget, readStoredPolicyStatus } from './policy-status.ts';
import type { ReportExchange } from './reporter.ts';

/** Receives the observations of policies that have changed. */
interface PolicyObserver {
  put(observation: PolicyObservation): void;
  forget(id: string): void;
}

export interface PolicyStatusReporterOptions {
  readonly metrics: Pick<XdsMetrics, 'unprogrammedPolicies'>;
  readonly authServers: RolloutClients;
  readonly limiters: RolloutClients;
  /** Undefined when there is only one replica. */
  readonly reports?: ReportExchange | undefined;
  /** The status that an object has. Default none. */
  readonly stored?: (id: string) => unknown;
  readonly observers?: readonly PolicyObserver[];
  /** How long clients of an earlier process may take to reconnect. */
  readonly startGraceMs?: number;
  readonly schedule?: Schedule;
}

interface Known {
  readonly result: PolicyResult;
  /** Whether auth servers and limiters get this version. */
  readonly isPublished: boolean;
  /** Generation that all clients have acknowledged once. */
  readonly acknowledged: number | undefined;
  readonly isSeen: boolean;
}

interface PolicyClients {
  /** Auth servers. */
  readonly groups: readonly ClientGroup[];
  /** Limiters. */
  readonly subscribers: Subscribers;
}

/** Clients that are connected to any replica; `acknowledged` have the version in force. */
interface ClientCount {
  readonly connected: number;
  readonly acknowledged: number;
}

export interface PolicyClientCounts {
  readonly authServers: ClientCount;
  /** Undefined for a policy without limits. */
  readonly limiters: ClientCount | undefined;
}

/** Acknowledgements of many clients arrive together. */
const delayMs = 100;

const defaultStartGraceMs = 5_000;

/** Names in the report of a replica, which shares a ConfigMap with others. */
const maxReportedSeen = 200;

const notPublished: Condition = { status: 'False', reason: 'Pending', message: 'not served yet' };

/**
 * Keeps up to date whether the clients of all replicas have acknowledged each policy, and whether
 * auth servers had checks with it. A version that was acknowledged once stays so, as for
 * RateLimitConfigs: clients that join get it before they are ready.
 */
export class PolicyStatusReporter implements PolicyReporter {
  readonly #options: PolicyStatusReporterOptions;
  readonly #schedule: Schedule;
  readonly #known = new Map<string, Known>();
  readonly #observed = new Map<string, PolicyObservation>();
  // Messages call it an auth server before its name.
  readonly #authServersElsewhere = new ReportedClients({ unnamed: '' });
  readonly #limitersElsewhere = new ReportedClients({ unnamed: 'a limiter' });
  readonly #stops: readonly ((() => void) | undefined)[];
  /** Clients of all replicas as of the last report. */
  #clients: PolicyClients | undefined;
  #isStarting: boolean;
  #cancelReport: (() => void) | undefined;

  constructor(options: PolicyStatusReporterOptions) {
    const { authServers, limiters, reports, schedule = scheduleByTimer } = options;
    const { startGraceMs = defaultStartGraceMs } = options;
    this.#options = options;
    this.#schedule = schedule;
    this.#isStarting = startGraceMs > 0;
    const changed = () => this.changed();
    this.#stops = [
      this.#isStarting
        ? schedule(startGraceMs, () => {
            this.#isStarting = false;
            this.changed();
          })
        : undefined,
      authServers.clients.onChange(changed),
      limiters.clients.onChange(changed),
      reports?.onChange(changed),
      authServers.snapshots.onChange((snapshot) => this.#authServersElsewhere.remember(snapshot)),
      limiters.snapshots.onChange((snapshot) => this.#limitersElsewhere.remember(snapshot)),
    ];
  }

  put(result: PolicyResult): void {
    const known = this.#known.get(result.id);
    const { acknowledged, isSeen } =
      known === undefined ? this.#readStored(result) : keepObserved(known, result);
    this.#known.set(result.id, { result, isPublished: false, acknowledged, isSeen });
    this.changed();
  }

  forget(id: string): void {
    this.#known.delete(id);
    this.#observed.delete(id);
    for (const observer of this.#options.observers ?? []) observer.forget(id);
    this.changed();
  }

  published(): void {
    for (const [id, known] of this.#known)
      if (!known.isPublished) this.#known.set(id, { ...known, isPublished: true });
    this.changed();
  }

  /** Adds names of policies with which an auth server had checks; others are ignored. */
  addSeen(names: unknown): void {
    if (!Array.isArray(names)) return;
    for (const name of names) {
      const known = typeof name === 'string' ? this.#known.get(name) : undefined;
      if (known === undefined || known.isSeen) continue;
      this.#known.set(known.result.id, { ...known, isSeen: true });
      this.changed();
    }
  }

  /** Whether clients have a policy; undefined before the first report. */
  programmedOf(id: string): Condition | undefined {
    return this.#observed.get(id)?.programmed;
  }

  /** The last observation of a policy; undefined before the first report. */
  observationOf(id: string): PolicyObservation | undefined {
    return this.#observed.get(id);
  }

  /** Clients of all replicas that get a policy, as of the last report. */
  countClients({ namespace, name }: Pick<PolicyResult, 'namespace' | 'name'>): PolicyClientCounts {
    const { authServers, limiters } = this.#options;
    const { groups = [], subscribers } = this.#clients ?? {};
    const version = authServers.snapshots.current()?.resources.get(namespace)?.version;
    const rules = limiters.snapshots.current()?.resources.get(`policy/${namespace}/${name}`);
    const has = ({ accepted }: ClientGroup) => version !== undefined && accepted?.get(namespace) === version;
    const sum = (some: readonly ClientGroup[]) => some.reduce((total, { size }) => total + size, 0);
    return {
      authServers: { connected: sum(groups), acknowledged: sum(groups.filter(has)) },
      limiters: rules && subscribers && countLimiters(rules, subscribers),
    };
  }

  /** Policies that other replicas have to hear of: those whose status does not have it yet. */
  reportSeen(): readonly string[] {
    const names: string[] = [];
    for (const [id, { isSeen }] of this.#known) {
      if (names.length === maxReportedSeen) break;
      if (isSeen && !readStoredPolicyStatus(this.#options.stored?.(id)).isEnforced) names.push(id);
    }
    return names;
  }

  /** Schedules a report after a change of policies or clients. */
  changed(): void {
    this.#cancelReport ??= this.#schedule(delayMs, () => {
      this.#cancelReport = undefined;
      this.#report();
    });
  }

  close(): void {
    this.#cancelReport?.();
    this.#cancelReport = () => undefined;
    for (const stop of this.#stops) stop?.();
  }

  #readStored({ id, generation, inForce }: PolicyResult): Pick<Known, 'acknowledged' | 'isSeen'> {
    const status = this.#options.stored?.(id);
    const { programmed, isEnforced } = readStoredPolicyStatus(status);
    return {
      acknowledged: programmed === generation ? generation : undefined,
      isSeen: isEnforced && toValues(status).target === formatTarget(inForce?.spec),
    };
  }

  #report(): void {
    const { authServers, limiters, reports, observers = [] } = this.#options;
    if (reports?.others?.length !== 0) reports?.changed();
    const others = reports?.others ?? [];
    for (const { report } of others) this.addSeen(report.seenPolicies);
    const ofAuthServers = others.flatMap(({ report, ...replica }) =>
      report.authServers === undefined ? [] : [{ ...replica, report: report.authServers }],
    );
    const groups = listGroups(authServers, this.#authServersElsewhere, ofAuthServers);
    const subscribers = runSteps(
      indexSubscribers(
        listGroups(limiters, this.#limitersElsewhere, others),
        (limiterClass, domain) =>
          limiters.snapshots.current()?.classes.get(limiterClass)?.has(domain) === true,
      ),
    );
    this.#clients = { groups, subscribers };
    for (const [id, known] of this.#known) {
      const observation = this.#observe(known, groups, subscribers);
      if (isDeepStrictEqual(observation, this.#observed.get(id))) continue;
      this.#observed.set(id, observation);
      for (const observer of observers) observer.put(observation);
    }
    this.#countUnprogrammed();
  }

  #countUnprogrammed(): void {
    const reasons = [...this.#observed.values()].map(({ programmed }) => programmed.reason);
    for (const reason of unprogrammedReasons) {
      const { length } = reasons.filter((one) => one === reason);
      this.#options.metrics.unprogrammedPolicies.set({ reason }, length);
    }
  }

  #observe(known: Known, groups: readonly ClientGroup[], subscribers: Subscribers): PolicyObservation {
    const { result, isPublished, acknowledged } = known;
    const { id, namespace, generation } = result;
    const wasAcknowledged = acknowledged === generation;
    if (!isPublished && !wasAcknowledged) return this.#toObservation(known, notPublished);
    const { authServers, limiters } = this.#options;
    const resource = limiters.snapshots.current()?.resources.get(`policy/${namespace}/${result.name}`);
    const version = authServers.snapshots.current()?.resources.get(namespace)?.version;
    const policy = { name: `${namespace}/${result.name}`, namespace, version };
    const programmed = toProgrammed({
      authServers: findAuthServerAnswer(policy, groups),
      limiters: toLimiterAnswer(resource && toDomainStatus(resource, subscribers)),
      wasAcknowledged,
      isStarting: this.#isStarting,
    });
    if (programmed.status === 'True' && !wasAcknowledged)
      this.#known.set(id, { ...known, acknowledged: generation });
    return this.#toObservation(known, programmed);
  }

  #toObservation({ result, isSeen }: Known, programmed: Condition): PolicyObservation {
    const isProvisional = this.#isStarting && programmed.reason === 'Pending';
    return { result, isSeen, programmed, isProvisional };
  }
}

/** Keeps what is known of the same content: the object may be another one of the same name. */
function keepObserved(known: Known, { inForce }: PolicyResult): Pick<Known, 'acknowledged' | 'isSeen'> {
  const spec = known.result.inForce?.spec;
  return {
    acknowledged: isDeepStrictEqual(spec, inForce?.spec) ? known.acknowledged : undefined,
    isSeen: known.isSeen && formatTarget(spec) === formatTarget(inForce?.spec),
  };
}

/** The clients of one kind that are connected to any replica. */
function listGroups(
  { clients, snapshots }: RolloutClients,
  elsewhere: ReportedClients,
  others: readonly ReplicaReport[],
): readonly ClientGroup[] {
  for (const limiterClass of [undefined, ...listClasses(others)]) {
    const snapshot = snapshots.currentOf(limiterClass);
    if (snapshot !== undefined) elsewhere.remember(snapshot);
  }
  return [...groupClients(clients.settled()), ...elsewhere.groups(others)];
}
