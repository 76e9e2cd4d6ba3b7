import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { runSteps } from '@tollgate/kit/time';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import t from 'tap';
import {
  type CompiledResources,
  compileResources,
  emptyResources,
} from '../../../src/rules/xds/subscriber.ts';

const unit = { hour: 3 };

function resource(domain: string, requestsPerUnit: number, key = 'k'): Uint8Array {
  const rateLimit = { unit: unit.hour, requestsPerUnit };
  return encoded({ name: `${domain}-${key}`, domain, descriptors: [{ key, rateLimit }] });
}

function encoded(config: MessageInitShape<typeof RateLimitConfigSchema>): Uint8Array {
  return toBinary(RateLimitConfigSchema, create(RateLimitConfigSchema, config));
}

function compile(
  resources: readonly Uint8Array[],
  before: CompiledResources = emptyResources,
  mergeDomains = false,
) {
  return runSteps(compileResources(resources, before, { mergeDomains }));
}

/** Compiles what is known to be good. */
function compiled(...given: Parameters<typeof compile>) {
  const result = compile(...given);
  if (!result.ok) throw new Error(JSON.stringify(result));
  return result;
}

t.test('with 10,000 resources one edit compiles one domain, and the others keep their rules', async (t) => {
  const resources = Array.from({ length: 10_000 }, (_, i) => resource(`d${i}`, 1));
  const first = compiled(resources);
  t.equal(first.compiledDomains, 10_000);

  const edited = resources.with(5_000, resource('d5000', 2));
  const second = compiled(edited, first.compiled);
  t.match(second, { compiledDomains: 1, changed: true, rules: { ruleCount: 10_000 } });
  t.equal(second.rules.domains.get('d4999'), first.rules.domains.get('d4999'), 'the same rules');
  const limit = second.rules.domains.get('d5000')?.children?.get('k')?.match?.rule.requestsPerUnit;
  t.equal(limit, 2);
});

t.test('the same set in another order compiles nothing and changes nothing', async (t) => {
  const first = compiled([resource('a', 1), resource('b', 1)]);
  const second = compiled([resource('b', 1), resource('a', 1)], first.compiled);
  t.match(second, { compiledDomains: 0, changed: false });
});

t.test('removing a domain changes the rules', async (t) => {
  const first = compiled([resource('a', 1), resource('b', 1)]);
  const second = compiled([resource('a', 1)], first.compiled);
  t.match(second, { compiledDomains: 0, changed: true, rules: { ruleCount: 1 } });
  t.same([...second.rules.domains.keys()], ['a']);
  t.match(compiled([], second.compiled), { changed: true, rules: { ruleCount: 0 } });
});

t.test('a domain that changes its name is compiled, even with the old resource back', async (t) => {
  const first = compiled([resource('a', 1)]);
  const second = compiled([resource('b', 1)], first.compiled);
  t.same([...second.rules.domains.keys()], ['b']);
  t.same([...compiled([resource('a', 1)], second.compiled).rules.domains.keys()], ['a']);
});

t.test('merged domains: an edit of one resource compiles all of its domain, in order', async (t) => {
  const first = compiled([resource('a', 1, 'x'), resource('a', 2, 'y'), resource('b', 3)], undefined, true);
  const second = compiled(
    [resource('a', 9, 'x'), resource('a', 2, 'y'), resource('b', 3)],
    first.compiled,
    true,
  );
  t.match(second, { compiledDomains: 1, rules: { ruleCount: 3 } });
  const children = second.rules.domains.get('a')?.children;
  t.same([...(children?.keys() ?? [])], ['x', 'y']);
  t.equal(children?.get('x')?.match?.rule.requestsPerUnit, 9);
  const swapped = compiled(
    [resource('a', 2, 'y'), resource('a', 9, 'x'), resource('b', 3)],
    second.compiled,
    true,
  );
  t.equal(swapped.compiledDomains, 1, 'the order of wildcards is that of the resources');
});

t.test('all problems of all domains are reported with their resource', async (t) => {
  const bad = (name: string, domain: string) => encoded({ name, domain, descriptors: [{ key: '' }] });
  const result = compile([bad('one', 'a'), resource('b', 1), bad('two', 'c'), bad('three', '')]);
  t.match(result, {
    ok: false,
    reason: 'invalid',
    problems: [
      { source: 'one', message: 'descriptor has empty key' },
      { source: 'two', message: 'descriptor has empty key' },
      { source: 'three', message: 'config file cannot have empty domain' },
      { source: 'three', message: 'descriptor has empty key' },
    ],
  });
});

t.test('a duplicate resource is a problem, also when it was known before', async (t) => {
  const first = compiled([resource('a', 1)]);
  t.match(compile([resource('a', 1), resource('a', 1)], first.compiled), {
    ok: false,
    problems: [{ message: "duplicate domain 'a' in config file" }],
  });
});

t.test('warnings are of the domains that were compiled now', async (t) => {
  const doubtful = encoded({
    name: 'a',
    domain: 'a',
    descriptors: [
      { key: 'k', value: '*' },
      { key: 'k', value: 'b*', rateLimit: { unit: unit.hour } },
    ],
  });
  const first = compiled([doubtful, resource('b', 1)]);
  t.match(first.warnings, [{ path: 'a.k_b*' }]);
  t.same(compiled([doubtful, resource('b', 2)], first.compiled).warnings, []);
});

t.test('invalid rules on trial do not reject a set, and are reported until they change', async (t) => {
  const trial = (domain: string, requestsPerUnit: number) => {
    const policy = { unit: requestsPerUnit === 0 ? 99 : unit.hour, requestsPerUnit };
    const descriptors = [{ key: 'k', rateLimit: { unit: unit.hour, requestsPerUnit: 9 } }];
    const trialDescriptors = [{ key: 'k', rateLimit: policy }];
    return encoded({ name: domain, domain, descriptors, trialDescriptors });
  };
  const first = compiled([trial('a', 1), resource('b', 2)]);
  t.match(first, { rules: { ruleCount: 2 }, candidates: { ok: true, rules: { ruleCount: 1 } } });
  const second = compiled([trial('a', 0), resource('b', 2)], first.compiled);
  t.match(second, { compiledDomains: 1, rules: { ruleCount: 2 }, candidates: { ok: false } });
  const third = compiled([trial('a', 0), resource('b', 3)], second.compiled);
  t.match(third.candidates, {
    ok: false,
    problems: [{ source: 'a', path: 'a.k', message: "invalid rate limit unit '99'" }],
  });
  const fourth = compiled([trial('a', 1), trial('b', 5)], third.compiled);
  t.match(fourth.candidates, { ok: true, rules: { ruleCount: 2 } });
  t.match(compiled([], fourth.compiled).candidates, { ok: true, rules: { ruleCount: 0 } });
});

t.test('undecodable resources are reported with their index', async (t) => {
  t.match(compile([resource('a', 1), Uint8Array.of(0x1a, 9)]), {
    ok: false,
    reason: 'undecodable',
    problem: /^resource 1 cannot be decoded: /,
  });
});

t.test('compiling is split into steps, for one large domain and for many small ones', async (t) => {
  const steps = (resources: readonly Uint8Array[]) =>
    [...compileResources(resources, emptyResources, { mergeDomains: false })].length;
  const descriptors = Array.from({ length: 1_000 }, (_, i) => ({ key: `k${i}` }));
  t.ok(steps([encoded({ name: 'a', domain: 'a', descriptors })]) >= 1_000);
  t.ok(steps(Array.from({ length: 1_000 }, (_, i) => resource(`d${i}`, 1))) >= 1_000);
});
