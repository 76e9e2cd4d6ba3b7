import fc from 'fast-check';
import t from 'tap';
import { intersectHosts } from '../../src/gateway-api/attachment.ts';

/** Whether a hostname of Gateway API, which may be a wildcard, is for a host. */
function matches(hostname: string, host: string): boolean {
  if (hostname === '*') return true;
  if (!hostname.startsWith('*.')) return hostname === host;
  return host.endsWith(hostname.slice(1)) && host.length > hostname.length - 1;
}

const label = fc.constantFrom('a', 'b');
const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
const hostname = fc.tuple(fc.boolean(), host).map(([isWildcard, name]) => (isWildcard ? `*.${name}` : name));

t.test('a host is in the intersection if the listener and the route have it', async () => {
  fc.assert(
    fc.property(
      fc.option(hostname, { nil: undefined }),
      fc.array(hostname, { maxLength: 3 }),
      host,
      (listener, route, requested) => {
        const isOfRoute = route.length === 0 || route.some((one) => matches(one, requested));
        const expected = matches(listener ?? '*', requested) && isOfRoute;
        return intersectHosts(listener, route).some((one) => matches(one, requested)) === expected;
      },
    ),
    { numRuns: 2_000 },
  );
});

t.test('a wildcard is for any number of labels, but not for the domain itself', (t) => {
  t.same(intersectHosts('*.example.com', ['a.b.example.com', 'example.com']), ['a.b.example.com']);
  t.same(intersectHosts('a.example.com', ['*.example.com']), ['a.example.com']);
  t.same(intersectHosts('*.a.example.com', ['*.example.com']), ['*.a.example.com']);
  t.same(intersectHosts(undefined, []), ['*']);
  t.end();
});
