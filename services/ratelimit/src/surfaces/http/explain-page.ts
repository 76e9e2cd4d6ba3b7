import { type Explanation, explain, formatExplanation } from '@tollgate/rules/explain';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { checkRequest } from '../../domain/check-request.ts';
import type { LimitOverride, RateLimitRequest } from '../../domain/rate-limit-request.ts';
import { unitOfWire } from '../../domain/wire-unit.ts';
import { errors, invalidRequest } from '../../errors.ts';
import { baseUrl, type DebugPage, sendText, wantsJson } from './debug-page.ts';
import { exampleQuery } from './example-query.ts';
import { readExplainQuery } from './explain-query.ts';
import { readJsonRequest } from './json-request.ts';

/** What this page answers: the explanation by rules, and the descriptors that no rule decides. */
interface ExplainAnswer extends Explanation {
  /** Descriptors with a limit of their own, which counts in the place of any rule; `index` is that in the request. */
  readonly overrides: readonly {
    readonly index: number;
    readonly requestsPerUnit: number;
    readonly unit: string;
  }[];
}

/** Nobody reads more, and each may look at many rules. */
const maxDescriptors = 100;

/** `/explain`: which rule a request matches and why others do not. It counts nothing. */
export function explainPage(rules: () => RuleSet | undefined): DebugPage {
  const answer = (request: FastifyRequest, reply: FastifyReply, question: RateLimitRequest): FastifyReply => {
    const answered = explainRequest(rules(), question);
    return wantsJson(request) ? reply.send(answered) : sendText(reply, formatAnswer(answered));
  };
  return {
    path: '/explain',
    help: 'which rule matches a request, and why the nearest others do not (GET says how to ask)',
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

function explainRequest(rules: RuleSet | undefined, question: RateLimitRequest): ExplainAnswer {
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
  const overrides = descriptors.flatMap(({ limit }, index) =>
    limit === undefined ? [] : [overrideOf(index, limit)],
  );
  return {
    ...explain(rules, {
      domain,
      descriptors: ruled.map(({ entries }) => ({
        // The messages of the wire carry fields of the library beside these.
        entries: entries.map(({ key, value }) => ({ key, value })),
      })),
    }),
    overrides,
  };
}

function overrideOf(index: number, { requestsPerUnit, unit }: LimitOverride) {
  return { index, requestsPerUnit, unit: unitOfWire(unit) ?? 'unknown' };
}

function formatAnswer(answer: ExplainAnswer): string {
  const overrides = answer.overrides.map(
    ({ index, requestsPerUnit, unit }) =>
      `  descriptors[${index}]: its own limit of ${requestsPerUnit} per ${unit} counts in the place of any rule` +
      `${answer.domainFound ? '' : ', if the domain had rules'}`,
  );
  return `${[formatExplanation(answer), ...overrides].join('\n')}\n`;
}

function usage(base: string, query: string): string {
  return `Which rule matches a request, and why the nearest others do not. Nothing is counted.

  curl '${base}/explain?${query}'

descriptor=key=value,key2=value2 may come several times. A request in JSON, as /json takes it, can be sent with POST:

  curl '${base}/explain' -d '{"domain":"…","descriptors":[{"entries":[{"key":"…","value":"…"}]}]}'

With -H 'Accept: application/json' the answer is JSON.
`;
}
