import t from 'tap';
import { readAccessLog, withoutSecrets } from '../../src/pages/explain/access-log.ts';

const quoted = '"10.0.0.1" "curl \\"8\\"" "a-request" "shop.test:8443" "10.0.0.9:80"';

t.test('lines of access logs are read in both formats', (t) => {
  const found = { method: 'GET', url: 'https://shop.test:8443/a?b=c' };
  for (const line of [
    `[2026-11-28T12:00:00.000Z] "GET /a?b=c HTTP/2" 429 - 0 9 1 - ${quoted}`,
    `pod-1 | [2026-11-28T12:00:00.000Z] "GET /a?b=c HTTP/1.1" 429 RL 0 9 1 2 ${quoted}`,
    JSON.stringify({ method: 'GET', path: '/a?b=c', authority: 'shop.test:8443', response_code: 429 }),
    JSON.stringify({
      ...{ ':method': 'GET', ':path': '/rewritten', 'x-envoy-original-path': '/a?b=c' },
      ...{ ':authority': 'shop.test:8443', status: 429 },
    }),
  ])
    t.match(readAccessLog(line), { ...found, response: /^429/ }, line);
  for (const line of ['', 'x', '{', '{}', 'null', '"GET / HTTP/1.1" 200', '{"method":"GET","path":"/"}'])
    t.equal(readAccessLog(line), undefined, line);
  t.end();
});

t.test('a URL loses what may be a secret', (t) => {
  for (const [url, safe] of [
    ['https://a.test/x', 'https://a.test/x'],
    ['https://ann:pw@a.test/x?q=1#access_token=t', 'https://a.test/x?q=1'],
    ['https://a.test/x?api_key=k&q=1&Code=c', 'https://a.test/x?api_key=removed&q=1&Code=removed'],
    ['https://a.test/x?%74oken=t&%zz=1', 'https://a.test/x?%74oken=removed&%zz=1'],
  ] as const)
    t.equal(withoutSecrets(url), safe);
  t.end();
});
