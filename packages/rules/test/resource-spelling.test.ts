import { toBinary } from '@bufbuild/protobuf';
import { runSteps } from '@tollgate/kit/time';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { compileRules } from '@tollgate/rules/compile';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { readResource } from '@tollgate/rules/read-resource';
import { resourceFields } from '@tollgate/rules/resource-shape';
import { decodeMessage, toMessage } from '@tollgate/rules/rule-message';
import t from 'tap';
import type { limitFields } from '../src/definition/fields.ts';
import { resourceSpelling } from '../src/definition/spelling.ts';
import { manifestOf } from './helpers/resource-cases.ts';

/** Values of each field, first one without a problem. */
const samples: Readonly<Record<Exclude<keyof typeof limitFields, 'name'>, readonly unknown[]>> = {
  unit: ['Minute', undefined, 'Month'],
  period: [undefined, '90s', '500ms'],
  timeZone: [undefined, 'Europe/Berlin', 'Nowhere'],
  requestsPerUnit: [10, undefined, 0],
  unlimited: [undefined, true],
  algorithm: [undefined, 'FixedWindow', 'SlidingWindow', 'TokenBucket', 'Concurrency'],
  burst: [undefined, 0, 5],
  lease: [undefined, '1%', '50%'],
  charge: [undefined, 'Always', 'Allowed'],
  maxDebt: [undefined, 5],
  onStoreFailure: [undefined, 'Allow', 'Deny'],
  replaces: [undefined, [{ name: 'self' }]],
};

/** Limits that differ from a plain one in up to three fields, in all combinations. */
function* combine(
  fields: readonly (readonly [string, readonly unknown[]])[],
  changes = 3,
): Generator<Readonly<Record<string, unknown>>> {
  const [first, ...rest] = fields;
  if (first === undefined) {
    yield {};
    return;
  }
  const [name, values] = first;
  for (const value of changes === 0 ? values.slice(0, 1) : values) {
    for (const others of combine(rest, value === values[0] ? changes : changes - 1)) {
      yield { [name]: value, ...others };
    }
  }
}

/** Stores that cannot do all, whose limiters find problems that the xDS server does not. */
const stores = [{}, { forMemcached: true, notAtomic: 'memcached' }];

/** Problems and warnings about a spec, as the xDS server and limiters report them. */
function* problemsOf(spec: object): Generator<RuleProblem> {
  const read = readResource(manifestOf(spec), 'shop/web');
  if (!read.ok) {
    yield* read.problems;
    return;
  }
  const message = toBinary(RateLimitConfigSchema, toMessage(read.document));
  const documents = [read.document, runSteps(decodeMessage(message))];
  for (const document of documents) {
    for (const store of stores) {
      const compiled = runSteps(compileRules([document], { mergeDomains: false, ...store }));
      yield* compiled.ok ? compiled.warnings : compiled.problems;
    }
  }
}

const perMinute = { unit: 'Minute', requestsPerUnit: 20 };

/** The specs of one limit, as a descriptor with another below and as one of the flat list. */
function* specsOf(rateLimit: object): Generator<object> {
  const domain = { domain: 'shop/web', onStoreFailure: 'Local', atomic: true };
  yield {
    ...domain,
    descriptors: [
      {
        key: 'a',
        rateLimit: { ...rateLimit, name: 'self' },
        descriptors: [{ key: 'b', rateLimit: perMinute }],
      },
    ],
  };
  yield { ...domain, limits: [{ name: 'self', match: [{ key: 'a' }, { key: 'b' }], rateLimit }] };
}

const fileOnly = Object.entries(resourceSpelling).filter(([file, resource]) => file !== resource);
const fileOnlyWords = new RegExp(`\\b(${fileOnly.map(([file]) => file).join('|')})\\b`);

/** The part of a resource that a path leads to; undefined when there is no such field. */
function partOf(path: string): string | undefined {
  const listed = { descriptors: 'descriptor', limits: 'limit', match: 'match', replaces: 'replaced' };
  let part: keyof typeof resourceFields = 'manifest';
  for (const step of path.split('.')) {
    const name = step.replace(/\[\d+\]$/, '');
    const fields: readonly string[] = resourceFields[part];
    if (!fields.includes(name)) return undefined;
    if (name in listed) part = listed[name as keyof typeof listed] as keyof typeof resourceFields;
    else if (name === 'rateLimit') part = part === 'limit' ? 'limitRateLimit' : 'rateLimit';
    else if (name === 'spec') part = 'spec';
  }
  return part;
}

t.test('no problem of a RateLimitConfig has a spelling of rule files, and each names a field', async (t) => {
  const wrong = new Set<string>();
  const fields = new Set<string>();
  for (const rateLimit of combine(Object.entries(samples))) {
    for (const spec of specsOf(rateLimit)) {
      for (const problem of problemsOf(spec)) {
        const { message, hint = '', field } = problem;
        if (fileOnlyWords.test(`${message} ${hint}`)) wrong.add(formatProblem(problem));
        if (field === undefined) continue;
        fields.add(field.replace(/.*\./, ''));
        if (partOf(field) === undefined) wrong.add(formatProblem(problem));
      }
    }
  }
  t.same([...wrong], []);
  const without = Object.keys(samples).filter((name) => !fields.has(name));
  t.same(without, ['unlimited'], 'what contradicts unlimited is the problem');
});
