import t from 'tap';
import { describeResponse, parseAccessLog } from '../src/read/access-log.ts';

const expected = {
  method: 'POST',
  path: '/orders?x=1',
  authority: 'api.example.com',
  address: '10.0.35.28',
  status: 429,
  flags: ['RL'],
};

t.test('lines of the formats of Envoy, Envoy Gateway and Istio are the same request', async (t) => {
  const start = '[2026-11-28T10:00:00.310Z] "POST /orders?x=1 HTTP/2" 429 RL';
  const end = '"203.0.113.9,10.0.35.28" "curl \\"8\\"" "cc21d9b0" "api.example.com" "10.0.2.1:80"';
  for (const line of [
    `${start} 154 0 226 100 ${end}`,
    `envoy-1 | ${start} 154 0 226 100 ${end}`,
    `${start} via_upstream - "-" 154 0 226 100 ${end} outbound|80||shop 10.0.0.1:4 10.0.0.2:80 10.0.35.28:5 - default`,
    JSON.stringify({
      ...{ ':authority': 'api.example.com', method: 'POST', 'x-envoy-origin-path': '/orders?x=1' },
      ...{ response_code: 429, response_flags: 'RL', 'x-forwarded-for': '203.0.113.9,10.0.35.28' },
    }),
    JSON.stringify({
      ...{ authority: 'api.example.com', method: 'POST', path: '/orders?x=1', response_code: '429' },
      ...{ response_flags: 'RL', downstream_remote_address: '10.0.35.28:51422' },
    }),
    JSON.stringify({
      ...{ authority: 'api.example.com', request_method: 'POST', request_path: '/orders?x=1' },
      ...{ response_code: 429, response_flags: 'RL', 'x-forwarded-for': '203.0.113.9,10.0.35.28' },
    }),
  ])
    t.strictSame(parseAccessLog(`${line}\n`), expected, line);
});

t.test('what a line does not have is absent, and other texts are no line', async (t) => {
  const bare = parseAccessLog(
    '[2026-11-28T10:00:00Z] "GET / HTTP/1.1" 0 DC,UAEX 0 0 1 - "-" "-" "-" "-" "-"',
  );
  t.match(bare, { authority: '', address: undefined, status: undefined, flags: ['DC', 'UAEX'] });
  t.equal(bare && describeResponse(bare), 'no response, DC, UAEX: denied by external authorization');
  for (const text of ['', 'GET / 200', '{', '[]', '{"path":"/"}', `[${'x'.repeat(100_000)}`])
    t.equal(parseAccessLog(text), undefined, text.slice(0, 20));
});
