import {
  type DescriptorExplanation,
  type Explanation,
  explain,
  formatExplanation,
} from '@tollgate/rules/explain';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { checkRequest } from '../../domain/check-request.ts';
import type { LimitOverride, RateLimitRequest } from '../../domain/rate-limit-request.ts';
import { unitOfWire } from '../../domain/wire-unit.ts';
import { errors, invalidRequest } from '../../errors.ts';
import { baseUrl, type DebugPage, sendText, wantsJson } from './debug-page.ts';
import { exampleQuery } from './example-query.ts';
import {
  type CountedLimit,
  type CounterNow,
  formatCounter,
  type ReadCountersDeps,
  readCounters,
} from './explain-counters.ts';
import { readExplainQuery } from './explain-query.ts';
import { readJsonRequest } from './json-request.ts';

/** What this page answers: the explanation by rules, the descriptors that no rule decides, and the counters of both. */
interface ExplainAnswer extends Explanation {
  readonly descriptors: readonly (DescriptorExplanation & { readonly counter?: CounterNow })[];
  /** Descriptors with a limit of their own, which counts in the place of any rule; `index` is that in the request. */
  readonly overrides: readonly OverrideExplanation[];
}

interface OverrideExplanation {
  readonly index: number;
  readonly requestsPerUnit: number;
  readonly unit: string;
  /** Missing when the domain has no rules: then nothing is counted. */
  readonly counter?: CounterNow;
}

/** Nobody reads more, and each may look at many rules. */
const maxDescriptors = 100;

/** `/explain`: which rule a request matches, why others do not, and the counters now. It counts nothing. */
export function explainPage(rules: () => RuleSet | undefined, counters: ReadCountersDeps): DebugPage {
  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    question: RateLimitRequest,
  ): Promise<FastifyReply> => {
    const answered = await explainRequest(rules(), question, counters);
    return wantsJson(request) ? reply.send(answered) : sendText(reply, formatAnswer(answered));
  };
  return {
    path: '/explain',
    help: 'which rule matches a request, why the nearest others do not, and the counters now (GET says how to ask)',
    get(request, reply) {
      const query = new URL(request.url, 'http://localhost').searchParams;
      if (query.size === 0) {
        return sendText(reply, usage(baseUrl(request), exampleQuery(rules())));
      }
      const read = readExplainQuery(query);
      if (!read.ok) {
        throw errors.malformed_request({ message: read.problem });
      }
      return answer(request, reply, { ...read.request, hitsAddend: 0 });
    },
    post: (request, reply) => answer(request, reply, readJsonRequest(request.body)),
  };
}

async function explainRequest(
  rules: RuleSet | undefined,
  question: RateLimitRequest,
  counters: ReadCountersDeps,
): Promise<ExplainAnswer> {
  const problem = checkRequest(question);
  if (problem !== undefined) {
    throw invalidRequest(problem);
  }
  if (question.descriptors.length > maxDescriptors) {
    throw errors.malformed_request({
      message: `at most ${maxDescriptors} descriptors are explained at once`,
    });
  }
  if (rules === undefined) {
    throw errors.no_configuration();
  }
  const { domain, descriptors } = question;
  // Descriptors with a limit of their own are not matched with rules, so they replace none either.
  const ruled = descriptors.filter(({ limit }) => limit === undefined);
  const explained = explain(rules, {
    domain,
    descriptors: ruled.map(({ entries }) => ({
      // The messages of the wire carry fields of the library beside these.
      entries: entries.map(({ key, value }) => ({ key, value })),
    })),
  });
  const overrides = descriptors.flatMap(({ limit, entries }, index) =>
    limit === undefined ? [] : [{ index, entries, ...limitOf(limit) }],
  );
  const limits = [
    ...explained.descriptors.map((descriptor) => ruleLimit(domain, descriptor)),
    ...overrides.map(({ entries, unit, requestsPerUnit }) =>
      unit === undefined || !explained.domainFound ? undefined : { domain, entries, unit, requestsPerUnit },
    ),
  ];
  const counted = limits.filter((limit) => limit !== undefined);
  const now = new Map((await readCounters(counters, counted)).map((counter, i) => [counted[i], counter]));
  const counterOf = (index: number) => {
    const counter = now.get(limits[index]);
    return counter === undefined ? undefined : { counter };
  };
  return {
    ...explained,
    descriptors: explained.descriptors.map((descriptor, i) => ({ ...descriptor, ...counterOf(i) })),
    overrides: overrides.map(({ index, requestsPerUnit, unit = 'unknown' }, i) => ({
      index,
      requestsPerUnit,
      unit,
      ...counterOf(explained.descriptors.length + i),
    })),
  };
}

function limitOf({ requestsPerUnit, unit }: LimitOverride) {
  return { requestsPerUnit, unit: unitOfWire(unit) };
}

/** The limit whose counter a descriptor adds to; undefined when it adds to none. */
function ruleLimit(
  domain: string,
  { outcome, rule, entries }: DescriptorExplanation,
): CountedLimit | undefined {
  if (outcome !== 'limited' || rule?.unit === undefined) return undefined;
  const { unit, requestsPerUnit = 0, keyEntries = entries } = rule;
  return { domain, entries: keyEntries, unit, requestsPerUnit };
}

function formatAnswer(answer: ExplainAnswer): string {
  const overrides = answer.overrides.map(
    ({ index, requestsPerUnit, unit, counter }) =>
      `  descriptors[${index}]: its own limit of ${requestsPerUnit} per ${unit} counts in the place of any rule` +
      `${answer.domainFound ? '' : ', if the domain had rules'}` +
      `${counter === undefined ? '' : `\n    ${formatCounter(counter)}`}`,
  );
  const rules = formatExplanation(answer, (index) => {
    const counter = answer.descriptors[index]?.counter;
    return counter && formatCounter(counter);
  });
  return `${[rules, ...overrides].join('\n')}\n`;
}

function usage(base: string, query: string): string {
  return `Which rule matches a request, why the nearest others do not, and the counters now. Nothing is counted.

  curl '${base}/explain?${query}'

descriptor=key=value,key2=value2 may come several times. A request in JSON, as /json takes it, can be sent with POST:

  curl '${base}/explain' -d '{"domain":"…","descriptors":[{"entries":[{"key":"…","value":"…"}]}]}'

With -H 'Accept: application/json' the answer is JSON.
`;
}
