import type { Logger } from '@tollgate/kit/logger';
import { runInSlices, type Steps } from '@tollgate/kit/steps';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { statsNames } from '../../stats/names.ts';
import type { StatsRegistry } from '../../stats/registry.ts';
import type { RuleLoad } from '../rule-store.ts';
import { type CompiledResources, compileResources, nothingCompiled } from './compile-resources.ts';
import { acknowledgement, type DiscoveredSet, readResponse, rejection } from './discovery.ts';

/** What a person reads in the status of a resource; more than this is a broken generator's. */
const maxProblemsTold = 20;
const maxTextLength = 4_096;

/** The problems of a rejected set as one text for the server: one line each, bounded in number and length. */
function rejectionText(problems: readonly RuleProblem[]): string {
  const told = problems.slice(0, maxProblemsTold).map(formatProblem);
  const more = problems.length - told.length;
  return boundedText([...told, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n'));
}

/** The text, cut where it is longer than a server is told. */
function boundedText(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
}

/** How sets are put in force. */
export interface SubscriberOptions {
  readonly mergeDomains: boolean;
  /** Label for the log. */
  readonly server: string;
}

/** What a subscriber takes. */
export interface SubscriberDeps {
  readonly onLoad: (load: RuleLoad) => void;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** Ends what is being compiled. */
  readonly signal: AbortSignal;
}

/** The client's part of the protocol: what is in force, over all streams. */
export interface Subscriber {
  /**
   * Puts a response in force or not, and answers the request that says so to the server.
   *
   * @throws Error when the bytes are no response, or the signal aborted.
   */
  take(response: Uint8Array): Promise<Uint8Array>;
}

/** 100,000 rules take most of a second, and Envoy gives up on an answer after 20 ms unless told otherwise. */
const sliceMs = 5;

/**
 * A server that sends a rejected version again at once would be answered, and logged, a thousand times a second. It gets
 * its answer after this time.
 */
const repeatedRejectionPauseMs = 1_000;

/** Makes a subscriber to which nothing was sent yet. */
export function createSubscriber(
  { mergeDomains, server }: SubscriberOptions,
  deps: SubscriberDeps,
): Subscriber {
  const { onLoad, stats, logger, signal } = deps;
  const accepted = stats.counter(statsNames.xdsAccepted);
  const rejected = stats.counter(statsNames.xdsRejected);
  const isCurrent = stats.gauge(statsNames.configCurrent);
  /** Undefined until a first set was accepted. */
  let inForce: { readonly version: string; readonly compiled: CompiledResources } | undefined;
  let rejectedVersion: string | undefined;

  const inSlices = <T>(work: Steps<T>): Promise<T> => runInSlices(untilAborted(work, signal), { sliceMs });

  async function apply({ version, nonce, resources }: DiscoveredSet): Promise<Uint8Array> {
    const before = inForce?.compiled ?? nothingCompiled;
    const result = await inSlices(compileResources(resources, before, { mergeDomains }));
    if (!result.ok) {
      if (result.reason === 'undecodable') return reject(version, nonce, result.problem);
      onLoad({ ok: false, problems: result.problems });
      return reject(version, nonce, rejectionText(result.problems));
    }
    const { compiled, rules, warnings, compiledDomains, changed } = result;
    // A new stream begins with the set that is in force already: there is nothing to load then.
    if (changed || inForce === undefined) {
      onLoad({ ok: true, rules, warnings });
      logger.info({ server, version, compiledDomains }, 'configuration accepted');
      if (rules.domains.size === 0)
        logger.warn({ server, version }, 'configuration is empty: nothing is limited');
    }
    inForce = { version, compiled };
    rejectedVersion = undefined;
    accepted.value += 1;
    // Also where the set in force was sent once more after one that was rejected: nothing is loaded then.
    isCurrent.value = 1;
    return acknowledgement(version, nonce);
  }

  function reject(version: string, nonce: string, problem: string): Uint8Array {
    rejectedVersion = version;
    rejected.value += 1;
    isCurrent.value = 0;
    const kept = inForce?.version ?? '';
    const message = boundedText(problem);
    logger.error({ server, version, kept, problem: message }, 'configuration rejected');
    return rejection(kept, nonce, message);
  }

  return {
    async take(response) {
      const read = await inSlices(readResponse(response));
      const { version, nonce } = read.ok ? read.set : read;
      if (version === rejectedVersion) await deps.sleep(repeatedRejectionPauseMs, { signal });
      return read.ok ? apply(read.set) : reject(version, nonce, read.problem);
    },
  };
}

/** The same work, given up at its next step once the signal aborts. */
function* untilAborted<T>(work: Steps<T>, signal: AbortSignal): Steps<T> {
  for (;;) {
    signal.throwIfAborted();
    const step = work.next();
    if (step.done === true) return step.value;
    yield;
  }
}
