import {
  type DescriptorExplanation,
  type Explanation,
  explain,
  formatExplanation,
} from '@tollgate/rules/explain';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors, invalidRequest } from '../errors.ts';
import {
  type LimitOverride,
  parseJsonRequest,
  type RateLimitRequest,
  unitFromWire,
  validateRequest,
} from '../ratelimit/request.ts';
import { type DebugPage, getBaseUrl, sendText, wantsJson } from './debug-page.ts';
import {
  type CounterContext,
  type CounterLimit,
  type CounterState,
  formatCounter,
  readCounters,
} from './explain-counters.ts';
import { getExampleQuery, parseExplainQuery } from './explain-query.ts';

/** The explanation by rules, the overrides, and the counters of both. */
interface ExplainResult extends Explanation {
  readonly descriptors: readonly (DescriptorExplanation & { readonly counter?: CounterState })[];
  /** Descriptors with an override; `index` is the one in the request. */
  readonly overrides: readonly OverrideExplanation[];
}

interface OverrideExplanation {
  readonly index: number;
  readonly requestsPerUnit: number;
  readonly unit: string;
  /** Absent when the domain has no rules, which counts nothing. */
  readonly counter?: CounterState;
}

/** Each descriptor may be compared with many rules. */
const maxDescriptors = 100;

/**
 * `/explain`: which rule a request matches, why others do not, and the counters. It counts nothing.
 */
export function explainPage(rules: () => RuleSet | undefined, counters: CounterContext): DebugPage {
  const respond = async (
    request: FastifyRequest,
    reply: FastifyReply,
    explained: RateLimitRequest,
  ): Promise<FastifyReply> => {
    const result = await explainRequest(rules(), explained, counters);
    return wantsJson(request) ? reply.send(result) : sendText(reply, formatResult(result));
  };
  return {
    path: '/explain',
    help: 'which rule matches a request, why the nearest others do not, and the counters (GET shows the usage)',
    get(request, reply) {
      const query = new URL(request.url, 'http://localhost').searchParams;
      if (query.size === 0) {
        return sendText(reply, formatUsage(getBaseUrl(request), getExampleQuery(rules())));
      }
      const parsed = parseExplainQuery(query);
      if (!parsed.ok) {
        throw errors.malformed_request({ message: parsed.problem });
      }
      return respond(request, reply, { ...parsed.request, hitsAddend: 0 });
    },
    post: (request, reply) => respond(request, reply, parseJsonRequest(request.body)),
  };
}

async function explainRequest(
  rules: RuleSet | undefined,
  request: RateLimitRequest,
  context: CounterContext,
): Promise<ExplainResult> {
  const { domain, descriptors } = request;
  requireExplainable(request);
  if (rules === undefined) {
    throw errors.no_configuration();
  }
  // Descriptors with an override match no rule, so they replace none either.
  const withoutOverride = descriptors.filter(({ limit }) => limit === undefined);
  const explained = explain(rules, {
    domain,
    descriptors: withoutOverride.map(({ entries }) => ({
      // Without the other fields of the protobuf messages.
      entries: entries.map(({ key, value }) => ({ key, value })),
    })),
  });
  const overrides = descriptors.flatMap(({ limit, entries }, index) =>
    limit === undefined ? [] : [{ index, entries, ...toOverride(limit) }],
  );
  const limits = [
    ...explained.descriptors.map((descriptor) => getRuleLimit(domain, descriptor)),
    ...overrides.map(({ entries, unit, requestsPerUnit }) =>
      unit === undefined || !explained.domainFound ? undefined : { domain, entries, unit, requestsPerUnit },
    ),
  ];
  const counters = await readByLimit(context, limits);
  return {
    ...explained,
    descriptors: explained.descriptors.map((descriptor, i) => ({ ...descriptor, ...counters[i] })),
    overrides: overrides.map(({ index, requestsPerUnit, unit = 'unknown' }, i) => ({
      index,
      requestsPerUnit,
      unit,
      ...counters[explained.descriptors.length + i],
    })),
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

/** The counter of each limit; undefined where there is no limit. */
async function readByLimit(
  context: CounterContext,
  limits: readonly (CounterLimit | undefined)[],
): Promise<readonly ({ readonly counter: CounterState } | undefined)[]> {
  const states = await readCounters(
    context,
    limits.filter((limit) => limit !== undefined),
  );
  let next = 0;
  return limits.map((limit) => {
    const counter = limit === undefined ? undefined : states[next++];
    return counter && { counter };
  });
}

function toOverride({ requestsPerUnit, unit }: LimitOverride) {
  return { requestsPerUnit, unit: unitFromWire(unit) };
}

/** The limit of a descriptor that has a counter. */
function getRuleLimit(
  domain: string,
  { outcome, rule, entries }: DescriptorExplanation,
): CounterLimit | undefined {
  if (outcome !== 'limited' || rule?.unit === undefined) return undefined;
  const { unit, requestsPerUnit = 0, keyEntries = entries } = rule;
  return { domain, entries: keyEntries, unit, requestsPerUnit };
}

function formatResult(result: ExplainResult): string {
  const overrides = result.overrides.map(
    ({ index, requestsPerUnit, unit, counter }) =>
      `  descriptors[${index}]: its own limit of ${requestsPerUnit} per ${unit} overrides any rule` +
      `${result.domainFound ? '' : ', if the domain had rules'}` +
      `${counter === undefined ? '' : `\n    ${formatCounter(counter)}`}`,
  );
  const rules = formatExplanation(result, (index) => {
    const counter = result.descriptors[index]?.counter;
    return counter && formatCounter(counter);
  });
  return `${[rules, ...overrides].join('\n')}\n`;
}

function formatUsage(base: string, query: string): string {
  return `Which rule matches a request, why the nearest others do not, and the counters. Nothing is counted.

  curl '${base}/explain?${query}'

descriptor=key=value,key2=value2 may be repeated. A request in JSON, as for /json, can be sent with POST:

  curl '${base}/explain' -d '{"domain":"…","descriptors":[{"entries":[{"key":"…","value":"…"}]}]}'

With -H 'Accept: application/json' the response is JSON.
`;
}
