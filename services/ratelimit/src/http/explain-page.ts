import { getErrorMessage } from '@tollgate/kit/errors';
import {
  type DescriptorExplanation,
  type Explanation,
  explain,
  formatExplanation,
} from '@tollgate/rules/explain';
import { type Entry, matchEntries } from '@tollgate/rules/match';
import type { RuleSet } from '@tollgate/rules/rule-set';
import { type CounterState, type PeekContext, peekCounters } from '../decision/peek.ts';
import {
  invalidRequest,
  type LimitOverride,
  parseJsonRequest,
  type RateLimitRequest,
  unitFromWire,
  validateRequest,
} from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import { getExampleQuery, parseExplainQuery } from './explain-query.ts';
import {
  type DebugPage,
  getBaseUrl,
  type HttpReply,
  type HttpRequest,
  jsonReply,
  textReply,
  wantsJson,
} from './router.ts';

/** Leaves out who set it and why: the port has no authentication. */
type ExplainedCounter = Omit<CounterState, 'override'> & { readonly override?: { readonly until: string } };

/** The explanation by rules, the limits of descriptors themselves, and the counters of both. */
interface ExplainResult extends Explanation {
  readonly descriptors: readonly (DescriptorExplanation & { readonly counter?: ExplainedCounter })[];
  /** Descriptors with their own limit; `index` is the one in the request. */
  readonly overrides: readonly OverrideExplanation[];
  /** Whether the counters would refuse the request now; absent without counters. */
  readonly wouldBeRefused?: boolean;
  /** Why there are no counters: the store does not answer. */
  readonly counterError?: string;
}

interface OverrideExplanation {
  readonly index: number;
  readonly requestsPerUnit: number;
  readonly unit: string;
  /** Path of the rule that says how the limit is counted; absent where none matches. */
  readonly rule?: string;
  /** Absent when the domain has no rules, which counts nothing. */
  readonly counter?: ExplainedCounter;
}

/** Each descriptor may be compared with many rules. */
const maxDescriptors = 100;

/**
 * `/explain`: which rule a request matches, why others do not, and the counters. It counts nothing.
 */
export function explainPage(context: PeekContext): DebugPage {
  const { rules } = context.decisions;
  const respond = async (request: HttpRequest, explained: RateLimitRequest): Promise<HttpReply> => {
    const result = await explainRequest(context, explained);
    return wantsJson(request) ? jsonReply(result) : textReply(formatResult(result));
  };
  return {
    path: '/explain',
    help: 'which rule matches a request, why the nearest others do not, and the counters (GET shows the usage)',
    get(request) {
      const query = new URL(request.url, 'http://localhost').searchParams;
      if (query.size === 0) {
        return textReply(formatUsage(getBaseUrl(request), getExampleQuery(rules())));
      }
      const parsed = parseExplainQuery(query);
      if (!parsed.ok) {
        throw errors.malformed_request({ message: parsed.problem });
      }
      return respond(request, { ...parsed.request, hitsAddend: 0 });
    },
    post: (request) => respond(request, parseJsonRequest(request.body)),
  };
}

async function explainRequest(context: PeekContext, request: RateLimitRequest): Promise<ExplainResult> {
  const { domain, descriptors } = request;
  requireExplainable(request);
  const rules = context.decisions.rules();
  if (rules === undefined) {
    throw errors.no_configuration();
  }
  // A limit of its own neither replaces others nor is replaced.
  const indexes = [...descriptors.keys()].filter((index) => descriptors[index]?.limit === undefined);
  const explained = explain(rules, {
    domain,
    descriptors: indexes.map((index) => ({
      // The other fields of the protobuf messages are left out.
      entries: (descriptors[index]?.entries ?? []).map(({ key, value }) => ({ key, value })),
    })),
  });
  const { counters, ...others } = await readCounters(context, request);
  return {
    ...explained,
    descriptors: explained.descriptors.map((descriptor, i) => ({
      ...descriptor,
      ...counters[indexes[i] ?? 0],
    })),
    overrides: descriptors.flatMap(({ limit, entries }, index) =>
      limit === undefined
        ? []
        : [{ index, ...describeOwnLimit(limit), ...findRule(rules, domain, entries), ...counters[index] }],
    ),
    ...others,
  };
}

function requireExplainable(request: RateLimitRequest): void {
  const problem = validateRequest(request);
  if (problem !== undefined) {
    throw invalidRequest(problem);
  }
  if (request.descriptors.length > maxDescriptors) {
    throw errors.malformed_request({
      message: `at most ${maxDescriptors} descriptors are explained at once`,
    });
  }
}

function describeOwnLimit({ requestsPerUnit, unit }: LimitOverride) {
  return { requestsPerUnit, unit: unitFromWire(unit) ?? 'unknown' };
}

function findRule(
  rules: RuleSet,
  domain: string,
  entries: readonly Entry[],
): Pick<OverrideExplanation, 'rule'> {
  const root = rules.domains.get(domain);
  const match = root && matchEntries(root, entries);
  return match === undefined ? {} : { rule: match.rule.path };
}

interface ExplainedCounters {
  /** Counters by descriptor of the request. */
  readonly counters: readonly { readonly counter?: ExplainedCounter }[];
  readonly wouldBeRefused?: boolean;
  readonly counterError?: string;
}

/** Never rejects: an explanation is useful without counters. */
async function readCounters(context: PeekContext, request: RateLimitRequest): Promise<ExplainedCounters> {
  try {
    const { descriptors, wouldBeRefused } = await peekCounters(context, request);
    return {
      counters: descriptors.map(({ counter }) =>
        counter === undefined ? {} : { counter: omitAuthor(counter) },
      ),
      wouldBeRefused,
    };
  } catch (error) {
    return { counters: [], counterError: getErrorMessage(error) };
  }
}

function omitAuthor({ override, ...counter }: CounterState): ExplainedCounter {
  return override === undefined ? counter : { ...counter, override: { until: override.until } };
}

function formatResult(result: ExplainResult): string {
  const overrides = result.overrides.map(
    ({ index, requestsPerUnit, unit, rule, counter }) =>
      `  descriptors[${index}]: its own limit of ${requestsPerUnit} per ${unit}` +
      `${rule === undefined ? ', and no rule matches' : ` instead of that of rule ${rule}, which says how it is counted`}` +
      `${result.domainFound ? '' : ': without effect, because the domain has no rules'}` +
      `${counter === undefined ? '' : `\n    ${formatCounter(counter)}`}`,
  );
  const rules = formatExplanation(result, (index) => {
    const counter = result.descriptors[index]?.counter;
    return counter && formatCounter(counter);
  });
  return `${[rules, ...overrides, formatOutcome(result)].join('\n')}\n`;
}

function formatOutcome({ counterError, wouldBeRefused }: ExplainResult): string {
  if (counterError !== undefined) return `  counters cannot be read: ${counterError}`;
  return `  the request would be ${wouldBeRefused === true ? 'refused' : 'allowed'} now`;
}

function formatUsage(base: string, query: string): string {
  return `Which rule matches a request, why the nearest others do not, and the counters. Nothing is counted.

  curl '${base}/explain?${query}'

descriptor=key=value,key2=value2 may be repeated. A request in JSON, as for /json, can be sent with POST:

  curl '${base}/explain' -d '{"domain":"…","descriptors":[{"entries":[{"key":"…","value":"…"}]}]}'

With -H 'Accept: application/json' the response is JSON.
`;
}

function formatCounter(counter: ExplainedCounter): string {
  const { key, count, burst, requestsPerUnit, remaining, over, resetSeconds, override, warning } = counter;
  const limit = `limit ${burst ?? requestsPerUnit}${override ? ` by an override until ${override.until}` : ''}`;
  const state = `${count} now, ${limit}, ${remaining} remaining, reset in ${resetSeconds} s`;
  return `counter ${key}: ${state}${over ? '; over the limit now' : ''}${warning === undefined ? '' : `\n    warning: ${warning}`}`;
}
