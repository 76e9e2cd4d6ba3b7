import fc from 'fast-check';
import type { PathMatch } from '../../src/match/path-pattern.ts';
import type { RequestAttributes, RequestMatch, ValueMatch } from '../../src/match/request-match.ts';

/** A rule of a route as an HTTPRoute has it. */
export interface RandomRule {
  readonly hosts: readonly string[];
  readonly matches: readonly RequestMatch[];
  readonly route: { readonly createdMs: number; readonly name: string };
}

// Few values, so that most requests match several routes, which then differ by their precedence.
const labels = fc.constantFrom('a', 'b');
const segments = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b') },
  fc.constantFrom('ab', 'A', 'x.y', 'caf%C3%A9'),
);
const values = fc.constantFrom('1', '2', '12');
const methods = fc.constantFrom('GET', 'POST', 'HEAD', 'DELETE');

const hostName = fc.array(labels, { maxLength: 2 }).map((parts) => [...parts, 'test'].join('.'));
const wildcard = fc.array(labels, { maxLength: 1 }).map((parts) => ['*', ...parts, 'test'].join('.'));
const hosts = fc.uniqueArray(
  fc.oneof({ weight: 3, arbitrary: fc.constant('*') }, hostName, { weight: 2, arbitrary: wildcard }),
  { minLength: 1, maxLength: 2 },
);

const plainPath = fc
  .tuple(fc.array(segments, { maxLength: 3 }), fc.boolean())
  .map(([parts, slash]) => `/${parts.join('/')}${slash && parts.length > 0 ? '/' : ''}`);

const prefixPath = fc
  .tuple(fc.array(segments, { maxLength: 2 }), fc.boolean())
  .map(([parts, slash]) => `/${parts.join('/')}${slash && parts.length > 0 ? '/' : ''}`);

const path: fc.Arbitrary<PathMatch> = fc.oneof(
  plainPath.map((value): PathMatch => ({ type: 'Exact', value })),
  { weight: 3, arbitrary: prefixPath.map((value): PathMatch => ({ type: 'PathPrefix', value })) },
  fc
    .constantFrom('/a', '/a/.*', '/[ab]+/?', '/(a|b)/b', '.*')
    .map((value): PathMatch => ({ type: 'RegularExpression', value })),
);

const valueMatches = (names: readonly string[]): fc.Arbitrary<ValueMatch[]> =>
  fc.uniqueArray(
    fc.oneof(
      fc.record({ name: fc.constantFrom(...names), value: values }),
      fc.record({
        name: fc.constantFrom(...names),
        value: fc.constantFrom('1.*', '[0-9]'),
        type: fc.constant<'RegularExpression'>('RegularExpression'),
      }),
    ),
    { maxLength: 2, selector: ({ name }) => name.toLowerCase() },
  );

/** Most matches lack some parts. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, arbitrary);

const match: fc.Arbitrary<RequestMatch> = fc.record({
  path,
  methods: rarely(methods.map((method) => [method])),
  headers: rarely(valueMatches(['x-one', 'X-Two'])),
  queryParams: rarely(valueMatches(['p', 'q'])),
});

/** Rules of up to six routes. Routes are of few ages, so that names decide between some. */
export const randomRules: fc.Arbitrary<readonly RandomRule[]> = fc
  .array(
    fc.record({
      hosts,
      createdMs: fc.integer({ min: 0, max: 1 }),
      name: fc.constantFrom('shop/a', 'shop/b', 'team/a', 'team/b', 'team/c'),
      rules: fc.array(fc.array(match, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 3, maxLength: 6, size: 'max' },
  )
  .map((routes) => {
    const unique = routes.filter(
      ({ name }, index) => routes.findIndex((other) => other.name === name) === index,
    );
    return unique.flatMap(({ rules, createdMs, name, hosts: known }) =>
      rules.map((matches) => ({ hosts: known, matches, route: { createdMs, name } })),
    );
  });

const dictionary = (names: readonly string[]) =>
  fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 2, noNullPrototype: true });

const query = fc
  .array(fc.tuple(fc.constantFrom('p', 'q', 'r'), values), { maxLength: 3 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

export const randomRequest: fc.Arbitrary<RequestAttributes> = fc.record({
  host: fc.tuple(hostName, fc.constantFrom('', ':8080')).map(([name, port]) => name + port),
  path: fc.tuple(plainPath, query).map(([plain, text]) => (text === '' ? plain : `${plain}?${text}`)),
  method: methods,
  headers: dictionary(['x-one', 'x-two', 'x-three']),
});
