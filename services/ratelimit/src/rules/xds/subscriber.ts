import type { Logger } from '@tollgate/kit/logger';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { statsNames } from '../../stats/names.ts';
import type { Counter, Gauge, StatsRegistry } from '../../stats/registry.ts';
import type { RuleLoad } from '../rule-store.ts';
import { type CompiledResources, compileResources, emptyResources } from './compile-resources.ts';
import { type DiscoveredSet, decodeResponse, encodeAck, encodeNack } from './discovery.ts';

interface SubscriberOptions {
  readonly mergeDomains: boolean;
  readonly server: string;
  readonly onLoad: (load: RuleLoad) => void;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  readonly signal: AbortSignal;
}

/** 100,000 rules take most of a second, and Envoy's default timeout is 20 ms. */
const sliceMs = 5;

/**
 * Delays the reply to a server that resends a rejected version, which would otherwise loop a
 * thousand times a second.
 */
const repeatedRejectionDelayMs = 1_000;

/** The client's side of the protocol: the active set, across all streams. */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #accepted: Counter;
  readonly #rejected: Counter;
  readonly #isCurrent: Gauge;
  /** Undefined until a first set is accepted. */
  #active: { readonly version: string; readonly compiled: CompiledResources } | undefined;
  #rejectedVersion: string | undefined;

  constructor(options: SubscriberOptions) {
    const { stats } = options;
    this.#options = options;
    this.#accepted = stats.counter(statsNames.xdsAccepted);
    this.#rejected = stats.counter(statsNames.xdsRejected);
    this.#isCurrent = stats.gauge(statsNames.configCurrent);
  }

  /**
   * Activates or rejects a response, and returns the ACK or NACK.
   *
   * @throws Error when the bytes are not a response, or the signal aborts.
   */
  async handle(response: Uint8Array): Promise<Uint8Array> {
    const { sleep, signal } = this.#options;
    const decoded = await this.#run(decodeResponse(response));
    const { version, nonce } = decoded.ok ? decoded.set : decoded;
    if (version === this.#rejectedVersion) await sleep(repeatedRejectionDelayMs, { signal });
    return decoded.ok ? this.#apply(decoded.set) : this.#reject(version, nonce, decoded.problem);
  }

  async #apply({ version, nonce, resources }: DiscoveredSet): Promise<Uint8Array> {
    const { mergeDomains, onLoad, logger, server } = this.#options;
    const before = this.#active?.compiled ?? emptyResources;
    const result = await this.#run(compileResources(resources, before, { mergeDomains }));
    if (!result.ok) {
      if (result.reason === 'undecodable') return this.#reject(version, nonce, result.problem);
      onLoad({ ok: false, problems: result.problems });
      return this.#reject(version, nonce, formatProblems(result.problems));
    }
    const { compiled, rules, warnings, compiledDomains, changed } = result;
    // A new stream starts with the set that is active already, which is not loaded again.
    if (changed || this.#active === undefined) {
      onLoad({ ok: true, rules, warnings });
      logger.info({ server, version, compiledDomains }, 'configuration accepted');
      if (rules.domains.size === 0)
        logger.warn({ server, version }, 'configuration is empty, nothing is limited');
    }
    this.#active = { version, compiled };
    this.#rejectedVersion = undefined;
    this.#accepted.value += 1;
    // Also when the active set is resent after a rejected one, which loads nothing.
    this.#isCurrent.value = 1;
    return encodeAck(version, nonce);
  }

  #reject(version: string, nonce: string, problem: string): Uint8Array {
    const { logger, server } = this.#options;
    this.#rejectedVersion = version;
    this.#rejected.value += 1;
    this.#isCurrent.value = 0;
    const kept = this.#active?.version ?? '';
    const message = truncate(problem);
    logger.error({ server, version, kept, problem: message }, 'configuration rejected');
    return encodeNack(kept, nonce, message);
  }

  #run<T>(steps: Steps<T>): Promise<T> {
    return runInSlices(untilAborted(steps, this.#options.signal), { sliceMs });
  }
}

/** The same steps, stopped once the signal aborts. */
function* untilAborted<T>(steps: Steps<T>, signal: AbortSignal): Steps<T> {
  for (;;) {
    signal.throwIfAborted();
    const step = steps.next();
    if (step.done === true) return step.value;
    yield;
  }
}

/**
 * Bounds of the text in the status of a resource; a broken generator makes more problems than
 * anyone reads.
 */
const maxFormattedProblems = 20;
const maxTextLength = 4_096;

function formatProblems(problems: readonly RuleProblem[]): string {
  const lines = problems.slice(0, maxFormattedProblems).map(formatProblem);
  const more = problems.length - lines.length;
  return truncate([...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n'));
}

function truncate(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
}
