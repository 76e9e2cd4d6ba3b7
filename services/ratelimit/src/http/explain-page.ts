import {
  type DescriptorExplanation,
  type ExplainRequest,
  type Explanation,
  explain,
  formatExplanation,
} from '@tollgate/rules/explain';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors, invalidRequest } from '../errors.ts';
import { readJsonRequest } from '../ratelimit/messages.ts';
import {
  checkRequest,
  type LimitOverride,
  parseDescriptorText,
  type RateLimitRequest,
  unitOfWire,
} from '../ratelimit/request.ts';
import { baseUrl, type DebugPage, sendText, wantsJson } from './debug-page.ts';
import {
  type CountedLimit,
  type CounterNow,
  formatCounter,
  type ReadCountersDeps,
  readCounters,
} from './explain-counters.ts';

/** What is asked where no rule is there to ask about. */
const placeholder = 'domain=mydomain&descriptor=key=value,key2=value2';

/** A query of `/explain` that finds the first rule in force, so that the command shown to people does something. */
function exampleQuery(rules: RuleSet | undefined): string {
  for (const [domain, root] of rules?.domains ?? []) {
    const entries = firstRule(root);
    if (entries !== undefined) {
      return `domain=${quotable(domain)}&descriptor=${entries.join(',')}`;
    }
  }
  return placeholder;
}

/** The entries that lead to the first rule below a node, as `key=value`; undefined when there is none to ask for in a URL. */
function firstRule(node: RuleNode): string[] | undefined {
  for (const child of node.children?.values() ?? []) {
    const entry = entryOf(child);
    const rest = child.match === undefined ? firstRule(child) : [];
    if (entry !== undefined && rest !== undefined) {
      return [entry, ...rest];
    }
  }
  return undefined;
}

/** Any value does where the rule names none. `,` and `=` part entries, so that what contains them needs POST. */
function entryOf({ composite, keyLength }: RuleNode): string | undefined {
  const parts = [composite.slice(0, keyLength), composite.slice(keyLength + 1) || 'value'];
  return parts.some((part) => /[,=]/.test(part)) ? undefined : parts.map(quotable).join('=');
}

/** A part of a URL that can stand between the single quotes of a shell. */
function quotable(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27').replaceAll('%2F', '/');
}

/** A request in the query of a URL, or what is wrong with it. */
type ExplainQuery =
  | { readonly ok: true; readonly request: ExplainRequest }
  | { readonly ok: false; readonly problem: string };

const known = ['domain', 'descriptor'];

/** Reads `domain=…&descriptor=key=value,key2=value2`; `descriptor` may come several times. */
function readExplainQuery(query: URLSearchParams): ExplainQuery {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) {
    return wrong(`unknown parameter '${unknown}': there are ${known.join(' and ')}`);
  }
  const domains = query.getAll('domain');
  const [domain = ''] = domains;
  if (domains.length !== 1 || domain === '') {
    return wrong('exactly one domain is needed: domain=…');
  }
  const descriptors = [];
  for (const text of query.getAll('descriptor')) {
    const parsed = parseDescriptorText(text);
    if (!parsed.ok) {
      return wrong(`${parsed.problem}; values with ',' or '=' can be sent as JSON with POST`);
    }
    descriptors.push({ entries: parsed.entries });
  }
  return descriptors.length === 0
    ? wrong('at least one descriptor is needed: descriptor=key=value,key2=value2')
    : { ok: true, request: { domain, descriptors } };
}

function wrong(problem: string): ExplainQuery {
  return { ok: false, problem };
}

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
